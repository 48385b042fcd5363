"""Encoders make Parquet of spools, in the writer's own process or in a helper process that ends when it has no work.

Arrow and what Arrow imports take 35 MB of memory, and an idle writer has a spool to encode once a minute: so the writer
of `amqpmesh up` leaves this work to a helper, and never imports Arrow itself. The helper only reads: the writer, which
holds the lock of the directory, writes the file, so a helper that outlives a killed writer does no harm.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from linklogs.writer.spool import SpoolDamaged

if TYPE_CHECKING:
    import pyarrow

    from linklogs.writer.redaction import Redactor

LINGER_S: Final = 5.0
"""The time without work after which a helper ends: under load one helper encodes spool after spool."""
MODULE: Final = "linklogs.writer.encoding_process"


class NewFile(Protocol):
    """A file of the link log that is not written yet: its path, and its content as Parquet."""

    @property
    def target(self) -> Path: ...
    @property
    def data(self) -> memoryview | pyarrow.Buffer: ...


class Encoder(Protocol):
    """Makes Parquet of spools."""

    def encode(self, path: Path) -> NewFile | None:
        """Return the file that the spool at ``path`` becomes; None if the spool is empty or was stored before.

        Raises SpoolDamaged for a spool that can never become a file, and OSError.
        """

    def rest(self, now_s: float) -> None:
        """Give up what is not needed while there is no work; called at every look at the rings."""

    def close(self) -> None: ...


class OwnEncoder:
    """Encodes in the process of the writer."""

    def __init__(self, out: Path, redactor: Redactor) -> None:
        self._out = out
        self._redactor = redactor

    def encode(self, path: Path) -> NewFile | None:
        import pyarrow

        from linklogs.writer.encoded_file import encoded_file

        try:
            return encoded_file(path, self._out, self._redactor)
        finally:
            # Give memory back that Arrow would keep for the next file, which may be a minute away.
            pyarrow.default_memory_pool().release_unused()

    def rest(self, now_s: float) -> None:
        """Do nothing: what Python has imported stays."""

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A file as the helper has sent it."""

    target: Path
    data: memoryview


@dataclass(slots=True)
class HelperEncoder:
    """Encodes in a helper process, which starts with the first spool and ends ``LINGER_S`` after the last.

    One JSON line asks, with the path of a spool. One JSON line answers, with the path and size of the file, followed by
    the file's content; with null as path if there is no file to write; or with an error.
    """

    out: Path
    redact_key: bytes | None = field(repr=False)
    redact_columns: Sequence[str]
    _process: subprocess.Popen[bytes] | None = None
    _is_used: bool = False
    _used_s: float = 0.0

    def encode(self, path: Path) -> NewFile | None:
        self._is_used = True
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _say(process.stdin, {"spool": str(path)})
            answer = json.loads(process.stdout.readline())
            data = _read(process.stdout, answer.get("size_bytes", 0))
        except (BrokenPipeError, EOFError, ValueError) as error:
            self.close()
            raise OSError(
                f"{path}: expected the spool as Parquet, but the helper process that encodes ended with "
                f"exit code {process.returncode}"
            ) from error
        if (damage := answer.get("damaged")) is not None:
            raise SpoolDamaged(damage)
        if (failure := answer.get("failed")) is not None:
            raise OSError(*failure)
        return ReceivedFile(Path(answer["target"]), data) if answer["target"] is not None else None

    def rest(self, now_s: float) -> None:
        if self._is_used:
            self._is_used, self._used_s = False, now_s
        elif self._process is not None and now_s - self._used_s >= LINGER_S:
            self.close()

    def close(self) -> None:
        """End the helper, which ends by itself when nobody can ask it any more."""
        if self._process is not None:
            process, self._process = self._process, None
            with suppress(BrokenPipeError), process:
                pass

    def _started(self) -> subprocess.Popen[bytes]:
        # With a process group of its own, the helper gets no SIGINT from Ctrl-C in the terminal of the writer, and
        # encodes the last spools.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
        )
        assert process.stdin is not None
        key = self.redact_key.hex() if self.redact_key is not None else None
        # If the helper is dead already, the first question tells.
        with suppress(BrokenPipeError):
            _say(process.stdin, {"out": str(self.out), "redact_key": key, "redact_columns": list(self.redact_columns)})
        return process


def _say(pipe: IO[bytes], told: dict[str, Any]) -> None:
    pipe.write(json.dumps(told).encode() + b"\n")
    pipe.flush()


def _read(pipe: IO[bytes], size_bytes: int) -> memoryview:
    data = pipe.read(size_bytes)
    if len(data) < size_bytes:
        raise EOFError
    return memoryview(data)
