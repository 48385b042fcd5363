"""Does an egress offer to its other consumers what one of them gave back, before the ingress hears of it?

For an ingress a circuit is one taker, whoever is behind it.
"""

from __future__ import annotations

import pytest

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.egress import egress_at
from mesh_tests.sim.line import line
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED
from wire.link import RECEIVE_FIRST, RECEIVE_SECOND, SEND_MIXED

PATH_WAIT_S = 2.0
EGRESS_WAIT_S = PATH_WAIT_S / 4
ELSEWHERE = {"r2": "r3", "r3": "r2"}
LARGE_BYTES = 200_000
MODES = {RECEIVE_FIRST: "first", RECEIVE_SECOND: "second"}

behind_a_circuit = egress_at("r2", "r3")


def two_consumers(
    egress: str, *, credits: tuple[int, int] = (10, 10), settles: int = RECEIVE_FIRST
) -> tuple[SimMesh, list[SimReceiver]]:
    """Neither answers."""
    mesh = line()
    modes = (SEND_MIXED, settles)
    receivers = [mesh.client(egress).receiver("rpc", credit=credit, modes=modes) for credit in credits]
    for receiver in receivers:
        receiver.accepts = False
    return mesh, receivers


def producer(mesh: SimMesh, asks: int = RECEIVE_FIRST) -> SimSender:
    return mesh.client("r1").sender("rpc", modes=(SEND_MIXED, asks))


def holder_and_other(mesh: SimMesh, receivers: list[SimReceiver]) -> tuple[SimReceiver, SimReceiver]:
    mesh.run_until(lambda: any(receiver.held for receiver in receivers))
    one, other = receivers
    return (one, other) if one.held else (other, one)


def unsettled(mesh: SimMesh) -> int:
    return sum(each.unsettled for router in mesh.routers.values() for each in router.snapshot().addresses)


@pytest.mark.parametrize("asks", MODES, ids=lambda mode: f"asks to settle {MODES[mode]}")
@pytest.mark.parametrize("settles", MODES, ids=lambda mode: f"settles {MODES[mode]}")
def test_what_one_consumer_released_the_other_gets_and_the_producer_never_knows(egress: str, asks: int, settles: int):
    mesh, receivers = two_consumers(egress, settles=settles)
    mesh.send(sender := producer(mesh, asks), b"wanted")
    first, second = holder_and_other(mesh, receivers)
    second.accepts = True
    first.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED} and not sender.open, EGRESS_WAIT_S)
    assert first.messages == second.messages == [b"wanted"]
    mesh.run_until(lambda: not first.unconfirmed and not second.unconfirmed)
    mesh.run_until(lambda: unsettled(mesh) == 0)


def test_what_both_released_was_offered_to_each_once_and_is_released(egress: str):
    mesh, receivers = two_consumers(egress)
    mesh.send(sender := producer(mesh), b"unwanted")
    first, second = holder_and_other(mesh, receivers)
    first.settle(RELEASED)
    mesh.run_until(lambda: bool(second.held), EGRESS_WAIT_S)
    second.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, EGRESS_WAIT_S)
    mesh.run(PATH_WAIT_S + 1)
    assert first.messages == second.messages == [b"unwanted"]


@behind_a_circuit
def test_what_both_released_is_offered_behind_another_egress_but_not_here_again(egress: str):
    mesh, receivers = two_consumers(egress)
    mesh.send(sender := producer(mesh), b"wanted elsewhere")
    first, second = holder_and_other(mesh, receivers)
    elsewhere = mesh.client(ELSEWHERE[egress]).receiver("rpc")
    mesh.run(0.5)
    first.settle(RELEASED)
    mesh.run_until(lambda: bool(second.held), EGRESS_WAIT_S)
    assert elsewhere.messages == []
    second.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, EGRESS_WAIT_S)
    assert first.messages == second.messages == elsewhere.messages == [b"wanted elsewhere"]


def test_what_a_lost_consumer_never_got_the_other_gets(egress: str):
    mesh = line()
    mortal = mesh.client(egress)
    first = mortal.receiver("rpc", credit=2)
    first.accepts = False
    sender = producer(mesh)
    mesh.send(sender), mesh.send(sender, b"written")
    mesh.run_until(lambda: len(first.held) == 2)
    other = mesh.client(egress).receiver("rpc", credit=0)
    mesh.run(0.1)
    _stop_reading(mortal)
    first.link.grant(1)
    mesh.flush()
    mesh.run(0.1)
    mesh.send(sender, b"unwritten")
    mesh.run(0.1)
    other.link.grant(10)
    mesh.run(0.1)
    mesh.cut(mortal.pipe)
    mesh.run_until(lambda: len(sender.outcomes) == 3)
    assert sender.outcomes == {1: MODIFIED_FAILED, 2: MODIFIED_FAILED, 3: ACCEPTED}
    assert other.messages == [b"unwritten"]


