"""Judges whether a directory has a complete store as of one moment, before any file is opened by SQLite or changed.

SQLite takes a damaged frame of its log for the end of the log, a missing log for an empty log, and an older file for
the right file. Large bodies whose rows are lost this way look like leftovers. Here each of these is damage: the files
are compared with `anchor` (`broker.store.anchor`), and the log with itself (`SqliteLog.lost_transactions`). A power cut
does no damage, at any time: `anchor` may then be older than the other files, and the last transaction of the log may be
there in part.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from broker.store.anchor import NAME, Anchor, AnchorClaim, DamagedAnchor, read_anchor
from broker.store.batch import StoreError
from broker.store.first_page import COPY
from broker.store.log_number import number_in, number_on
from broker.store.log_reader import SqliteLog, read_log
from broker.store.page_header import PAGE_BYTES, format_of

DATABASE, LOG = "store.db", "store.db-wal"
ANCHORED_FORMAT = 5
"""Stores of older formats have no `anchor`, and no number in `store.db`."""


class StoreDamagedError(StoreError):
    """Committed changes are missing from the files of a store, or SQLite cannot read it: no broker may use it."""

    def __init__(self, directory: Path, findings: list[str], *, is_of_sqlite: bool = False) -> None:
        """Make the error of the store in ``directory`` from ``findings``, sentences about the damage.

        ``is_of_sqlite``: SQLite found the damage, when the database was opened.
        """
        super().__init__(f"the store in {directory} is damaged, and was not changed: {'; '.join(findings)}")
        self.directory = directory
        self.findings = findings
        self.is_of_sqlite = is_of_sqlite


@dataclass
class Judgement:
    """The files of a store as found; ``findings`` are sentences about missing or damaged parts, none if it is sound."""

    anchor: Anchor | None
    is_anchor_whole: bool = True
    """False if one of the two slots of `anchor` is damaged, so that the other may be older than the last write."""
    log: SqliteLog | None = None
    is_new: bool = False
    """Whether there is no store in the directory yet."""
    number: int = 0
    """The highest number of a log found in the log or in the database; 0 if none was found."""
    is_log_used: bool = True
    """Whether the log belongs to the database; if not, a salvage leaves the log out."""
    findings: list[str] = field(default_factory=list)


def judge(directory: Path) -> Judgement:
    """Return the judgement of the store in a directory: missing or damaged parts are its findings. Raises OSError."""
    try:
        found = read_anchor(directory)
    except DamagedAnchor as damage:
        return Judgement(None, log=read_log(directory / LOG), findings=[str(damage)])
    anchor, is_whole = found if found is not None else (None, True)
    judgement = Judgement(anchor, is_whole, read_log(directory / LOG, None if anchor is None else anchor.salts))
    _Judge(directory, judgement).look()
    return judgement


class _Judge:
    """Compares the files of a store with each other, and fills in a Judgement."""

    def __init__(self, directory: Path, judgement: Judgement) -> None:
        self._directory = directory
        self._judgement = judgement
        self._log = judgement.log
        self._database = directory / DATABASE

    def look(self) -> None:
        judgement = self._judgement
        if not self._has_database():
            judgement.findings += self._without_database()
            judgement.is_new = not judgement.findings
            return
        judgement.findings += self._of_the_log_itself()
        if judgement.anchor is None:
            if self._format() >= ANCHORED_FORMAT:
                judgement.findings.append(f"{NAME} is missing")
        elif judgement.anchor.claim in (AnchorClaim.LOG, AnchorClaim.LOG_OR_ALL):
            in_log, in_database = self._numbers(judgement.anchor)
            judgement.number = max(number or 0 for number in (in_log, in_database))
            damage = _Claims(judgement.anchor, self._log, in_log, in_database).damage()
            judgement.is_log_used = damage is None or not damage.is_of_another_time
            # If the log itself shows damage, the damage that `anchor` shows is left out: findings about the log say
            # more.
            if damage is not None and not judgement.findings:
                judgement.findings.append(damage.what)

    def _has_database(self) -> bool:
        return self._database.exists() and self._database.stat().st_size > 0

    def _without_database(self) -> Iterator[str]:
        """Yield a finding if the database is missing or empty, but other files in the directory say that it existed."""
        missing = f"{DATABASE} is {'empty' if self._database.exists() else 'missing'}"
        anchor = self._judgement.anchor
        if anchor is not None:
            if anchor.claim is not AnchorClaim.NOTHING:
                yield f"{missing}, although {NAME} says that it existed"
            return
        large = self._directory / "large"
        count = sum(1 for _ in large.iterdir()) if large.is_dir() else 0
        beside = [f"{count:,} large bodies"] if count else []
        beside += [name for name in (LOG, COPY) if (self._directory / name).exists()] if not beside else []
        if beside and not (self._database.exists() and not count):
            yield f"{missing}, although there is {' and '.join(beside)}"

    def _of_the_log_itself(self) -> Iterator[str]:
        log = self._log
        if log is not None and log.lost_transactions:
            where = f"frame {log.whole_count + 1:,} of {len(log.frames):,}" if log.is_header_whole else "its header"
            count = log.lost_transactions
            yield (
                f"{LOG} is damaged at {where}: {count:,} commit{'s' if count != 1 else ''} and more follow, "
                "which SQLite would ignore"
            )

    def _format(self) -> int:
        """Return the version of the store's format, from the first page in the log or the database; 0 if unknown."""
        in_log = self._log.page(1) if self._log is not None else None
        return max(format_of(in_log or b""), format_of(self._page(1)))

    def _numbers(self, anchor: Anchor) -> tuple[int | None, int | None]:
        """Return the number of the last log as found in the log, and as found in the database.

        None if no readable number is there.
        """
        in_log = self._log.page(anchor.root) if self._log is not None else None
        in_database = number_on(self._page(anchor.root))
        return number_on(in_log or b""), self._number_elsewhere() if in_database is None else in_database

    def _number_elsewhere(self) -> int | None:
        """Return the number of the last log in the database file as SQLite finds it, on whatever page.

        Called if the page that `anchor` names has no readable number. 0 for a format without numbers; None if SQLite
        finds no readable number either.
        """
        if 0 < format_of(self._page(1)) < ANCHORED_FORMAT:
            return 0
        try:
            with closing(sqlite3.connect(uri_of(self._database, "immutable=1"), uri=True)) as database:
                return number_in(database)
        except (sqlite3.Error, UnicodeDecodeError):
            return None

    def _page(self, page: int) -> bytes:
        if page < 1:
            return b""
        with self._database.open("rb") as file:
            file.seek((page - 1) * PAGE_BYTES)
            return file.read(PAGE_BYTES)


