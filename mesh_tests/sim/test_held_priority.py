"""When a taker has credit again, is it the most urgent of what was held that goes first, by its own header?

Each link keeps its order: what is compared is the message at the head of each.
"""

from __future__ import annotations

import pytest

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from wire.delivery import ACCEPTED, RELEASED
from wire.message import Message, decode, encode
from wire.sections import scan

PATH_WAIT_S = 2.0


def message(priority: int, body: str = "", to: str | None = None) -> bytes:
    return encode(Message(body=body or f"level {priority}", priority=priority, to=to))


def bodies(receiver: SimReceiver) -> list[object]:
    return [decode(each).body for each in receiver.messages]


def busy_consumer(egress: str, address: str = "rpc") -> tuple[SimMesh, SimReceiver]:
    """It has no credit, and where it is a delivery waits already that is as urgent as can be."""
    mesh = line()
    receiver = mesh.client(egress).receiver(address, credit=0)
    first = mesh.client("r1").sender(address)
    mesh.send(first, message(9, "first"))
    mesh.run(0.2)
    return mesh, receiver


def sender_with_credit_left() -> tuple[SimMesh, SimReceiver, SimSender]:
    """Its consumer has no credit any more: what it sends waits on its link, several in line."""
    mesh = line(1)
    receiver = mesh.client("r1").receiver("rpc", credit=10)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 1)
    receiver.link.set_credit(0)
    mesh.run(0.1)
    return mesh, receiver, sender


def hold(mesh: SimMesh, *messages: bytes, address: str | None = "rpc") -> list[SimSender]:
    """Each message waits on a link of its own, in this order."""
    senders = []
    for each in messages:
        senders.append(mesh.client("r1").sender(address))
        mesh.send(senders[-1], each)
        mesh.run(0.05)
    return senders


def let_go(mesh: SimMesh, receiver: SimReceiver, count: int) -> list[object]:
    """Credit for one after the other, and what came."""
    receiver.tops_up = False
    before = len(receiver.messages)
    for number in range(count):
        receiver.link.grant(1)
        mesh.flush()
        mesh.run_until(lambda expected=before + number + 1: len(receiver.messages) == expected, 1.0)
    return bodies(receiver)[before:]


def test_of_what_is_held_on_several_links_the_most_urgent_goes_first(egress: str):
    mesh, receiver = busy_consumer(egress)
    hold(mesh, *map(message, (4, 1, 8, 0, 5)))
    came = let_go(mesh, receiver, 6)
    assert came == ["first", "level 8", "level 5", "level 4", "level 1", "level 0"]


def test_of_what_is_held_for_all_takers_the_most_urgent_goes_first():
    mesh, receiver = busy_consumer("r1", "prices")
    mesh.client("r2").receiver("prices", credit=100)
    mesh.run(0.2)
    hold(mesh, *map(message, (4, 1, 8)), address="prices")
    assert let_go(mesh, receiver, 4) == ["first", "level 8", "level 4", "level 1"]


def test_of_equals_the_one_that_waits_longest_goes_first(egress: str):
    mesh, receiver = busy_consumer(egress)
    hold(mesh, *(message(4, body) for body in "abc"))
    assert let_go(mesh, receiver, 4) == ["first", "a", "b", "c"]


def test_a_message_without_a_header_is_of_level_4_and_there_is_no_level_above_9(egress: str):
    mesh, receiver = busy_consumer(egress)
    whole = message(4, "none")
    no_header = whole[scan(whole).header_end :]
    hold(mesh, message(3), no_header, message(9), message(255), message(5))
    assert let_go(mesh, receiver, 6) == ["first", "level 9", "level 255", "level 5", "none", "level 3"]


def test_a_link_keeps_its_order_however_urgent_what_comes_behind():
    mesh, receiver, sender = sender_with_credit_left()
    sender.send(message(1)), sender.send(message(9))
    mesh.run(0.1)
    hold(mesh, message(5))
    assert let_go(mesh, receiver, 3) == ["level 5", "level 1", "level 9"]


def test_one_link_may_have_several_turns_while_its_messages_are_more_urgent():
    mesh, receiver, sender = sender_with_credit_left()
    hold(mesh, message(5))
    sender.send(message(9, "a")), sender.send(message(8, "b")), sender.send(message(2, "c"))
    mesh.run(0.1)
    receiver.link.grant(4)
    mesh.run(0.1)
    assert bodies(receiver) == ["a", "b", "level 5", "c"]


def test_what_an_anonymous_sender_has_for_the_address_is_compared_with_the_others(egress: str):
    mesh, receiver = busy_consumer(egress)
    hold(mesh, message(4))
    hold(mesh, message(6, "anonymous", to="rpc"), message(2, "another", to="rpc"), address=None)
    hold(mesh, message(5))
    assert let_go(mesh, receiver, 5) == ["first", "anonymous", "level 5", "level 4", "another"]


@pytest.mark.parametrize(
    ("level", "came"), [(9, ["again", "level 5"]), (5, ["again", "level 5"]), (1, ["level 5", "again"])]
)
def test_what_is_to_be_offered_again_goes_before_its_equals_and_behind_what_is_more_urgent(level: int, came: list[str]):
    mesh = line(1)
    picky = mesh.client("r1").receiver("rpc", credit=1)
    picky.accepts = False
    senders = hold(mesh, message(level, "again"))
    mesh.run_until(lambda: bool(picky.held))
    other = mesh.client("r1").receiver("rpc", credit=0)
    mesh.run(0.1)
    senders += hold(mesh, message(5))
    picky.settle(RELEASED)
    mesh.run(0.1)
    assert let_go(mesh, other, 2) == came
    assert [sender.outcomes for sender in senders] == [{1: ACCEPTED}] * 2


def test_what_waits_for_room_at_its_taker_goes_by_its_header_too():
    mesh = line(1)
    consumer = mesh.client("r1")
    receiver = consumer.receiver("rpc", credit=100)
    senders = [mesh.client("r1").sender("rpc") for _ in range(3)]
    for sender in senders:
        mesh.run_until(lambda sender=sender: sender.link.credit > 0)
    consumer.pipe.ends[1][1].is_output_blocked = True
    for sender, level in zip(senders, (1, 9, 5), strict=True):
        sender.send(message(level))
        mesh.run(0.05)
    consumer.pipe.ends[1][1].is_output_blocked = False
    mesh.run_until(lambda: len(receiver.messages) == 3)
    assert bodies(receiver) == ["level 9", "level 5", "level 1"]


def test_what_was_read_while_it_waited_is_released_whole_when_nobody_is_left(egress: str):
    mesh, receiver = busy_consumer(egress)
    senders = hold(mesh, message(1), message(2), message(3))
    receiver.link.close()
    mesh.run(2 * PATH_WAIT_S + 1)
    assert [sender.outcomes for sender in senders] == [{1: RELEASED}] * 3
    another = mesh.client(egress).receiver("rpc")
    for number, sender in enumerate(senders):
        mesh.send(sender, message(4, f"again {number}"))
    mesh.run_until(lambda: len(another.messages) == 3)
    assert sorted(map(str, bodies(another))) == ["again 0", "again 1", "again 2"]


def test_a_producer_that_leaves_takes_what_was_read_of_it_along():
    mesh, receiver = busy_consumer("r1")
    gone, stays = hold(mesh, message(6), message(5))
    mesh.cut(next(pipe for pipe in mesh.pipes if gone.link.endpoint is pipe.ends[0][1]))
    mesh.run(0.1)
    assert let_go(mesh, receiver, 2) == ["first", "level 5"]
    mesh.run_until(lambda: stays.outcomes == {1: ACCEPTED})
