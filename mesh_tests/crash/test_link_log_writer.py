"""The writer of the link log, killed again and again while a node records: each record is in one file, once."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from pyarrow import compute, parquet

from linklogs.live_files import live_files
from mesh_tests.crash.small_disk import tmpfs
from mesh_tests.programs import Program
from mesh_tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"PYTHONPATH": str(ROOT)}
START_S = 20.0
ROUNDS = 12
SPOOL = ("--spool-bytes", "65536", "--spool-s", "0.2", "--poll-s", "0.01")


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    made = tmp_path / "rings"
    made.mkdir()
    return made


def start(directory: Path, name: str, *command: object) -> Program:
    return Program(name, [sys.executable, "-m", *map(str, command)], directory, ENVIRONMENT)


@contextmanager
def writer_at_work(tmp_path: Path, rings: Path, out: Path) -> Iterator[Program]:
    """From when it met the ring; killed at the end unless it has ended."""
    program = start(tmp_path, "writer", "linklogs.writer", rings, out, *SPOOL)
    try:
        program.wait_for('"event": "ring_found"', START_S)
        yield program
    finally:
        program.kill()


@contextmanager
def node_at_work(tmp_path: Path, rings: Path) -> Iterator[Program]:
    program = start(tmp_path, "node", "mesh_tests.crash.link_log_node", rings)
    try:
        wait_until(lambda: list(rings.glob("*.ring")), START_S, "a ring")
        yield program
    finally:
        program.kill()


def ended(node: Program) -> dict[str, int]:
    """What it says of all that it recorded."""
    node.stop()
    said: dict[str, int] = json.loads(node.output())
    return said


def column(out: Path, name: str, kind: str, event: str | None = None) -> numpy.ndarray[Any, Any]:
    """Of all files, sorted."""
    tables = [parquet.ParquetFile(path).read(["kind", "event", name]) for path in live_files(out)]
    wanted = compute.field("kind") == kind
    if event is not None:
        wanted &= compute.field("event") == event
    return numpy.sort(pyarrow.concat_tables(tables).filter(wanted)[name].to_numpy())


def check(out: Path, said: dict[str, int]) -> None:
    assert said["deliveries"] > 10_000
    assert numpy.array_equal(column(out, "size_bytes", "delivery"), numpy.arange(said["deliveries"]))
    assert numpy.array_equal(column(out, "link", "link", "opened"), numpy.arange(said["links"]))
    assert column(out, "count", "node", "lost").sum() == said["dropped"]


def test_a_writer_that_is_killed_at_any_moment_loses_and_doubles_nothing(tmp_path: Path, rings: Path) -> None:
    chance = random.Random(7)
    out = tmp_path / "logs"
    with node_at_work(tmp_path, rings) as node:
        for _ in range(ROUNDS):
            with writer_at_work(tmp_path, rings, out) as writer:
                wait_at_most(writer, chance.uniform(0.0, 0.6))
        said = ended(node)
    with writer_at_work(tmp_path, rings, out) as writer:
        writer.wait_for('"event": "ring_ended"', START_S)
        writer.stop()
        assert "Traceback" not in writer.output()
    assert len(live_files(out)) > ROUNDS
    check(out, said)
    assert list(rings.iterdir()) == list(out.rglob("*.spool")) == []


def wait_at_most(program: Program, seconds: float) -> None:
    """It must not end by itself meanwhile."""
    with pytest.raises(AssertionError, match="still runs"):
        program.wait_success(seconds)


def test_on_a_full_disk_the_writer_waits_for_room_and_says_so_once(tmp_path: Path, rings: Path) -> None:
    with tmpfs(tmp_path / "disk", "4M") as disk, node_at_work(tmp_path, rings) as node:
        out = disk.directory / "logs"
        with writer_at_work(tmp_path, rings, out) as writer:
            writer.wait_for('"event": "file_written"', START_S)
            disk.fill()
            writer.wait_for('"event": "writing_failed"', START_S)
            full = live_files(out)
            assert all(parquet.read_metadata(path).num_rows for path in full)
            disk.make_room()
            writer.wait_for('"event": "writing_recovered"', START_S)
            said = ended(node)
            writer.wait_for('"event": "ring_ended"', START_S)
            assert writer.output().count("writing_failed") == writer.output().count("writing_recovered") == 1
            assert "Traceback" not in writer.output()
        check(out, said)
