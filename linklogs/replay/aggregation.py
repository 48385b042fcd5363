"""The only pass over all movements: sums them (deliveries, traffic, messages in queues) by link, window and outcome.

Workers of Spark run this pass on columns of hundreds of thousands of records at a time. A sum may come out in several
parts, one from each worker; linklogs/replay/levels.py adds the parts up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy
import pyarrow

from linklogs.moments import TimeSpan
from linklogs.replay.clock_offsets import RunClock
from linklogs.replay.codes import ALL, CAME, FAILED, PAIR, PARTS, QUEUE, QUEUE_PART, WENT, WHAT_BITS, Numbers
from linklogs.replay.file_slices import COLUMNS, COUNTED, FileSlice, joined, pieces, unpacked
from linklogs.replay.files import AT_ONCE, BadFile, damaged, files
from linklogs.replay.groups import Groups, changes, numbered
from linklogs.replay.histograms import BUCKETS, bucket_of_each, pairs_of
from linklogs.replay.movements import Movements
from linklogs.replay.state_rows import REST
from linklogs.replay.sums import Sums, noticed, packed_by

_WHATS: Final = 1 << WHAT_BITS
_SIDES: Final = 8
_COPY: Final = PARTS.index("copy")
_MANY: Final = PARTS.index("many")


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A function for workers of Spark that sums the movements in files of link logs, and yields packed `Sums`.

    A row of the input names a file to read, or has movements in ``moved`` that were read from a small file before.
    ``parts``: the number of partitions by which windows are distributed; windows within ``widest_us`` stay together.

    ``runs``: the place of each run, by node and number of the run; None stands for all other runs of a node.
    ``clocks``: by node and run, the clocks whose offsets are subtracted from times. ``nodes``: the nodes with the
    requested address, None for all nodes; records of other nodes are counted, not summed.
    """

    window_us: int
    widest_us: int
    parts: int
    span: TimeSpan
    runs: Mapping[str, Mapping[int | None, int]]
    clocks: Mapping[str, Mapping[int, RunClock]]
    nodes: frozenset[str] | None = None

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        notices: list[str] = []
        for found in _gathered(self._pieces(batches, notices)):
            moved = self._moved(found)
            if len(moved):
                adder = WindowedMovements(moved, moved.at_us // self.window_us * self.window_us)
                sums = Sums.joined([adder.sides(), adder.failed(), adder.all()])
                yield packed_by(sums.window // self.widest_us % self.parts, sums)
        if notices:
            yield noticed(notices)

    def _pieces(self, batches: Iterator[pyarrow.RecordBatch], notices: list[str]) -> Iterator[FileSlice]:
        """Yield the movements in ``batches``, whose rows contain movements or name a file to read.

        Add a sentence to ``notices`` for each damaged or missing file.
        """
        for batch in batches:
            for node, octets in zip(batch["node"].to_pylist(), batch["moved"], strict=True):
                if octets.is_valid:
                    yield unpacked(node, octets.as_buffer(), self.clocks.get(node, {}))
            yield from self._of_files(batch.filter(batch["moved"].is_null()), notices)

    def _of_files(self, batch: pyarrow.RecordBatch, notices: list[str]) -> Iterator[FileSlice]:
        for file in files([batch]):
            if isinstance(file, BadFile):
                notices.append(file.notice)
                continue
            try:
                is_wanted = self.nodes is None or file.node in self.nodes
                yield from pieces(file, self.clocks.get(file.node, {}), self.span, COLUMNS if is_wanted else COUNTED)
            except (pyarrow.ArrowException, OSError) as error:
                notices.append(f"{damaged(file.path, error)}; {REST}")

    def _moved(self, found: Sequence[FileSlice]) -> Movements:
        return Movements.joined(
            [
                Movements.of(piece.table, self.runs.get(piece.node, {}), piece.ahead_us).within(self.span)
                for piece in joined(found)
            ]
        )


@dataclass(frozen=True, slots=True)
class WindowedMovements:
    """Movements, each with the beginning of its window (``window``), from which sums are made."""

    moved: Movements
    window: Numbers

    def sides(self) -> Sums:
        """Sum the movements by window and outcome for each incoming link, outgoing link and queue.

        A delivery counts for its incoming and for its outgoing link. The delivery of a multicast counts for its
        incoming link only, and each of its copies for the outgoing link only.
        """
        moved = self.moved
        is_queued = moved.part == QUEUE_PART
        came = numpy.flatnonzero((moved.part != _COPY) & ~is_queued & (moved.incoming != 0))
        went = numpy.flatnonzero((moved.part != _MANY) & ~is_queued & (moved.outgoing != 0))
        queued = numpy.flatnonzero(is_queued)
        link = numpy.concatenate([moved.incoming[came], moved.outgoing[went], moved.incoming[queued]])
        side = numpy.repeat(numpy.array([CAME, WENT, QUEUE]), [len(came), len(went), len(queued)])
        return self._sums(numpy.concatenate([came, went, queued]), side, link)

    def failed(self) -> Sums:
        """Sum the deliveries with an outcome in FAILED, by window, outcome, and pair of incoming and outgoing link."""
        moved = self.moved
        rows = numpy.flatnonzero(numpy.isin(moved.what, FAILED) & (moved.part != QUEUE_PART))
        return self._sums(rows, numpy.full(len(rows), PAIR), moved.incoming[rows], moved.outgoing[rows])

    def all(self) -> Sums:
        """Count the records of each run; a record of a delivery counts as one, and so does a record of a second of
        traffic.

        All counts get the window of the first record, since no table shows counts of records by window.
        """
        moved = self.moved
        groups = Groups.by(moved.run)
        zeros = numpy.zeros(len(groups), numpy.int64)
        records = groups.added(numpy.ones(len(moved), numpy.int64))
        keys = (groups.keys - 1, zeros + ALL, zeros, zeros, zeros, zeros + self.window[0])
        counted = (records, groups.added(moved.size_bytes), groups.largest(moved.took_us))
        return Sums(*keys, *counted, zeros, zeros[:0])

    def _sums(self, rows: Numbers, side: Numbers, link: Numbers, other: Numbers | None = None) -> Sums:
        links = _Links.of(self.moved.run[rows], side, link, other)
        window, windows = numbered(self.window[rows])
        thing = (links.number * max(1, len(windows)) + window) * _WHATS + self.moved.what[rows]
        groups = Groups.by(thing * BUCKETS + bucket_of_each(self.moved.took_us[rows]))
        counts = groups.added(self.moved.messages[rows])
        in_order = groups.keys // BUCKETS
        begins = changes(in_order)
        whole = Groups(groups.order, groups.begins[begins], in_order[begins])
        number, window_number = numpy.divmod(whole.keys // _WHATS, max(1, len(windows)))
        return Sums(
            *links.columns(number),
            whole.keys % _WHATS,
            windows[window_number],
            whole.added(self.moved.messages[rows]),
            whole.added(self.moved.size_bytes[rows]),
            whole.largest(self.moved.took_us[rows]),
            begins,
            pairs_of(groups.keys % BUCKETS, counts),
        )


@dataclass(frozen=True, slots=True)
class _Links:
    """Numbers the different combinations of link, side, run and other link, so that rows can be grouped by one number.

    ``number``: the number of each row's combination. ``keys``: for each number, the combination encoded in one integer;
    ``runs``, ``links`` and ``others`` are needed to decode it.
    """

    number: Numbers
    keys: Numbers
    runs: int
    links: Numbers
    others: Numbers

    @classmethod
    def of(cls, run: Numbers, side: Numbers, link: Numbers, other: Numbers | None) -> _Links:
        link_number, links = numbered(link)
        runs = int(run.max(initial=0)) + 1
        key = (link_number * runs + run) * _SIDES + side
        others = numpy.zeros(1, numpy.int64)
        if other is not None:
            other_number, others = numbered(other)
            key = key * max(1, len(others)) + other_number
        number, keys = numbered(key)
        return cls(number, keys, runs, links, others)

    def columns(self, number: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return the columns run, side, link and other link of the combinations with the numbers ``number``."""
        key, other = numpy.divmod(self.keys[number], max(1, len(self.others)))
        rest, side = numpy.divmod(key, _SIDES)
        link, run = numpy.divmod(rest, self.runs)
        others = self.others[other] if len(self.others) else other
        return run - 1, side, self.links[link], others


def _gathered(pieces: Iterator[FileSlice]) -> Iterator[list[FileSlice]]:
    """Gather movements into lists of at least AT_ONCE / 2 records, because a pass over fewer takes as long.

    Only the last list may have fewer.
    """
    waiting: list[FileSlice] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += len(piece.table)
        if count >= AT_ONCE // 2:
            yield waiting
            waiting, count = [], 0
    if waiting:
        yield waiting
