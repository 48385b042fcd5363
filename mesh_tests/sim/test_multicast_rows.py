"""What does a producer hear of a multicast, and what does a consumer that stands still do to it?"""

from __future__ import annotations

import pytest

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.outcomes import REFUSED, told
from mesh_tests.sim.line import line
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED

STALL_S = 10.0
FLOATS = 3
"""One delivery more on every link from the producer to the consumer."""
BY_RANK = (REFUSED, ACCEPTED, MODIFIED_FAILED, RELEASED)
LARGE_BYTES = 8 << 20  # more than any window holds


def two_consumers(egress: str) -> tuple[SimMesh, SimReceiver, SimReceiver, SimSender]:
    """One at r1, one at ``egress``; both hold what they get."""
    mesh = line()
    receivers = [mesh.client(router).receiver("prices", credit=100) for router in ("r1", egress)]
    for receiver in receivers:
        receiver.accepts = False
    return mesh, *receivers, mesh.client("r1").sender("prices")


@pytest.mark.parametrize("here", BY_RANK, ids=lambda outcome: f"{outcome.kind.name} here")
@pytest.mark.parametrize("there", BY_RANK, ids=lambda outcome: f"{outcome.kind.name} there")
def test_the_outcome_is_the_highest_once_every_consumer_settled(egress: str, here, there):
    mesh, near, far, sender = two_consumers(egress)
    mesh.send(sender)
    mesh.run_until(lambda: bool(near.held and far.held))
    far.settle(there)
    mesh.run(1)
    assert not sender.outcomes
    near.settle(here)
    mesh.run_until(lambda: not sender.open)
    assert told(sender.outcomes[1]) == told(min(here, there, key=BY_RANK.index))


def test_a_consumer_that_is_lost_counts_as_modified(egress: str):
    mesh = line()
    near, client = mesh.client("r1").receiver("prices"), mesh.client(egress)
    far = client.receiver("prices")
    near.accepts = far.accepts = False
    sender = mesh.client("r1").sender("prices")
    mesh.send(sender)
    mesh.run_until(lambda: bool(near.held and far.held))
    near.settle(RELEASED)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: sender.outcomes == {1: MODIFIED_FAILED})


def test_pre_settled_copies_do_not_wait_for_a_consumer_without_credit(egress: str):
    mesh = line()
    moving = mesh.client("r2").receiver("prices", credit=1000)
    still = mesh.client(egress).receiver("prices", credit=3)
    still.tops_up = False
    sender = mesh.client("r1").sender("prices")
    before = mesh.now
    for _ in range(50):
        mesh.send(sender, settled=True)
    mesh.run_until(lambda: len(moving.messages) == 50)
    assert mesh.now - before < STALL_S / 2
    assert len(still.messages) == 3
    assert _copies_missed(mesh) == 47


def test_pre_settled_copies_do_not_wait_for_a_consumer_that_comes_without_credit(egress: str):
    mesh = line()
    moving = mesh.client(egress, "moving").receiver("prices", credit=10_000)
    sender = mesh.client("r1").sender("prices")
    mesh.run(0.5)
    mesh.client(egress, "still").receiver("prices", credit=0)
    mesh.run(0.05)
    before = mesh.now
    while sender.count < 2000:
        while sender.link.credit > 0 and sender.count < 2000:
            sender.send(b"x", settled=True)
        mesh.run(0.005)
    mesh.run_until(lambda: len(moving.messages) == 2000, 1)
    assert mesh.now - before < 1


def test_only_the_consumer_without_credit_loses_pre_settled_copies_of_many_producers(egress: str):
    mesh = line()
    moving = mesh.client(egress).receiver("prices", credit=10_000)
    still = mesh.client(egress).receiver("prices", credit=3)
    still.tops_up = False
    senders = [mesh.client("r1").sender("prices") for _ in range(5)]
    mesh.run(0.5)
    for _ in range(500):
        for sender in senders:
            if sender.link.credit > 0:
                sender.send(b"x", settled=True)
            mesh.run(0.0005)
    mesh.run(2)
    assert len(moving.messages) == sum(sender.count for sender in senders)