def _stop_reading(client: SimClient) -> None:
    client.pipe.ends[1][1].is_output_blocked = True


@behind_a_circuit
def test_what_one_released_waits_shortly_at_the_egress_for_the_other(egress: str):
    mesh, receivers = two_consumers(egress, credits=(10, 0))
    mesh.send(sender := producer(mesh))
    first, second = holder_and_other(mesh, receivers)
    second.accepts = True
    first.settle(RELEASED)
    mesh.run(EGRESS_WAIT_S / 2)
    assert sender.outcomes == {}
    second.link.grant(1)
    mesh.flush()
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, 0.1)


@behind_a_circuit
def test_when_the_other_stays_busy_another_egress_gets_it(egress: str):
    mesh, receivers = two_consumers(egress, credits=(10, 0))
    mesh.send(sender := producer(mesh))
    first, second = holder_and_other(mesh, receivers)
    elsewhere = mesh.client(ELSEWHERE[egress]).receiver("rpc")
    mesh.run(0.1)
    first.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, EGRESS_WAIT_S + 0.1)
    assert (len(first.messages), len(second.messages), len(elsewhere.messages)) == (1, 0, 1)


@behind_a_circuit
def test_what_the_egress_still_offers_is_settled_when_its_producer_is_gone(egress: str):
    mesh, receivers = two_consumers(egress, credits=(10, 0))
    mesh.send(sender := producer(mesh))
    first, second = holder_and_other(mesh, receivers)
    first.settle(RELEASED)
    mesh.run(EGRESS_WAIT_S / 4)
    mesh.cut(next(pipe for pipe in mesh.pipes if pipe.ends[0][1] is sender.link.endpoint))
    mesh.cut_trunk("r1", "r2")
    mesh.run(0.1)
    second.link.grant(1)
    mesh.flush()
    mesh.run(PATH_WAIT_S)
    assert second.messages == []
    assert unsettled(mesh) == 0


def test_a_large_delivery_that_is_released_is_not_kept_to_be_offered_again(egress: str):
    mesh, receivers = two_consumers(egress)
    mesh.send(sender := producer(mesh), bytes(LARGE_BYTES))
    first, second = holder_and_other(mesh, receivers)
    first.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, PATH_WAIT_S + 0.5)
    assert second.messages == []


def test_a_producer_that_was_told_released_is_not_told_otherwise_by_a_consumer_that_comes_later():
    mesh = line(1)
    only = mesh.client("r1").receiver("rpc", modes=(SEND_MIXED, RECEIVE_SECOND))
    only.accepts = False
    sender = producer(mesh, RECEIVE_SECOND)
    sender.answers = False
    mesh.send(sender)
    mesh.run_until(lambda: bool(only.held))
    only.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED})
    late = mesh.client("r1").receiver("rpc")
    mesh.run(0.1)
    for delivery in only.unconfirmed:
        deliveries.settle(delivery)
    mesh.flush()
    mesh.run(PATH_WAIT_S)
    assert sender.outcomes == {1: RELEASED}
    assert late.messages == []


def test_an_egress_offers_to_its_own_consumers_only_though_it_has_circuits_too():
    mesh, receivers = two_consumers("r2")
    elsewhere = mesh.client("r3").receiver("rpc")
    idle = mesh.client("r2").sender("rpc")  # its router has a circuit to r3
    sender = producer(mesh)
    mesh.run_until(lambda: idle.link.credit > 0)
    for _ in range(4):
        mesh.send(sender)
        mesh.run(0.1)
    while held := [receiver for receiver in receivers if receiver.held]:
        for receiver in held:
            receiver.settle(RELEASED)
        mesh.run(0.1)
    assert list(sender.outcomes.values()) == [ACCEPTED] * 4
    assert len(elsewhere.messages) == 4
    assert len(receivers[0].messages) == len(receivers[1].messages) > 0
    at_r2 = next(each for each in mesh.routers["r2"].snapshot().addresses if each.address == "rpc")
    assert at_r2.circuits == 1
    assert at_r2.retried == len(receivers[0].messages)
