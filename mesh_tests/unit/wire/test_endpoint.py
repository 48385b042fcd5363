"""The endpoint over an in-memory pipe: opening, links, credit, deliveries, errors."""

from __future__ import annotations

import sys

import pytest

from mesh_tests.unit.wire.pipes import Pipe, send
from wire import delivery as deliveries
from wire.codec.frames import AmqpFrame, CompositeValue, encode_frame
from wire.codec.table import OPEN
from wire.endpoint import Endpoint, EndpointSettings
from wire.engine import lib
from wire.errors import AmqpError
from wire.events import Closed, LinkAttached, LinkDetached, LinkEstablished, Opened, SessionEnded
from wire.terminus import Durability, Expiry, source, target


def test_open_carries_container_properties_and_capabilities():
    a = Endpoint(
        EndpointSettings(
            "a", hostname="h", properties={"product": "amqpmesh", "cost": 3}, offered_capabilities=("X", "Y")
        )
    )
    b = Endpoint(EndpointSettings("b"))
    a.open()
    b.receive(a.output())
    assert b.drain(None) == [Opened()]
    assert b.remote.container_id == "a"
    assert b.remote.hostname == "h"
    assert b.remote.properties == {"product": "amqpmesh", "cost": 3}
    assert b.remote.offered_capabilities == ("X", "Y")


def test_attach_carries_termini_and_properties_both_ways():
    pipe = Pipe()
    link = pipe.a.begin().receiver("sub")
    link.set_source(
        source(
            "news.#",
            durability=Durability.UNSETTLED_STATE,
            expiry=Expiry.NEVER,
            capabilities=("topic",),
            filter={"f": "x = 1"},
        )
    )
    link.set_target(target(None, capabilities=("here",)))
    link.set_property("path", "r1-r2")
    link.open()
    pipe.run()
    (attached,) = pipe.take(pipe.b, LinkAttached)
    got = attached.link.remote_source
    assert (got.address, got.durability, got.expiry) == ("news.#", Durability.UNSETTLED_STATE, Expiry.NEVER)
    assert got.capabilities == ("topic",)
    assert got.filter == {"f": "x = 1"}
    assert got.outlives_link
    assert attached.link.remote_target.capabilities == ("here",)
    assert attached.link.remote_property("path") == "r1-r2"
    assert attached.link.remote_property("broker") is None
    attached.link.accept_as_proposed()
    pipe.run()
    assert pipe.take(pipe.a, LinkEstablished) == [LinkEstablished(link)]
    assert link.remote_source == got
    assert link.is_open


def test_delivery_outcome_and_settlement_cross():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(2)
    pipe.run()
    assert sender.credit == 2
    receiver_sink = pipe.sinks[pipe.b]
    receiver_sink.takes = False
    delivery = send(sender, b"hello")
    pipe.run()
    incoming = receiver.current
    assert receiver.recv(100) == b"hello"
    receiver.advance()
    deliveries.set_outcome(incoming, deliveries.rejected("amqp:not-allowed", "no thanks"))
    deliveries.settle(incoming)
    pipe.run()
    outcome = deliveries.remote_outcome(delivery)
    assert outcome.kind is deliveries.OutcomeCode.REJECTED
    assert (outcome.error.condition, outcome.error.description) == ("amqp:not-allowed", "no thanks")
    assert deliveries.is_settled(delivery)
    deliveries.settle(delivery)


def test_credit_is_what_the_sender_may_still_start():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    pipe.sinks[pipe.b].takes = False
    receiver.grant(3)
    pipe.run()
    send(sender, b"one")
    pipe.run()
    assert receiver.credit == 2
    assert receiver.queued == 1


def test_credit_reduced_while_transfers_cross_never_goes_negative_on_the_wire():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(5)
    pipe.run()
    for index in range(3):
        send(sender, b"x", b"%d" % index)
    chunk = pipe.a.output()  # three transfers under way
    receiver.set_credit(0)
    pipe.b.receive(chunk)
    pipe.b.drain(pipe.sinks[pipe.b])
    pipe.run()
    assert sender.credit == 0
    assert len(pipe.sinks[pipe.b].messages) == 3
    receiver.grant(1)
    pipe.run()
    assert sender.credit == 1


