"""A spool: an append-only file of records that were taken from a ring and are not in a file of the link log yet.

    "AMQspol1" | length (8) | crc32 (8) | 0 (8) | JSON of that length, padded with zeros to a slot      the head
    "AMQchnk1" | ring (8) | ring slots (8) | first (8) | slots (8) | clock (8) | dropped (8) | crc32 (8)   a chunk
        | slots of 32 bytes, as in a ring                                                             any number of them

All numbers are little-endian. A chunk stands for ``ring slots`` slots of the ring from number ``ring`` on, and contains
``slots`` slots, numbered from ``first`` on across all spools of a run: fewer if records were invalid, more if the
writer adds records, different if text was redacted. ``clock`` is UTC less the monotonic clock in us, ``dropped`` the
records ever lost in the ring, both as of the writing of the chunk. The crc is of all the rest of the chunk.

A writer that dies leaves at most one incomplete chunk, at the end: readers stop before this chunk, and the next writer
cuts it off. The head is whole as soon as the file has its name. Only the head is synced: chunks survive crashes of
processes, as the ring does. A power cut may take the last chunks; if the ring survives, its count of taken slots shows
how many slots are lost.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy

from linklogs.file_names import escape
from linklogs.private_files import replacing
from linklogs.writer.ring import RingOwner
from linklogs.writer.rows import Row
from linklogs.writer.slots import Slots, as_slots, at_us
from recording.ring_format import SLOT_BYTES

SUFFIX: Final = ".spool"
DRAFT: Final = ".draft"
_HEAD: Final = struct.Struct("<8sQQ8x")
_HEAD_MAGIC: Final = b"AMQspol1"
_CHUNK: Final = struct.Struct("<8sQQQQqQ")
_CHUNK_MAGIC: Final = b"AMQchnk1"
_CRC: Final = struct.Struct("<Q")
_CHUNK_BYTES: Final = _CHUNK.size + _CRC.size


class SpoolDamaged(Exception):
    """A spool can never become a file; the message names the file, the content found and the content expected."""


@dataclass(frozen=True, slots=True)
class SpoolHeader:
    """The head of a spool: owner and state as of the spool's beginning.

    ``first`` and ``ring``: the number of the first slot, across all spools of a run and in the ring. ``live``: the live
    state of the node. ``is_redacted``: all text in the spool is redacted already.
    """

    owner: RingOwner
    first: int
    ring: int
    clock_us: int
    dropped: int
    is_redacted: bool
    live: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a spool: records taken from a ring together, and the numbers that the module's docstring describes."""

    ring: int
    ring_count: int
    first: int
    clock_us: int
    dropped: int
    slots: Slots


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a spool read from disk. ``end_bytes``: the offset of the end of the last whole chunk."""

    head: SpoolHeader
    chunks: list[Chunk]
    end_bytes: int


class Spool:
    """A spool open for appending chunks of records.

    Always: ``first`` and ``ring`` are the numbers with which the next chunk begins; ``clock_us`` and ``dropped`` are
    those of the last chunk, or of the head if there is no chunk.
    """

    def __init__(self, path: Path, content: Content) -> None:
        """Open the spool with this ``content``, and cut off an incomplete chunk at the end of the file."""
        self.path = path
        self.head = head = content.head
        self.first, self.ring, self.clock_us, self.dropped = head.first, head.ring, head.clock_us, head.dropped
        self.begun_us: int | None = None
        self.record_bytes = 0
        self._end_bytes = content.end_bytes
        for chunk in content.chunks:
            self._on_chunk(chunk)
        self._handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        os.ftruncate(self._handle, self._end_bytes)

    @property
    def is_empty(self) -> bool:
        return self.first == self.head.first

    def append(self, ring_count: int, clock_us: int, dropped: int, slots: Slots) -> None:
        """Append a chunk with ``slots``, made of the next ``ring_count`` slots of the ring.

        After OSError the spool is as before.
        """
        chunk = Chunk(self.ring, ring_count, self.first, clock_us, dropped, slots)
        head = _encode_head_of(chunk)
        self._write(head, chunk.slots)
        self._end_bytes += len(head) + slots.nbytes
        self._on_chunk(chunk)

    def close(self) -> None:
        os.close(self._handle)

    def _on_chunk(self, chunk: Chunk) -> None:
        if self.begun_us is None and len(chunk.slots):
            self.begun_us = int(at_us(chunk.slots[:1], chunk.clock_us)[0])
        self.ring += chunk.ring_count
        self.first += len(chunk.slots)
        self.record_bytes += chunk.slots.nbytes
        self.clock_us, self.dropped = chunk.clock_us, chunk.dropped

    def _write(self, head: bytes, slots: Slots) -> None:
        try:
            at = self._end_bytes
            for data in (memoryview(head), slots.view(numpy.uint8).data):
                while data:
                    done = os.pwrite(self._handle, data, at)
                    data, at = data[done:], at + done
        except OSError:
            os.ftruncate(self._handle, self._end_bytes)
            raise


def begin(directory: Path, head: SpoolHeader) -> Spool:
    """Make a new spool with a synced head, and open the spool. After OSError there is no new spool."""
    path = directory / name_of(head.owner, head.first)
    text = json.dumps(asdict(head), separators=(",", ":")).encode()
    data = _HEAD.pack(_HEAD_MAGIC, len(text), zlib.crc32(text)) + text + bytes(-len(text) % SLOT_BYTES)
    with replacing(path, path.with_suffix(DRAFT)) as file:
        file.write(data)
    return Spool(path, Content(head, [], len(data)))


def run_name(owner: RingOwner) -> str:
    """Return the beginning of the file names of all spools of a node's run."""
    return f"{escape(owner.node)}.{owner.run}"


