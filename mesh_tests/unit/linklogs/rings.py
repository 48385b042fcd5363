"""A node as far as its ring goes: plain and slow, and as recording/ring_format.py says."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
from pathlib import Path
from typing import Any

from recording import ring_format as ring

RUN = 1_795_478_400_000_000
"""2026-11-24T00:00:00Z"""
CLOCK = RUN - 1_000_000_000
"""The monotonic clock was at 1,000 s when the run began."""
START = RUN - CLOCK

ACCEPTED = 0x24


class RingWriter:
    """``capacity`` in slots. Holds the lock until ``close``."""

    def __init__(
        self, directory: Path, node: str = "r1", run: int = RUN, capacity: int = 1024, clock_us: int = CLOCK
    ) -> None:
        self.path = directory / f"{node.replace('/', '-')}.{run}.ring"
        self.capacity = capacity
        draft = self.path.with_suffix(".making")
        self._handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(self._handle, ring.HEADER_BYTES + capacity * ring.SLOT_BYTES)
        self.map = mmap.mmap(self._handle, 0)
        self.map[:8] = ring.MAGIC
        for at, value in ((ring.CAPACITY_AT, capacity), (ring.RUN_AT, run), (ring.CLOCK_AT, clock_us)):
            self.put(at, value)
        said = json.dumps({"node": node, "mesh": "demo", "role": "router", "version": "1.2.3", "topology": "abc"})
        self.map[ring.NODE_AT : ring.NODE_AT + len(said)] = said.encode()
        draft.rename(self.path)

    def put(self, at: int, value: int) -> None:
        struct.pack_into("<Q", self.map, at, value)

    def get(self, at: int) -> int:
        return int(struct.unpack_from("<Q", self.map, at)[0])

    @property
    def written(self) -> int:
        return self.get(ring.WRITTEN_AT)

    @property
    def taken(self) -> int:
        return self.get(ring.TAKEN_AT)

    @property
    def dropped(self) -> int:
        return self.get(ring.DROPPED_AT)

    def set_clock(self, clock_us: int) -> None:
        self.put(ring.CLOCK_AT, clock_us)

    def delivery(self, number: int = 0, at_us: int = START, took_us: int = 5, **more: int) -> bool:
        """``number`` as its size, so that a test may tell it from all others. False: no room."""
        fields = {"incoming": 1, "outgoing": 2, "count": 1, "kind": ring.DELIVERY, "outcome": ACCEPTED, "part": 0}
        return self.slots(struct.pack(ring.SLOT, at_us, took_us, number, *(fields | more).values()))

    def text(self, at_us: int = START, **row: Any) -> bool:
        return self.raw_text(json.dumps(row).encode(), at_us)

    def raw_text(self, data: bytes, at_us: int = START) -> bool:
        head = struct.pack(ring.SLOT, at_us, 0, len(data), 0, 0, 0, ring.TEXT, 0, 0)
        return self.slots(head + data + bytes(-len(data) % ring.SLOT_BYTES))

    def slots(self, data: bytes) -> bool:
        count = len(data) // ring.SLOT_BYTES
        if self.written + count > self.taken + self.capacity:
            self.put(ring.DROPPED_AT, self.dropped + 1)
            return False
        self.fill(data)
        self.put(ring.WRITTEN_AT, self.written + count)
        return True

    def fill(self, data: bytes) -> None:
        """Slots that ``written`` does not know of yet."""
        for i in range(len(data) // ring.SLOT_BYTES):
            at = ring.HEADER_BYTES + (self.written + i) % self.capacity * ring.SLOT_BYTES
            self.map[at : at + ring.SLOT_BYTES] = data[i * ring.SLOT_BYTES : (i + 1) * ring.SLOT_BYTES]

    def close(self) -> None:
        """As a node ends, in whatever way."""
        self.map.close()
        os.close(self._handle)
