"""Does everybody settle as it was agreed at attach, in one step or in two? [2.7.3], [2.8.2], [2.8.3]"""

from __future__ import annotations

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.outcomes import EVERY_KIND, outcome_id, told
from mesh_tests.sim.line import line
from wire.delivery import ACCEPTED, RELEASED, Outcome, OutcomeCode
from wire.link import RECEIVE_FIRST, RECEIVE_SECOND, SEND_MIXED, SEND_SETTLED, SEND_UNSETTLED

SEND_MODES = {SEND_MIXED: "mixed", SEND_UNSETTLED: "unsettled", SEND_SETTLED: "settled"}
RECEIVE_MODES = {RECEIVE_FIRST: "first", RECEIVE_SECOND: "second"}
TWO_STEPS = (SEND_MIXED, RECEIVE_SECOND)

sends = pytest.mark.parametrize("sends", SEND_MODES, ids=lambda mode: f"sends {SEND_MODES[mode]}")
wants = pytest.mark.parametrize("wants", SEND_MODES, ids=lambda mode: f"wants {SEND_MODES[mode]}")
settles = pytest.mark.parametrize("settles", RECEIVE_MODES, ids=lambda mode: f"settles {RECEIVE_MODES[mode]}")
asks = pytest.mark.parametrize("asks", RECEIVE_MODES, ids=lambda mode: f"asks to settle {RECEIVE_MODES[mode]}")


def pair(
    egress: str, address: str = "rpc", *, sending: tuple[int, int] = (SEND_MIXED, 0), taking: tuple[int, int]
) -> tuple[SimMesh, SimReceiver, SimSender]:
    mesh = line()
    receiver = mesh.client(egress).receiver(address, modes=taking)
    return mesh, receiver, mesh.client("r1").sender(address, modes=sending)


@sends
@asks
@wants
@settles
def test_messages_pass_between_any_two_modes_and_nothing_stays_unsettled(
    egress: str, sends: int, asks: int, wants: int, settles: int
):
    mesh, receiver, sender = pair(egress, sending=(sends, asks), taking=(wants, settles))
    kinds = {SEND_MIXED: [False, True], SEND_UNSETTLED: [False], SEND_SETTLED: [True]}[sends]
    for settled in kinds * 5:
        mesh.send(sender, settled=settled)
    mesh.run_until(lambda: len(receiver.messages) == 5 * len(kinds))
    mesh.run_until(lambda: not sender.open and not receiver.unconfirmed)
    assert list(sender.outcomes.values()) == [ACCEPTED] * 5 * kinds.count(False)
    if wants == SEND_SETTLED:
        assert all(receiver.came_settled)
    elif wants == SEND_MIXED:
        assert receiver.came_settled == kinds * 5
    assert len(receiver.confirmed) == (receiver.came_settled.count(False) if settles == RECEIVE_SECOND else 0)
    unsettled = [address.unsettled for router in mesh.routers.values() for address in router.snapshot().addresses]
    assert not any(unsettled)


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_consumer_that_is_told_all_will_come_unsettled_gets_nothing_settled(egress: str, address: str):
    mesh, receiver, sender = pair(egress, address, taking=(SEND_UNSETTLED, RECEIVE_FIRST))
    mesh.send(sender, settled=True)
    mesh.run_until(lambda: bool(receiver.messages))
    answer, _ = receiver.link.remote_settle_modes
    assert answer == SEND_UNSETTLED
    assert receiver.came_settled == [False]


@sends
@asks
def test_a_producer_is_answered_with_the_send_mode_that_it_proposed(sends: int, asks: int):
    mesh, _, sender = pair("r1", sending=(sends, asks), taking=TWO_STEPS)
    mesh.run_until(lambda: sender.link.is_open)
    assert sender.link.remote_settle_modes[0] == sends


# In two steps
@pytest.mark.parametrize("outcome", EVERY_KIND, ids=outcome_id)
def test_the_consumer_settles_after_the_producer_has(egress: str, outcome: Outcome):
    mesh, receiver, sender = pair(egress, sending=TWO_STEPS, taking=TWO_STEPS)
    receiver.accepts = sender.answers = False
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    receiver.settle(outcome)
    mesh.run_until(lambda: bool(sender.outcomes))
    mesh.run(1)
    assert told(sender.outcomes[1]) == told(outcome)
    assert sender.open
    assert receiver.unconfirmed
    sender.settle(1)
    mesh.run_until(lambda: receiver.confirmed == [b"x"])


