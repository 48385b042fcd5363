"""`python -m linklogs.writer`: what it says, how it ends, and what it refuses."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections import deque
from pathlib import Path

import pytest
from click.testing import CliRunner

from linklogs.live_files import live_files
from linklogs.writer import events
from linklogs.writer.__main__ import main
from linklogs.writer.run import run
from linklogs.writer.settings import Settings
from mesh_tests.programs import IMPORT_PATH, Program
from mesh_tests.unit.linklogs.host import rows_of
from mesh_tests.unit.linklogs.rings import RingWriter
from mesh_tests.waiting import wait_until

START_S = 20.0


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    made = tmp_path / "rings"
    made.mkdir()
    return made


def numbers(out: Path) -> list[int]:
    """Of all deliveries."""
    return [row["size_bytes"] for path in live_files(out) for row in rows_of(path) if row["kind"] == "delivery"]


def test_asked_to_stop_it_writes_what_there_is_and_ends_with_success(tmp_path: Path, rings: Path) -> None:
    node = RingWriter(rings)
    out = tmp_path / "logs"
    command = [sys.executable, "-m", "linklogs.writer", str(rings), str(out)]
    program = Program("writer", command, tmp_path, IMPORT_PATH)
    try:
        program.wait_for('"event": "ring_found"', START_S)
        node.delivery(5)
        wait_until(lambda: node.taken, START_S, "the record to be taken")
    finally:
        program.stop()
    said = [json.loads(line) for line in program.wait_success(START_S).splitlines()]
    assert [line["event"] for line in said] == ["writer_started", "ring_found", "file_written", "writer_stopped"]
    assert {key for line in said for key in line} >= {"ts", "level", "event"}
    assert numbers(out) == [5]


def test_a_look_every_so_often_takes_what_there_is(tmp_path: Path, rings: Path) -> None:
    node = RingWriter(rings)
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(Settings(rings, tmp_path / "logs", poll_s=0.005), stop, deque()))
    thread.start()
    try:
        for number in range(3):
            node.delivery(number)
            wait_until(lambda: node.taken == node.written, START_S, "the record to be taken")
    finally:
        stop.set()
        thread.join(START_S)
    assert numbers(tmp_path / "logs") == [0, 1, 2]


def test_a_stderr_that_is_gone_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = io.StringIO()
    gone.close()
    monkeypatch.setattr(sys, "stderr", gone)
    with pytest.raises(ValueError, match="closed"):
        sys.stderr.write("x")
    events.tell(events.WriterStopped())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--redact-key-file", "empty"], "empty, expected a key to redact with"),
        (["--redact", "count"], "'count' is not one of"),
        (["--spool-bytes", "0"], "0 is not in the range"),
    ],
)
def test_what_makes_no_sense_is_refused(rings: Path, arguments: list[str], said: str) -> None:
    (rings / "empty").touch()
    told = [str(rings / argument) if argument == "empty" else argument for argument in arguments]
    ended = CliRunner().invoke(main, [str(rings), str(rings / "logs"), *told])
    assert ended.exit_code != 0
    assert said in ended.output
