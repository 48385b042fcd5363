"""Hosts for tests: models made of records, as nodes write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mesh.watch.counts import DeliverySums
from mesh.watch.declared_limits import DeclaredLimits
from mesh.watch.host_model import HostModel, NodeRecords
from mesh.watch.slots import Alike, RingRecords
from recording.columns import DeliveryPart, RecordEvent, RecordKind, RecordOutcome
from recording.ring_format import KINDS, OUTCOMES, PARTS

NOW_S = 4_000_000_000.0
"""A time that no clock shows yet, in seconds of UTC."""
OUTCOME_CODES = {outcome: code for code, outcome in OUTCOMES.items()}
FIRST = next(code for code, part in PARTS.items() if part not in (DeliveryPart.MANY, DeliveryPart.COPY))
MESSAGE_CODES = {event: code for code, (_, event) in KINDS.items() if event is not None}


class SampleHost:
    """A host with nodes, whose records tests add. ``patterns``: type by declared pattern."""

    def __init__(
        self,
        patterns: dict[str, str],
        pattern_of: Callable[[str], str | None] | None = None,
        limits: DeclaredLimits | None = None,
    ) -> None:
        def declared(address: str) -> tuple[str, str] | None:
            pattern = pattern_of(address) if pattern_of is not None else address
            return (pattern, patterns[pattern]) if pattern in patterns else None

        self.model = HostModel(declared, patterns.items(), limits)
        self.model.on_time(NOW_S)
        self.runs: dict[str, NodeRecords] = {}

    def node(self, name: str, role: str = "router") -> NodeRecords:
        run = self.runs[name] = NodeRecords(self.model, self.model.node(name), NOW_S - 60)
        run.set_role(role)
        add(run, changed(RecordKind.NODE, cpu_us=1_500_000, resident_bytes=50_000_000))
        return run


def add(run: NodeRecords, *rows: dict[str, Any]) -> None:
    run.add(RingRecords(rows=[(int(NOW_S * 1e6), row) for row in rows]))


def opened(kind: RecordKind, **columns: Any) -> dict[str, Any]:
    return {"kind": kind.value, "event": RecordEvent.OPENED.value, **columns}


def changed(kind: RecordKind, **columns: Any) -> dict[str, Any]:
    return {"kind": kind.value, "event": RecordEvent.CHANGED.value, **columns}


def closed(kind: RecordKind, **columns: Any) -> dict[str, Any]:
    return {"kind": kind.value, "event": RecordEvent.CLOSED.value, **columns}


def connect(run: NodeRecords, number: int, user: str | None = None) -> None:
    add(run, opened(RecordKind.CONNECTION, connection=number, role="client", user=user))


def attach(run: NodeRecords, number: int, role: str, address: str, connection: int = 1) -> None:
    direction = "incoming" if role == "producer" else "outgoing"
    columns = {"link": number, "connection": connection, "role": role, "direction": direction, "address": address}
    add(run, opened(RecordKind.LINK, **columns))


def deliver(
    run: NodeRecords,
    incoming: int,
    outgoing: int,
    count: int,
    outcome: RecordOutcome = RecordOutcome.ACCEPTED,
    took_us: int = 500,
    size_bytes: int = 100,
) -> None:
    sums = DeliverySums()
    sums.count, sums.size_bytes = count, count * size_bytes
    sums.last_us = int(NOW_S * 1e6)
    sums.latencies = {took_us.bit_length(): count}
    sums.delayed = count if took_us >= 1_000_000 else 0
    sums.delayed_long = count if took_us >= 10_000_000 else 0
    run.add(RingRecords(deliveries={Alike(incoming, outgoing, OUTCOME_CODES[outcome], FIRST): sums}))


def queue(run: NodeRecords, number: int, address: str, depth: int = 0, oldest_us: int | None = None) -> None:
    columns: dict[str, Any] = {"depth_count": depth, "depth_bytes": depth * 10, "acquired_count": 0}
    if oldest_us is not None:
        columns["oldest_us"] = oldest_us
    add(run, opened(RecordKind.QUEUE, queue=number, address=address, **columns))


def messages(run: NodeRecords, number: int, event: RecordEvent, count: int) -> None:
    run.add(RingRecords(messages={(MESSAGE_CODES[event], number): count}))


def hear(run: NodeRecords, neighbor: str, cost: int = 1) -> None:
    add(run, opened(RecordKind.NEIGHBOR, neighbor=neighbor, cost=cost))


def find_path(run: NodeRecords, egress: str) -> None:
    add(run, opened(RecordKind.PATH, egress=egress, path=f"{run.node.name}>{egress}", cost=1))


def small_mesh() -> SampleHost:
    """Two routers and a broker, with all outcomes and delays, and a waiting producer."""
    patterns = {"rpc.#": "anycast", "prices": "multicast", "orders": "queue", "news": "topic"}
    host = SampleHost(patterns, lambda address: "rpc.#" if address.startswith("rpc") else address)
    r1, r2, b1 = host.node("r1"), host.node("r2"), host.node("b1", "broker")
    hear(r1, "r2", 3)
    hear(r2, "r1", 3)
    find_path(r1, "r2")
    find_path(r2, "r1")
    for run, user in ((r1, "alice"), (r2, "bob")):
        connect(run, 1, user)
        attach(run, 10, "producer", "rpc.tea")
        attach(run, 11, "consumer", "rpc.tea")
        attach(run, 12, "producer", "orders")
    for outcome, count in zip(RecordOutcome, (50, 4, 3, 2, 1, 6, 7), strict=False):
        deliver(r1, 10, 11, count, outcome)
    deliver(r2, 10, 11, 5, took_us=1_500_000)
    deliver(r2, 12, 0, 2, took_us=20_000_000)
    add(r2, changed(RecordKind.CREDIT, link=12, credit=0, cause="no_taker", starved_us=2_500_000))
    queue(b1, 1, "orders", depth=7, oldest_us=90_000_000)
    queue(b1, 2, "news")
    messages(b1, 1, RecordEvent.ENQUEUED, 20)
    messages(b1, 1, RecordEvent.DEQUEUED, 13)
    return host


def large_host(addresses: int, patterns: Iterable[str] = ("p.#", "q")) -> SampleHost:
    """One router and one broker; each address has a producer and a queue."""
    declared = dict.fromkeys(patterns, "queue")
    host = SampleHost(declared, lambda address: next(iter(declared)) if address.startswith("p.") else address)
    router, broker = host.node("r1"), host.node("b1", "broker")
    connect(router, 1, "alice")
    for number in range(addresses):
        attach(router, 100 + number, "producer", f"p.{number}")
        queue(broker, number + 1, f"p.{number}", depth=number % 3)
    return host
