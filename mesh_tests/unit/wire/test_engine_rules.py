"""Do we keep rules 1 to 5 of those that proton's engine leaves to its users, and are they still its rules?

6 to 10 are in `test_engine_limits.py`. Some tests show what the engine does when a rule is broken: the day one fails,
the rule may go. How the routers keep them is in `mesh_tests/sim`, named with each rule.
"""

from __future__ import annotations

from typing import Any

import pytest

from mesh_tests.frames import window_flow
from mesh_tests.unit.wire.pipes import Pipe, send
from wire import delivery as deliveries
from wire.delivery import RELEASED
from wire.events import LinkAttached, SessionBegun
from wire.terminus import target

FRAME_BYTES = 4096
WINDOW_FRAMES = 8
ROOM_BYTES = 64 * 1024


def small_window() -> tuple[Pipe, Any, Any]:
    """The receiver's session takes 8 frames of 4 KiB."""
    pipe = Pipe(window_frames=WINDOW_FRAMES, max_frame_bytes=FRAME_BYTES)
    sender, receiver = pipe.link_pair()
    pipe.sinks[pipe.b].takes = False
    receiver.grant(1000)
    pipe.run()
    return pipe, sender, receiver


# 1. Never settle an incoming delivery that is not complete or aborted. Also: sim/test_engine_rules.py
def send_in_halves(pipe, sender, receiver, take_half) -> bool:
    """False when the window does not take another half."""
    if not sender.is_writable:
        return False
    outgoing = sender.start(b"t")
    sender.send(bytes(2 * FRAME_BYTES))
    pipe.run()
    incoming = receiver.current
    take_half(incoming)
    sender.send(bytes(2 * FRAME_BYTES))
    sender.finish()
    pipe.run()
    if receiver.current is not None:
        _discard_and_settle(receiver, incoming)
        pipe.run()
    deliveries.settle(outgoing)
    return True


def _discard_and_settle(link, delivery) -> None:
    while deliveries.pending(delivery):
        link.recv(FRAME_BYTES)
    link.advance()
    deliveries.settle(delivery)


def test_a_delivery_that_is_settled_before_its_end_shrinks_the_session_window_for_good():
    pipe, sender, receiver = small_window()

    def settle_early(incoming):
        receiver.advance()
        deliveries.settle(incoming)

    sent = [send_in_halves(pipe, sender, receiver, settle_early) for _ in range(20)]
    assert not all(sent)


def test_a_delivery_that_is_refused_early_but_read_to_its_end_leaves_the_window_whole():
    pipe, sender, receiver = small_window()
    refuse = lambda incoming: deliveries.set_outcome(incoming, RELEASED)  # noqa: E731
    assert all(send_in_halves(pipe, sender, receiver, refuse) for _ in range(20))


def test_a_delivery_that_is_aborted_and_settled_leaves_the_window_whole():
    pipe, sender, receiver = small_window()
    for _ in range(20):
        assert sender.is_writable
        outgoing = sender.start(b"t")
        sender.send(bytes(2 * FRAME_BYTES))
        pipe.run()
        sender.abort(outgoing)
        pipe.run()
        incoming = receiver.current
        receiver.advance()
        deliveries.settle(incoming)
        pipe.run()


# 2. End a partial outgoing delivery only by an abort. Also: test_endpoint.py, sim/test_link_rules.py (aborts),
#    sim/test_settlement_rows.py (a producer that dies in the middle)
def test_a_partial_delivery_that_is_settled_arrives_cut_short_as_if_complete():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(1)
    pipe.run()
    delivery = sender.start(b"t")
    sender.send(b"half")
    pipe.run()
    deliveries.settle(delivery)
    pipe.run()
    assert pipe.sinks[pipe.b].messages == [b"half"]


@pytest.mark.parametrize("end", ["close", "detach"])
def test_a_partial_delivery_that_is_aborted_before_its_link_ends_arrives_as_aborted(end):
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(1)
    pipe.run()
    delivery = sender.start(b"t")
    sender.send(b"half")
    pipe.run()
    sender.abort(delivery)
    getattr(sender, end)()
    pipe.run()
    assert pipe.sinks[pipe.b].messages == [b"<aborted>"]
    getattr(receiver, end)()
    pipe.run()
    assert sender.is_gone
    assert receiver.is_gone


