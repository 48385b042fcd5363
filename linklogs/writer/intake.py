"""The way of one node's records: out of its ring, into a spool, into files.

Who dies on the way loses nothing and doubles nothing: the spool says what came out of the ring, whatever the ring says;
a spool is begun before the one before it becomes a file; and a file that is there is not written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy

from addressing.link_log import Event, Kind
from linklogs.naming import end_of_hour_us
from linklogs.writer import spool
from linklogs.writer.admitting import Admitted, admit, text_record
from linklogs.writer.events import FileWritten, RecordsRefused, RingEnded, SpoolPutAside, Tell
from linklogs.writer.failpoints import Failpoint, Passing
from linklogs.writer.live import Live
from linklogs.writer.redacting import Redactor
from linklogs.writer.ring import DAMAGED, Counts, Ring, RingDamaged
from linklogs.writer.rows import Row, parse
from linklogs.writer.settings import Settings
from linklogs.writer.slots import SLOT_TYPE, Slots, Span, at_us, records, text_of, text_spans, whole
from linklogs.writer.storing import sensible_us, store

AT_ONCE_SLOTS: Final = 1 << 16
HOUR_OVER_S: Final = 1.0
"""Records that come late would otherwise have a file for each look."""
CLOCK_SET_US: Final = 50_000
"""Less than that between two looks is a clock that is kept right, not one that was set."""


@dataclass(frozen=True, slots=True)
class Now:
    """``utc_us`` since 1970; ``s`` of a clock that nobody sets."""

    utc_us: int
    s: float


@dataclass(frozen=True, slots=True)
class Means:
    """What all intakes of a writer work with."""

    settings: Settings
    spools: Path
    redactor: Redactor
    tell: Tell
    passing: Passing


class Intake:
    """Always: what is in the ring before ``spool.ring`` is in a spool or in a file, and nothing else is."""

    def __init__(self, means: Means, ring: Ring | None, spools: Sequence[Path], now: Now) -> None:
        """``spools`` of the same run that were left, the oldest first; ``ring`` None: that is all there is.

        Raises RingDamaged or OSError.
        """
        self._means = means
        self.ring = ring
        self._sealed = list(spools)
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
        return self.ring is None and not self._sealed

    def step(self, now: Now) -> None:
        """Raises RingDamaged, or OSError, after which the next step goes on where this one ended."""
        if self.ring is not None and self._spool is not None:
            self._take(self.ring, now)
            if self._is_due(now):
                self._turn()
        self._store_sealed()

    def finish(self, now: Now) -> None:
        """All that is there becomes files; of a node that runs, its ring stays. Raises as ``step`` does."""
        self.step(now)
        if self._spool is not None and not self._spool.is_empty:
            self._turn()
        self._store_sealed()

    def end_if_abandoned(self, now: Now) -> None:
        """If its node is gone, so are ring and spools, once all is in files. Raises as ``step`` does."""
        ring = self.ring
        if ring is None or not ring.is_abandoned():
            return
        self.step(now)
        self.seal()
        self._store_sealed()
        if not self._sealed:
            ring.delete()
            self.ring = None
            self._means.tell(RingEnded(ring.owner.node, ring.owner.run))

    def leave_ring(self) -> None:
        """Of a ring that is damaged nothing more is taken."""
        self.seal()
        if self.ring is not None:
            self.ring.close()
            self.ring = None

    def seal(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._sealed.append(self._spool.path)
            self._spool = None

    def close(self) -> None:
        """Nothing is written."""
        if self._spool is not None:
            self._spool.close()
        if self.ring is not None:
            self.ring.close()
        self._spool = self.ring = None

    @property
    def _current(self) -> spool.Spool:
        assert self._spool is not None
        return self._spool

    def _open(self, ring: Ring, counts: Counts) -> None:
        self._live = Live(ring.owner.row)
        self._clock_us = counts.clock_us
        content = self._last_content()
        if content is not None:
            self._go_on(ring, counts, content)
        else:
            self._spool = self._begin(ring, self._first(ring, counts), counts.taken, counts.clock_us,
                                      counts.dropped if counts.taken else 0)  # fmt: skip

    def _last_content(self) -> spool.Content | None:
        """Of the last spool, if it can be read; otherwise it is no longer among those to store."""
        while self._sealed:
            try:
                return spool.read(self._sealed[-1])
            except spool.SpoolDamaged as error:
                self._put_aside(self._sealed.pop(), error)
        return None

    def _go_on(self, ring: Ring, counts: Counts, content: spool.Content) -> None:
        redact = (lambda row: row) if content.head.is_redacted else self._means.redactor.row
        for row in content.head.live:
            self._live.on_row(redact(row))
        for row in _rows(content):
            self._live.on_row(redact(row))
        self._spool = found = spool.Spool(self._sealed.pop(), content)
        self._clock_us = found.clock_us
        if found.ring > counts.written:
            raise RingDamaged(
                f"{ring.path}: {counts.written} slots written, expected at least the {found.ring} that were taken"
            )
        if self._means.redactor.is_active != content.head.is_redacted:
            self._turn()

    def _begin(self, ring: Ring, first: int, taken: int, clock_us: int, dropped: int) -> spool.Spool:
        live = self._live.rows(clock_us, dropped)
        is_redacted = self._means.redactor.is_active
        return spool.begin(
            self._means.spools, spool.Head(ring.owner, first, taken, clock_us, dropped, is_redacted, live)
        )

    def _first(self, ring: Ring, counts: Counts) -> int:
        """Beyond all numbers that a spool which cannot be read may have given."""
        lost = self._means.spools.glob(f"*{spool.SUFFIX}{DAMAGED}")
        mine = [path for path in lost if spool.run_of(path.with_suffix("")) == spool.run_name(ring.owner)]
        ends = [spool.first_of(path.with_suffix("")) + path.stat().st_size // SLOT_TYPE.itemsize for path in mine]
        return max([counts.taken, *ends])

    def _take(self, ring: Ring, now: Now) -> None:
        counts = ring.look()
        self._note(ring, counts, now)
        while self._current.ring < counts.written:
            if self._is_full:
                self._turn()
            slots = self._next(ring, counts.written)
            if not len(slots):
                break
            self._put(ring, counts, slots, now)
        if self._current.ring > counts.taken:
            ring.advance(self._current.ring)

    def _note(self, ring: Ring, counts: Counts, now: Now) -> None:
        """What the counts alone tell: records that are lost, a clock that was set."""
        at = self._current
        gap = max(0, counts.taken - at.ring)
        lost = counts.dropped - at.dropped + gap
        notes: list[Row] = []
        if lost > 0:
            notes.append({"kind": Kind.NODE, "event": Event.LOST, "count": lost})
        if abs(counts.clock_us - self._clock_us) > CLOCK_SET_US:
            notes.append({"kind": Kind.NODE, "event": Event.CHANGED, "clock_us": counts.clock_us})
        if notes:
            said = [text_record(now.utc_us - counts.clock_us, note) for note in notes]
            self._append(gap, counts, Admitted(numpy.concatenate(said), notes, 0), now)
        self._clock_us = counts.clock_us

    def _next(self, ring: Ring, written: int) -> Slots:
        """Whole records, no more than the spool has room for unless the first is longer; none if it is not whole."""
        begin = self._current.ring
        room = (self._means.settings.spool_bytes - self._current.record_bytes) // SLOT_TYPE.itemsize
        slots = ring.read(begin, min(written - begin, max(1, room), AT_ONCE_SLOTS))
        spans = text_spans(slots)
        if spans and spans[0][0] == 0 and spans[0][1] > len(slots):
            end = spans[0][1]
            if end > ring.capacity:
                raise RingDamaged(f"{ring.path}: text of {end} slots, expected at most {ring.capacity}")
            return ring.read(begin, end) if begin + end <= written else slots[:0]
        return slots[: whole(slots, spans)]

    def _put(self, ring: Ring, counts: Counts, slots: Slots, now: Now) -> None:
        """Into the spool, as much of it as is of its hour."""
        count = self._in_its_hour(slots, counts.clock_us, now)
        if count == 0:
            self._turn()
            return
        admitted = admit(slots[:count], text_spans(slots[:count]), self._means.redactor)
        self._append(count, counts, admitted, now)
        if admitted.refused:
            self._means.tell(RecordsRefused(ring.owner.node, ring.owner.run, admitted.refused))
        ring.advance(self._current.ring)
        self._means.passing(Failpoint.TAKEN)

    def _in_its_hour(self, slots: Slots, clock_us: int, now: Now) -> int:
        """How many slots may go into the spool; of one that is empty, the first record in any case."""
        begun_us = self._current.begun_us
        first_us = int(at_us(slots[:1], clock_us)[0]) if begun_us is None else begun_us
        over_us = _end_of_hour(first_us, self._current.head.owner.run)
        # Most of the time the hour still runs, and no record can be of the next.
        if now.utc_us < over_us:
            return len(slots)
        spans = text_spans(slots)
        first = 0 if begun_us is not None else spans[0][1] if spans and spans[0][0] == 0 else 1
        return max(first, _before(slots, spans, clock_us, over_us))

    def _append(self, ring_count: int, counts: Counts, admitted: Admitted, now: Now) -> None:
        self._current.append(ring_count, counts.clock_us, max(counts.dropped, self._current.dropped), admitted.slots)
        self._means.passing(Failpoint.SPOOLED)
        for row in admitted.rows:
            self._live.on_row(row)
        if self._filled_s is None and len(admitted.slots):
            self._filled_s = now.s

    @property
    def _is_full(self) -> bool:
        return self._current.record_bytes >= self._means.settings.spool_bytes

    def _is_due(self, now: Now) -> bool:
        if self._filled_s is None or self._current.begun_us is None or self.ring is None:
            return False
        waited_s = now.s - self._filled_s
        if waited_s >= HOUR_OVER_S and now.utc_us >= _end_of_hour(self._current.begun_us, self.ring.owner.run):
            return True
        return waited_s >= self._means.settings.spool_s or self._is_full

    def _turn(self) -> None:
        """Go on in a new spool; the one so far waits to become a file."""
        assert self.ring is not None
        old = self._current
        new = self._begin(self.ring, old.first, old.ring, old.clock_us, old.dropped)
        self.seal()
        self._spool = new
        self._filled_s = None
        self._means.passing(Failpoint.SPOOL_BEGUN)

    def _store_sealed(self) -> None:
        while self._sealed:
            path = self._sealed[0]
            try:
                if not path.exists():
                    raise spool.SpoolDamaged(f"{path}: it is gone, expected a spool")
                stored = store(path, self._means.settings.out, self._means.redactor, self._means.passing)
            except spool.SpoolDamaged as error:
                self._put_aside(path, error)
            else:
                path.unlink()
                self._means.passing(Failpoint.SPOOL_DELETED)
                if stored is not None:
                    self._means.tell(FileWritten(str(stored), stored.stat().st_size))
            del self._sealed[0]

    def _put_aside(self, path: Path, error: Exception) -> None:
        with suppress(FileNotFoundError):
            path.rename(path.with_name(path.name + DAMAGED))
        self._means.tell(SpoolPutAside(str(error)))


def _rows(content: spool.Content) -> list[Row]:
    slots, _ = spool.joined(content.chunks)
    read = [parse(text_of(slots, span)) for span in text_spans(slots)]
    return [row for row in read if row is not None]


def _end_of_hour(at: int, run: int) -> int:
    return end_of_hour_us(sensible_us(at, run))


def _before(slots: Slots, spans: list[Span], clock_us: int, end_us: int) -> int:
    """How many slots come before the first record of ``end_us`` or later."""
    starts = records(slots, spans)
    starts[[head for head, _ in spans]] = True
    late = numpy.flatnonzero(starts & (at_us(slots, clock_us) >= end_us))
    return int(late[0]) if len(late) else len(slots)
