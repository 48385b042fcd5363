"""A ring of a node that does not run: slots are put into it by hand, as `recording.ring_format` lays them out."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

from recording import ring_format as layout
from recording.ring_file import RingFile

ACCEPTED = 0x24
CAPACITY = 8192


def slot(kind: int, **columns: int) -> bytes:
    names = ("start_us", "took_us", "size_bytes", "incoming", "outgoing", "count")
    values = {"count": 1, **columns}
    numbers = [values.pop(name, 0) for name in names]
    outcome, part = values.pop("outcome", ACCEPTED), values.pop("part", 0)
    assert not values, f"no such column: {values}"
    return struct.pack(layout.SLOT, *numbers, kind, outcome, part)


def text(row: dict[str, Any] | bytes, start_us: int = 0) -> bytes:
    data = row if isinstance(row, bytes) else json.dumps(row).encode()
    padded = data + bytes(-len(data) % layout.SLOT_BYTES)
    return slot(layout.TEXT, start_us=start_us, size_bytes=len(data)) + padded


class HandmadeRing:
    """The ring of one run of ``node`` in the folder ``rings``, with its clock set now."""

    def __init__(self, rings: Path, node: str, run_us: int, capacity: int = CAPACITY, role: str = "router") -> None:
        size = layout.HEADER_BYTES + capacity * layout.SLOT_BYTES
        about = {"node": node, "mesh": "m", "role": role, "version": "1", "topology": ""}
        self.file = RingFile(rings, node, run_us, size, about)
        self.path = rings / f"{node}.{run_us}.ring"
        self.capacity = capacity
        self.written = 0
        self._is_closed = False
        self.beat()

    def beat(self, ago_s: float = 0.0) -> None:
        now_us = time.monotonic_ns() // 1000
        self.store(layout.CLOCK_AT, time.time_ns() // 1000 - now_us)
        self.store(layout.BEAT_AT, now_us - int(ago_s * 1e6))

    def store(self, at: int, value: int) -> None:
        struct.pack_into("<Q", self.file.memory, at, value)

    def put(self, *records: bytes) -> None:
        """Write the records, and publish them together."""
        for data in records:
            for begin in range(0, len(data), layout.SLOT_BYTES):
                at = layout.HEADER_BYTES + self.written % self.capacity * layout.SLOT_BYTES
                self.file.memory[at : at + layout.SLOT_BYTES] = data[begin : begin + layout.SLOT_BYTES]
                self.written += 1
        self.store(layout.WRITTEN_AT, self.written)

    def tell(self, *rows: dict[str, Any]) -> None:
        self.put(*(text(row) for row in rows))

    def end(self, cause: str | None = None) -> None:
        """The node is gone: in order for ``cause``, or, without one, as after kill -9."""
        if cause is not None:
            self.tell({"kind": "node", "event": "closed", "cause": cause})
        self.close()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.file.close()
