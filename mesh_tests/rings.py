"""What does a ring have in it? Read as `recording.ring_format` says, by nothing that writes one."""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from recording import ring_format as ring
from recording.ring_file import header


class Record(NamedTuple):
    start_us: int
    took_us: int
    size_bytes: int
    incoming: int
    outgoing: int
    count: int
    kind: int
    outcome: int
    part: int


class Ring:
    """With room for ``room`` slots beside those that are kept for a node's end, in memory of this process."""

    def __init__(self, room: int, *, overwrites: bool = False) -> None:
        capacity = room + ring.LAST_SLOTS
        size = ring.HEADER_BYTES + capacity * ring.SLOT_BYTES
        self.memory = mmap.mmap(-1, size)
        self.memory[: ring.HEADER_BYTES] = header(size, 0, {}, overwrites=overwrites)
        self._capacity = capacity

    def number(self, place: int) -> int:
        found: int = struct.unpack_from("<Q", self.memory, place)[0]
        return found

    def take(self) -> tuple[list[Record], list[dict[str, Any]]]:
        """What came since the last time: records, and what has text in it."""
        found = read_records(self._slots())
        struct.pack_into("<Q", self.memory, ring.TAKEN_AT, self.number(ring.WRITTEN_AT))
        return found

    def read_from(self, number: int) -> tuple[list[Record], list[dict[str, Any]]] | None:
        """What came since slot ``number``, where nothing is taken; None if this was overwritten."""
        found = list(self._slots(number))
        is_whole = self.number(ring.WRITTEN_AT) - number <= self._capacity - self._capacity // 8
        return read_records(iter(found)) if is_whole else None

    def _slots(self, first: int | None = None) -> Iterator[bytes]:
        for number in range(self.number(ring.TAKEN_AT) if first is None else first, self.number(ring.WRITTEN_AT)):
            at = ring.HEADER_BYTES + number % self._capacity * ring.SLOT_BYTES
            yield self.memory[at : at + ring.SLOT_BYTES]


def read_ring(path: Path) -> list[dict[str, Any]]:
    """What has text in it in a ring of a node, of which nobody took anything and nothing was written over."""
    data = path.read_bytes()
    (written,) = struct.unpack_from("<Q", data, ring.WRITTEN_AT)
    places = (ring.HEADER_BYTES + at * ring.SLOT_BYTES for at in range(written))
    return read_records(data[at : at + ring.SLOT_BYTES] for at in places)[1]


def read_records(slots: Iterator[bytes]) -> tuple[list[Record], list[dict[str, Any]]]:
    records, texts = [], []
    for slot in slots:
        record = Record(*struct.unpack(ring.SLOT, slot))
        if record.kind == ring.TEXT:
            count = -(-record.size_bytes // ring.SLOT_BYTES)
            text = b"".join(next(slots) for _ in range(count))
            texts.append(json.loads(text[: record.size_bytes]))
        else:
            records.append(record)
    return records, texts
