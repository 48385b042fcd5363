"""Reads large message bodies from their files, range by range, and verifies a body's checksum with its last range.

The last range of a damaged body is never returned: a link that streams the body must abort the delivery.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from broker.store.batch import BodyRange
from broker.store.damage import DamagedBody
from broker.store.large import LargeBodies

MOST_STREAMS = 4096
"""The most bodies being read whose checksums so far are kept.

Beyond this number the stream not read for longest is dropped: its next read computes the checksum from the start.
"""
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """The size and checksum of a large body as written, from the rows of the store."""

    size_bytes: int
    checksum: int
    """CRC-32, or 0 for a body that was stored before large bodies had checksums."""


def damage_of(path: Path, written: Written) -> str | None:
    """Return the damage of a large body's file, in words to follow the file's name; None if the file is sound."""
    checksum = size = 0
    try:
        with path.open("rb", buffering=0) as body:
            while piece := body.read(_PIECE_BYTES):
                checksum = crc32(piece, checksum)
                size += len(piece)
    except OSError as error:
        what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        return f"{what}, expected {written.size_bytes:,} bytes"
    if size != written.size_bytes:
        return f"has {size:,} bytes, expected {written.size_bytes:,}"
    return None if written.checksum in (0, checksum) else f"has {size:,} bytes that do not match their checksum"


@dataclass(slots=True)
class _Stream:
    """The progress of one consumer's link that reads a large body range by range."""

    message_id: int
    offset: int
    checksum: int
    """CRC-32 of the bytes before ``offset``."""
    written: Written


class LargeReader:
    """Reads ranges of large bodies, and verifies the checksum of a body with its last range. Used by one thread.

    ``written_of`` returns the size and checksum of a body as it was written; raises DamagedBody or sqlite3.Error.
    """

    def __init__(self, bodies: LargeBodies, written_of: Callable[[int], Written]) -> None:
        self._bodies = bodies
        self._written_of = written_of
        self._streams: OrderedDict[int, _Stream] = OrderedDict()
        """Streams by the number of the reader, a consumer's link; the least recently read first."""

    def read(self, wanted: BodyRange) -> bytes:
        """Return a range of a large body. Raises FileNotFoundError, DamagedBody, or an error of ``written_of``."""
        stream = self._stream_of(wanted)
        found = self._bodies.read(wanted.message_id, wanted.offset, wanted.size_bytes)
        stream.checksum = crc32(found, stream.checksum)
        stream.offset += len(found)
        if stream.offset < stream.written.size_bytes:
            self._keep(wanted.reader, stream)
        elif stream.written.checksum not in (0, stream.checksum):
            raise DamagedBody("the message's body does not match its checksum")
        return found

    def _stream_of(self, wanted: BodyRange) -> _Stream:
        stream = self._streams.pop(wanted.reader, None)
        if stream is not None and (stream.message_id, stream.offset) == (wanted.message_id, wanted.offset):
            return stream
        checksum = 0
        for offset in range(0, wanted.offset, _PIECE_BYTES):
            size = min(_PIECE_BYTES, wanted.offset - offset)
            checksum = crc32(self._bodies.read(wanted.message_id, offset, size), checksum)
        return _Stream(wanted.message_id, wanted.offset, checksum, self._written_of(wanted.message_id))

    def _keep(self, reader: int, stream: _Stream) -> None:
        self._streams[reader] = stream
        if len(self._streams) > MOST_STREAMS:
            self._streams.popitem(last=False)
