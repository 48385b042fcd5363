"""What else happens while something is recalled: drains, releases, limits of size, ends of links? (`test_recall`)"""

from __future__ import annotations

import pytest

from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from mesh_tests.sim.test_recall import PATH_WAIT_S, TWICE_S, call_back_for_nobody, consumers, producer, recalled
from router.forwarding.copies import Copies
from wire.delivery import ACCEPTED, RELEASED
from wire.link import RECEIVE_FIRST, RECEIVE_SECOND, SEND_MIXED


def poll(mesh: SimMesh, receiver: SimReceiver) -> None:
    """Ask for one message by a drain."""
    receiver.link.request_drain(1)
    mesh.flush()
    mesh.run(1.0)
    if not receiver.link.is_drain_pending:
        receiver.link.end_drain()


# Credit afterwards
def test_a_circuit_that_was_recalled_from_has_its_turn_beside_busy_producers():
    mesh = line()
    slow = mesh.client("r2").receiver("rpc", credit=1)
    slow.accepts = slow.tops_up = False
    other = mesh.client("r3").receiver("rpc", credit=0)
    near, far = mesh.client("r2").sender("rpc"), mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    for sender, body in ((near, b"near"), (far, b"far"), (near, b"near")):
        mesh.send(sender, body)
        mesh.run(0.1)
    mesh.run(2 * TWICE_S)
    assert recalled(mesh, "r2")
    other.link.close()
    mesh.run(5)
    for _ in range(60):
        for sender, body in ((near, b"near"), (far, b"far")):
            while sender.link.credit > 0:
                mesh.send(sender, body)
        mesh.run(0.2)
        slow.settle()
        slow.link.grant(1)
        mesh.flush()
        mesh.run(0.2)
    assert slow.messages.count(b"far") > 20
    assert slow.messages.count(b"near") > 20


def test_who_asks_by_drain_is_served_after_it_rested():
    mesh = line()
    first, second = consumers(mesh, 0, 0)
    first.tops_up = False
    sender = producer(mesh)
    mesh.send(sender, b"x")
    mesh.run(3 * TWICE_S)
    assert recalled(mesh, "r2") == 1
    second.link.close()
    mesh.run(1.0)
    for _ in range(5):
        if sender.link.credit > 0:
            mesh.send(sender, b"x")
        poll(mesh, first)
    assert len(first.messages) >= 3


# Who had it
def test_who_kept_it_for_long_and_released_it_is_not_offered_it_again():
    mesh = line()
    receivers = consumers(mesh, 10, 10)
    for each in receivers:
        each.accepts = False
    sender = producer(mesh)
    mesh.send(sender, b"x")
    for _ in range(10):
        mesh.run(3 * PATH_WAIT_S)
        for each in receivers:
            each.settle(RELEASED)
        mesh.flush()
    assert [len(each.messages) for each in receivers] == [1, 1]
    assert sender.outcomes == {1: RELEASED}


def test_one_that_came_back_is_released_when_only_who_had_it_is_left():
    mesh = line(4)
    had, wants = (mesh.client("r1").receiver("rpc", credit=credit) for credit in (10, 0))
    had.accepts = wants.tops_up = False
    resting = mesh.client("r4").receiver("rpc", credit=0)
    sender = producer(mesh)
    mesh.send(sender, b"x")
    mesh.run_until(lambda: bool(had.held))
    had.settle(RELEASED)
    mesh.flush()
    mesh.run(1.0)
    call_back_for_nobody(mesh, "r4", wants)
    mesh.run(2 * TWICE_S)
    assert (sender.outcomes, wants.messages) == ({}, [])
    resting.link.close()
    wants.link.close()
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, PATH_WAIT_S + 0.5)
    assert len(had.messages) == 1


