"""Makes for generated link logs the state records of neighbors, paths, credit, and starts and ends of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from addressing.topology.model import Topology
from mesh.sample_logs.epochs import Epochs
from mesh.sample_logs.hops import Trunks
from mesh.sample_logs.registry import RegistryEntry, Row, SampleRun, TimedRecord
from mesh.sample_logs.starvation import StarvedSpan
from recording.columns import STILL_S, STOPPED, RecordEvent, RecordKind

CREDIT = 250
INCOMING = "incoming"
SECOND_US = 1_000_000
OLD_US = 60_000_000


def neighbors(topology: Topology, trunks: Trunks) -> Iterator[tuple[int, TimedRecord]]:
    """Yield the records of gained and lost neighbors, each with the place of the run that writes the record."""
    for edge in topology.edges():
        for _, near, far in trunks.all_of(edge.dialer, edge.to):
            for entry, neighbor in ((near, edge.to), (far, edge.dialer)):
                yield from _neighbor(entry, neighbor, edge.cost)


def _neighbor(entry: RegistryEntry, neighbor: str, cost: int) -> Iterator[tuple[int, TimedRecord]]:
    common: Row = {"kind": RecordKind.NEIGHBOR.value, "neighbor": neighbor, "cost": cost}
    opened: Row = {**common, "event": RecordEvent.OPENED.value, "at_us": entry.opens_us}
    yield entry.run.place, TimedRecord(opened, entry.closes_us)
    closed_us = entry.run.told_us(entry.closes_us)
    if closed_us is not None:
        closed: Row = {**common, "event": RecordEvent.CLOSED.value, "at_us": closed_us, "cause": entry.cause}
        yield entry.run.place, TimedRecord(closed, closed_us)


def paths(topology: Topology, epochs: Epochs, run: SampleRun) -> Iterator[TimedRecord]:
    """Yield the records of the paths from the run's router to every other router: one for each change of a path."""
    for target in topology.routers:
        if target != run.node:
            yield from _path(epochs, run, target)


def _path(epochs: Epochs, run: SampleRun, target: str) -> Iterator[TimedRecord]:
    changes: list[tuple[int, str, int]] = []
    for epoch in epochs.epochs:
        known = epochs.shortest(epoch, run.node) if run.begins_us <= epoch.from_us < run.ends_us else None
        path = ">".join(known.paths.get(target, ())) if known is not None else ""
        if path != (changes[-1][1] if changes else ""):
            changes.append((epoch.from_us, path, known.costs.get(target, 0) if known is not None else 0))
    last = ""
    for (at_us, path, cost), (until_us, _, _) in pairwise([*changes, (run.ends_us, "", 0)]):
        # The change left over is the loss of the path by the end of this run, which no router records.
        if at_us >= run.ends_us:
            return
        event = RecordEvent.CLOSED if not path else RecordEvent.CHANGED if last else RecordEvent.OPENED
        is_first = epochs.bounds[0] == at_us
        row: Row = {"kind": RecordKind.PATH.value, "event": event.value, "at_us": at_us - OLD_US if is_first else at_us,
               "egress": target, "path": path or None, "cost": cost or None}  # fmt: skip
        yield TimedRecord(row, until_us if path else at_us)
        last = path


def credit(entry: RegistryEntry, spans: Sequence[StarvedSpan], ends_us: int) -> Iterator[TimedRecord]:
    """Yield the records of a link's credit in order of time.

    The first record is after the link's first second, unless records of ``spans``, the times without credit, begin
    before; all others are of ``spans``.
    """
    tell = _wait if entry.columns["direction"] == INCOMING else _standstill
    # A change of credit after the last whole second of a link is recorded when the link closes.
    last_us = min(entry.closes_us, ends_us) - 1
    waits = [replace(each, at_us=min(each.at_us, last_us)) for span in spans for each in tell(span)]
    first = _Change(_second_after(entry.opens_us), CREDIT)
    has_first = first.at_us <= last_us and all(each.at_us > first.at_us for each in waits)
    changes = _at_once([first, *waits] if has_first else waits)
    for change, following in pairwise([*changes, _Change(entry.closes_us, 0)]):
        yield TimedRecord(change.row(entry), following.at_us)


@dataclass(frozen=True, slots=True)
class _Change:
    at_us: int
    credit: int
    starved_us: int = 0
    cause: str | None = None

    def row(self, entry: RegistryEntry) -> Row:
        told = {"starved_us": self.starved_us or None, "cause": self.cause}
        if entry.columns["direction"] != INCOMING:
            told = {"unsettled_count": 0}
        return {"kind": RecordKind.CREDIT.value, "event": RecordEvent.CHANGED.value, "at_us": self.at_us,
                "link": entry.number,
                "credit": self.credit, **told}  # fmt: skip


def _wait(span: StarvedSpan) -> Iterator[_Change]:
    """Yield a record for each second of a span without credit, and one for the second in which the span ends."""
    since_us = span.from_us
    for at_us in range(_second_after(span.from_us), span.to_us, SECOND_US):
        yield _Change(at_us, 0, at_us - since_us, span.cause)
        since_us = at_us
    yield _Change(_second_after(span.to_us - 1), CREDIT, span.to_us - since_us, span.cause)


def _standstill(span: StarvedSpan) -> Iterator[_Change]:
    """Yield two records of a span in which a receiver gives no credit: once the link has stood still for ``STILL_S``
    seconds, and at the span's end.

    A shorter span has no record.
    """
    still_us = _second_after(span.from_us + STILL_S * SECOND_US)
    if still_us < span.to_us:
        yield _Change(still_us, 0)
        yield _Change(_second_after(span.to_us - 1), CREDIT)


def _second_after(at_us: int) -> int:
    return (at_us // SECOND_US + 1) * SECOND_US


def _at_once(changes: Sequence[_Change]) -> list[_Change]:
    """Merge the changes of credit with the same time and cause into one; their starved times are added."""
    found: dict[tuple[int, str | None], _Change] = {}
    for each in changes:
        same = found.get((each.at_us, each.cause))
        starved_us = each.starved_us + (same.starved_us if same is not None else 0)
        found[each.at_us, each.cause] = replace(each, starved_us=starved_us)
    return list(found.values())


def clock_set(steps: Sequence[tuple[int, int]], clock_us: int) -> Iterator[TimedRecord]:
    """Yield a record for each step of a clock.

    ``clock_us``: how far the wall clock is ahead of the monotonic clock before the first step, in us.
    """
    for at_us, by_us in steps:
        clock_us += by_us
        row: Row = {
            "kind": RecordKind.NODE.value,
            "event": RecordEvent.CHANGED.value,
            "at_us": at_us,
            "clock_us": clock_us,
        }
        yield TimedRecord(row, at_us)


def stopped(run: SampleRun) -> Iterator[TimedRecord]:
    """Yield the last record of a run that is stopped in order; nothing for a run that is killed or goes on."""
    if run.is_stopped:
        at_us = run.ends_us - 1
        row: Row = {"kind": RecordKind.NODE.value, "event": RecordEvent.CLOSED.value, "at_us": at_us, "cause": STOPPED}
        yield TimedRecord(row, at_us)


def started(run: SampleRun, topology: str, version: str, clock_us: int) -> TimedRecord:
    row: Row = {"kind": RecordKind.NODE.value, "event": RecordEvent.OPENED.value, "at_us": run.begins_us,
           "role": run.role,
           "clock_us": clock_us, "topology": topology, "version": version}  # fmt: skip
    return TimedRecord(row, run.begins_us)
