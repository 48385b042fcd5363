"""A host of its own for a test: rings, files, a writer, and a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyarrow import parquet

from linklogs.file_names import HOUR_US
from linklogs.live_files import live_files
from linklogs.writer.events import WriterEvent
from linklogs.writer.failpoints import WriterFailpoint
from linklogs.writer.intake import IntakeTime
from linklogs.writer.settings import Settings
from linklogs.writer.writer import SPOOLS, Writer
from mesh_tests.unit.linklogs.rings import RUN, RingWriter

Row = dict[str, Any]


class Crash(Exception):
    """Of the writer, at a failpoint."""


class Host:
    """``pass_s`` and ``step`` are all that moves its clock and its writer."""

    def __init__(self, directory: Path) -> None:
        self.rings = directory / "rings"
        self.out = directory / "logs"
        self.rings.mkdir()
        self.told: list[WriterEvent] = []
        self.writer: Writer | None = None
        self.crash_at: WriterFailpoint | None = None
        self.options: dict[str, Any] = {}
        self.utc_us = RUN + 60_000_000
        self.s = 50.0

    def node(self, name: str = "r1", **options: Any) -> RingWriter:
        return RingWriter(self.rings, name, **options)

    def step(self, *, after_s: float = 0.0) -> None:
        """As the writer does, which is started if it does not run."""
        self.pass_s(after_s)
        self._running().step(self._now())

    def finish(self) -> None:
        self._running().finish(self._now())
        self.stop()

    def stop(self) -> None:
        """Nothing more is written, as when it is killed."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None

    @contextmanager
    def crashing_at(self, failpoint: WriterFailpoint) -> Iterator[None]:
        """Within it, the writer dies there; AssertionError if it does not come there."""
        self.crash_at = failpoint
        try:
            yield
        except Crash:
            self.stop()
        else:
            raise AssertionError(f"{failpoint} was not passed")
        finally:
            self.crash_at = None

    def pass_s(self, seconds: float) -> None:
        self.s += seconds
        self.utc_us += int(seconds * 1e6)

    def files(self) -> list[Path]:
        return live_files(self.out)

    def rows(self) -> list[Row]:
        return [row for path in self.files() for row in rows_of(path)]

    def numbers(self) -> list[int]:
        """Of all deliveries, sorted."""
        return sorted(row["size_bytes"] for row in self.rows() if row["kind"] == "delivery")

    def spools(self) -> list[Path]:
        return sorted((self.out / SPOOLS).glob("*.spool"))

    def events(self, kind: type[WriterEvent]) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    def _running(self) -> Writer:
        if self.writer is None:
            self.writer = Writer(self.settings(), self.told.append, self._pass)
        return self.writer

    def settings(self) -> Settings:
        return Settings(self.rings, self.out, **self.options)

    def _now(self) -> IntakeTime:
        return IntakeTime(self.utc_us, self.s)

    def _pass(self, failpoint: WriterFailpoint) -> None:
        if failpoint is self.crash_at:
            raise Crash(failpoint)


def rows_of(path: Path) -> list[Row]:
    """Without what is null."""
    # One file, not a data set: its directories are no columns of it.
    read = parquet.ParquetFile(path).read().to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in read]


def end_of_hour_us() -> int:
    return RUN + HOUR_US
