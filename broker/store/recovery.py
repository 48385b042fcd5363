"""Recovery of a store when a broker starts: damage is put aside, and leftovers of a crash are put in order.

    damaged tables                          put aside, with readable rows in new tables (`broker.store.table_salvage`)
    holdings of queues that are gone        deleted
    segments that no queue holds            deleted
    messages that consumers may have seen   their delivery-counts raised, and the marks that say so deleted
    large bodies that no queue needs        unlinked

A damaged page met inside a transaction would end the transaction, so what may be damaged is read before it begins.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile

from broker.store.aside import has_lost_queues, may_be_needed
from broker.store.batch import Inventory
from broker.store.checksums import is_holding, sealed_holdings
from broker.store.counts import COUNT_BYTES
from broker.store.damage import DamagedIndex, is_damage
from broker.store.failpoints import StoreFailpoint
from broker.store.index_reader import IndexReader
from broker.store.large import LargeBodies
from broker.store.lost_annotations import Annotations, load_annotations
from broker.store.lost_causes import Causes, load_causes
from broker.store.lost_queues import lost_queues, next_queue_id, stored_queues
from broker.store.schema import PUT_HOLDING
from broker.store.segment_tables import SegmentTables
from broker.store.segments import Segments
from broker.store.statements import Statements
from broker.store.table_salvage import put_damaged_aside

_HELD = "FROM holding WHERE queue_id IN (SELECT queue_id FROM queue)"
_ALL_HELD = "FROM holding"


class Recovery:
    """One try to recover a store when a broker starts; after a full disk another object makes another try.

    Raises sqlite3.Error, ValueError and KeyError for unexpected content. ``damages`` has the findings of earlier tries,
    which ran out of disk room; the findings of this try are added.
    """

    def __init__(
        self, statements: Statements, large: LargeBodies, passing: Callable[[StoreFailpoint], None], damages: list[str]
    ) -> None:
        self._statements = statements
        self._connection = statements.connection
        self._large = large
        self._passing = passing
        self._damages = damages
        self._held = _HELD
        self._lost: dict[int, int] = {}
        """queue_id -> number of messages, of lost queues: queues with messages, but without a readable row."""
        self._is_some_damaged = False
        """Whether a holding is damaged: then no file of a large body is deleted, since it may be needed."""
        self._causes: Causes = {}
        self._annotations: Annotations = {}
        self.segments = Segments()

    def recover(self) -> Recovery:
        self._damages += put_damaged_aside(self._statements)
        self._tables = SegmentTables(self._connection)
        self._indexes = IndexReader(self._tables, self.segments, self._large, self._damages)
        self._find_lost_queues()
        self._causes, lost = load_causes(self._statements)
        self._damages += lost
        self._annotations, lost = load_annotations(self._statements)
        self._damages += lost
        unneeded = self._unneeded()
        self._load_segments()
        marked = self._marked()
        with self._statements.transaction():
            if self._held is _HELD:
                self._connection.execute("DELETE FROM holding WHERE queue_id NOT IN (SELECT queue_id FROM queue)")
            self._statements.insert(PUT_HOLDING, sealed_holdings(marked))
            self._connection.execute("DELETE FROM mark")
            self._passing(StoreFailpoint.RECOVERY_WRITTEN)
        self._sweep(unneeded)
        return self

    def inventory(self) -> Inventory:
        if not (self._is_some_damaged or may_be_needed(self._connection)):
            self._large.unlink_all_but(self.segments.is_needed)
        return Inventory(
            stored_queues(self._connection),
            self._indexes.read(self._lost),
            self._causes,
            self._annotations,
            sum(map(self.segments.count_needed, self.segments.first_ids())),
            next_queue_id(self._connection),
            self.segments.next_message_id,
            self._damages,
        )

    def _find_lost_queues(self) -> None:
        self._lost = lost_queues(self._connection)
        if has_lost_queues(self._connection):
            self._held = _ALL_HELD
        for queue_id, count in self._lost.items():
            what = f"its {count} messages are" if count != 1 else "its message is"
            self._damages.append(f"queue {queue_id} is lost, and {what} unreachable in the file")

    def _load_segments(self) -> None:
        """Load segments and holdings into memory; a holding tells the number of messages even of a damaged segment.

        Damaged holdings are left out, with a sentence for each.
        """
        for segment_id, slots in self._connection.execute(
            f"SELECT segment_id, max(length(counts)) / {COUNT_BYTES} {self._held} GROUP BY segment_id"
        ):
            self.segments.load(segment_id, slots)
        self._keep_clear_of_all()
        for queue_id, segment_id, counts, checksum in self._connection.execute(
            f"SELECT queue_id, segment_id, counts, checksum {self._held}"
        ):
            try:
                if not is_holding(queue_id, segment_id, counts, checksum):
                    raise KeyError(
                        f"the holding of queue {queue_id} in segment {segment_id} does not match its checksum"
                    )
                self.segments.load_holding(queue_id, segment_id, counts)
            except KeyError:
                self._is_some_damaged = True
                what = f"the messages of queue {queue_id} in segment {segment_id}"
                self._damages.append(f"{what} cannot be read, and are not delivered")

    def _marked(self) -> list[tuple[int, int, bytes]]:
        """Raise in memory the delivery-counts of messages up to the seen marks; return the rows of changed holdings."""
        marks: dict[int, dict[int, int]] = {}
        for queue_id, priority, mark in self._connection.execute("SELECT queue_id, priority, seen_mark FROM mark"):
            marks.setdefault(queue_id, {})[priority] = mark
        changed: list[tuple[int, int, bytes]] = []
        highest = max((mark for of_queue in marks.values() for mark in of_queue.values()), default=0)
        for segment_id in takewhile(lambda first: first <= highest, self.segments.first_ids()):
            with suppress(DamagedIndex):
                changed += self.segments.raise_counts(segment_id, self._indexes.index_of(segment_id), marks)
        return changed

    def _unneeded(self) -> list[int]:
        """Return the ids of segments without holdings, to be deleted; none if a lost holding may need one of them."""
        if may_be_needed(self._connection):
            return []
        try:
            rows = self._connection.execute(
                f"SELECT segment_id FROM segment WHERE segment_id NOT IN (SELECT segment_id {self._held})"
            ).fetchall()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            return []
        return [segment_id for (segment_id,) in rows]

    def _sweep(self, segment_ids: Sequence[int]) -> None:
        """Delete segments from the store; a damaged segment, which cannot be deleted, stays."""
        try:
            with self._statements.transaction():
                self._statements.delete("DELETE FROM segment WHERE segment_id", segment_ids)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            for segment_id in segment_ids if len(segment_ids) > 1 else ():
                self._sweep([segment_id])

    def _keep_clear_of_all(self) -> None:
        """Make new message ids begin above every id that an unreadable segment may have."""
        last = max([self._tables.last_id(), *self.segments.first_ids()[-1:]])
        if last or self._tables.unseen_count:
            self.segments.keep_clear_of(last + self._tables.unseen_count)
