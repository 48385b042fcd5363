"""Takes a received message in pieces and keeps the message's body in memory, writes the body to a file, or drops it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from mesh.client.errors import BodyNotKept
from wire.section_split import SectionSplitter

MAX_HELD_BYTES = 256 * 1024 * 1024


class BodySink(Protocol):
    """Takes the body of one received message piece by piece; raises BodyNotKept if the body cannot be kept."""

    def take(self, piece: bytes) -> None: ...

    def finish(self) -> bytes | Path:
        """Return the body, or the path of the file with the body."""
        ...

    def discard(self) -> None:
        """Drop the incomplete body: the sender aborted the message, this client closed the receiver, or the body could
        not be kept.
        """


class HeldBody:
    """Keeps a message's body in memory, to be printed as a whole; a body above 256 MiB raises BodyNotKept."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size_bytes = 0

    def take(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size_bytes += len(piece)
        if self._size_bytes > MAX_HELD_BYTES:
            raise BodyNotKept(
                f"the body is too large to print: expected at most {MAX_HELD_BYTES >> 20} MiB; its "
                "message was not settled",
                fix="-o DIRECTORY writes bodies of any size to files.",
            )

    def finish(self) -> bytes:
        return b"".join(self._pieces)

    def discard(self) -> None:
        self._pieces.clear()


class DroppedBody:
    """Drops each piece of a message's body, for commands that print only the other sections of a message."""

    def take(self, piece: bytes) -> None: ...

    def finish(self) -> bytes:
        return b""

    def discard(self) -> None: ...


@dataclass(frozen=True, slots=True)
class BodyFiles:
    """Names a folder's files of message bodies: 000001, 000002 ..., after the highest number already in the folder."""

    folder: Path
    last: int

    @classmethod
    def behind(cls, folder: Path) -> BodyFiles:
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return cls(folder, max((int(name) for name in names if name.isdecimal()), default=0))

    def path(self, number: int) -> Path:
        """Return the path for the body of message ``number``; the running command counts its messages from 1."""
        return self.folder / f"{self.last + number:06}"

    def partial_path(self, number: int) -> Path:
        """Return the path for a body that is still arriving: a hidden name, which no complete body has."""
        return self.folder / f".{self.last + number:06}.part"


class FiledBody:
    """Writes a message's body to a file, piece by piece as the pieces arrive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def take(self, piece: bytes) -> None:
        try:
            self._opened().write(piece)
        except OSError as error:
            raise cannot_write(error, self._path) from None

    def finish(self) -> Path:
        try:
            self._opened().close()
        except OSError as error:
            raise cannot_write(error, self._path) from None
        return self._path

    def discard(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._path.unlink(missing_ok=True)

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("wb")
        return self._file


def cannot_write(error: OSError, path: Path) -> BodyNotKept:
    # The client does not settle the delivery, so its message goes back to the sender once the link has ended, unless
    # the sender sent it pre-settled.
    return BodyNotKept(f"cannot write {error.filename or path}: {error.strerror}")


class MessageAssembly:
    """Collects one received message piece by piece: the body into a BodySink, all other sections in memory."""

    def __init__(self, keep: Callable[[], BodySink]) -> None:
        self._keeper = keep()
        self._splitter = SectionSplitter(self._keeper.take)

    def feed(self, piece: bytes) -> None:
        self._splitter.feed(piece)

    def finish(self) -> tuple[bytes, bytes | Path | None]:
        """Return the message without its data sections, and what the BodySink made of the body in its data sections:
        None if the message has no data section.
        """
        return self._splitter.finish(), self._keeper.finish() if self._splitter.has_body else None

    def discard(self) -> None:
        self._keeper.discard()
