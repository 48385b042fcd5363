"""The intake of one node's records: from the ring in memory, through a spool on disk, into files of the link log.

A crash of the writer neither loses nor doubles a record. The spool, not the ring, decides which slots of the ring were
taken; a new spool is begun before the old spool becomes a file; and an existing file is never written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy

from linklogs.writer import spool
from linklogs.writer.admission import AdmittedRecords, admit, text_record
from linklogs.writer.encoders import Encoder
from linklogs.writer.events import RecordsRefused, RingEnded, Tell
from linklogs.writer.failpoints import Passing, WriterFailpoint
from linklogs.writer.hourly import hour_ends_us, in_the_hour
from linklogs.writer.live_state import LiveState
from linklogs.writer.redaction import Redactor
from linklogs.writer.ring import Ring, RingCounts, RingDamaged
from linklogs.writer.rows import Row, rows_in
from linklogs.writer.sealed_spools import SealedSpools, beyond_damaged
from linklogs.writer.settings import Settings
from linklogs.writer.slots import SLOT_TYPE, Slots, Span, first_of, text_spans, whole
from linklogs.writer.spool_storage import store
from recording.columns import RecordEvent, RecordKind

AT_ONCE_SLOTS: Final = 1 << 16
"""The most slots that are read from a ring at once, except for a longer text."""
HOUR_OVER_S: Final = 1.0
"""The least time that a record waits in a spool whose hour is over, so that late records share a file."""
CLOCK_SET_US: Final = 50_000
"""The least change of UTC between two looks at a ring that counts as a clock that was set, and is recorded."""


@dataclass(frozen=True, slots=True)
class IntakeTime:
    """The present time: ``utc_us`` in us since 1970, and ``s`` in seconds on a clock that nobody can set."""

    utc_us: int
    s: float


@dataclass(frozen=True, slots=True)
class IntakeTools:
    """The settings, directory of spools and functions that all intakes of a writer share: one intake for each ring."""

    settings: Settings
    spools: Path
    redactor: Redactor
    encoder: Encoder
    tell: Tell
    passing: Passing


class Intake:
    """Moves the records of one run of a node from its ring into a spool, and full spools into files of the link log.

    Always: the ring's slots before number ``spool.ring``, and no others, were taken: their records are in a spool or in
    a file, were dropped as invalid, or were lost in a power cut.
    """

    def __init__(self, means: IntakeTools, ring: Ring | None, spools: Sequence[Path], now: IntakeTime) -> None:
        """Begin, or go on after a crash of the writer.

        ``spools`` are spools of the same run that an earlier writer left, the oldest first. ``ring`` None: the ring no
        longer exists, or is damaged, and only the spools are to become files. Raises RingDamaged or OSError.
        """
        self._means = means
        self.ring = ring
        self._sealed = SealedSpools(
            spools,
            lambda path: store(path, means.encoder, means.passing),
            means.tell,
            means.passing,
        )
        self._spool: spool.Spool | None = None
        self._filled_s: float | None = None
        self._clock_us = 0
        if ring is not None:
            try:
                self._open(ring, ring.look())
            except BaseException:
                self.close()
                raise
            self._filled_s = None if self._current.is_empty else now.s

    @property
    def is_over(self) -> bool:
        """Whether no ring is read any more (it was deleted, or is damaged), and all records taken are in files."""
        return self.ring is None and self._sealed.is_empty

    def step(self, now: IntakeTime) -> None:
        """Take new records from the ring, and turn a spool into a file if the spool is full, old or of a past hour.

        Raises RingDamaged, or OSError, after which the next step goes on from the same place.
        """
        if self.ring is not None and self._spool is not None:
            self._take(self.ring, now)
            if self._is_due(now):
                self._turn()
        self._sealed.store_all()

    def finish(self, now: IntakeTime) -> None:
        """Move all records so far into files; the ring itself stays. Raises as ``step`` does."""
        self.step(now)
        if self._spool is not None and not self._spool.is_empty:
            self._turn()
        self._sealed.store_all()

    def end_if_abandoned(self, now: IntakeTime) -> None:
        """If the node has ended, move all its records into files, then delete the ring. Raises as ``step`` does."""
        ring = self.ring
        if ring is None or not ring.is_abandoned():
            return
        self.step(now)
        if self._spool is not None and self._spool.ring < ring.look().written:
            self._means.tell(RecordsRefused(ring.owner.node, ring.owner.run, 1))
        self.seal()
        self._sealed.store_all()
        ring.delete()
        self.ring = None
        self._means.tell(RingEnded(ring.owner.node, ring.owner.run))

    def leave_ring(self) -> None:
        """Close a damaged ring, and take no more records from it; the records in the spool still become a file."""
        self.seal()
        if self.ring is not None:
            self.ring.close()
            self.ring = None

    def seal(self) -> None:
        """End the present spool: the spool gets no more records, and waits to become a file."""
        if self._spool is not None:
            self._spool.close()
            self._sealed.add(self._spool.path)
            self._spool = None

    def close(self) -> None:
        """Close ring and spool without writing; a later writer goes on from here."""
        if self._spool is not None:
            self._spool.close()
        if self.ring is not None:
            self.ring.close()
        self._spool = self.ring = None

    @property
    def _current(self) -> spool.Spool:
        assert self._spool is not None
        return self._spool

    def _open(self, ring: Ring, counts: RingCounts) -> None:
        self._live = LiveState(ring.owner.row)
        self._clock_us = counts.clock_us
        last = self._sealed.take_last()
        if last is not None:
            self._go_on(ring, counts, *last)
        else:
            first = max(counts.taken, beyond_damaged(self._means.spools, ring.owner))
            dropped = counts.dropped if counts.taken else 0
            self._spool = self._begin(ring, first, counts.taken, counts.clock_us, dropped)

    def _go_on(self, ring: Ring, counts: RingCounts, path: Path, content: spool.Content) -> None:
        redact = (lambda row: row) if content.head.is_redacted else self._means.redactor.row
        self._live.on_list(redact(row) for row in content.head.live)
        slots, _ = spool.joined(content.chunks)
        for row, head in rows_in(slots, text_spans(slots)):
            self._live.on_row(redact(row), int(slots["start_us"][head]))
        self._spool = found = spool.Spool(path, content)
        self._clock_us = found.clock_us
        if found.ring > counts.written:
            raise RingDamaged(
                f"{ring.path}: {counts.written} slots were written, expected at least the {found.ring} "
                "slots that the writer has taken"
            )
        if found.ring > counts.taken:
            ring.advance(found.ring)
        if self._means.redactor.is_active != content.head.is_redacted:
            self._turn()

    def _begin(self, ring: Ring, first: int, taken: int, clock_us: int, dropped: int) -> spool.Spool:
        live = self._live.rows(clock_us, dropped)
        is_redacted = self._means.redactor.is_active
        return spool.begin(
            self._means.spools, spool.SpoolHeader(ring.owner, first, taken, clock_us, dropped, is_redacted, live)
        )

    def _take(self, ring: Ring, now: IntakeTime) -> None:
        counts = ring.look()
        if self._is_of_later(ring, now):
            self._turn()
        self._note(counts, now)
        while self._current.ring < counts.written:
            if self._is_full:
                self._turn()
            slots, spans = self._next(ring, counts.written)
            if not len(slots):
                break
            self._put(ring, counts, slots, spans, now)

    def _note(self, counts: RingCounts, now: IntakeTime) -> None:
        """Append to the spool a record if the node lost records, and a record if the host's clock was set.

        Only the header of the ring shows both.
        """
        at = self._current
        gap = max(0, counts.taken - at.ring)
        lost = counts.dropped - at.dropped + gap
        notes: list[Row] = []
        if lost > 0:
            notes.append({"kind": RecordKind.NODE, "event": RecordEvent.LOST, "count": lost})
        if abs(counts.clock_us - self._clock_us) > CLOCK_SET_US:
            notes.append({"kind": RecordKind.NODE, "event": RecordEvent.CHANGED, "clock_us": counts.clock_us})
        if notes:
            at_us = now.utc_us - counts.clock_us
            said = numpy.concatenate([text_record(at_us, note) for note in notes])
            self._append(gap, counts, AdmittedRecords(said, [(note, at_us) for note in notes], 0), now)
        self._clock_us = counts.clock_us

    def _next(self, ring: Ring, written: int) -> tuple[Slots, list[Span]]:
        """Read the next whole records from the ring, as many as the spool has room for and AT_ONCE_SLOTS allows, but at
        least one.

        Return no slots while the first record, a long text, is incomplete.
        """
        begin = self._current.ring
        room = (self._means.settings.spool_bytes - self._current.record_bytes) // SLOT_TYPE.itemsize
        slots = ring.read(begin, min(written - begin, max(1, room), AT_ONCE_SLOTS))
        spans = text_spans(slots)
        if spans and spans[0][0] == 0 and spans[0][1] > len(slots):
            end = spans[0][1]
            if end > ring.capacity:
                raise RingDamaged(f"{ring.path}: a text takes {end} slots, expected at most {ring.capacity}")
            return (ring.read(begin, end), spans[:1]) if begin + end <= written else (slots[:0], [])
        return first_of(slots, spans, whole(slots, spans))

    def _put(self, ring: Ring, counts: RingCounts, slots: Slots, spans: list[Span], now: IntakeTime) -> None:
        """Append to the spool those of ``slots`` that are of the spool's hour.

        If already the first record is of a later hour, only begin a new spool.
        """
        count = in_the_hour(slots, spans, counts.clock_us, self._current.begun_us, ring.owner.run, now.utc_us)
        if count == 0:
            self._turn()
            return
        admitted = admit(*first_of(slots, spans, count), self._means.redactor)
        self._append(count, counts, admitted, now)
        if admitted.refused:
            self._means.tell(RecordsRefused(ring.owner.node, ring.owner.run, admitted.refused))
        ring.advance(self._current.ring)
        self._means.passing(WriterFailpoint.TAKEN)

    def _append(self, ring_count: int, counts: RingCounts, admitted: AdmittedRecords, now: IntakeTime) -> None:
        self._current.append(ring_count, counts.clock_us, max(counts.dropped, self._current.dropped), admitted.slots)
        self._means.passing(WriterFailpoint.SPOOLED)
        for row, at_us in admitted.rows:
            self._live.on_row(row, at_us)
        if self._filled_s is None and len(admitted.slots):
            self._filled_s = now.s

    @property
    def _is_full(self) -> bool:
        return self._current.record_bytes >= self._means.settings.spool_bytes

    def _is_due(self, now: IntakeTime) -> bool:
        if self._filled_s is None or self._current.begun_us is None or self.ring is None:
            return False
        waited_s = now.s - self._filled_s
        if waited_s >= HOUR_OVER_S and now.utc_us >= hour_ends_us(self._current.begun_us, self.ring.owner.run):
            return True
        return waited_s >= self._means.settings.spool_s or self._is_full

    def _is_of_later(self, ring: Ring, now: IntakeTime) -> bool:
        """Whether the host's clock was set back to an hour before the spool's: new records then go into a new spool.

        Readers of link logs look for these records in the files of the earlier hour.
        """
        begun_us, run = self._current.begun_us, ring.owner.run
        return begun_us is not None and hour_ends_us(now.utc_us + CLOCK_SET_US, run) < hour_ends_us(begun_us, run)

    def _turn(self) -> None:
        """Begin a new spool. The old spool waits to become a file; an empty old spool is replaced by the new one."""
        assert self.ring is not None
        old = self._current
        new = self._begin(self.ring, old.first, old.ring, old.clock_us, old.dropped)
        if new.path == old.path:
            # The old spool was empty, so the new spool has the same name, and has replaced the old spool on the disk.
            old.close()
        else:
            self.seal()
        self._spool = new
        self._filled_s = None
        self._means.passing(WriterFailpoint.SPOOL_BEGUN)
