"""Keeps the number of the log (SQLite's WAL) in the database, and the file `anchor` up to date, while a store is open.

By event, the claim that is written to `anchor`, and what happens to the log:

opened        anchor: the log, or all of it in the database     the log goes into the database, and is cut off
              the next number, the first transaction of the new log; anchor: the log
each commit   anchor: so many frames of the log
              begun anew by SQLite: the next number, as its second transaction
closed        the next number; anchor: the log, or all of it in the database     SQLite takes the log away
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from broker.store.anchor import Anchor, AnchorClaim, AnchorFile
from broker.store.aside import put_aside
from broker.store.damage import is_damage
from broker.store.judgement import LOG, Judgement
from broker.store.large import sync_absence
from broker.store.log_index import LogIndex
from broker.store.log_number import TABLE, number_in, put_number, root_in, stamp_of
from broker.store.schema import LOG_NUMBER, PUT_LOG_NUMBER
from broker.store.statements import Statements


class AnchoredLog:
    """Numbers the logs of an open store, and writes `anchor` when the store is opened, after commits, and at the end.

    Used by the thread that commits. Raises OSError and sqlite3.Error.
    """

    def __init__(self, directory: Path, judgement: Judgement) -> None:
        self._directory = directory
        self._file = AnchorFile(directory)
        self._judgement = judgement
        anchor = judgement.anchor or Anchor(AnchorClaim.NOTHING)
        self._root = anchor.root
        self._number = max(anchor.number, judgement.number)
        self._statements: Statements | None = None
        self._index: LogIndex | None = None
        self._salts = b""

    def before_recovery(self) -> None:
        """Claim in `anchor` what the files have now. Call before the database is opened.

        From then on SQLite may move the log into the tables, and delete the log. For a new store the claim is NOTHING.
        Without an `anchor`, as in an older format, and after a change of the whole database that was cut short, no
        claim is written.
        """
        judgement = self._judgement
        if judgement.is_new:
            self._file.put(Anchor(AnchorClaim.NOTHING))
        elif judgement.anchor is not None and judgement.anchor.claim in (AnchorClaim.LOG, AnchorClaim.LOG_OR_ALL):
            self._number = judgement.number or self._number
            log = judgement.log
            if log is None or not log.committed_count:
                # The absence of the log is synced: a power cut must not bring back an earlier log, which `anchor` no
                # longer covers.
                sync_absence(self._directory / LOG)
                self._put(AnchorClaim.LOG_OR_ALL, bytes(8), 0, bytes(8))
            else:
                count = log.committed_count
                self._put(AnchorClaim.LOG_OR_ALL, log.salts, count, log.checksum_at(count))

    def before_change(self) -> None:
        """Claim in `anchor` only that the database exists; call before a transaction that changes all of it."""
        self._file.put(Anchor(AnchorClaim.DATABASE))

    def begin(self, statements: Statements, index: LogIndex) -> list[str]:
        """Number the empty log, and update `anchor` after each commit from now on; return sentences about damage."""
        damages = self._number_anew(statements)
        self._statements, self._index = statements, index
        self._root = root_in(statements.connection)
        self._put_log(AnchorClaim.LOG)
        statements.on_commit = self._on_commit
        return damages

    def end(self) -> None:
        """Commit a new number of the log, then claim in `anchor` the log or a complete database.

        SQLite may delete the log from then on.
        """
        assert self._statements is not None
        self._statements.on_commit = None
        self._advance(self._statements.connection)
        self._put_log(AnchorClaim.LOG_OR_ALL)

    def leave(self) -> None:
        """Claim in `anchor` the log or a complete database, as `end` does, but without a commit, after a failed commit.

        Errors of the disk are ignored.
        """
        if self._statements is not None:
            self._statements.on_commit = None
            with suppress(OSError):
                self._put_log(AnchorClaim.LOG_OR_ALL)

    def close(self) -> None:
        self._file.close()

    def _on_commit(self) -> None:
        assert self._statements is not None
        assert self._index is not None
        state = self._index.state()
        if state.salts == self._salts:
            self._file.note(state.frames, state.checksum)
            return
        self._advance(self._statements.connection)
        state = self._index.state()
        self._salts = state.salts
        self._file.begin_log(self._number, state.salts, state.frames, state.checksum)

    def _advance(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            put_number(connection, self._number + 1)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._number += 1

    def _number_anew(self, statements: Statements) -> list[str]:
        try:
            self._number = max(self._number, number_in(statements.connection) or 0)
            self._advance(statements.connection)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            self._number += 1
            aside = put_aside(statements, TABLE, LOG_NUMBER, PUT_LOG_NUMBER, [(1, stamp_of(self._number))])
            return [
                f"table {TABLE} was damaged, and was renamed to {aside}: it is unknown whether the "
                "files are from the same time"
            ]
        return []

    def _put_log(self, claim: AnchorClaim) -> None:
        assert self._index is not None
        state = self._index.state()
        self._salts = state.salts
        self._put(claim, state.salts, state.frames, state.checksum)

    def _put(self, claim: AnchorClaim, salts: bytes, frames: int, checksum: bytes) -> None:
        self._file.put(Anchor(claim, self._root, self._number, salts, frames, checksum))


def anchor_closed(directory: Path, connection: sqlite3.Connection, number: int) -> None:
    """Move the log of a store that no broker uses into the database, and write `anchor` as for a store closed in order.

    ``number`` becomes the number of the last log, in the database and in `anchor`.
    """
    put_number(connection, number)
    root = root_in(connection)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file = AnchorFile(directory)
    try:
        file.put(Anchor(AnchorClaim.LOG_OR_ALL, root, number))
    finally:
        file.close()