def test_the_credit_of_a_delivery_settled_in_two_steps_returns(egress: str):
    mesh = line(listener={"link_capacity": 5})
    receiver = mesh.client(egress).receiver("rpc", modes=TWO_STEPS)
    sender = mesh.client("r1").sender("rpc", modes=TWO_STEPS)
    for _ in range(50):
        mesh.send(sender)
    mesh.run_until(lambda: len(receiver.confirmed) == 50)


def test_a_consumer_that_waits_for_the_producer_is_told_when_that_is_lost(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", modes=TWO_STEPS)
    receiver.accepts = False
    client = mesh.client("r1")
    sender = client.sender("rpc", modes=TWO_STEPS)
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    mesh.cut(client.pipe)
    receiver.settle()
    mesh.run_until(lambda: receiver.confirmed == [b"x"])


@pytest.mark.parametrize("is_orderly", [True, False], ids=["closes", "is lost"])
def test_what_its_producer_heard_accepted_counts_though_that_leaves_before_it_settled(egress: str, is_orderly: bool):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", modes=TWO_STEPS)
    client = mesh.client("r1")
    sender = client.sender("rpc", modes=TWO_STEPS)
    sender.answers = False
    mesh.send(sender)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    if is_orderly:
        sender.link.close()
    else:
        mesh.cut(client.pipe)
    mesh.run_until(lambda: receiver.confirmed == [b"x"])


def test_a_consumer_that_waits_is_told_that_it_may_not_count_when_the_path_is_lost():
    mesh = line()
    receiver = mesh.client("r3").receiver("rpc", modes=TWO_STEPS)
    receiver.accepts = False
    mesh.send(mesh.client("r1").sender("rpc", modes=TWO_STEPS))
    mesh.run_until(lambda: bool(receiver.held))
    mesh.cut_trunk("r1", "r2")
    receiver.settle()
    mesh.run_until(lambda: receiver.doubtful == [b"x"])


def test_a_consumer_that_waits_is_told_though_the_producer_leaves_settling_to_its_router(egress: str):
    mesh, receiver, sender = pair(egress, sending=(SEND_UNSETTLED, RECEIVE_FIRST), taking=TWO_STEPS)
    sender.answers = False
    mesh.send(sender)
    mesh.run_until(lambda: not sender.open)
    assert sender.outcomes == {1: ACCEPTED}
    mesh.run_until(lambda: receiver.confirmed == [b"x"])


@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize("outcome", EVERY_KIND, ids=outcome_id)
def test_an_outcome_that_the_consumer_settled_reaches_a_producer_that_settles_last_settled(
    egress: str, address: str, outcome: Outcome
):
    mesh, receiver, sender = pair(egress, address, sending=TWO_STEPS, taking=(SEND_MIXED, RECEIVE_FIRST))
    receiver.accepts = sender.answers = False
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    receiver.settle(outcome)
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes[1].kind is outcome.kind
    assert not sender.open


def test_what_nobody_takes_comes_back_settled_to_a_producer_that_settles_last():
    mesh = line()
    sender = mesh.client("r1").sender(None, modes=TWO_STEPS)
    sender.answers = False
    mesh.send(sender, bytes(Message(address="rpc", body="x").encode()))
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes[1].kind is OutcomeCode.RELEASED
    assert not sender.open


def test_a_consumer_of_a_multicast_that_waits_is_told_too(egress: str):
    mesh, receiver, sender = pair(egress, "prices", taking=TWO_STEPS)
    other = mesh.client("r2").receiver("prices")
    mesh.run(0.5)
    mesh.send(sender)
    mesh.run_until(lambda: receiver.confirmed == other.taken == [b"x"])
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})


def test_a_producer_that_settles_before_there_is_an_outcome_wants_none(egress: str):
    mesh, receiver, sender = pair(egress, taking=(SEND_MIXED, RECEIVE_FIRST))
    receiver.accepts = False
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    sender.settle(1)
    mesh.run(0.1)
    receiver.settle(RELEASED)
    mesh.run(1)
    assert sender.outcomes == {}
    assert len(receiver.messages) == 1
    receiver.accepts = True
    mesh.send(sender)
    mesh.run_until(lambda: sender.outcomes == {2: ACCEPTED})
