"""Does anything that is called still exist when it returns?

A compiled method that is called on an attribute borrows it: should the call let go of the attribute, the method runs on
in freed memory. Where that could be, a local variable has to keep it. The lives below end what they go through, and
keep no reference of their own; AddressSanitizer (`make asan`) sees what is touched too late.
"""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh_tests.unit.router.forwarding.rig import Consumer, NoSharing, Producer, Rig
from router.forwarding.anonymous import AnonymousProducer
from router.forwarding.guard import Guard
from router.forwarding.relay import Relay
from wire.address_cache import AddressCache
from wire.delivery import RELEASED, rejected

REPLACED = "moving|newest|newer_in|older_in|newer_out|older_out|fan|hot|streaming|inlet|taker"
CALL_THROUGH_ONE = re.compile(rf"\w\.(?:{REPLACED})(?:\.\w+)*\.(\w+)\(")
ENGINE_ONLY = {
    "credit_now", "is_writable_now", "is_open_now", "is_second", "is_of_queue", "settles_last", "set_credit_now",
    "request_drain", "drained", "start_now", "send_now", "recv_into", "mark",
}  # fmt: skip
"""These call nobody back."""
ROOT = Path(__file__).parents[4]
SOURCES = [*sorted((ROOT / "router" / "forwarding").glob("*.pyx")), ROOT / "wire" / "core.pyx"]
"""In the checkout: an installed wheel has no sources of compiled modules."""


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_call_goes_through_a_reference_that_the_call_may_replace(source: Path):
    found = [
        f"{source.name}:{number}: {line.strip()}"
        for number, line in enumerate(source.read_text().splitlines(), 1)
        for method in CALL_THROUGH_ONE.findall(line)
        if method not in ENGINE_ONLY
    ]
    assert not found, "put what is called into a local variable first"


def forget(*clients: Producer | Consumer | Any) -> None:
    """The router's links are all that keeps their owners now."""
    for client in clients:
        client.inlet = client.taker = None
    gc.collect()


def offend(producer: Producer) -> None:
    """A message that is too large, behind others, in one breath."""
    producer.send(b"1", b"2")
    producer.begin(bytes(200_000))


@pytest.mark.parametrize("treatment", ["anycast", "multicast"])
def test_an_inlet_that_is_expelled_while_it_is_pumped(rig: Rig, treatment: str):
    group = getattr(rig, treatment)()
    consumers = [rig.consumer(group) for _ in range(2)]
    producer = rig.producer(group, max_message_bytes=100_000)
    forget(producer, *consumers)
    del group
    offend(producer)
    rig.run()
    assert producer.error.condition == "amqp:link:message-size-exceeded"
    assert sum(len(consumer.messages) for consumer in consumers) == (2 if treatment == "anycast" else 4)


def test_an_anonymous_sender_that_is_expelled_while_it_is_read(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group)
    producer, link = rig.incoming()
    guard, patterns = Guard(link, 100_000, rig.offences.append), AddressCache(lambda: None)
    AnonymousProducer(
        link, 10, lambda to: group, lambda name: None, patterns, NoSharing(), guard, rig.recorder
    ).top_up()
    rig.run()
    del link
    forget(consumer)
    message = bytes(Message(address="a", body="x").encode())
    producer.send(message, message)
    producer.begin(bytes(Message(address="a", body="x" * 200_000).encode()))
    rig.run()
    assert producer.error.condition == "amqp:link:message-size-exceeded"
    assert consumer.messages == [message] * 2


def test_an_anonymous_sender_that_forgets_the_inlet_whose_message_it_has_just_read_out(rig: Rig):
    groups: dict[str, Any] = {}
    producer, link = rig.incoming()
    guard = Guard(link, 0, rig.offences.append)
    patterns = AddressCache(lambda: None)
    AnonymousProducer(
        link,
        2000,
        lambda to: groups.setdefault(to, rig.anycast()),
        lambda name: None,
        patterns,
        NoSharing(),
        guard,
        rig.recorder,
    ).top_up()
    rig.run()
    for number in range(999):
        producer.send(bytes(Message(address=f"{number}", body="x").encode()), settled=True)
    producer.begin(bytes(Message(address="large", body="x" * 200_000).encode()))
    rig.advance(3.0)
    producer.link.send(bytes(100))
    producer.link.finish()
    producer.send(bytes(Message(address="the one too many", body="x").encode()))
    rig.run()
    assert [len(groups[name].inlets) for name in ("0", "large", "the one too many")] == [0, 0, 1]
    assert [outcome for _, outcome in producer.outcomes] == [RELEASED]


@pytest.mark.parametrize("end", ["producer", "consumer"])
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_relay_that_nobody_knows_any_more_when_one_end_of_it_leaves(rig: Rig, end: str, is_cut: bool):
    producer, incoming = rig.incoming()
    consumer, outgoing = rig.outgoing()

    def leave(link: Any, closed: bool, error: Any) -> None:
        for each in known.pop():
            each.owner.abandon()
            each.owner = None
            each.close()

    known = [(incoming, outgoing)]
    Relay(leave, lambda link: None, rig.recorder).stitch(incoming, outgoing)
    del incoming, outgoing
    consumer.link.grant(10)
    rig.run()
    producer.send(b"1", b"2")
    producer.begin(bytes(100_000))
    rig.run()
    gc.collect()
    leaving = producer if end == "producer" else consumer
    if is_cut:
        rig.cut(leaving.connection)
    else:
        leaving.link.close()
        rig.run()
    assert known == []
    assert consumer.messages == [b"1", b"2"]


def test_everything_that_waits_for_room_when_its_ends_are_lost(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group)
    producers = [rig.producer(group) for _ in range(3)]
    consumer.connection.is_stalled = True
    for producer in producers:
        producer.send(bytes(60_000), bytes(60_000))
    rig.run()
    forget(consumer, *producers)
    for producer in producers[:2]:
        rig.cut(producer.connection)
    consumer.connection.is_stalled = False
    rig.run()
    rig.cut(producers[2].connection)
    rig.cut(consumer.connection)
    assert len(consumer.messages) >= 2


def test_copies_that_are_all_refused_in_one_breath(rig: Rig):
    group = rig.multicast()
    consumers = [rig.consumer(group) for _ in range(4)]
    producer = rig.producer(group)
    forget(producer, *consumers)
    producer.send(*[b"x"] * 5)
    rig.run()
    for consumer in consumers:
        consumer.answer(rejected("amqp:not-allowed", "no"))
    rig.run()
    assert len(producer.outcomes) == 5
