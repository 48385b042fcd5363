"""Collects the connections and links that generated link logs show, numbers them, and makes their records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from recording.columns import RecordEvent, RecordKind

PATH_LOST = "amqpmesh:path-lost"
CONNECTION_LOST = "amqp:connection:forced"
FOREVER = 2**62
CLOSING_US = 10
"""Time in us between the close of connections and links and the end of a node that is stopped in order."""

Row = dict[str, str | int | None]


@dataclass(slots=True)
class SampleRun:
    """A run of a node; ``ends_us`` is FOREVER if the run outlasts the logs, and ``is_stopped`` tells that it ends in
    order.
    """

    node: str
    role: str
    begins_us: int
    ends_us: int
    place: int
    is_stopped: bool = False

    def told_us(self, closes_us: int) -> int | None:
        """Return the time at which this run records a close at ``closes_us``, or None if the close is not recorded.

        A run that ends in order records open entries as closed just before its end; a killed run does not.
        """
        if closes_us < self.ends_us:
            return closes_us
        return self.ends_us - CLOSING_US if self.is_stopped else None


@dataclass(slots=True)
class RegistryEntry:
    """A connection or link that the sample logs are to show, in one run of a node.

    ``closes_us`` is FOREVER if the connection or link is still open at the end of the logs.
    """

    run: SampleRun
    opens_us: int
    closes_us: int
    columns: Row
    cause: str | None = None
    connection: RegistryEntry | None = None
    number: int = 0
    place: int = 0
    user: str = ""


@dataclass(frozen=True, slots=True)
class TimedRecord:
    """A state record, and the time until which its state lasts."""

    row: Row
    until_us: int

    @property
    def at_us(self) -> int:
        at_us = self.row["at_us"]
        assert isinstance(at_us, int)
        return at_us


@dataclass(slots=True)
class Registry:
    runs: list[SampleRun] = field(default_factory=list)
    connections: list[RegistryEntry] = field(default_factory=list)
    links: list[RegistryEntry] = field(default_factory=list)

    def add_run(self, node: str, role: str, begins_us: int, ends_us: int, is_stopped: bool) -> SampleRun:
        run = SampleRun(node, role, begins_us, ends_us, len(self.runs), is_stopped)
        self.runs.append(run)
        return run

    def run_at(self, node: str, at_us: int) -> SampleRun:
        return next(run for run in self.runs if run.node == node and run.begins_us <= at_us < run.ends_us)

    def connect(
        self, run: SampleRun, opens_us: int, closes_us: int, cause: str | None, **columns: str
    ) -> RegistryEntry:
        entry = RegistryEntry(run, opens_us, min(closes_us, run.ends_us), dict(columns), cause)
        self.connections.append(entry)
        return entry

    def attach(self, connection: RegistryEntry, opens_us: int, **columns: str) -> RegistryEntry:
        """Add a link that lives as long as its connection, unless the caller sets the link's ``closes_us`` earlier.

        The first link has place 1, as place 0 stands for no link.
        """
        entry = RegistryEntry(
            connection.run, opens_us, connection.closes_us, dict(columns), connection.cause, connection
        )
        self.links.append(entry)
        entry.place = len(self.links)
        return entry

    def number(self) -> None:
        """Number connections and links separately from 1 in each run, in order of opening."""
        for entries in (self.connections, self.links):
            next_number: dict[int, int] = defaultdict(lambda: 1)
            for entry in sorted(entries, key=lambda entry: entry.opens_us):
                entry.number = next_number[entry.run.place]
                next_number[entry.run.place] += 1

    def told(self) -> dict[int, list[TimedRecord]]:
        """Return the records of opening and closing of all connections and links, by place of the node's run.

        Callers call `number` before.
        """
        found: dict[int, list[TimedRecord]] = defaultdict(list)
        for kind, entries in ((RecordKind.CONNECTION, self.connections), (RecordKind.LINK, self.links)):
            for entry in entries:
                found[entry.run.place] += _life(kind, entry)
        return found


def _life(kind: RecordKind, entry: RegistryEntry) -> Iterator[TimedRecord]:
    numbered: Row = {kind.value: entry.number, **entry.columns}
    if entry.connection is not None:
        numbered["connection"] = entry.connection.number
        # A link's record repeats columns of its connection, so that a reader of the link need not look the connection
        # up.
        numbered |= {name: entry.connection.columns[name] for name in ("container", "user", "remote_address")
                     if name in entry.connection.columns}  # fmt: skip
    common: Row = {"kind": kind.value, **numbered}
    yield TimedRecord({**common, "event": RecordEvent.OPENED.value, "at_us": entry.opens_us}, entry.closes_us)
    closed_us = entry.run.told_us(entry.closes_us)
    if closed_us is not None:
        closed: Row = {**common, "event": RecordEvent.CLOSED.value, "at_us": closed_us, "cause": entry.cause}
        yield TimedRecord(closed, closed_us)


def in_time(told: Sequence[TimedRecord]) -> list[TimedRecord]:
    return sorted(told, key=lambda each: each.at_us)
