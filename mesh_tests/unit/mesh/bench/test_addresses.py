"""`bench addresses`: the addresses that its messages name, and the figures made of what its processes use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from addressing.topology.model import Topology
from mesh.bench.addresses import TYPES, AddressesBenchRequest, AddressesBenchRun, Usage, growth, rows_of, sentences
from mesh.bench.addressing_producer import AddressingProducer
from mesh.bench.anonymous_senders import check_body
from mesh.bench.dial import BenchServer
from mesh.bench.handshake import PeerOpen
from mesh.bench.loopback_mesh import TYPED, LoopbackPlan, topology_of
from mesh.bench.meter import Meter
from mesh.bench.performatives import attach_frame, decode, flow_frame
from mesh.bench.repetition import merged
from mesh.bench.target import BenchTarget, parts_of
from mesh.bench.values import DescribedValue, ValueReader
from mesh.commands.bench_scale import ADDRESS_TYPES
from mesh.terminal.failure import CommandFailed
from mesh_tests.bench.messages import RUN
from mesh_tests.bench.pair import BODY_BYTES, Pair, frames_of

ORDER = AddressesBenchRequest(
    is_line=False,
    type="topic",
    addresses=100,
    senders=1,
    messages=1000,
    body_bytes=100,
    idle_s=1.0,
    repeat=1,
    stall_s=1.0,
    deadline_s=5.0,
)


def anonymous(
    addresses: int = 12, first: int = 0, step: int = 1, count: int = 30, *, is_durable: bool = False
) -> AddressingProducer:
    return AddressingProducer(
        0,
        "cannot send",
        1000,
        addresses="bench.",
        address_count=addresses,
        first=first,
        step=step,
        run=RUN,
        count=count,
        body_bytes=BODY_BYTES,
        frame_bytes=65536,
        is_durable=is_durable,
        is_presettled=True,
    )


def sections_of(payload: bytes) -> Iterator[DescribedValue]:
    reader = ValueReader(payload)
    while reader.at < len(payload):
        value = reader.value()
        assert isinstance(value, DescribedValue)
        yield value


def sent_by(producer: AddressingProducer) -> list[list[DescribedValue]]:
    """The sections of each message that the producer sends."""
    pair = Pair(producer)
    try:
        assert pair.say(flow_frame(0, 0, 0, 0, 1000))
        data = pair.heard()
    finally:
        pair.close()
    frames = [data[at:end] for at, end in frames_of(data)]
    return [list(sections_of(frame[29:])) for frame in frames]


def addresses_in(messages: list[list[DescribedValue]]) -> list[str]:
    return [next(section.value[2] for section in message if section.descriptor == 0x73) for message in messages]


# The producer
def test_each_message_names_the_next_address_and_after_the_last_the_first() -> None:
    found = addresses_in(sent_by(anonymous(12, count=15)))
    assert found == [f"bench.{number:02}" for number in (*range(12), 0, 1, 2)]


def test_a_message_to_an_address_has_header_properties_and_body() -> None:
    (message, *_) = sent_by(anonymous(is_durable=True))
    assert [section.descriptor for section in message] == [0x70, 0x73, 0x75]
    assert message[1].value == [None, None, "bench.00"]
    assert len(message[2].value) == BODY_BYTES
    assert message[2].value[:8] == RUN.to_bytes(4, "big") + bytes(4)


@settings(max_examples=20, deadline=None)
@given(senders=st.integers(1, 5), addresses=st.integers(1, 40), messages=st.integers(5, 100))
def test_several_senders_share_the_addresses_as_one_sender_uses_them(
    senders: int, addresses: int, messages: int
) -> None:
    together: list[str] = []
    for number in range(senders):
        count = len(range(number, messages, senders))
        together += addresses_in(sent_by(anonymous(addresses, number, senders, count)))
    assert sorted(together) == sorted(addresses_in(sent_by(anonymous(addresses, count=messages))))


def test_what_fits_into_no_frame_is_said_with_the_size_that_fits() -> None:
    check_body(100, PeerOpen(512))
    with pytest.raises(CommandFailed, match="expected a body of at most 212 bytes, got 213"):
        check_body(213, PeerOpen(512))
    with pytest.raises(ValueError, match="one frame"):
        AddressingProducer(
            0, "s", 1, addresses="a", address_count=1, run=1, count=1, body_bytes=70_000, frame_bytes=65536
        )
    with pytest.raises(ValueError, match="at least one address"):
        anonymous(0)
    with pytest.raises(ValueError, match="at most 200 bytes"):
        AddressingProducer(
            0, "s", 1, addresses="a" * 200, address_count=1, run=1, count=1, body_bytes=16, frame_bytes=65536
        )


def test_a_link_without_address_has_a_target_without_address() -> None:
    attach = decode(attach_frame(0, "n", is_receiver=False, address=""))
    assert attach is not None
    assert attach.field(6) == DescribedValue(0x29, [None])


# The mesh
def test_the_command_offers_the_types_that_can_be_measured() -> None:
    assert ADDRESS_TYPES == TYPES


@pytest.mark.parametrize("kind", TYPES)
def test_all_addresses_of_the_mesh_have_the_type_and_a_broker_only_keeps(kind: str) -> None:
    topology = Topology.model_validate(topology_of(LoopbackPlan(1, type=kind)))
    assert {pattern: str(entry.type) for pattern, entry in topology.addresses.items()} == {"bench.#": kind}
    assert list(topology.brokers) == (["b1"] if kind in ("topic", "queue") else [])


def test_a_process_that_is_named_has_a_row_of_its_own() -> None:
    place = BenchServer("h", 1)
    assert [part.name for part in parts_of(BenchTarget(place, place, Meter([7, 9]), 1, TYPED))] == [
        "process 7",
        "process 9",
    ]
    (unknown,) = parts_of(BenchTarget(place, place, None, 1, TYPED))
    assert (unknown.name, unknown.meter) == ("", None)


# Figures
def test_memory_is_for_each_distinct_address_at_once_and_after_idling() -> None:
    before, after, rested = Usage(1.0, 10_000), Usage(1.5, 40_000), Usage(1.6, 20_000)
    assert growth(before, after, rested, ORDER) == {
        "cpu_us_per_message": 500.0,
        "bytes_per_address": 300.0,
        "idle_bytes_per_address": 100.0,
    }
    assert growth(before, after, None, ORDER)["idle_bytes_per_address"] is None
    assert growth(None, None, None, ORDER) == {}


def test_fewer_messages_than_addresses_see_as_many_addresses() -> None:
    order = AddressesBenchRequest("topic", 5000, 1, 1000, 100, 0.0, 1, False, 1.0, 5.0)
    assert growth(Usage(0.0, 0), Usage(0.0, 1000), None, order)["bytes_per_address"] == 1.0


def test_each_process_is_a_row_with_median_and_spread_and_the_fault_is_told_once() -> None:
    runs = [
        AddressesBenchRun({"router": {"cpu_us_per_message": cpu}, "broker": {"cpu_us_per_message": cpu * 2}}, outcomes)
        for cpu, outcomes in ((1.0, {"accepted": 9, "rejected": 1}), (3.0, {"accepted": 10}), (2.0, {"accepted": 10}))
    ]
    router, broker = rows_of("w", "topic", runs)
    assert (router.work, router.figures) == ("w: router", {"cpu_us_per_message": 2.0, "cpu_us_spread": [1.0, 3.0]})
    assert (broker.work, broker.figures["cpu_us_per_message"]) == ("w: broker", 4.0)
    assert (router.wrongs, broker.wrongs) == (("w, topic: 1 messages rejected to the sender",), ())


def test_a_release_is_a_fault_only_where_a_broker_keeps_or_drops_messages() -> None:
    runs = [AddressesBenchRun({}, {"accepted": 1, "released": 2})]
    assert list(sentences("w", "queue", runs)) == ["w, queue: 2 messages released to the sender"]
    assert list(sentences("w", "anycast", runs)) == []


def test_runs_are_merged_to_medians_spreads_and_sums() -> None:
    runs = [{"p99_us": 3.0, "lost": 1, "p50_us": None}, {"p99_us": 1.0, "lost": 2}, {"p99_us": 2.0, "lost": 0}]
    assert merged(runs) == {"p99_us": 2.0, "p99_us_spread": [1.0, 3.0], "lost": 3}
    assert merged(runs[:1]) == {"p99_us": 3.0, "lost": 1}
