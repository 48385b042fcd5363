"""What was recorded, and what may be left of it on a disk when the power goes.

What counts as kept is what POSIX promises and no more: bytes of a file once that was synced, names once their directory
was. Of everything since, any part may be there, in any order; of a write, any of its sectors.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePath

HEAD = struct.Struct("=ciqq")
SECTOR_BYTES = 512
ROOT = "."


class Kept(Enum):
    """Of what was not synced."""

    ALL = "all"
    NOTHING = "nothing"
    SOME = "some"


@dataclass(frozen=True, slots=True)
class Operation:
    """C creates a file, W writes, T truncates, S syncs a file or directory, U unlinks."""

    kind: str
    name: str
    offset: int
    data: bytes


def read_operations(path: Path) -> list[Operation]:
    recorded, names, operations = path.read_bytes(), {}, []
    at = 0
    while at < len(recorded):
        kind, file, offset, length = HEAD.unpack_from(recorded, at)
        at += HEAD.size
        data = recorded[at : at + length]
        at += length
        if kind == b"N":
            names[file] = data.decode()
        else:
            operations.append(Operation(kind.decode(), names[file], offset, data))
    return operations


@dataclass
class File:
    synced: bytearray = field(default_factory=bytearray)
    since: list[Operation] = field(default_factory=list)

    def left(self, kept: Kept, chance: random.Random) -> bytes:
        content = bytearray(self.synced)
        for operation in self.since:
            if kept is Kept.ALL or (kept is Kept.SOME and chance.random() < 0.5):
                _apply(operation, content, _some_sectors(operation, chance) if kept is Kept.SOME else None)
        return bytes(content)

    def sync(self) -> None:
        for operation in self.since:
            _apply(operation, self.synced, None)
        self.since.clear()


class Disk:
    """The files of a folder as the operations leave them.."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}
        """By name, as a program sees them now."""
        self._synced: dict[str, File] = {}
        self._since: list[tuple[str, File | None]] = []

    def do(self, operation: Operation) -> None:
        name = operation.name
        match operation.kind:
            case "C":
                self._files[name] = File()
                self._since.append((name, self._files[name]))
            case "U":
                del self._files[name]
                self._since.append((name, None))
            case "S" if name in self._files:
                self._files[name].sync()
            case "S":
                self._sync_names(name)
            case _:
                self._files[name].since.append(operation)

    def _sync_names(self, folder: str) -> None:
        mine = [change for change in self._since if str(PurePath(change[0]).parent) == folder]
        self._since = [change for change in self._since if change not in mine]
        _rename(self._synced, mine)

    def left(self, kept: Kept, chance: random.Random) -> dict[str, bytes]:
        """Contents by name."""
        names = dict(self._synced)
        _rename(
            names,
            [change for change in self._since if kept is Kept.ALL or (kept is Kept.SOME and chance.random() < 0.5)],
        )
        return {name: file.left(kept, chance) for name, file in names.items()}


def _rename(names: dict[str, File], changes: Sequence[tuple[str, File | None]]) -> None:
    for name, file in changes:
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file


def _apply(operation: Operation, content: bytearray, sectors: Sequence[slice] | None) -> None:
    if operation.kind == "T":
        del content[operation.offset :]
        content.extend(bytes(operation.offset - len(content)))
        return
    end = operation.offset + len(operation.data)
    content.extend(bytes(max(0, end - len(content))))
    for part in [slice(0, len(operation.data))] if sectors is None else sectors:
        piece = operation.data[part]
        content[operation.offset + part.start : operation.offset + part.start + len(piece)] = piece


def _some_sectors(operation: Operation, chance: random.Random) -> list[slice] | None:
    """Half of the time all."""
    if operation.kind == "T" or chance.random() < 0.5:
        return None
    return [
        slice(start, start + SECTOR_BYTES)
        for start in range(0, len(operation.data), SECTOR_BYTES)
        if chance.random() < 0.5
    ]


def disks(operations: Sequence[Operation]) -> Iterator[tuple[int, Disk]]:
    """The disk before each operation, and after the last; one object that changes."""
    disk = Disk()
    for number, operation in enumerate(operations):
        yield number, disk
        disk.do(operation)
    yield len(operations), disk
