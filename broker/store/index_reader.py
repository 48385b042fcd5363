"""Reads the index of each segment (sizes, priorities, deadlines of its messages) when a broker loads its store."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterator

from broker.store.batch import StoredSegment
from broker.store.checksums import is_index
from broker.store.damage import DamagedIndex, is_damage
from broker.store.large import LargeBodies
from broker.store.message_index import has_strange_priority, large_in, slot_bytes_of
from broker.store.segment_tables import SegmentTables
from broker.store.segments import Segments

MOST_SENTENCES = 20
"""The most sentences about single unreadable segments: a damaged interior page may make hundreds unreadable."""


class IndexReader:
    """Reads from the store the indexes of the segments in ``segments``, whose holdings are loaded.

    Unreadable segments are left out, with sentences about them added to ``damages``.
    """

    def __init__(self, tables: SegmentTables, segments: Segments, large: LargeBodies, damages: list[str]) -> None:
        self._tables = tables
        self._segments = segments
        self._large = large
        self._damages = damages
        self._left_out = 0
        self._away = 0
        """The number of messages in unreadable segments beyond MOST_SENTENCES."""

    def read(self, lost_queues: Container[int]) -> Iterator[StoredSegment]:
        """Yield all readable segments of which a queue has messages; ``lost_queues``, without rows, do not count.

        A sentence about each missing or incomplete large body is added to ``damages``.
        """
        for segment_id in self._segments.first_ids():
            holdings = [held for held in self._segments.holdings_of(segment_id) if held[0] not in lost_queues]
            if not holdings:
                continue
            try:
                message_index = self.index_of(segment_id)
            except DamagedIndex as damage:
                self._leave_out(segment_id, damage)
                continue
            self._find_missing(segment_id, message_index)
            yield StoredSegment(segment_id, message_index, holdings)
        if self._away:
            more = self._left_out - MOST_SENTENCES
            self._damages.append(f"{more} more segments cannot be read: their {self._away} messages are not delivered")

    def index_of(self, segment_id: int) -> bytes:
        """Return the index of a segment; raise DamagedIndex if it is damaged, so that no message can be delivered."""
        try:
            index = self._tables.index_of(segment_id)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            raise DamagedIndex(str(error)) from error
        if index is None:
            raise DamagedIndex("the store has no row for the segment")
        if not isinstance(index, bytes) or len(index) != self._segments.slots_of(segment_id) * slot_bytes_of(index):
            raise DamagedIndex("the segment's index has a wrong type or length")
        if not is_index(segment_id, index):
            raise DamagedIndex("the segment's index does not match its checksum")
        if has_strange_priority(index):
            raise DamagedIndex("the segment's index has invalid priorities")
        return index

    def _leave_out(self, segment_id: int, damage: DamagedIndex) -> None:
        count = self._segments.count_needed(segment_id)
        self._left_out += 1
        if self._left_out > MOST_SENTENCES:
            self._away += count
        else:
            self._damages.append(
                f"segment {segment_id} cannot be read, its {count} messages are not delivered: {damage}"
            )

    def _find_missing(self, segment_id: int, message_index: bytes) -> None:
        for slot, size_bytes in large_in(message_index):
            message_id = segment_id + slot
            if self._segments.is_needed(message_id) and not self._large.has_size(message_id, size_bytes):
                self._damages.append(f"message {message_id} is incomplete in {self._large.directory}")