def test_transfers_that_come_after_the_flow_they_crossed_cost_no_later_credit():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(5)
    pipe.run()
    for index in range(3):
        send(sender, b"x", b"%d" % index)
    receiver.set_credit(0)
    reduction = pipe.b.output()
    pipe.b.receive(pipe.a.output())
    pipe.b.drain(pipe.sinks[pipe.b])
    pipe.a.receive(reduction)
    pipe.a.drain(pipe.sinks[pipe.a])
    assert len(pipe.sinks[pipe.b].messages) == 3
    assert receiver.credit == 0
    assert receiver.excess == -2
    receiver.grant(1)
    pipe.run()
    assert sender.credit == 1


def test_an_answer_to_a_drain_that_crosses_a_reduction_costs_no_later_credit():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.request_drain(10)
    pipe.run()
    sender.drained()
    answer = pipe.a.output()
    receiver.set_credit(1)
    reduction = pipe.b.output()
    pipe.b.receive(answer)
    pipe.b.drain(pipe.sinks[pipe.b])
    pipe.a.receive(reduction)
    pipe.a.drain(pipe.sinks[pipe.a])
    assert receiver.credit == 0
    receiver.request_drain(0)
    pipe.run()
    assert sender.credit == 0
    assert not receiver.is_drain_pending
    receiver.grant(2)
    pipe.run()
    assert (receiver.credit, sender.credit) == (2, 2)


def test_a_sender_that_starts_more_than_it_ever_had_credit_for_is_in_excess():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    pipe.sinks[pipe.b].takes = False
    receiver.grant(5)
    pipe.run()
    for index in range(5):
        send(sender, b"x", b"%d" % index)
    chunk = pipe.a.output()
    receiver.set_credit(2)
    pipe.b.receive(chunk)
    pipe.b.drain(pipe.sinks[pipe.b])
    assert receiver.excess <= 0
    lib.pn_link_flow(receiver.pointer, -1)  # as if one of the five had never been granted
    assert receiver.excess == 1


def test_session_window_bounds_what_a_stalled_reader_holds():
    pipe = Pipe(window_frames=8, max_frame_bytes=4096)
    sender, receiver = pipe.link_pair()
    pipe.sinks[pipe.b].takes = False
    receiver.grant(1)
    pipe.run()
    sender.start(b"big")
    written = 0
    for _ in range(1000):
        if not sender.is_writable:
            break
        sender.send(bytes(4096))
        written += 4096
        pipe.run()
    held = deliveries.pending(receiver.current)
    assert held <= 8 * 4096
    while chunk := receiver.recv(65536):
        held += len(chunk)
    pipe.run()
    assert sender.is_writable


def test_abort_tells_the_receiver_to_forget():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.grant(1)
    pipe.run()
    delivery = sender.start(b"t")
    sender.send(b"half")
    pipe.run()
    sender.abort(delivery)
    pipe.run()
    assert pipe.sinks[pipe.b].messages == [b"<aborted>"]


def test_drain_is_answered_by_giving_credit_back():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    receiver.request_drain(10)
    pipe.run()
    assert sender.is_draining
    sender.drained()
    pipe.run()
    assert receiver.credit == 0
    assert not receiver.is_drain_pending


@pytest.mark.parametrize("closed", [True, False])
def test_detach_and_close_are_told_apart(closed):
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    (sender.close if closed else sender.detach)(AmqpError("amqp:link:stolen", "by r2"))
    pipe.run()
    (event,) = pipe.take(pipe.b, LinkDetached)
    assert event.closed is closed
    assert event.error.condition == "amqp:link:stolen"
    (receiver.close if closed else receiver.detach)()
    pipe.run()
    assert receiver.is_gone
    again, _ = pipe.link_pair()
    assert again.is_open


