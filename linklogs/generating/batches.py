"""Turns arrays of generated records (deliveries, queue events, missed copies, queue depths) into Arrow record
batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy
import pyarrow

from linklogs.generating.missed_copies import STALLED
from linklogs.generating.plan import OUTCOMES, PARTS, Array, LogPlan
from linklogs.generating.queues import EVENTS
from linklogs.generating.records import Records
from linklogs.parquet import batch, same, words
from recording.columns import RecordEvent, RecordKind

DELIVERIES, MOVES = "deliveries", "moves"


class RecordOwner(Protocol):
    @property
    def run_us(self) -> int: ...
    def by_its_clock(self, at_us: Array) -> Array: ...


@dataclass(frozen=True, slots=True)
class Columns:
    """Records of one node in order of time: deliveries, or events of messages in queues (``kind``).

    ``count``: the number of deliveries or events for which each record stands.
    For the kind MOVES, ``records.incoming`` is the place of the queue and ``records.outgoing`` the place of the event.
    """

    kind: str
    records: Records
    count: Array

    def __len__(self) -> int:
        return len(self.count)

    def take(self, places: Array) -> Columns:
        return Columns(self.kind, self.records.take(places), self.count[places])

    def part(self, begin: int, end: int) -> Columns:
        names = Records.__slots__
        return Columns(
            self.kind, Records(*(getattr(self.records, name)[begin:end] for name in names)), self.count[begin:end]
        )

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        records = (numpy.concatenate([getattr(each.records, name) for each in parts]) for name in Records.__slots__)
        return cls(parts[0].kind, Records(*records), numpy.concatenate([each.count for each in parts]))


@dataclass(frozen=True, slots=True)
class Depths:
    """Samples of queue depth: place of the queue in the plan, time, messages, bytes, and age of the oldest message.

    Times and ages are in us.
    """

    queue: Array
    at_us: Array
    count: Array
    size_bytes: Array
    oldest_us: Array

    @classmethod
    def joined(cls, parts: Sequence[Depths]) -> Depths:
        """Merge several sets of depth samples into one, sorted by time."""
        columns = [numpy.concatenate([getattr(each, name) for each in parts]) for name in cls.__slots__]
        order = numpy.argsort(columns[1], kind="stable")
        return cls(*(column[order] for column in columns))


@dataclass(frozen=True, slots=True)
class Batches:
    """Makes Arrow batches of generated records, with the link and queue numbers of the plan.

    With ``is_summary``, each record stands for the similar deliveries, or queue events, of one second; otherwise each
    record is one delivery or queue event.
    """

    plan: LogPlan
    is_summary: bool

    def records(self, whose: RecordOwner, columns: Columns) -> pyarrow.RecordBatch:
        of_kind = self._deliveries(columns) if columns.kind == DELIVERIES else self._moves(columns)
        made, count = columns.records, len(columns)
        common = {
            "at_us": whose.by_its_clock(made.at_us),
            "run": numpy.full(count, whose.run_us),
            "count": columns.count,
            "size_bytes": made.size_bytes,
            "took_us": made.took_us,
        }
        return batch({**common, **of_kind}, count)

    def _deliveries(self, columns: Columns) -> dict[str, object]:
        made, number = columns.records, self.plan.links.number
        return {
            "kind": same(RecordKind.TRAFFIC if self.is_summary else RecordKind.DELIVERY, len(columns)),
            "incoming": number[made.incoming],
            "outgoing": number[made.outgoing],
            "outcome": words(made.outcome, OUTCOMES),
            "part": words(made.part, PARTS),
        }

    def _moves(self, columns: Columns) -> dict[str, object]:
        return {
            "kind": same(RecordKind.MESSAGE, len(columns)),
            "event": words(columns.records.outgoing, EVENTS),
            "queue": self.plan.queues.number[columns.records.incoming],
        }

    def missed(self, whose: RecordOwner, link: Array, at_us: Array, count: Array) -> pyarrow.RecordBatch:
        columns = {
            "kind": same(RecordKind.DROP, len(link)),
            "at_us": whose.by_its_clock(at_us),
            "run": numpy.full(len(link), whose.run_us),
            "count": count,
            "link": self.plan.links.number[link],
            "cause": same(STALLED, len(link)),
        }
        return batch(columns, len(link))

    def depths(self, whose: RecordOwner, depths: Depths, event: RecordEvent) -> pyarrow.RecordBatch:
        queues, count = self.plan.queues, len(depths.at_us)
        columns = {
            "kind": same(RecordKind.QUEUE, count),
            "event": same(event, count),
            "at_us": whose.by_its_clock(depths.at_us),
            "run": numpy.full(count, whose.run_us),
            "queue": queues.number[depths.queue],
            "address": words(queues.address[depths.queue], self.plan.traffic.address),
            "name": _names(depths.queue, queues.name),
            "depth_count": depths.count,
            "depth_bytes": depths.size_bytes,
            "oldest_us": depths.oldest_us,
        }
        return batch(columns, count)


def _names(queue: Array, names: Sequence[str]) -> pyarrow.DictionaryArray:
    """Encode the name of each row's queue as an Arrow dictionary; the value is null for a queue without a name."""
    unnamed = numpy.array([not name for name in names], bool)[queue]
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(queue, pyarrow.int32(), mask=unnamed), pyarrow.array(names, pyarrow.string())
    )
