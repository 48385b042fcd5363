"""Reads message bodies from segments on the disk, for consumers whose messages are no longer in memory."""

from __future__ import annotations

import sqlite3
from zlib import crc32

from broker.store.checksums import is_index
from broker.store.cut_bodies import bounds_of
from broker.store.damage import DamagedBody
from broker.store.large_reader import Written
from broker.store.message_index import checksums_in, read_index
from broker.store.segment_tables import SegmentTables


class SegmentReader:
    """Reads message bodies from segments, and keeps the segment read last: its next message is soon asked for."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables: SegmentTables | None = None
        """Looked up at the first read, since recovery may put damaged tables aside before."""
        self._first = 0
        self._bounds: list[int] = [0]
        """The offset of each body in the segment read last, and the end of the last body."""
        self._bodies = b""
        self._damage: str | None = None
        """Why ``_bodies`` are incomplete; None if complete."""
        self._checksums: list[int] | None = None

    def read(self, message_id: int) -> bytes:
        """Return the body of a message that has no file of its own. Raises DamagedBody, or sqlite3.Error."""
        if not 0 <= message_id - self._first < len(self._bounds) - 1:
            self._load(message_id)
        slot = message_id - self._first
        if slot >= len(self._bounds) - 1:
            raise DamagedBody("no segment has the message")
        begin, end = self._bounds[slot : slot + 2]
        if end > len(self._bodies):
            raise DamagedBody(f"a page of the segment with the message cannot be read: {self._damage}")
        body = self._bodies[begin:end]
        if self._checksums is not None and crc32(body) != self._checksums[slot]:
            raise DamagedBody("the message's body does not match its checksum")
        return body

    def large(self, message_id: int) -> Written:
        """Return a large body's size and checksum, from its segment's index. Raises DamagedBody, or sqlite3.Error."""
        where = "segment_id <= ? ORDER BY segment_id DESC LIMIT 1"
        row = self._known_tables().find("segment_id, message_index", where, message_id)
        first, message_index = row if row is not None else (message_id, None)
        if not isinstance(message_index, bytes):
            raise DamagedBody("no segment has the message")
        if not is_index(first, message_index):
            raise DamagedBody("the index of the message's segment does not match its checksum")
        slots, slot = read_index(message_index), message_id - first
        if slot >= len(slots):
            raise DamagedBody("no segment has the message")
        checksums = checksums_in(message_index)
        return Written(slots[slot][0], 0 if checksums is None else checksums[slot])

    def _known_tables(self) -> SegmentTables:
        if self._tables is None:
            self._tables = SegmentTables(self._connection)
        return self._tables

    def _load(self, message_id: int) -> None:
        self._bounds = [0]
        row = self._known_tables().segment_with(message_id)
        if row is None:
            raise DamagedBody("no segment has the message")
        first, message_index, bodies = row.segment_id, row.message_index, row.bodies
        if not (isinstance(message_index, bytes) and isinstance(bodies, bytes)):
            raise DamagedBody("the message's segment is damaged")
        if not is_index(first, message_index):
            raise DamagedBody("the index of the message's segment does not match its checksum")
        bounds = bounds_of(message_index)
        if row.damage is None and bounds[-1] != len(bodies):
            raise DamagedBody(f"the segment has {len(bodies)} bytes of bodies, expected {bounds[-1]} by its index")
        self._first, self._bounds, self._bodies, self._damage = first, bounds, bodies, row.damage
        self._checksums = checksums_in(message_index)