def test_unsettled_copies_wait_for_a_consumer_without_credit_before_it_is_left_out(egress: str):
    mesh, moving, still, sender = _one_stands_still(egress)
    _send_what_credit_allows(mesh, sender, STALL_S - 0.5)
    assert sender.count <= 1 + FLOATS
    mesh.run(1)
    _send_what_credit_allows(mesh, sender, 1)
    assert sender.count > 20, "nobody waits for it any more"
    mesh.run_until(lambda: len(moving.messages) == sender.count)
    assert len(still.messages) == 1
    assert _copies_missed(mesh) == sender.count - 1


def test_a_consumer_that_was_left_out_gets_copies_again_once_it_grants_credit(egress: str):
    mesh, moving, still, sender = _one_stands_still(egress)
    _send_what_credit_allows(mesh, sender, STALL_S + 1)
    before = len(moving.messages)
    still.link.grant(100)
    mesh.run(0.1)
    after = [b"after %d" % index for index in range(5)]
    for body in after:
        mesh.send(sender, body)
    mesh.run_until(lambda: moving.messages[before:][-5:] == after)
    mesh.run_until(lambda: still.messages[-5:] == after)


def _send_what_credit_allows(mesh: SimMesh, sender: SimSender, seconds: float) -> None:
    end = mesh.now + seconds
    while mesh.now < end:
        while sender.link.credit > 0:
            sender.send(b"x")
        mesh.run(0.02)


def _copies_missed(mesh: SimMesh) -> int:
    return sum(address.copies_missed for router in mesh.routers.values() for address in router.snapshot().addresses)


def _one_stands_still(egress: str) -> tuple[SimMesh, SimReceiver, SimReceiver, SimSender]:
    """At ``egress``: it has accepted one copy, which was all its credit."""
    mesh = line()
    moving = mesh.client("r2").receiver("prices", credit=1000)
    still = mesh.client(egress).receiver("prices", credit=1)
    still.tops_up = False
    sender = mesh.client("r1").sender("prices")
    mesh.send(sender)
    mesh.run_until(lambda: len(still.messages) == len(moving.messages) == 1)
    mesh.run(0.1)
    return mesh, moving, still, sender


def test_a_consumer_that_takes_no_byte_of_a_started_copy_loses_it_and_the_others_get_theirs(egress: str):
    mesh = line()
    client = mesh.client(egress)
    still, moving = client.receiver("prices"), mesh.client("r1").receiver("prices")
    still.reads = False
    sender = mesh.client("r1").sender("prices")
    mesh.run_until(lambda: sender.link.credit > 1)
    body = bytes(LARGE_BYTES)
    _stream(mesh, sender, body)
    mesh.run_until(lambda: [len(message) for message in moving.messages] == [LARGE_BYTES])
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    assert _copies_missed(mesh) == 1
    _resume(mesh, client, still)
    assert (still.messages, still.aborted) == ([], 1)


def test_pre_settled_copies_hardly_wait_for_a_consumer_that_takes_no_byte(egress: str):
    mesh = line()
    client = mesh.client(egress, window_frames=4)
    still, moving = client.receiver("prices", credit=1000), mesh.client("r1").receiver("prices", credit=1000)
    still.reads = False
    sender = mesh.client("r1").sender("prices")
    mesh.run(0.5)
    bodies = [number.to_bytes(4, "big") * 5000 for number in range(500)]
    before = mesh.now
    for body in bodies:
        mesh.send(sender, body, settled=True)
        mesh.run(0.001)
    mesh.run_until(lambda: moving.messages == bodies)
    mesh.run_until(lambda: _copies_missed(mesh) > 0)
    assert mesh.now - before < STALL_S / 2
    _resume(mesh, client, still)
    mesh.send(sender, b"after", settled=True)
    mesh.run_until(lambda: still.messages[-1:] == [b"after"])
    assert len(still.messages) == len(bodies) - _copies_missed(mesh) + 1


