"""A message that comes in pieces: what is kept of it, and where its body goes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from mesh.failure import CommandFailed
from wire.section_split import SectionSplitter

MAX_HELD_BYTES = 256 * 1024 * 1024


class BodyKeeper(Protocol):
    """Takes the body of one message. Raises CommandFailed when it cannot."""

    def take(self, piece: bytes) -> None: ...

    def finish(self) -> bytes | Path:
        """The body, or the file that has it."""
        ...

    def discard(self) -> None:
        """The message will not be complete, or nobody wants it any more."""


class HeldBody:
    """In memory: what is to be printed is needed as a whole."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size_bytes = 0

    def take(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size_bytes += len(piece)
        if self._size_bytes > MAX_HELD_BYTES:
            raise CommandFailed(
                f"a body of more than {MAX_HELD_BYTES >> 20} MiB is not printed; its message was not settled",
                fix="-o DIRECTORY writes bodies of any size to files.",
            )

    def finish(self) -> bytes:
        return b"".join(self._pieces)

    def discard(self) -> None:
        self._pieces.clear()


class DroppedBody:
    """Nobody asked for it."""

    def take(self, piece: bytes) -> None: ...

    def finish(self) -> bytes:
        return b""

    def discard(self) -> None: ...


@dataclass(frozen=True, slots=True)
class BodyFiles:
    """Bodies as files 000001, 000002 ... of a folder, behind those that are there."""

    folder: Path
    last: int

    @classmethod
    def behind(cls, folder: Path) -> BodyFiles:
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return cls(folder, max((int(name) for name in names if name.isdecimal()), default=0))

    def path(self, number: int) -> Path:
        """``number``: counted from 1 by this command."""
        return self.folder / f"{self.last + number:06}"

    def partial_path(self, number: int) -> Path:
        """A name that no complete body has."""
        return self.folder / f".{self.last + number:06}.part"


class FiledBody:
    """In a file, as it comes."""

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


def cannot_write(error: OSError, path: Path) -> CommandFailed:
    # Not settled: the message goes back, and nothing is lost.
    return CommandFailed(f"cannot write {error.filename or path}: {error.strerror}")


class Arrival:
    """One message from its first piece to its last."""

    def __init__(self, keep: Callable[[], BodyKeeper]) -> None:
        self._keeper = keep()
        self._splitter = SectionSplitter(self._keeper.take)

    def feed(self, piece: bytes) -> None:
        self._splitter.feed(piece)

    def finish(self) -> tuple[bytes, bytes | Path | None]:
        """The message without data sections, and what was in those; None when there were none."""
        return self._splitter.finish(), self._keeper.finish() if self._splitter.has_body else None

    def discard(self) -> None:
        self._keeper.discard()