@dataclass(frozen=True)
class _Damage:
    what: str
    is_of_another_time: bool = False
    """Whether the log does not belong to the database, so that a salvage must not move it into the tables."""


@dataclass(frozen=True)
class _Claims:
    """Compares the claim of `anchor` with the log and the database of a store.

    ``in_log`` and ``in_database``: the number of the last log as found in the log, and as found in the database; None
    if no readable number is there.
    """

    anchor: Anchor
    log: SqliteLog | None
    in_log: int | None
    in_database: int | None

    def damage(self) -> _Damage | None:
        log = self.log
        if log is None or not log.is_header_whole:
            return self._without_log(f"{LOG} is missing" if log is None else f"the header of {LOG} is damaged")
        if log.salts == self.anchor.salts:
            return self._same_log(log)
        if self.anchor.claim is AnchorClaim.LOG:
            return self._later_log(log)
        if not log.committed_count:
            return self._without_log("")
        return self._first_log()

    def _without_log(self, what: str) -> _Damage | None:
        if self.anchor.claim is AnchorClaim.LOG:
            frames = self.anchor.frames
            return _Damage(
                f"{what}, and with it all commits that were not yet in {DATABASE}: at least {frames:,} frames"
            )
        return self._database_within(self.anchor.number, self.anchor.number)

    def _same_log(self, log: SqliteLog) -> _Damage | None:
        wanted = self.anchor.frames
        if log.whole_count < wanted:
            what = "ends after" if log.whole_count == len(log.frames) else "is damaged after"
            return _Damage(f"{LOG} {what} frame {log.whole_count:,}: at least {wanted:,} were synced")
        if wanted and log.checksum_at(wanted) != self.anchor.checksum:
            return _Damage(f"{LOG} is not the log that the broker wrote", is_of_another_time=True)
        # With LOG_OR_ALL no later number was given than the one in `anchor`: the database has this number once SQLite
        # has moved the log into it, and until then one of the two numbers before.
        back = int(self.anchor.claim is AnchorClaim.LOG_OR_ALL)
        return self._database_within(self.anchor.number - 1 - back, self.anchor.number + 1 - back)

    def _later_log(self, log: SqliteLog) -> _Damage | None:
        """Return the damage of a log that SQLite began anew after `anchor` was written; None if there is none.

        The first salt of a log counts how often SQLite began it anew [4.1 of the file format].
        """
        times = (_count(log.salts) - _count(self.anchor.salts)) % (1 << 32)
        number = self.anchor.number + times
        if not 0 < times < 1 << 31 or self.in_log not in (None, number, number + 1):
            return _Damage(f"{LOG} is an older log", is_of_another_time=True)
        if self.in_log is None:
            # The second transaction of a log begun anew writes its number, so a longer log without a number is another
            # store's.
            if log.transaction_count > 1:
                return _Damage(f"{LOG} is another log", is_of_another_time=True)
            return self._database_within(number - 1, number - 1)
        return self._database_within(number - 1, self.in_log)

    def _first_log(self) -> _Damage | None:
        """Return the damage of the first log of a broker that died while starting, before `anchor` named this log.

        None if there is none.
        """
        number = self.anchor.number
        if self.in_log != number + 1:
            return _Damage(f"{LOG} and {DATABASE} are from different times", is_of_another_time=True)
        return self._database_within(number, number + 1)

    def _database_within(self, lowest: int, highest: int) -> _Damage | None:
        found = self.in_database
        if found is None or lowest <= found <= highest:
            return None
        if found < lowest:
            return _Damage(
                f"{DATABASE} is an older file: it has log {found:,}, and {NAME} says {self.anchor.number:,}",
                is_of_another_time=True,
            )
        return _Damage(
            f"{NAME} is older than {DATABASE}: {NAME} says log {self.anchor.number:,}, and {DATABASE} has {found:,}",
            is_of_another_time=self.log is not None,
        )


def log_bytes(directory: Path) -> int:
    log = directory / LOG
    return log.stat().st_size if log.exists() else 0


def uri_of(database: Path, how: str) -> str:
    return f"file:{quote(str(database.absolute()))}?{how}"


def _count(salts: bytes) -> int:
    return int.from_bytes(salts[:4])
