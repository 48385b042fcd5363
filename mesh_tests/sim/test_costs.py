"""An operator changes what a connection costs: do paths follow, at every router, and does it outlast the connection?"""

from __future__ import annotations

import pytest

from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import ring
from mesh_tests.sim.test_fallback import body, body_of
from mesh_tests.sim.test_order import message_of, numbers_of
from router.events import CostChanged
from wire.delivery import ACCEPTED

HIGH = 10


def path_to(mesh: SimMesh, start: str, end: str) -> tuple[str, ...] | None:
    return {view.router: view.path for view in mesh.routers[start].snapshot().routers}[end]


def set_costs(mesh: SimMesh, cost: int, *ends: tuple[str, str]) -> list[int]:
    """What they were."""
    return [mesh.routers[router].set_cost(neighbor, cost, mesh.now) for router, neighbor in ends]


@pytest.mark.parametrize("ends", [[("r1", "r2")], [("r2", "r1")], [("r1", "r2"), ("r2", "r1")]])
def test_the_larger_cost_counts_and_every_router_agrees(ends: list[tuple[str, str]]):
    mesh = ring()
    assert path_to(mesh, "r1", "r3") == ("r1", "r2", "r3")
    assert set_costs(mesh, HIGH, *ends) == [1] * len(ends)
    mesh.run(0.02)
    assert path_to(mesh, "r1", "r3") == ("r1", "r4", "r3")
    assert path_to(mesh, "r3", "r1") == ("r3", "r4", "r1")
    assert path_to(mesh, "r1", "r2") == ("r1", "r4", "r3", "r2")
    assert set_costs(mesh, 1, *ends) == [HIGH] * len(ends)
    mesh.run(0.02)
    assert path_to(mesh, "r1", "r3") == ("r1", "r2", "r3")


def test_a_change_of_a_cost_is_an_event_and_the_same_cost_again_is_none():
    mesh = ring()
    set_costs(mesh, HIGH, ("r1", "r2"))
    set_costs(mesh, HIGH, ("r1", "r2"))
    told = [(router, event) for _, router, event in mesh.log if isinstance(event, CostChanged)]
    assert told == [("r1", CostChanged("r2", HIGH, 1))]


def test_a_cost_lasts_when_the_connection_is_made_again():
    mesh = ring()
    set_costs(mesh, HIGH, ("r2", "r1"))
    mesh.cut_trunk("r1", "r2")
    mesh.run(1)
    mesh.link("r1", "r2")
    mesh.run(1)
    views = {view.router: view for view in mesh.routers["r1"].snapshot().routers}
    assert (views["r2"].is_neighbor, views["r2"].connection_cost) == (True, HIGH)


def test_new_traffic_takes_the_path_that_is_cheaper_now():
    mesh = ring()
    set_costs(mesh, HIGH, ("r1", "r2"))
    mesh.run(0.02)
    receiver = mesh.client("r3").receiver("rpc", credit=10)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.send(sender, b"x")
    mesh.run_until(lambda: len(receiver.messages) == 1)
    assert mesh.routers["r4"].snapshot().transit_circuits == 1
    assert mesh.routers["r2"].snapshot().transit_circuits == 0


@pytest.mark.parametrize(
    ("neighbor", "cost", "said"),
    [
        ("r3", 5, "the topology connects r1 to r2, r4, not to 'r3'"),
        ("r2", 0, "cost: expected a whole number from 1 to 1000000, got 0"),
        ("r2", 1_000_001, "got 1000001"),
        ("r2", "5", "got '5'"),
        ("r2", True, "got True"),
    ],
)
def test_what_is_no_cost_or_no_neighbor_is_refused(neighbor: str, cost: object, said: str):
    mesh = ring()
    with pytest.raises(ValueError, match=said):
        mesh.routers["r1"].set_cost(neighbor, cost, mesh.now)
    assert path_to(mesh, "r1", "r3") == ("r1", "r2", "r3")


# Traffic that is under way moves to the better path
STABLE_S = 2.0


def moved_s(mesh: SimMesh, within_s: float = 3 * STABLE_S) -> None:
    """Until nothing goes through r2 any more."""
    mesh.run_until(lambda: mesh.routers["r2"].snapshot().transit_circuits == 0, within_s)


def settle_in_batches(receivers: list[SimReceiver], holds: int, credit: int) -> None:
    """Those that hold so many; none if that is 0."""
    for receiver in receivers:
        if holds and len(receiver.held) >= holds:
            receiver.settle()
            receiver.link.grant(max(0, credit - receiver.link.credit))


def settle_at_once(mesh: SimMesh, receivers: list[SimReceiver]) -> None:
    for receiver in receivers:
        receiver.accepts = True
        receiver.settle()
    mesh.flush()