def test_a_streamed_pre_settled_delivery_that_is_settled_after_its_last_byte_arrives_whole():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(1)
    pipe.run()
    delivery = sender.start(b"t")
    for _ in range(3):
        sender.send(b"part")
        pipe.run()
    sender.finish()
    deliveries.settle(delivery)
    pipe.run()
    assert pipe.sinks[pipe.b].messages == [b"part" * 3]


# 3. Hand the engine only what it can send at once. Also: test_endpoint.py (session window)
def test_an_endpoint_has_no_room_while_64_KiB_are_unsent():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(1000)
    pipe.run()
    handed = 0
    sender.start(b"t")
    while sender.is_writable:
        sender.send(bytes(FRAME_BYTES))
        handed += FRAME_BYTES
    assert handed == ROOM_BYTES
    while pipe.a.output():
        pass
    assert pipe.a.has_room


def test_nobody_may_write_while_the_window_of_the_peer_is_shut():
    pipe, sender, receiver = small_window()
    for index in range(WINDOW_FRAMES):
        assert sender.is_writable
        send(sender, bytes(FRAME_BYTES), b"%d" % index)
        pipe.run()
    assert not sender.is_writable
    while (delivery := receiver.current) is not None:
        _discard_and_settle(receiver, delivery)
    pipe.run()
    assert sender.is_writable


@pytest.mark.parametrize("is_draining", [False, True])
def test_what_went_unread_with_its_link_leaves_room_for_the_others_of_its_session(is_draining: bool):
    pipe, sender, receiver = small_window()
    other = sender.session.sender("other")
    other.set_target(target("there"))
    other.open()
    pipe.run()
    (attached,) = pipe.take(pipe.b, LinkAttached)
    attached.link.accept_as_proposed()
    if is_draining:
        attached.link.request_drain(10)
    else:
        attached.link.grant(10)
    for index in range(WINDOW_FRAMES):
        send(sender, bytes(FRAME_BYTES), b"%d" % index)
        pipe.run()
    assert not other.is_writable
    receiver.close()
    pipe.run()
    sender.close()
    pipe.run()
    assert receiver.is_gone
    assert other.is_writable
    assert (other.credit, attached.link.is_drain_pending) == (10, is_draining)
    if is_draining:
        other.drained()
        pipe.run()
        assert (attached.link.credit, attached.link.is_drain_pending) == (0, False)


def drain_behind_a_shut_window() -> tuple[Pipe, Any, Any]:
    """It is answered while the end of the last delivery is still in the engine."""
    pipe, sender, receiver = small_window()
    send(sender, bytes(WINDOW_FRAMES * FRAME_BYTES), b"t")
    receiver.request_drain(0)
    pipe.run()
    sender.drained()
    pipe.run()
    assert receiver.is_drain_pending
    return pipe, sender, receiver


def test_the_answer_to_a_drain_comes_behind_what_waits_for_the_window():
    pipe, sender, receiver = drain_behind_a_shut_window()
    assert sender.credit == 0
    _discard_and_settle(receiver, receiver.current)
    pipe.run()
    assert receiver.credit == 0
    assert not receiver.is_drain_pending


def test_an_answer_to_a_drain_that_is_over_changes_nothing():
    pipe, sender, receiver = drain_behind_a_shut_window()
    receiver.end_drain()
    receiver.grant(5)
    pipe.run()
    credit = sender.credit
    sender.drained()
    assert sender.credit == credit > 0


def test_credit_is_not_given_back_when_its_drain_ends_before_the_answer():
    pipe, sender, receiver = drain_behind_a_shut_window()
    receiver.grant(1)
    _discard_and_settle(receiver, receiver.current)
    pipe.run()
    assert sender.credit == receiver.credit == 1000


