"""Runs `bench addresses`: measures the cost of messages to very many addresses, sent on links without an address.

The figures of each process stand in a row of their own, because routers and brokers keep different things of an
address.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mesh.bench.exchange import dismiss
from mesh.bench.loopback_mesh import running_type, running_typed_line
from mesh.bench.processes import BenchProcesses
from mesh.bench.repetition import merged
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget, MeteredPart, parts_of
from mesh.terminal.output import Output

TYPES = ("topic", "queue", "anycast", "multicast")


@dataclass(frozen=True, slots=True)
class AddressesBenchRequest:
    """The request for a measurement of many addresses; ``messages`` counts the messages of all senders together.

    ``idle_s``: the time in s after which the memory is read again; 0 leaves this figure out. ``deadline_s``: the
    greatest time in s that the messages may take.
    """

    type: str
    addresses: int
    senders: int
    messages: int
    body_bytes: int
    idle_s: float
    repeat: int
    is_line: bool
    """Whether three routers in line are measured, with a receiver for each address at the last of them."""
    stall_s: float
    deadline_s: float

    def name(self, line: str) -> str:
        return (
            f"{line}, {self.senders:,} anonymous sender{'s' if self.senders > 1 else ''}, "
            f"{self.messages:,} messages to {self.addresses:,} addresses"
        )


@dataclass(frozen=True, slots=True)
class AddressesBenchRun:
    """The figures of each process by the process's name, and the number of messages of each outcome."""

    parts: Mapping[str, Mapping[str, float | None]]
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time and resident memory of a process at one time."""

    cpu_s: float
    resident_bytes: int


def measure_ours(order: AddressesBenchRequest, out: Output) -> Iterator[BenchRow]:
    """Measure our own router, with a broker if the type needs one, both started anew for each run.

    A node that saw the addresses of an earlier run would use the memory of that run again.
    """
    runs, line = [], ""
    for number in range(order.repeat):
        made = running_typed_line(order.type, order.addresses, out) if order.is_line else running_type(order.type, out)
        with made as (target, parts):
            line = "3 routers in line" if order.is_line else " and ".join(f"1 {part.name}" for part in parts)
            if number == 0:
                out.say(order.name(line))
            runs.append(measure_once(target, parts, target.addresses.more(""), order))
    yield from rows_of(order.name(line), order.type, runs, must_arrive=order.is_line)


def measure_theirs(target: BenchTarget, line: str, order: AddressesBenchRequest, out: Output) -> Iterator[BenchRow]:
    """Measure a running server, with addresses of a name of its own for each run.

    A process that the user named by its id has a row of its own.
    """
    out.say(order.name(line))
    parts = parts_of(target)
    runs = [
        measure_once(target, parts, target.addresses.more(f"{secrets.token_hex(4)}."), order)
        for _ in range(order.repeat)
    ]
    yield from rows_of(order.name(line), order.type, runs)


def measure_once(
    target: BenchTarget, parts: Sequence[MeteredPart], addresses: str, order: AddressesBenchRequest
) -> AddressesBenchRun:
    """Measure one run; ``addresses`` is the text before the number of each address."""
    plan = {**asdict(order), "run": secrets.randbits(32), "place": target.sending_place.to_map(), "prefix": addresses}
    with BenchProcesses() as sides:
        receivers = None
        if order.is_line:
            receivers = sides.start("receive_addresses", {**plan, "place": target.receiving_place.to_map()})
            receivers.step()
        sender = sides.start("send_anonymously", plan)
        sender.step()
        before = [usage(part) for part in parts]
        if receivers is not None:
            receivers.go_on()
        sender.go_on()
        sent = sender.step()
        if receivers is not None:
            receivers.step()
        after = [usage(part) for part in parts]
        if order.idle_s:
            time.sleep(order.idle_s)
        rested = [usage(part) if order.idle_s else None for part in parts]
        dismiss(sender)
    seconds = sent["ended_at"] - sent["started_at"]
    shared = {
        "messages_per_s": order.messages / seconds if seconds > 0 else None,
        "released": sent["outcomes"].get("released"),
        "sender_us_per_message": sent["cpu_s"] * 1e6 / order.messages,
    }
    measured = zip(parts, before, after, rested, strict=True)
    return AddressesBenchRun(
        {part.name: growth(first, second, third, order) | shared for part, first, second, third in measured},
        sent["outcomes"],
    )


def usage(part: MeteredPart) -> Usage | None:
    if part.meter is None:
        return None
    return Usage(sum(part.meter.cpu_s()), sum(part.meter.resident_bytes()))


def growth(
    before: Usage | None, after: Usage | None, rested: Usage | None, order: AddressesBenchRequest
) -> dict[str, float | None]:
    """Return the CPU time for each message, and the memory for each address, at once and after idling."""
    if before is None or after is None:
        return {}
    distinct = min(order.addresses, order.messages)

    def bytes_each(then: Usage) -> float:
        return (then.resident_bytes - before.resident_bytes) / distinct

    return {
        "cpu_us_per_message": (after.cpu_s - before.cpu_s) * 1e6 / order.messages,
        "bytes_per_address": bytes_each(after),
        "idle_bytes_per_address": bytes_each(rested) if rested is not None else None,
    }


def rows_of(
    work: str, mode: str, runs: Sequence[AddressesBenchRun], *, must_arrive: bool = False
) -> Iterator[BenchRow]:
    faults = tuple(sentences(work, mode, runs, must_arrive=must_arrive))
    for name in runs[0].parts:
        figures: dict[str, Any] = merged([run.parts[name] for run in runs])
        yield BenchRow(f"{work}: {name}" if name else work, mode, figures, faults)
        # A fault belongs to the run, so the first row alone tells the fault.
        faults = ()


def sentences(work: str, mode: str, runs: Sequence[AddressesBenchRun], *, must_arrive: bool = False) -> Iterator[str]:
    """Yield a sentence for each outcome that is a fault.

    Messages to an anycast or multicast address without consumers may be released.
    """
    fine = {"accepted"} if must_arrive or mode in ("queue", "topic") else {"accepted", "released"}
    for outcome in sorted({outcome for run in runs for outcome in run.outcomes} - fine):
        yield f"{work}, {mode}: {sum(run.outcomes.get(outcome, 0) for run in runs)} messages {outcome} to the sender"