@pytest.mark.parametrize("consumers", [1, 3])
@pytest.mark.parametrize("is_settled", [False, True], ids=["unsettled", "settled"])
@pytest.mark.parametrize("holds", [0, 5], ids=["settles at once", "settles in batches"])
def test_a_stream_moves_to_a_cheaper_path_in_order_without_loss(consumers: int, is_settled: bool, holds: int):
    mesh = ring()
    mesh.trunks[frozenset({"r1", "r2"})].delay_s = 0.01
    credit = 20_000 if is_settled else 20
    receivers = [mesh.client("r3", f"c{n}").receiver("rpc", credit=credit) for n in range(consumers)]
    for receiver in receivers:
        receiver.accepts = not holds
    senders = [mesh.client("r1", f"p{n}").sender("rpc") for n in range(3)]
    mesh.run_until(lambda: all(sender.link.credit > 0 for sender in senders))
    sent = 0
    for n in range(3000):
        if n == 500:
            set_costs(mesh, HIGH, ("r1", "r2"))
        for number, sender in enumerate(senders):
            if sender.link.credit > 0:
                sender.send(body(f"{number} {sent}"), settled=is_settled)
                sent += 1
        mesh.run(0.001)
        settle_in_batches(receivers, holds, credit)
    settle_at_once(mesh, receivers)
    moved_s(mesh)
    mesh.run(5)
    assert mesh.routers["r4"].snapshot().transit_circuits == 1
    seen = [body_of(message).split() for receiver in receivers for message in receiver.messages]
    assert len(seen) == sent
    for receiver in receivers:
        for number in range(3):
            mine = [int(n) for who, n in (body_of(m).split() for m in receiver.messages) if int(who) == number]
            assert mine == sorted(mine)
    if not is_settled:
        assert {outcome for sender in senders for outcome in sender.outcomes.values()} == {ACCEPTED}


@pytest.mark.parametrize("consumers", [1, 3])
@pytest.mark.parametrize("is_settled", [False, True], ids=["unsettled", "settled"])
@pytest.mark.parametrize("holds", [0, 5], ids=["settles at once", "settles in batches"])
@pytest.mark.parametrize("large_each", [0, 7], ids=["small ones", "with large ones"])
def test_a_multicast_moves_to_another_path_in_order_without_loss(
    consumers: int, is_settled: bool, holds: int, large_each: int
):
    mesh = ring()
    mesh.trunks[frozenset({"r1", "r2"})].delay_s = 0.01
    credit = 20_000 if is_settled else 20
    receivers = [mesh.client("r3", f"c{n}").receiver("prices", credit=credit) for n in range(consumers)]
    for receiver in receivers:
        receiver.accepts = not holds
    sender = mesh.client("r1").sender("prices")
    mesh.run_until(lambda: sender.link.credit > 0)
    sent: list[bytes] = []
    for n in range(1500):
        if n == 500:
            set_costs(mesh, HIGH, ("r1", "r2"))
        if sender.link.credit > 0:
            is_large = large_each > 0 and len(sent) % large_each == 3
            sent.append(message_of(len(sent), is_large=is_large))
            sender.send(sent[-1], settled=is_settled)
        mesh.run(0.001)
        settle_in_batches(receivers, holds, credit)
    settle_at_once(mesh, receivers)
    mesh.run(5)
    for receiver in receivers:
        assert numbers_of(receiver.messages) == list(range(len(sent)))
    if not is_settled:
        assert set(sender.outcomes.values()) == {ACCEPTED}


def test_what_is_sent_after_the_move_waits_for_what_a_consumer_without_credit_has_not_got():
    """It settles late: the circuit that is left has credit only when the consumer has."""
    mesh = ring()
    receiver = mesh.client("r3").receiver("rpc", credit=1)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    for n in range(3):
        mesh.send(sender, body(f"{n}"))
    mesh.run_until(lambda: len(receiver.held) == 1)
    set_costs(mesh, HIGH, ("r1", "r2"))
    mesh.run(2 * STABLE_S)
    assert mesh.routers["r4"].snapshot().transit_circuits == 1
    for n in range(1, 3):
        receiver.link.grant(1)
        mesh.flush()
        mesh.run_until(lambda n=n: len(receiver.held) == n + 1, 1)
    assert [body_of(message) for message in receiver.messages] == [b"0", b"1", b"2"]
    receiver.settle()
    mesh.flush()
    moved_s(mesh)
    assert set(sender.outcomes.values()) == {ACCEPTED}


@pytest.mark.parametrize(("cost", "comes_back"), [(1, False), (5, True)], ids=["as dear", "dearer"])
def test_traffic_comes_back_from_a_detour_that_is_dearer(cost: int, comes_back: bool):
    mesh = ring()
    set_costs(mesh, cost, ("r1", "r4"))
    mesh.run(0.02)
    mesh.client("r3").receiver("rpc", credit=100)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.cut_trunk("r1", "r2")
    mesh.run(1)
    assert mesh.routers["r4"].snapshot().transit_circuits == 1
    mesh.link("r1", "r2")
    for n in range(500):
        mesh.send(sender, body(f"{n}"))
        mesh.run(0.01)
    assert mesh.routers["r2"].snapshot().transit_circuits == int(comes_back)
    assert set(sender.outcomes.values()) == {ACCEPTED}


def test_traffic_does_not_follow_a_connection_that_comes_and_goes():
    mesh = ring()
    set_costs(mesh, HIGH, ("r1", "r4"))
    mesh.client("r3").receiver("rpc", credit=100)
    mesh.client("r1").sender("rpc")
    mesh.cut_trunk("r1", "r2")
    for _ in range(10):
        mesh.run(STABLE_S / 2)
        mesh.link("r1", "r2")
        mesh.run(STABLE_S / 2)
        assert mesh.routers["r2"].snapshot().transit_circuits == 0
        mesh.cut_trunk("r1", "r2")