def send_on_the_way(pipe: Pipe, sender: Any, count: int) -> None:
    """What the peer has not heard of yet."""
    for index in range(count):
        send(sender, b"small", b"%d" % index)
        pipe.a.output()


@pytest.mark.parametrize(("window", "may_write"), [(0, False), (2, False), (3, False), (4, True)])
def test_nobody_may_write_when_more_is_under_way_than_the_peer_takes_now(window: int, may_write: bool):
    """The engine counts without a sign: less than nothing looks like a window of billions to it."""
    pipe, sender, _ = small_window()
    send_on_the_way(pipe, sender, 3)
    pipe.a.receive(window_flow(0, window))
    pipe.a.drain(pipe.sinks[pipe.a])
    assert sender.is_writable == may_write


def test_a_peer_that_sets_no_bound_takes_all():
    most = 2**32 - 1
    pipe = Pipe(window_frames=most)
    sender, receiver = pipe.link_pair()
    receiver.grant(1000)
    pipe.run()
    send_on_the_way(pipe, sender, 3)
    pipe.a.receive(window_flow(0, most))
    pipe.a.drain(pipe.sinks[pipe.a])
    assert sender.is_writable


def test_what_is_handed_over_while_there_is_room_is_sent_at_once():
    pipe, sender, _ = small_window()
    handed = []
    while sender.is_writable and len(handed) < 10 * WINDOW_FRAMES:
        handed.append(send(sender, b"small", b"%d" % len(handed)))
    pipe.a.output()
    assert [delivery for delivery in handed if deliveries.is_buffered(delivery)] == []


def test_a_session_of_either_side_has_a_bounded_window():
    pipe = Pipe(window_frames=WINDOW_FRAMES, max_frame_bytes=FRAME_BYTES)
    session = pipe.a.begin(window_frames=3)
    pipe.run()
    assert session.remote_window_frames == WINDOW_FRAMES
    (begun,) = pipe.take(pipe.b, SessionBegun)
    assert begun.session.remote_window_frames == 3


# 4. Reduced credit that crosses transfers never goes negative on the wire. Also: test_endpoint.py
@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("crossing", [1, 3, 5])
def test_credit_that_is_reduced_below_what_is_under_way_comes_to_what_is_left(left, crossing):
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(5)
    pipe.run()
    for index in range(crossing):
        send(sender, b"x", b"%d" % index)
    under_way = pipe.a.output()
    receiver.set_credit(left)
    pipe.a.receive(pipe.b.output())
    pipe.b.receive(under_way)
    pipe.run()
    assert 0 <= sender.credit <= left
    assert receiver.excess <= 0
    receiver.set_credit(7)
    pipe.run()
    assert sender.credit == 7


# 5. Credit and max-message-size of a sender are for us to check. Also: test_endpoint.py (excess),
#    sim/test_refusal_rows.py (what routers do about both)
def test_the_engine_takes_a_message_larger_than_the_link_said_it_would():
    pipe = Pipe()
    link = pipe.a.begin().sender("s")
    link.set_target(target("there"))
    link.open()
    pipe.run()
    (attached,) = pipe.take(pipe.b, LinkAttached)
    attached.link.set_max_message_bytes(10)
    attached.link.accept_as_proposed()
    attached.link.grant(1)
    pipe.run()
    assert link.remote_max_message_bytes == 10
    send(link, bytes(11))
    pipe.run()
    assert pipe.sinks[pipe.b].messages == [bytes(11)]


@pytest.mark.parametrize("is_aborted", [False, True])
def test_a_drain_is_answered_behind_a_delivery_that_is_begun_and_both_ends_count_it_once(is_aborted: bool):
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(3)
    pipe.run()
    delivery = sender.start(b"t")
    sender.send(bytes(100))
    receiver.request_drain(0)
    pipe.run()
    sender.drained()
    pipe.run()
    if is_aborted:
        sender.abort(delivery)
    else:
        sender.finish()
    pipe.run()
    assert (sender.credit, receiver.credit) == (0, 0)
    receiver.grant(1)
    pipe.run()
    assert (sender.credit, receiver.credit) == (1, 1)