def test_circuits_that_are_all_stuck_keep_what_they_have():
    """Their credit was passed on before the consumers took it back."""
    mesh = line(4)
    receivers = [mesh.client(router).receiver("rpc", credit=20) for router in ("r2", "r3", "r4")]
    sender = producer(mesh)
    for each in receivers:
        each.tops_up = False
        each.link.set_credit(0)
    mesh.run(0.1)
    while sender.link.credit > 0 and sender.count < 30:
        mesh.send(sender)
    mesh.run(20)
    for _ in range(sender.count):
        receivers[-1].link.grant(1)
        mesh.run(TWICE_S)
    assert set(sender.outcomes.values()) == {ACCEPTED}


# What others see
@pytest.mark.parametrize("settles", [RECEIVE_FIRST, RECEIVE_SECOND], ids=["settles first", "settles second"])
@pytest.mark.parametrize("ends", ["is accepted", "is settled by its producer"])
def test_a_consumer_hears_nothing_of_a_recall_when_what_it_has(settles: int, ends: str):
    mesh = line()
    slow = mesh.client("r2").receiver("rpc", credit=10, modes=(SEND_MIXED, settles))
    slow.accepts = False
    mesh.client("r3").receiver("rpc", credit=10)
    sender = producer(mesh)
    mesh.send(sender, b"x")
    mesh.run(2 * TWICE_S)
    assert slow.messages == [b"x"]
    if ends == "is accepted":
        slow.settle()
    else:
        sender.settle(1)
    mesh.flush()
    mesh.run(1)
    assert RELEASED.kind not in slow.states


# What cannot go to the other
@pytest.mark.parametrize("size", [5000, 200_000])
def test_nothing_is_recalled_for_a_consumer_that_takes_only_smaller_ones(size: int):
    mesh = line()
    resting = mesh.client("r2").receiver("rpc", credit=0)
    mesh.client("r1").receiver("rpc", credit=10, max_message_bytes=1000)
    sender = producer(mesh)
    mesh.send(sender, bytes(size))
    mesh.run(3 * TWICE_S)
    assert (sender.outcomes, recalled(mesh, "r2")) == ({}, 0)
    resting.link.close()
    mesh.run_until(lambda: bool(sender.outcomes), 3 * PATH_WAIT_S)


def test_what_came_settled_is_not_thrown_away_for_what_is_recalled_behind_it(monkeypatch: pytest.MonkeyPatch):
    """There is no room to put it aside."""
    monkeypatch.setattr("router.addresses.Copies", lambda most_bytes: Copies(3))
    mesh = line()
    resting, taking = consumers(mesh, 10, 100)
    sender, settles = producer(mesh), producer(mesh)
    resting.link.set_credit(0)
    mesh.run(0.1)
    mesh.send(settles, b"settled", settled=True)
    mesh.run(0.1)
    mesh.send(sender, b"behind it")
    mesh.run(3 * TWICE_S)
    resting.link.grant(10)
    mesh.run_until(lambda: b"settled" in resting.messages)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED} or sender.outcomes == {1: RELEASED})
    assert b"settled" not in taking.messages


def test_what_is_behind_a_settled_one_at_a_transit_router_comes_back_too():
    """Its consumer rests, and the settled one is lost there: nobody would hear of it."""
    mesh = line(4)
    resting = mesh.client("r3").receiver("spilling", credit=10)
    taking = mesh.client("r4").receiver("spilling", credit=0)
    sender, settles = producer(mesh, "spilling"), producer(mesh, "spilling")
    resting.link.set_credit(0)
    mesh.run(0.1)
    mesh.send(sender, b"lured")
    mesh.run(1.0)
    taking.link.grant(100)
    mesh.flush()
    while not recalled(mesh, "r3"):
        mesh.run(0.0005)
    settles.send(b"settled", settled=True)
    mesh.flush()
    sender.send(b"behind it")
    mesh.flush()
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED, 2: ACCEPTED}, 2 * TWICE_S)
    assert b"behind it" in taking.messages
