"""Runs `bench broker`: measures the cost of a stored message at a broker, the throughput, and the wait for outcomes.

pair      one producer and one consumer at the same time
pairs     four pairs, on four queues
await     a producer that waits for the outcome of each message before it sends the next one
backlog   a producer fills a queue, then a consumer drains the queue
topic     one producer; each consumer gets all messages
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mesh.bench.exchange import dismiss, exchange, plan_of, wrongs_of
from mesh.bench.forward import UNSETTLED
from mesh.bench.loopback_mesh import running_broker
from mesh.bench.processes import BenchProcesses
from mesh.bench.repetition import merged
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget
from mesh.bench.units import size_name
from mesh.terminal.output import Output

DURABLE, NON_DURABLE = "durable", "non-durable"
PAIRS = 4
WARM_UP_MESSAGES = 5_000
AWAITED_SHARE = 50
"""Divisor of the number of messages, for a producer that waits for the outcome of each message."""

Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """One kind of load on a broker.

    ``consumers``: the number of consumers of a topic, which each receive every message; 0 if each producer sends to
    a queue with one consumer. ``in_flight``: the number of messages without an outcome at which a producer waits; None
    for the number in the request, 0 if only the broker's credit limits the producer.
    """

    kind: str
    what: str
    pairs: int = 1
    consumers: int = 0
    in_flight: int | None = None
    is_durable: bool = True
    is_apart: bool = False
    """Whether all messages are sent before the first is received."""
    is_lasting: bool = False
    """Whether the consumers are durable subscriptions."""
    is_ordered: bool = True
    """Whether the order of arrival is checked; False if the broker does not promise order."""

    @property
    def mode(self) -> str:
        return DURABLE if self.is_durable else NON_DURABLE

    @property
    def copies(self) -> int:
        return max(self.consumers, 1)


WORKS = (
    BrokerLoad("pair", "1 to 1"),
    BrokerLoad("pairs", f"{PAIRS} pairs on {PAIRS} queues", pairs=PAIRS),
    BrokerLoad("await", "1 to 1, waiting for each accept", in_flight=1),
    BrokerLoad("backlog", "1 to 1", is_apart=True, in_flight=0),
    BrokerLoad("pair", "1 to 1", is_durable=False),
    *(BrokerLoad("topic", f"topic to {count}, per copy", consumers=count, is_durable=False) for count in (1, 10, 100)),
    BrokerLoad("topic", "topic to 100 durable subscriptions, per copy", consumers=100, is_lasting=True),
)
KINDS = tuple(dict.fromkeys(work.kind for work in WORKS))
ROUTED = tuple(work for work in WORKS if work.kind == "pair")
SPREAD_QUEUE = BrokerLoad("pair", "1 to 1", is_ordered=False)


@dataclass(frozen=True, slots=True)
class BrokerBenchRequest:
    """The request for a measurement of brokers.

    ``messages``: the messages of all pairs together or, with several consumers, the copies; a producer that waits for
    each outcome sends a 50th of this number.
    """

    messages: int
    body_bytes: int
    in_flight: int
    window: int
    repeat: int
    stall_s: float


@dataclass(frozen=True, slots=True)
class BrokerBenchRun:
    """The result of one measurement, or of the part of one that filled (`fill`) or drained (`drain`) a queue."""

    part: str
    figures: Figures
    wrongs: Mapping[str, int]


def measure_ours(kinds: Sequence[str], order: BrokerBenchRequest, out: Output) -> Iterator[BenchRow]:
    """Yield a row for each of our own measurements: all loads of ``kinds`` on a broker to which the clients connect,
    then, if `pair` is one of the kinds, this load on the broker behind a router, and on a queue that two brokers behind
    the router share.
    """
    with running_broker(out) as (direct, routed, spread):
        yield from measure(direct, "1 broker", works_of(kinds), order, out)
        through = [work for work in ROUTED if work.kind in kinds]
        yield from measure(routed, "1 broker behind 1 router", through, order, out)
        both = [SPREAD_QUEUE] if SPREAD_QUEUE.kind in kinds else []
        yield from measure(spread, "a queue on 2 brokers behind 1 router", both, order, out)


def works_of(kinds: Sequence[str]) -> list[BrokerLoad]:
    return [work for work in WORKS if work.kind in kinds]


def measure(
    target: BenchTarget, line: str, works: Iterable[BrokerLoad], order: BrokerBenchRequest, out: Output
) -> Iterator[BenchRow]:
    for work in works:
        name = f"{line}, {work.what}, {size_name(order.body_bytes)}"
        out.say(f"{name}, {work.mode}")
        run(target, work, replace(order, messages=min(order.messages, WARM_UP_MESSAGES)))
        runs = [run(target, work, order) for _ in range(order.repeat)]
        for parts in zip(*runs, strict=True):
            yield row_of(f"{name}, {parts[0].part}" if parts[0].part else name, work.mode, parts)


def run(target: BenchTarget, work: BrokerLoad, order: BrokerBenchRequest) -> list[BrokerBenchRun]:
    count = count_of(work, order)
    plan = plan_of(
        count,
        order.body_bytes,
        UNSETTLED,
        window=order.window,
        is_durable=work.is_durable,
        stall_s=order.stall_s,
        in_flight=order.in_flight if work.in_flight is None else work.in_flight,
    )
    plan |= {"addresses": addresses_of(target, work), "is_lasting": work.is_lasting}
    arrivals = count * work.pairs * work.copies
    return apart(target, plan, arrivals) if work.is_apart else [at_once(target, work, plan, arrivals)]


def count_of(work: BrokerLoad, order: BrokerBenchRequest) -> int:
    """Return the number of messages that each producer sends."""
    share = AWAITED_SHARE if work.in_flight == 1 else 1
    return max(order.messages // (work.pairs * work.copies * share), 1)


def addresses_of(target: BenchTarget, work: BrokerLoad) -> list[str]:
    if work.consumers:
        return [target.addresses.multicast]
    if work.pairs == 1:
        return [target.addresses.anycast]
    return [target.addresses.more(f"{number}") for number in range(1, work.pairs + 1)]


def at_once(target: BenchTarget, work: BrokerLoad, plan: dict[str, Any], arrivals: int) -> BrokerBenchRun:
    with BenchProcesses() as sides:
        consumer = sides.start(
            "consume", {**plan, "place": target.receiving_place.to_map(), "connections": work.copies}
        )
        consumer.step()
        consumer.go_on()
        producer = sides.start("produce", {**plan, "place": target.sending_place.to_map()})
        producer.step()
        used = BrokerResources(target)
        sent, received = exchange(producer, consumer)
        figures = used.figures(arrivals)
        dismiss(producer, consumer)
    seconds = max(sent["ended_at"], received["ended_at"]) - sent["started_at"]
    figures |= told_by_sender(sent, arrivals) | told_by_receiver(received, arrivals)
    figures["messages_per_s"] = rate(received["received"], seconds)
    return BrokerBenchRun("", figures, wrongs_of(sent, received if work.is_ordered else {**received, "reordered": 0}))


def apart(target: BenchTarget, plan: dict[str, Any], arrivals: int) -> list[BrokerBenchRun]:
    """Fill a queue, then drain it, and return the measurements of both.

    While filling, only the broker's credit limits the producer, so that the figure `in_flight` shows this credit.
    """
    bounded = {**plan, "in_flight": plan["in_flight"] or plan["count"]}
    with BenchProcesses() as sides:
        producer = sides.start("produce", {**bounded, "place": target.sending_place.to_map()})
        producer.step()
        used = BrokerResources(target)
        producer.go_on()
        sent = producer.step()
        fill = used.figures(arrivals) | told_by_sender(sent, arrivals)
        fill["resident_bytes"] = float(sum(target.meter.resident_bytes())) if target.meter is not None else None
        fill["messages_per_s"] = rate(sent["sent"], sent["ended_at"] - sent["started_at"])
        dismiss(producer)
        consumer = sides.start("consume", {**plan, "place": target.receiving_place.to_map(), "connections": 1})
        consumer.step()
        used = BrokerResources(target)
        began_at = time.monotonic()
        # The first line lets the consumer's process begin; the second says that no more messages will come.
        consumer.go_on()
        consumer.go_on()
        received = consumer.step()
        consumer.step()
        drain = used.figures(arrivals) | told_by_receiver(received, arrivals)
        drain["messages_per_s"] = rate(received["received"], received["ended_at"] - began_at)
        dismiss(consumer)
    nothing = {"outcomes": {}, "unsettled": 0, "settled_twice": 0}
    whole = {"doubled": 0, "reordered": 0, "damaged": 0}
    return [
        BrokerBenchRun("fill", fill, wrongs_of(sent, whole)),
        BrokerBenchRun("drain", drain, wrongs_of(nothing, received)),
    ]


class BrokerResources:
    """CPU time used and bytes written by the metered processes since this object was made, for each message."""

    def __init__(self, target: BenchTarget) -> None:
        self._meter = target.meter
        self._before = self._read()

    def figures(self, arrivals: int) -> Figures:
        if self._before is None or (now := self._read()) is None:
            return {}
        cpu_s, written = (later - earlier for later, earlier in zip(now, self._before, strict=True))
        return {"cpu_us_per_message": cpu_s * 1e6 / arrivals, "written_bytes_per_message": written / arrivals}

    def _read(self) -> tuple[float, int] | None:
        return None if self._meter is None else (sum(self._meter.cpu_s()), self._meter.written_bytes())


def told_by_sender(sent: Mapping[str, Any], arrivals: int) -> Figures:
    """Return the figures of a row that the sending process measured, from its report ``sent``.

    ``in_flight``: the average number of messages without an outcome, by Little's law; None if no time passed.
    """
    waits, seconds = sent["waits_us"], sent["ended_at"] - sent["started_at"]
    return {
        "accept_p50_us": waits.get("p50_us"),
        "accept_p99_us": waits.get("p99_us"),
        "in_flight": sent["waited_s"] / seconds if seconds > 0 else None,
        "sender_us_per_message": sent["cpu_s"] * 1e6 / arrivals,
    }


def told_by_receiver(received: Mapping[str, Any], arrivals: int) -> Figures:
    return {"lost": received["lost"], "receiver_us_per_message": received["cpu_s"] * 1e6 / arrivals}


def rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


def row_of(work: str, mode: str, runs: Sequence[BrokerBenchRun]) -> BenchRow:
    figures = merged([run.figures for run in runs])
    return BenchRow(work, mode, figures, tuple(sentences(work, mode, runs)))


def sentences(work: str, mode: str, runs: Sequence[BrokerBenchRun]) -> Iterator[str]:
    lost = sum(run.figures.get("lost") or 0 for run in runs)
    if lost:
        yield f"{work}, {mode}: {lost:.0f} messages did not arrive"
    for what in sorted({what for run in runs for what in run.wrongs}):
        yield f"{work}, {mode}: {sum(run.wrongs.get(what, 0) for run in runs)} messages {what}"
