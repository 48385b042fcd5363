"""A connection's input is handled in slices: after some attaches the rest waits, in order, while others have turns."""

from __future__ import annotations

import itertools

import pytest

from mesh_tests.unit.wire.pipes import Recorder
from wire.endpoint import Endpoint, EndpointSettings
from wire.errors import AmqpError
from wire.events import Closed, LinkAttached, LinkDetached
from wire.link import Link

LINKS = 40
SLICE = 16


def storm(links: int = LINKS) -> tuple[Endpoint, bytes]:
    """Return an endpoint that attaches ``links`` producers in one session, and its bytes."""
    peer = Endpoint(EndpointSettings("peer"))
    peer.open()
    session = peer.begin()
    for number in range(links):
        session.sender(f"link-{number}").open()
    return peer, everything(peer)


def everything(endpoint: Endpoint) -> bytes:
    return b"".join(iter(endpoint.output, b""))


def attached(endpoint: Endpoint) -> list[str]:
    return [event.link.name for event in endpoint.drain(Recorder()) if isinstance(event, LinkAttached)]


def opened() -> Endpoint:
    endpoint = Endpoint(EndpointSettings("here"))
    endpoint.open()
    return endpoint


def test_without_a_limit_all_input_is_handled_at_once() -> None:
    endpoint = opened()
    endpoint.receive(storm()[1])
    assert not endpoint.has_rest
    assert len(attached(endpoint)) == LINKS


def test_a_slice_has_at_most_so_many_begins_and_attaches_and_the_rest_follows_in_order() -> None:
    endpoint = opened()
    endpoint.receive(storm()[1], SLICE)
    slices = [attached(endpoint)]
    while endpoint.has_rest:
        endpoint.receive_rest(SLICE)
        slices.append(attached(endpoint))
    assert [len(each) for each in slices] == [SLICE - 1, SLICE, LINKS - 2 * SLICE + 1]
    assert list(itertools.chain(*slices)) == [f"link-{number}" for number in range(LINKS)]


@pytest.mark.parametrize("piece", [1, 7, 50, 1000])
def test_frames_cut_anywhere_are_handled_in_order_however_the_slices_fall(piece: int) -> None:
    data = storm()[1]
    endpoint = opened()
    names: list[str] = []
    for start in range(0, len(data), piece):
        endpoint.receive(data[start : start + piece], 2)
        names += attached(endpoint)
    while endpoint.has_rest:
        endpoint.receive_rest(2)
        names += attached(endpoint)
    assert names == [f"link-{number}" for number in range(LINKS)]


def test_later_bytes_go_behind_the_rest() -> None:
    peer, data = storm()
    endpoint = opened()
    endpoint.receive(data, SLICE)
    endpoint.drain(Recorder())
    peer.links[0].close()
    endpoint.receive(everything(peer), SLICE)
    events = endpoint.drain(Recorder())
    assert len(events) == SLICE
    assert all(isinstance(event, LinkAttached) for event in events)
    endpoint.receive_rest()
    events = endpoint.drain(Recorder())
    assert isinstance(events[-1], LinkDetached)
    assert events[-1].link.name == "link-0"


def test_messages_on_a_link_are_handled_before_the_attaches_that_follow_them() -> None:
    peer = Endpoint(EndpointSettings("peer"))
    endpoint = opened()
    peer.open()
    producer = peer.begin().sender("messages")
    producer.open()
    endpoint.receive(everything(peer))
    (link,) = [event.link for event in endpoint.drain(Recorder()) if isinstance(event, LinkAttached)]
    link.accept_as_proposed()
    link.set_credit(10)
    peer.receive(everything(endpoint))
    peer.drain(Recorder())
    producer.start(b"1")
    producer.send(b"before")
    producer.finish()
    # The engine writes transfers last, so the bytes of the message are taken out before the attaches are made.
    data = everything(peer)
    session = peer.begin()
    for number in range(LINKS):
        session.sender(f"link-{number}").open()
    sink = Recorder()
    endpoint.receive(data + everything(peer), 1)
    endpoint.drain(sink)
    assert endpoint.has_rest
    assert sink.messages == [b"before"]


def test_the_rest_behind_a_fault_of_the_peer_is_dropped() -> None:
    data = storm()[1]
    endpoint = opened()
    endpoint.receive(data + b"\x00\x00\x00\x03\x02\x00\x00\x00" + bytes(1000), SLICE)
    while endpoint.has_rest:
        endpoint.receive_rest(SLICE)
    events = endpoint.drain(Recorder())
    assert isinstance(events[-1], Closed)
    assert isinstance(events[-1].error, AmqpError)
    assert sum(isinstance(event, LinkAttached) for event in events) == LINKS
    endpoint.receive(storm()[1], SLICE)
    assert not endpoint.has_rest


def test_a_freed_endpoint_keeps_no_rest() -> None:
    endpoint = opened()
    endpoint.receive(storm()[1], SLICE)
    assert endpoint.has_rest
    endpoint.free()
    assert not endpoint.has_rest
    endpoint.receive_rest(SLICE)
    endpoint.receive(storm()[1], SLICE)
    assert not endpoint.has_rest


def test_all_bytes_count_as_heard_when_they_come() -> None:
    data = storm()[1]
    endpoint = opened()
    endpoint.receive(data, SLICE)
    assert endpoint.bytes_in == len(data)
    while endpoint.has_rest:
        endpoint.receive_rest(SLICE)
    assert endpoint.bytes_in == len(data)


def test_a_plain_source_is_answered_without_filter_and_durability() -> None:
    from wire.terminus import Durability, Expiry, source

    peer, endpoint = Endpoint(EndpointSettings("peer")), opened()
    peer.open()
    consumer = peer.begin().receiver("c")
    asked = source(
        "x",
        durability=Durability.UNSETTLED_STATE,
        expiry=Expiry.NEVER,
        timeout_s=7,
        capabilities=("queue",),
        filter={"f": "a = 1"},
        outcomes=("amqp:accepted:list", "amqp:released:list"),
    )
    consumer.set_source(asked)
    consumer.open()
    endpoint.receive(everything(peer))
    (link,) = [event.link for event in endpoint.drain(Recorder()) if isinstance(event, LinkAttached)]
    assert isinstance(link, Link)
    link.accept_plain_source()
    link.open()
    peer.receive(everything(endpoint))
    peer.drain(Recorder())
    assert consumer.remote_source == source("x", capabilities=asked.capabilities, outcomes=asked.outcomes)