def test_who_stands_beside_one_whose_window_is_shut_loses_no_pre_settled_copy(egress: str):
    mesh = line()
    moving = mesh.client(egress, "moving").receiver("prices", credit=10_000)
    still = mesh.client(egress, "still", window_frames=4, max_frame_bytes=4096).receiver("prices", credit=1000)
    sender = mesh.client("r1").sender("prices")
    mesh.run(0.5)
    still.reads = False
    end = mesh.now + 5
    while mesh.now < end:
        for _ in range(3):
            if sender.link.credit > 0:
                sender.send(bytes(3000), settled=True)
        mesh.run(0.005)
    mesh.run(2)
    assert sender.count > 2000
    assert len(moving.messages) == sender.count


def _stream(mesh: SimMesh, sender: SimSender, body: bytes) -> None:
    """Send as the window allows; it must not take much longer than the wait for one that stands still."""
    sender.begin()
    for start in range(0, len(body), 65536):
        mesh.run_until(lambda: sender.link.is_writable, STALL_S + 2)
        sender.link.send(body[start : start + 65536])
        mesh.flush()
    sender.link.finish()


def _resume(mesh: SimMesh, client: SimClient, receiver: SimReceiver) -> None:
    client.resume(receiver)
    mesh.run(0.1)


def test_what_one_producer_settles_costs_no_other_its_wait_for_a_consumer_without_credit() -> None:
    mesh = line(1)
    receiver = mesh.client("r1", "c").receiver("prices", credit=1)
    receiver.accepts = receiver.tops_up = False
    settles, waits = mesh.client("r1", "a").sender("prices"), mesh.client("r1", "b").sender("prices")
    mesh.send(waits)
    mesh.run(0.5)
    mesh.send(settles, settled=True)
    mesh.run(0.5)
    number = mesh.send(waits, b"unsettled")
    mesh.run(2.0)
    assert number not in waits.outcomes
    receiver.link.grant(1)
    mesh.run(0.1)
    assert receiver.messages[-1] == b"unsettled"


def test_what_is_sent_settled_waits_behind_a_large_message_that_its_consumer_is_taking(egress: str):
    """On the last hop a client's one link carries one delivery at a time: that is no reason to lose one."""
    mesh = line()
    client = mesh.client(egress, "c", window_frames=4, max_frame_bytes=4096)
    receiver = client.receiver("prices", credit=100)
    large, small = mesh.client("r1", "large").sender("prices"), mesh.client("r1", "small").sender("prices")
    mesh.run_until(lambda: large.link.credit > 0 and small.link.credit > 0)
    receiver.reads = False
    large.send(bytes(500_000))
    mesh.run(0.05)
    small.send(b"settled", settled=True)
    for _ in range(10):
        mesh.run(0.4)
        client.resume(receiver)
        mesh.run(0.005)
        receiver.reads = False
    assert not receiver.messages
    _resume(mesh, client, receiver)
    mesh.run_until(lambda: len(receiver.messages) == 2)
    assert [len(message) for message in receiver.messages] == [500_000, 7]


def test_what_is_settled_goes_on_while_an_unsettled_one_waits_for_a_consumer_that_stands_still(egress: str):
    """Their branches are apart: behind one that waits, all others of a far router would go without."""
    mesh = line()
    quick = mesh.client(egress).receiver("prices", credit=1000)
    still = mesh.client(egress).receiver("prices", credit=1)
    still.tops_up = False
    settles, waits = mesh.client("r1").sender("prices"), mesh.client("r1").sender("prices")
    for body in (b"taken", b"waits"):
        mesh.run_until(lambda: waits.link.credit > 0)
        waits.send(body)
        mesh.run(0.1)
    for number in range(200):
        mesh.run_until(lambda: settles.link.credit > 0)
        settles.send(number.to_bytes(2), settled=True)
        mesh.run(0.01)
    mesh.run_until(lambda: len([body for body in quick.messages if len(body) == 2]) == 200)
    assert len(waits.open) == 1
