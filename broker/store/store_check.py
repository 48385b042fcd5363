"""The check of a store: pages, rows, indexes, counts and message bodies are verified, and nothing is changed.

A finding of the check is damage that a broker would report, or an accepted message that is lost. Leftovers of a crash,
which the next start of the broker deletes, are only counted.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from zlib import crc32

from broker.store.addressed import as_delivered
from broker.store.aside import aside_of
from broker.store.check_report import MOST_FINDINGS, CheckReport
from broker.store.checksums import is_holding, is_index
from broker.store.counts import COUNT_BYTES, counts_in
from broker.store.cut_bodies import bounds_of
from broker.store.held_segments import held_segments
from broker.store.judgement import DATABASE
from broker.store.large_reader import Written, damage_of
from broker.store.message_index import checksums_in, has_strange_priority, read_index, slot_bytes_of
from broker.store.page_header import PAGE_BYTES
from broker.store.read_store import LARGE, HoldingRow, ReadStore, reading
from broker.store.row_checks import check_annotations, check_causes, check_marks, check_queues
from broker.store.segment_tables import SegmentRow
from broker.store.segments import SEGMENT_MESSAGES
from wire.errors import AmqpError
from wire.sections import Incomplete, scan

Slot = tuple[int, int, int | None, bool]
"""A message in the index of a segment, as `read_index` returns: (size_bytes, priority, expires_at_ms, is_large)."""


def check(directory: Path) -> CheckReport:
    """Return a report on the store in a directory. Raises StoreError if there is none, or a broker uses the store."""
    with reading(directory) as store:
        report = CheckReport(directory)
        _Check(store, report).run()
        return report


class _Check:
    """One check of a store, which fills in a ``report`` with totals and findings."""

    def __init__(self, store: ReadStore, report: CheckReport) -> None:
        self._store = store
        self._report = report
        self._large: dict[int, Written] = {}
        """message_id -> size and checksum of the large bodies that a queue needs."""
        self._are_some_lost = False
        """Whether rows of queues are lost: then messages of unknown queues count as needed, not as leftovers."""
        self._lost: Counter[int] = Counter()
        """queue_id -> number of messages, of lost queues: queues without a readable row."""
        self._causes: set[tuple[int, int]] = set()
        self._annotations: set[tuple[int, int]] = set()
        """(queue_id, message_id) of annotations, and of causes above, whose message was not read yet."""

    def run(self) -> None:
        for what in self._store.missing:
            self._report.find(what)
        with self._blaming("its pages"):
            self._look_at_pages()
        for table in aside_of(self._store.database):
            self._report.find(f"store.db: {table} was found damaged when a broker started, and was put aside")
        with self._blaming("its queues"):
            self._are_some_lost = check_queues(self._store, self._report)
        with self._blaming("its seen marks"):
            check_marks(self._store, self._report)
        with self._blaming("its causes"):
            self._causes = check_causes(self._store, self._report)
        with self._blaming("its annotations"):
            self._annotations = check_annotations(self._store, self._report)
        with self._blaming("its messages"):
            self._read_messages()
        self._look_at_files()

    def _look_at_pages(self) -> None:
        """Check all pages of the database; pages that nothing uses, as after a damaged free list, are only counted."""
        # The number of pages is taken from the size of the file, since the page count in the first page may be damaged.
        page_count = (self._store.directory / DATABASE).stat().st_size // PAGE_BYTES
        for (found,) in self._store.database.execute(f"PRAGMA integrity_check({MOST_FINDINGS + page_count})"):
            for line in found.splitlines():
                if line.endswith("never used"):
                    self._report.unneeded_bytes += PAGE_BYTES
                elif line != "ok" and not line.startswith("***"):
                    self._report.find(f"store.db: {line}")

    @contextmanager
    def _blaming(self, part: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            self._report.find(f"store.db: {part} cannot be read to the end: {error}")

    def _read_messages(self) -> None:
        next_id = 0
        for segment, holdings in held_segments(self._readable_segments(), self._store.holdings()):
            if segment is None:
                self._on_homeless(holdings)
                continue
            if segment.segment_id < next_id:
                self._report.find(
                    f"segment {segment.segment_id}: begins before the previous segment ends, at {next_id}"
                )
            next_id = segment.segment_id + self._look_at(segment, holdings)
        for queue_id, count in sorted(self._lost.items()):
            what = "message is" if count == 1 else f"{count} messages are"
            self._report.find(f"queue {queue_id} is lost, and its {what} unreachable")
        for queue_id, message_id in sorted(self._causes):
            self._report.find(f"queue {queue_id}: it has no message {message_id}, but a dead-letter cause for it")
        for queue_id, message_id in sorted(self._annotations):
            self._report.find(f"queue {queue_id}: it has no message {message_id}, but annotations for it")

    def _readable_segments(self) -> Iterator[SegmentRow]:
        ids = self._store.segment_ids()
        if ids.gap is not None:
            self._report.find("store.db: some of its segments are on pages that cannot be read")
        for (segment_id,) in ids.rows:
            try:
                segment = self._store.segment(segment_id)
            except sqlite3.Error as error:
                self._report.find(f"segment {segment_id}: its row cannot be read: {error}")
                continue
            if segment is not None and isinstance(segment.message_index, bytes) and isinstance(segment.bodies, bytes):
                yield segment
            else:
                self._report.find(f"segment {segment_id}: its row has no index, or no bodies")

    def _on_homeless(self, holdings: list[HoldingRow]) -> None:
        for queue_id, segment_id in [(holding.queue_id, holding.segment_id) for holding in holdings]:
            if queue_id in self._report.queues or self._are_some_lost:
                self._report.find(f"queue {queue_id}: segment {segment_id} is lost, with messages of this queue")
            else:
                self._report.leftovers += 1

    def _look_at(self, segment: SegmentRow, holdings: list[HoldingRow]) -> int:
        """Check a segment with its ``holdings`` and the bodies that a queue needs; return its number of messages."""
        where, report = f"segment {segment.segment_id}", self._report
        slot_bytes = slot_bytes_of(segment.message_index)
        count, rest = divmod(len(segment.message_index), slot_bytes)
        if rest or not 0 < count <= SEGMENT_MESSAGES:
            report.find(
                f"{where}: the index has {len(segment.message_index)} bytes, expected {slot_bytes} for each message"
            )
            return count
        if not is_index(segment.segment_id, segment.message_index):
            report.find(f"{where}: the segment's index does not match its checksum")
        slots = read_index(segment.message_index)
        bounds = bounds_of(segment.message_index)
        if segment.damage is None and bounds[-1] != len(segment.bodies):
            report.find(f"{where}: the bodies have {len(segment.bodies)} bytes, expected {bounds[-1]} by its index")
            return count
        if has_strange_priority(segment.message_index):
            report.find(f"{where}: the index has invalid priorities")
        sums = checksums_in(segment.message_index)
        needed = self._needed(where, slots, holdings)
        report.segments += 1
        report.leftovers += not needed
        away: list[int] = []
        for slot, (begin, end) in enumerate(pairwise(bounds)):
            size, _, _, is_large = slots[slot]
            if slot not in needed:
                report.unneeded_bytes += end - begin
                continue
            report.messages += 1
            report.size_bytes += size
            if is_large:
                self._large[segment.segment_id + slot] = Written(size, sums[slot] if sums else 0)
            elif end > len(segment.bodies):
                away.append(segment.segment_id + slot)
            else:
                self._look_at_body(segment.segment_id + slot, segment.bodies[begin:end], sums[slot] if sums else None)
        if segment.damage is not None:
            lost = f", nor can {len(away)} message{'s' * (len(away) > 1)} from {away[0]} on" if away else ""
            report.find(f"{where}: a page of its bodies cannot be read{lost}: {segment.damage}")
        return count

    def _needed(self, where: str, slots: list[Slot], holdings: list[HoldingRow]) -> set[int]:
        """Check the holdings of a segment, and count messages by queue; return the places of messages in any queue."""
        needed: set[int] = set()
        for holding in holdings:
            totals = self._report.queues.get(holding.queue_id)
            if totals is None and not self._are_some_lost:
                self._report.leftovers += 1
                continue
            if len(holding.counts) != COUNT_BYTES * len(slots):
                self._report.find(
                    f"queue {holding.queue_id}: {len(holding.counts)} bytes of counts in {where}, "
                    f"expected {COUNT_BYTES * len(slots)}"
                )
                continue
            if not is_holding(holding.queue_id, holding.segment_id, holding.counts, holding.checksum):
                self._report.find(f"queue {holding.queue_id}: its counts in {where} do not match their checksum")
            for slot, count in enumerate(counts_in(holding.counts)):
                if count:
                    needed.add(slot)
                    self._causes.discard((holding.queue_id, holding.segment_id + slot))
                    self._annotations.discard((holding.queue_id, holding.segment_id + slot))
                if count and totals is None:
                    self._lost[holding.queue_id] += 1
                elif count and totals is not None:
                    totals.messages += 1
                    totals.size_bytes += slots[slot][0]
                    totals.delivered += count > 1
        return needed

    def _look_at_body(self, message_id: int, body: bytes, checksum: int | None) -> None:
        if checksum is not None and crc32(body) != checksum:
            self._report.find(f"message {message_id}: its {len(body)} bytes do not match their checksum")
            return
        try:
            scan(as_delivered(body))
        except (AmqpError, Incomplete) as error:
            self._report.find(f"message {message_id}: its {len(body)} bytes are not an AMQP message: {error}")

    def _look_at_files(self) -> None:
        for message_id, written in self._large.items():
            self._report.unchecked += not written.checksum
            damage = damage_of(self._store.large_path(message_id), written)
            if damage:
                self._report.find(f"message {message_id}: {LARGE}/{message_id} {damage}")
        folder = self._store.directory / LARGE
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        self._report.leftovers += len(names - set(map(str, self._large)))
