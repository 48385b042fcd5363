"""Is what crosses the leaving of the last consumer answered in the time that a path is waited for?"""

from __future__ import annotations

import pytest

from mesh_tests.sim.line import line
from wire.delivery import RELEASED

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