def test_refused_attach_gives_the_condition():
    pipe = Pipe()
    link = pipe.a.begin().sender("s")
    link.set_target(target("nowhere"))
    link.open()
    pipe.run()
    (attached,) = pipe.take(pipe.b, LinkAttached)
    attached.link.refuse(AmqpError("amqp:not-found", "no address 'nowhere'"))
    pipe.run()
    (detached,) = pipe.take(pipe.a, LinkDetached)
    assert detached.error.condition == "amqp:not-found"


def test_links_over_the_limit_are_refused():
    pipe = Pipe(max_links=1)
    pipe.link_pair("one")
    link = pipe.a.begin().sender("two")
    link.set_target(target("there"))
    link.open()
    pipe.run()
    (detached,) = pipe.take(pipe.a, LinkDetached)
    assert detached.error.condition == "amqp:resource-limit-exceeded"


def test_session_end_detaches_its_links_first():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    sender.session.end()
    pipe.run()
    kinds = [type(event) for event in pipe.events[pipe.b] if isinstance(event, LinkDetached | SessionEnded)]
    assert kinds == [LinkDetached, SessionEnded]
    receiver.close()
    assert receiver.is_gone
    pipe.run()


def test_close_with_error_reaches_the_peer_once():
    pipe = Pipe()
    pipe.a.close(AmqpError("amqp:connection:forced", "going down"))
    pipe.run()
    (closed,) = pipe.take(pipe.b, Closed)
    assert closed.error.condition == "amqp:connection:forced"
    assert pipe.a.is_finished
    assert pipe.b.is_finished


@pytest.mark.parametrize(
    "junk", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", bytes(64), b"AMQP\x00\x01\x00\x00" + bytes([255] * 32)]
)
def test_junk_closes_the_connection_with_a_condition(junk):
    endpoint = Endpoint(EndpointSettings("b"))
    endpoint.open()
    endpoint.receive(junk)
    (closed,) = endpoint.drain(None)
    assert closed.error is not None
    while endpoint.output():
        pass
    endpoint.receive_eof()
    assert endpoint.is_finished
    endpoint.free()


def test_end_of_file_is_a_close():
    pipe = Pipe()
    pipe.a.receive_eof()
    (closed,) = [event for event in pipe.a.drain(None) if isinstance(event, Closed)]
    assert closed.error is None or closed.error.condition


def test_silent_peer_is_given_up_after_the_idle_timeout():
    a = Endpoint(EndpointSettings("a", idle_timeout_s=2))
    a.open()
    b = Endpoint(EndpointSettings("b"))
    b.open()
    a.receive(b.output())
    a.drain(None)
    now = 100.0
    deadline = a.tick(now)
    assert deadline is not None
    assert deadline > now
    a.tick(now + 2.5)
    a.tick(now + 5.0)
    assert [type(event) for event in a.drain(None)] == [Closed]


@pytest.mark.parametrize("began", [100.0, 100.0005, 100.0009])
@pytest.mark.parametrize("silent_from_s", [0.0, 0.1, 1.0, 1.9])
def test_the_idle_timeout_counts_from_the_last_byte(silent_from_s, began):
    """Also where the engine's own count, from its tick behind that byte, would take up to twice as long.

    The sentence is ours, though the engine counts in whole milliseconds.
    """
    a = Endpoint(EndpointSettings("a", idle_timeout_s=2))
    a.open()
    b = Endpoint(EndpointSettings("b"))
    b.open()
    a.receive(b.output())
    a.drain(None)
    a.hear(began)
    deadline = a.tick(began)
    if silent_from_s:
        b.begin()
        a.receive(b.output())
        a.hear(began + silent_from_s)
    said = b""
    while deadline is not None:
        now, deadline = deadline, a.tick(deadline)
        said += a.output()
    assert now == pytest.approx(began + 2 + silent_from_s, abs=0.0011)
    (closed,) = [event for event in a.drain(None) if isinstance(event, Closed)]
    assert closed.error.description == "idle timeout: the peer sent nothing for 2 s"
    assert b"the peer sent nothing for 2 s" in said