def name_of(owner: RingOwner, first: int) -> str:
    return f"{run_name(owner)}.{first:020d}{SUFFIX}"


def first_of(path: Path) -> int:
    """Return the number of a spool's first slot, counted across all spools of the run, from the file name alone."""
    return int(path.stem.rpartition(".")[2])


def most_slots(size_bytes: int) -> int:
    """Return an upper bound of the number of slots in a spool file of ``size_bytes``."""
    return size_bytes // SLOT_BYTES


def run_of(path: Path) -> str:
    """Return the ``run_name`` of a spool, from its file name alone."""
    return path.stem.rpartition(".")[0]


def read(path: Path) -> Content:
    """Read a spool up to the first damaged chunk, or the first that does not follow the chunk before.

    Raises SpoolDamaged if the head is damaged, or OSError.
    """
    data = path.read_bytes()
    head, at = _decode_head(path, data)
    chunks = []
    first, ring = head.first, head.ring
    for chunk in _chunks(data, at):
        if (chunk.first, chunk.ring) != (first, ring):
            break
        first, ring, at = first + len(chunk.slots), ring + chunk.ring_count, at + _CHUNK_BYTES + chunk.slots.nbytes
        chunks.append(chunk)
    return Content(head, chunks, at)


def joined(chunks: list[Chunk]) -> tuple[Slots, numpy.ndarray[Any, Any]]:
    """Return the slots of ``chunks`` as one array, and for each slot the ``clock_us`` of its chunk."""
    lengths = [len(chunk.slots) for chunk in chunks]
    slots = as_slots(b"".join(chunk.slots.data for chunk in chunks))
    return slots, numpy.repeat(numpy.array([chunk.clock_us for chunk in chunks], numpy.int64), lengths)


def _encode_head_of(chunk: Chunk) -> bytes:
    count = len(chunk.slots)
    head = _CHUNK.pack(_CHUNK_MAGIC, chunk.ring, chunk.ring_count, chunk.first, count, chunk.clock_us, chunk.dropped)
    return head + _CRC.pack(zlib.crc32(chunk.slots.view(numpy.uint8).data, zlib.crc32(head)))


def _chunks(data: bytes, at: int) -> Iterator[Chunk]:
    view = memoryview(data)
    while at + _CHUNK_BYTES <= len(data):
        magic, ring, ring_count, first, count, clock_us, dropped = _CHUNK.unpack_from(data, at)
        begin = at + _CHUNK_BYTES
        end = begin + count * SLOT_BYTES
        if magic != _CHUNK_MAGIC or end > len(data):
            return
        crc = zlib.crc32(view[begin:end], zlib.crc32(view[at : at + _CHUNK.size]))
        if crc != _CRC.unpack_from(data, at + _CHUNK.size)[0]:
            return
        yield Chunk(ring, ring_count, first, clock_us, dropped, as_slots(view[begin:end]))
        at = end


def _decode_head(path: Path, data: bytes) -> tuple[SpoolHeader, int]:
    if len(data) >= _HEAD.size:
        magic, length, crc = _HEAD.unpack_from(data)
        text = data[_HEAD.size : _HEAD.size + length]
        if magic == _HEAD_MAGIC and len(text) == length and zlib.crc32(text) == crc:
            fields = json.loads(text)
            owner = RingOwner(**fields.pop("owner"))
            return SpoolHeader(owner=owner, **fields), _HEAD.size + length + -length % SLOT_BYTES
    raise SpoolDamaged(
        f"{path}: the spool of {len(data)} bytes has an incomplete or damaged header, "
        f"expected {_HEAD_MAGIC!r} and its crc32"
    )
