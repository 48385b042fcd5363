"""Is what crosses the leaving of the last consumer answered in the time that a path is waited for?"""

from __future__ import annotations

import pytest

from mesh_tests.sim.line import line
from wire.delivery import ACCEPTED, RELEASED

PATH_WAIT_S = 2.0


@pytest.mark.parametrize("ahead_s", [0.0, 0.002, 0.004, 0.006, 0.01, 0.03])
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_what_crosses_it_is_released_and_a_consumer_that_comes_back_gets_the_next(
    egress: str, address: str, ahead_s: float
):
    mesh = line()
    receiver = mesh.client(egress).receiver(address, credit=100)
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 10)
    receiver.link.close()
    mesh.run(ahead_s)
    count = min(10, sender.link.credit)
    for _ in range(count):
        sender.send(b"crosses")
    mesh.run_until(lambda: len(sender.outcomes) == count, 2 * PATH_WAIT_S + 1)
    assert set(sender.outcomes.values()) <= {RELEASED}
    again = mesh.client(egress).receiver(address, credit=100)
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.send(sender, b"next")
    mesh.run_until(lambda: again.messages == [b"next"])


@pytest.mark.parametrize("size", [1, 200_000], ids=["small", "large"])
@pytest.mark.parametrize("gap_s", [0.0005, 0.004, 0.02, 0.5, 1.5])
def test_one_that_comes_instead_and_settles_late_has_what_follows_soon(egress: str, gap_s: float, size: int):
    """What waits there goes to it, over a circuit that was to end: that circuit is needed again."""
    mesh = line()
    client = mesh.client(egress)
    receiver = client.receiver("rpc", credit=5)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit >= 5)
    receiver.link.set_credit(0)
    client.endpoint.mark_dirty()
    mesh.run(0.05)
    mesh.send(sender, bytes(size))
    mesh.run(0.05)
    receiver.link.close()
    mesh.flush()
    mesh.run(gap_s)
    again = mesh.client(egress).receiver("rpc", credit=100)
    again.accepts = False
    for n in range(1, 6):
        mesh.run_until(lambda: sender.link.credit > 0, PATH_WAIT_S / 2)
        sender.send(bytes(size) + b"%d" % n)
        mesh.run_until(lambda n=n: len(again.held) == n + 1, PATH_WAIT_S / 2)


def test_a_circuit_that_is_needed_again_stays(egress: str):
    """It was to end once it is idle, and is looked at for that every second."""
    mesh = line()
    leaves = mesh.client(egress).receiver("rpc", credit=5)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit >= 5)
    leaves.link.set_credit(0)
    mesh.run(0.05)
    mesh.send(sender)
    mesh.run(0.05)
    leaves.link.close()
    mesh.flush()
    mesh.run(0.02)
    mesh.client(egress).receiver("rpc", credit=100)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    mesh.run(0.1)
    (address,) = mesh.routers["r1"].snapshot().addresses
    assert address.credit
    for _ in range(4000):
        mesh.run(0.0005)
        (address,) = mesh.routers["r1"].snapshot().addresses
        assert address.credit


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_one_that_settles_late_hears_a_producer_that_comes_after_a_while(egress: str, address: str):
    """What led to it was to end when no producer was left, and is needed again before its end."""
    mesh = line()
    slow = mesh.client(egress).receiver(address, credit=100)
    slow.accepts = False
    for count in range(1, 4):
        client = mesh.client("r1", f"p{count}")
        sender = client.sender(address)
        mesh.run_until(lambda sender=sender: sender.link.credit > 0, 3)
        sender.send(bytes(200_000 if count == 2 else 1))
        mesh.run_until(lambda count=count: len(slow.held) == count, 3)
        sender.link.close()
        mesh.flush()
        mesh.run(11)
