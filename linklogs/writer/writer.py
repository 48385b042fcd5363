"""The writer of link logs: moves the records of all rings in a directory into files.

A timer of the caller calls ``step``.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from linklogs.private_files import create, make_directories
from linklogs.writer import spool
from linklogs.writer.encoders import Encoder, OwnEncoder
from linklogs.writer.events import (
    FilesExpired,
    LookingFailed,
    RingFound,
    RingPutAside,
    Tell,
    WritingFailed,
    WritingRecovered,
    tell,
)
from linklogs.writer.failpoints import Passing, pass_by
from linklogs.writer.intake import Intake, IntakeTime, IntakeTools
from linklogs.writer.redaction import Redactor
from linklogs.writer.retention import expire
from linklogs.writer.ring import SUFFIX, Ring, RingDamaged, RingNotKept, RingNotReady, put_aside
from linklogs.writer.settings import Settings

SPOOLS: Final = "_spool"
SCAN_S: Final = 1.0
RETRY_S: Final = 1.0
EXPIRE_S: Final = 60.0


class WriterInUse(Exception):
    """Another writer process uses this directory of link logs."""


class Writer:
    """Finds rings, gives each to an intake, which moves its records into files, and deletes old files.

    Always: at most one writer uses a directory of link logs; each ring, and each spool, has one intake.
    """

    def __init__(
        self, settings: Settings, say: Tell = tell, passing: Passing = pass_by, encoder: Encoder | None = None
    ) -> None:
        """Lock the directory of link logs, and delete drafts of an earlier writer. Raises WriterInUse or OSError.

        ``encoder`` None: the spools are encoded in this process.
        """
        self._settings = settings
        self._tell = say
        spools = settings.out / SPOOLS
        make_directories(spools)
        self._lock = _lock(spools / ".lock")
        for draft in spools.glob(f"*{spool.DRAFT}"):
            draft.unlink()
        redactor = Redactor(settings.redact_key, settings.redact_columns)
        self._encoder = encoder or OwnEncoder(settings.out, redactor)
        self._means = IntakeTools(settings, spools, redactor, self._encoder, say, passing)
        self._intakes: dict[str, Intake] = {}
        self._rings: dict[Path, str] = {}
        self._retry_s: dict[str, float] = {}
        self._errors: set[str] = set()
        self._left = _left_over(spools)
        self._scan_s = self._expire_s = float("-inf")

    def step(self, now: IntakeTime) -> None:
        """Do the work that is due: look for rings, take records, write files, delete old files.

        An OSError is logged, not raised, and the failed work is done again later. A damaged ring is logged and renamed.
        """
        is_scan = now.s >= self._scan_s
        if is_scan:
            self._scan_s = now.s + SCAN_S
            self._look(lambda: self._scan(now))
        for run in list(self._intakes):
            if now.s >= self._retry_s.get(run, now.s):
                self._advance(run, now, is_scan)
        if now.s >= self._expire_s:
            self._expire_s = now.s + EXPIRE_S
            self._look(lambda: self._expire(now))
        self._encoder.rest(now.s)

    def finish(self, now: IntakeTime) -> None:
        """Move all records so far into files. Errors are logged, not raised."""
        self._look(lambda: self._scan(now))
        for run, intake in list(self._intakes.items()):
            self._try(run, intake, now, lambda intake=intake: intake.finish(now))  # type: ignore[misc]
            self._advance(run, now, True)

    def close(self) -> None:
        """Close rings and spools without writing, and unlock the directory; the next writer goes on from here."""
        for intake in self._intakes.values():
            intake.close()
        self._intakes.clear()
        self._encoder.close()
        os.close(self._lock)

    def _advance(self, run: str, now: IntakeTime, is_scan: bool) -> None:
        intake = self._intakes[run]
        self._try(run, intake, now, lambda: _step(intake, now, is_scan))
        if intake.is_over:
            del self._intakes[run]
            self._rings = {path: owner for path, owner in self._rings.items() if owner != run}

    def _try(self, run: str, intake: Intake, now: IntakeTime, work: Callable[[], None]) -> None:
        node, _, started = run.rpartition(".")
        try:
            work()
        except RingDamaged as error:
            self._put_aside(next(path for path, owner in self._rings.items() if owner == run), error)
            intake.leave_ring()
        except OSError as error:
            if run not in self._retry_s:
                self._tell(WritingFailed(node, int(started), str(error)))
            self._retry_s[run] = now.s + RETRY_S
        else:
            if self._retry_s.pop(run, None) is not None:
                self._tell(WritingRecovered(node, int(started)))

    def _scan(self, now: IntakeTime) -> None:
        found = sorted(path for path in self._settings.rings.iterdir() if path.suffix == SUFFIX)
        are_met = [self._meet(path, now) for path in found if path not in self._rings]
        if not all(are_met):
            return
        # All rings are open, so a spool of an earlier writer without an intake has no ring, or a damaged ring: the
        # intake that such a spool gets here makes files of spools only.
        for run, spools in self._left.items():
            self._intakes[run] = Intake(self._means, None, spools, now)
        self._left = {}

    def _meet(self, path: Path, now: IntakeTime) -> bool:
        """Open a ring, or rename a damaged ring; return False if an OSError prevented both.

        After False the spools of an earlier writer go on waiting, since one of them may belong to this ring. A ring
        without a header has no spools: its node is starting, and the next scan looks at the ring again. A ring whose
        records are not kept has none either.
        """
        try:
            self._take_on(Ring(path), now)
        except (RingNotReady, RingNotKept):
            return True
        except RingDamaged as error:
            self._put_aside(path, error)
        except OSError as error:
            self._say_once(error)
            return False
        return True

    def _take_on(self, ring: Ring, now: IntakeTime) -> None:
        owner = ring.owner
        run = spool.run_name(owner)
        if run in self._intakes:
            ring.close()
            raise RingDamaged(f"{ring.path}: expected a single ring of run {run}, got a second")
        self._intakes[run] = Intake(self._means, ring, self._left.get(run, ()), now)
        self._left.pop(run, None)
        self._rings[ring.path] = run
        self._tell(RingFound(owner.node, owner.run))

    def _put_aside(self, path: Path, error: RingDamaged) -> None:
        self._rings.pop(path, None)
        try:
            put_aside(path)
        except OSError as failure:
            # The next scan finds the ring again.
            self._say_once(failure)
        else:
            self._tell(RingPutAside(str(error)))

    def _expire(self, now: IntakeTime) -> None:
        keep = self._settings
        if keep.keep_s is None and keep.keep_bytes is None:
            return
        expired = expire(keep.out, now.utc_us, keep.keep_s, keep.keep_bytes)
        if expired.files:
            self._tell(FilesExpired(expired.files, expired.size_bytes))

    def _look(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            self._say_once(error)

    def _say_once(self, error: OSError) -> None:
        if str(error) not in self._errors:
            self._errors.add(str(error))
            self._tell(LookingFailed(str(error)))


def _step(intake: Intake, now: IntakeTime, is_scan: bool) -> None:
    intake.step(now)
    if is_scan:
        intake.end_if_abandoned(now)


def _left_over(spools: Path) -> dict[str, list[Path]]:
    """Return the spools that an earlier writer left, by run, the oldest first."""
    found: dict[str, list[Path]] = {}
    for path in sorted(spools.glob(f"*{spool.SUFFIX}")):
        found.setdefault(spool.run_of(path), []).append(path)
    return found


def _lock(path: Path) -> int:
    handle = create(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise WriterInUse(
            f"{path.parent.parent}: expected a single writer, but another writer uses the directory"
        ) from None
    return handle
