"""A multicast's branch is replaced by one over another path: who waits for what the first one has, and who does not?"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import ADDRESSES, ring
from mesh_tests.sim.test_another_path import MOST_S, longest_gap_s
from mesh_tests.sim.test_costs import HIGH, set_costs
from mesh_tests.sim.test_order import message_of, numbers_of

SLOW_S = 0.5
settled = pytest.mark.parametrize("is_settled", [False, True], ids=["unsettled", "settled"])


def star() -> SimMesh:
    routers = {"r1": {"connect": ["r2", "r3"]}, "r2": {"connect": ["r4"]}, "r3": {"connect": ["r4"]}, "r4": {}}
    mesh = SimMesh({"mesh": "star", "node_tls": False, "routers": routers, "addresses": ADDRESSES})
    mesh.converge()
    return mesh


@settled
@pytest.mark.parametrize("ends", ["detaches", "is cut"])
def test_a_consumer_that_goes_holds_up_nobody_else(is_settled: bool, ends: str):
    mesh = star()
    client = mesh.client("r2")
    stays, goes = (each.receiver("prices", credit=1000) for each in (mesh.client("r3"), client))
    sender = mesh.client("r1").sender("prices")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.run(0.2)

    def lose() -> None:
        if ends == "detaches":
            goes.link.close()
            mesh.flush()
        else:
            mesh.cut(client.pipe)

    assert longest_gap_s(mesh, sender, lambda: len(stays.messages), lose, settled=is_settled) < MOST_S


LOSSES: dict[str, Callable[[SimMesh], None]] = {
    "its next router dies": lambda mesh: mesh.kill("r2"),
    "its first connection is cut": lambda mesh: mesh.cut_trunk("r1", "r2"),
    "a connection further on is cut": lambda mesh: mesh.cut_trunk("r2", "r3"),
}


@settled
@pytest.mark.parametrize("loss", LOSSES)
def test_what_waits_for_a_left_branch_goes_on_at_once_when_that_is_lost(is_settled: bool, loss: str):
    mesh = ring()
    receiver = mesh.client("r3").receiver("prices", credit=1000)
    sender = mesh.client("r1").sender("prices")
    mesh.run_until(lambda: sender.link.credit > 0)

    def send(count: int) -> None:
        for _ in range(count):
            sender.send(message_of(sender.count, is_large=False), settled=is_settled)
            mesh.flush()
            mesh.run(0.001)

    send(1)
    mesh.run(0.2)
    mesh.trunks[frozenset({"r1", "r2"})].delay_s = SLOW_S
    send(10)
    set_costs(mesh, HIGH, ("r1", "r2"))
    send(10)
    mesh.run(SLOW_S / 2)
    assert numbers_of(receiver.messages) == [0]
    LOSSES[loss](mesh)
    mesh.run(MOST_S)
    assert numbers_of(receiver.messages)[-10:] == list(range(11, 21))
    mesh.run(5)
    assert len(sender.outcomes) == (0 if is_settled else sender.count)
    assert len(set(receiver.messages)) == len(receiver.messages)


@pytest.mark.parametrize("then", ["settled", "large"])
def test_nor_is_it_waited_for_when_the_producer_sends_by_another_way_then(then: str):
    """What it has may come back much later, and there will be no credit to ask."""
    mesh = ring()
    receiver = mesh.client("r3").receiver("prices", credit=1000)
    sender = mesh.client("r1").sender("prices")
    mesh.send(sender, message_of(0, is_large=False))
    mesh.run(0.2)
    mesh.trunks[frozenset({"r1", "r2"})].delay_s = SLOW_S
    for number in range(1, 4):
        mesh.send(sender, message_of(number, is_large=False))
    mesh.run(0.01)
    set_costs(mesh, HIGH, ("r1", "r2"))
    mesh.run(0.01)
    mesh.cut_trunk("r2", "r3")
    mesh.run(MOST_S)
    for number in range(4, 7):
        mesh.send(sender, message_of(number, is_large=then == "large"), settled=then == "settled")
    mesh.run_until(lambda: numbers_of(receiver.messages)[-3:] == [4, 5, 6], SLOW_S)


@settled
def test_a_branch_whose_consumer_stands_still_is_not_waited_for_anew(is_settled: bool):
    """The others go without it by now."""
    mesh = ring()
    stalls = mesh.client("r3").receiver("prices", credit=3)
    stalls.accepts = stalls.tops_up = False
    goes_on = mesh.client("r1").receiver("prices", credit=20_000)
    sender = mesh.client("r1").sender("prices")

    def came_at(seconds: float) -> list[float]:
        times, end = [], mesh.now + seconds
        while mesh.now < end:
            seen = len(goes_on.messages)
            if sender.link.credit > 0:
                sender.send(message_of(sender.count, is_large=False), settled=is_settled)
            mesh.run(0.05)
            if len(goes_on.messages) > seen:
                times.append(mesh.now)
        return times

    came_at(60)
    set_costs(mesh, HIGH, ("r1", "r2"))
    assert max(later - earlier for earlier, later in pairwise(came_at(60))) < 0.12
    assert len(stalls.messages) <= 4