def test_an_idle_timeout_that_would_be_a_flood_of_heartbeats_is_refused():
    endpoint = Endpoint(EndpointSettings("a"))
    opening = encode_frame(AmqpFrame(0, CompositeValue(OPEN, {"container-id": "x", "idle-time-out": 1})))
    endpoint.receive(b"AMQP\x00\x01\x00\x00" + opening)
    (closed,) = endpoint.drain(None)
    assert closed.error.description == "open.idle-time-out: expected at least 100, got 1"


@pytest.mark.parametrize(
    ("last", "condition"),
    [(b"", "amqp:connection:forced"), (b"\x00\x00\x00\x20\x02", "amqp:connection:framing-error")],
)
def test_a_socket_that_is_closed_is_no_framing_error_but_in_the_middle_of_a_frame(last, condition):
    pipe = Pipe()
    pipe.a.receive(last)
    pipe.a.receive_eof()
    (closed,) = [event for event in pipe.a.drain(None) if isinstance(event, Closed)]
    assert closed.error.condition == condition


def test_a_freed_endpoint_says_nothing_more():
    pipe = Pipe()
    sender, _ = pipe.link_pair()
    pipe.a.free()
    assert pipe.a.output() == b""
    assert pipe.a.is_finished
    assert sender.is_gone
    sender.close()
    pipe.a.open()
    pipe.a.close()
    pipe.a.receive(b"AMQP\x00\x01\x00\x00")
    pipe.a.receive_eof()
    assert pipe.a.tick(100.0) is None
    assert not pipe.a.is_local_open
    assert not pipe.a.is_input_undecodable


def test_what_proton_warns_of_does_not_reach_stderr(capfd):
    endpoint = Endpoint(EndpointSettings("b"))
    # An open whose max-frame-size is 100, below the 512 that everybody has to take. [2.4.1]
    opening = bytes.fromhex("02000000 005310c0 0a 03 a10178 40 70 00000064")
    endpoint.receive(b"AMQP\x00\x01\x00\x00" + (len(opening) + 4).to_bytes(4) + opening)
    assert [type(event) for event in endpoint.drain(None)] == [Opened]
    assert capfd.readouterr().err == ""


def test_endpoints_with_unsettled_deliveries_are_freed_whole():
    for _ in range(50):
        pipe = Pipe()
        sender, receiver = pipe.link_pair()
        pipe.sinks[pipe.b].takes = False
        receiver.grant(5)
        pipe.run()
        for index in range(3):
            send(sender, b"x", b"%d" % index)
        sender.start(b"partial")
        sender.send(b"half")
        pipe.run()
        pipe.a.free()
        pipe.b.free()


def test_a_peer_that_never_answers_refusals_loses_its_connection():
    pipe = Pipe(max_links=2)
    session = pipe.a.begin()
    for index in range(10):
        session.sender(f"s{index}").open()
    while chunk := pipe.a.output():  # all attaches arrive before any answer
        pipe.b.receive(chunk)
    pipe.b.drain(pipe.sinks[pipe.b])
    pipe.run()
    (closed,) = pipe.take(pipe.a, Closed)
    assert closed.error.condition == "amqp:resource-limit-exceeded"


def test_an_aborted_delivery_has_nothing_to_read_though_bytes_of_it_came():
    pipe = Pipe()
    sender, receiver = pipe.link_pair()
    pipe.sinks[pipe.b].takes = False
    receiver.grant(1)
    pipe.run()
    delivery = sender.start(b"t")
    sender.send(b"half")
    pipe.run()
    assert deliveries.pending(receiver.current) == 4
    sender.abort(delivery)
    pipe.run()
    assert deliveries.is_aborted(receiver.current)
    assert deliveries.pending(receiver.current) == 0


def test_an_endpoint_forgets_a_link_whose_credit_was_reduced() -> None:
    pipe = Pipe()
    _, receiver = pipe.link_pair()

    def reduce(times: int) -> int:
        for _ in range(times):
            receiver.set_credit(10)
            receiver.set_credit(3)
            pipe.run()
        return sys.getrefcount(receiver)

    assert reduce(1) == reduce(50)
