"""Bodies of messages for `amqpmesh send`: a body above 1 MiB is made or read in pieces each time a message is sent."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Protocol

from mesh.terminal.failure import CommandFailed
from wire.message import MAX_DATA_BYTES

PIECE_BYTES = 32 * 1024
WHOLE_BYTES = 1 << 20
"""A body up to this size is held in memory as a whole; a larger body is sent in pieces."""


class LargeBody(Protocol):
    """A message body that is not held in memory, but made or read in pieces."""

    @property
    def size_bytes(self) -> int: ...

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces; each call begins at byte 0. Raises CommandFailed if a file got shorter."""
        ...


@dataclass(frozen=True, slots=True)
class Filler:
    """A body above 1 MiB of the letter x only, for `amqpmesh send --size`."""

    size_bytes: int

    def pieces(self) -> Iterator[bytes]:
        piece = b"x" * PIECE_BYTES
        for _ in range(self.size_bytes // PIECE_BYTES):
            yield piece
        if self.size_bytes % PIECE_BYTES:
            yield piece[: self.size_bytes % PIECE_BYTES]


@dataclass(frozen=True, slots=True)
class FileBody:
    """The content of ``file`` as a body, ``size_bytes`` long."""

    file: IO[bytes]
    size_bytes: int

    def pieces(self) -> Iterator[bytes]:
        self.file.seek(0)
        left = self.size_bytes
        while left:
            piece = self.file.read(min(PIECE_BYTES, left))
            if not piece:
                raise CommandFailed(f"the file became {left} bytes shorter while it was sent: the message is aborted")
            left -= len(piece)
            yield piece


def filler(size_bytes: int) -> bytes | LargeBody:
    """Return a body of ``size_bytes`` times the letter x. Raises ValueError for 4 GiB or more."""
    check_size(size_bytes)
    return b"x" * size_bytes if size_bytes <= WHOLE_BYTES else Filler(size_bytes)


def read_body(file: IO[bytes]) -> bytes | LargeBody:
    """Return the content of ``file`` as a body. A pipe is read to its end first, into a temporary file if above 1 MiB.

    Raises ValueError for 4 GiB or more.
    """
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        start = file.read(WHOLE_BYTES + 1)
        if len(start) <= WHOLE_BYTES:
            return start
        file = spool(start, file)
    size_bytes = os.fstat(file.fileno()).st_size
    check_size(size_bytes)
    file.seek(0)
    return file.read() if size_bytes <= WHOLE_BYTES else FileBody(file, size_bytes)


def spool(start: bytes, pipe: IO[bytes]) -> IO[bytes]:
    kept = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the body)
    kept.write(start)
    while kept.tell() <= MAX_DATA_BYTES and (piece := pipe.read(WHOLE_BYTES)):
        kept.write(piece)
    kept.flush()
    return kept


def check_size(size_bytes: int) -> None:
    if size_bytes > MAX_DATA_BYTES:
        raise ValueError(f"expected a message body of less than 4 GiB, got {size_bytes} bytes")
