"""Rotation of a log file: the log goes on in a new file, and older files become `<name>.jsonl.1`, `.2` and so on.

A node's standard output and error are the log file, which the supervisor opened. So the node itself rotates: it renames
the file, and puts the new file in place of the old one under the same descriptors. A line is whole in one of the files,
whoever writes it, and none is lost. A node whose standard error is no such file, as under systemd, rotates nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from addressing.topology.model import Topology

DEFAULT_LOG_BYTES: Final = 32 * 1024 * 1024
DEFAULT_LOG_AGE_S: Final = 7 * 86_400.0
DEFAULT_LOG_KEEP: Final = 3
_FIRST_LINE_BYTES: Final = 4096
_NEW: Final = ".new"
"""Behind the name of a log: its next file, while it has no line."""


@dataclass(frozen=True, slots=True)
class LogLimits:
    """A log above ``max_bytes``, or that began longer ago than ``max_age_s``, is rotated; ``keep`` old files stay."""

    max_bytes: int = DEFAULT_LOG_BYTES
    max_age_s: float = DEFAULT_LOG_AGE_S
    keep: int = DEFAULT_LOG_KEEP


def log_limits(topology: Topology) -> LogLimits:
    logs = topology.logs
    return LogLimits(logs.max_bytes, logs.max_age_s, logs.keep)


def older(log: Path, number: int) -> Path:
    """Return the path of an older file of ``log``; 1 is the newest of them."""
    return log.with_name(f"{log.name}.{number}")


def files_of(log: Path) -> list[Path]:
    """Return the files of ``log`` that exist, the oldest first; the last one is the log itself."""
    numbers = []
    for each in log.parent.glob(f"{log.name}.*"):
        suffix = each.name[len(log.name) + 1 :]
        if suffix.isdecimal():
            numbers.append(int(suffix))
    found = [older(log, number) for number in sorted(numbers, reverse=True)]
    return [*found, log] if log.exists() else found


def shift(log: Path, keep: int) -> None:
    """Rename ``log`` to the first of its older files, each of them to the next, and delete those beyond ``keep``.

    Raises OSError if the folder cannot be changed.
    """
    for each in reversed(files_of(log)):
        if each == log:
            continue
        number = int(each.name[len(log.name) + 1 :])
        if number >= keep:
            each.unlink(missing_ok=True)
    for number in range(keep - 1, 0, -1):
        with contextlib.suppress(FileNotFoundError):
            older(log, number).replace(older(log, number + 1))
    if keep:
        log.replace(older(log, 1))
    else:
        log.unlink(missing_ok=True)


def rotate_large(log: Path, limits: LogLimits) -> None:
    """Rotate a log that no process has open, if it is too large; else it goes on, and shows why its process died."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > limits.max_bytes:
            shift(log, limits.keep)


class LogRotation:
    """Rotates the log file that is this process's standard error: call it before each line, with the line's size.

    ``utc_now`` is the clock.
    """

    def __init__(
        self, log: Path, limits: LogLimits, utc_now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._log = log
        self._limits = limits
        self._utc_now = utc_now
        self._began_at = began_at(log) or utc_now()

    def __call__(self, line_bytes: int) -> None:
        try:
            size = os.fstat(sys.stderr.fileno()).st_size
            is_old = (self._utc_now() - self._began_at).total_seconds() > self._limits.max_age_s
            if size and (size + line_bytes > self._limits.max_bytes or is_old):
                self._rotate()
        except (OSError, ValueError):
            # A full disk, or a folder that nobody may change: the log goes on in the file that it has.
            return

    def _rotate(self) -> None:
        error, output = sys.stderr.fileno(), sys.stdout.fileno()
        if not is_log(error, self._log):
            return  # Somebody else moved the file away.
        is_output = is_log(output, self._log)
        mode = stat.S_IMODE(os.fstat(error).st_mode)
        # The new file is there before the old one is renamed. A process without a free descriptor, or a disk without
        # room for a file, keeps its log in the old one, and tries again with the next line.
        unfinished = self._log.with_name(f"{self._log.name}{_NEW}")
        fresh = os.open(unfinished, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        try:
            shift(self._log, self._limits.keep)
            unfinished.replace(self._log)
            if is_output:
                sys.stdout.flush()
                os.dup2(fresh, output)
            os.dup2(fresh, error)
        finally:
            os.close(fresh)
        self._began_at = self._utc_now()


def rotation_of(log: Path, limits: LogLimits) -> LogRotation | None:
    """Return the rotation of ``log`` if it is the standard error of this process; else None, as under systemd."""
    try:
        return LogRotation(log, limits) if is_log(sys.stderr.fileno(), log) else None
    except (OSError, ValueError, AttributeError):
        return None


def is_log(descriptor: int, log: Path) -> bool:
    """Whether ``descriptor`` is open for the regular file that the path ``log`` names now."""
    status = os.fstat(descriptor)
    try:
        return stat.S_ISREG(status.st_mode) and os.path.samestat(status, log.stat())
    except FileNotFoundError:
        return False


def began_at(log: Path) -> datetime | None:
    """Return the time in the first line of ``log``; None if there is none, as in a new file."""
    try:
        with log.open("rb") as file:
            event = json.loads(file.readline(_FIRST_LINE_BYTES))
        return datetime.fromisoformat(event["ts"]).astimezone(UTC)
    except (OSError, ValueError, KeyError, TypeError):
        return None
