"""A log that is rotated while its process writes: is each line there once, and do readers find it?"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mesh.deploy import log_tail
from mesh.deploy.log_rotation import LogLimits, began_at, files_of, older, rotate_large, rotation_of, shift

PROGRAM = """
import os, sys, threading
from dataclasses import dataclass
from pathlib import Path
from mesh.deploy.log_rotation import LogLimits, rotation_of
from wire import log
from wire.log import LogEvent

@dataclass(frozen=True, slots=True)
class Counted(LogEvent):
    number: int

log.BURST = 10**9
path, keep, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
log.configure("r1", before_line=rotation_of(path, LogLimits(5000, 1e9, keep)))

def write_raw():
    for number in range(200):
        os.write(2, f"raw {number}\\n".encode())
        os.write(1, f"out {number}\\n".encode())

other = threading.Thread(target=write_raw)
other.start()
for number in range(count):
    log.emit(Counted(number))
other.join()
"""


def run(log: Path, keep: int, count: int, **streams: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", PROGRAM, str(log), str(keep), str(count)]
    if streams:
        return subprocess.run(command, check=True, timeout=60, **streams)  # type: ignore[call-overload, no-any-return]
    with log.open("ab") as output:
        return subprocess.run(command, check=True, timeout=60, stdout=output, stderr=output)


def lines_of(log: Path) -> list[str]:
    return [line for file in files_of(log) for line in file.read_text().splitlines()]


def test_no_line_of_any_writer_is_lost_and_the_order_stays(tmp_path: Path):
    log = tmp_path / "r1.jsonl"
    log.touch(mode=0o600)
    run(log, 1000, 1000)
    lines = lines_of(log)
    events = [json.loads(line)["number"] for line in lines if line.startswith("{")]
    assert events == list(range(1000))
    assert [line for line in lines if line.startswith("raw")] == [f"raw {number}" for number in range(200)]
    assert [line for line in lines if line.startswith("out")] == [f"out {number}" for number in range(200)]
    assert len(files_of(log)) > 10
    for file in files_of(log):
        assert file.stat().st_mode & 0o777 == 0o600
    assert log.stat().st_size <= 5000


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_only_so_many_old_files_stay(tmp_path: Path, keep: int):
    log = tmp_path / "r1.jsonl"
    log.touch()
    run(log, keep, 500)
    assert files_of(log) == [*(older(log, number) for number in range(keep, 0, -1)), log]
    last = log.read_text().splitlines()[-1]
    assert last.startswith(("raw", "out")) or json.loads(last)["number"] == 499


def test_an_output_that_is_no_log_file_is_not_rotated(tmp_path: Path):
    log = tmp_path / "r1.jsonl"
    done = run(log, 3, 300, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert not log.exists()
    assert sum(line.startswith(b"{") for line in done.stderr.splitlines()) == 300
    other = tmp_path / "journal"
    log.write_text("a log of another run\n")
    with other.open("ab") as output:
        run(log, 3, 300, stdout=output, stderr=output)
    assert files_of(log) == [log]
    assert log.read_text() == "a log of another run\n"


def test_a_log_that_somebody_else_moved_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "r1.jsonl"
    with log.open("a") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        rotation = rotation_of(log, LogLimits(100, 1e9, 3))
        assert rotation is not None
        stream.write("x" * 200)
        stream.flush()
        log.rename(tmp_path / "moved")
        log.write_text("new")
        rotation(10)
        assert files_of(log) == [log]
        assert log.read_text() == "new"


def test_a_log_stays_where_it_is_while_no_new_file_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "r1.jsonl"

    def no_descriptor(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with log.open("a") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        rotation = rotation_of(log, LogLimits(100, 1e9, 3))
        assert rotation is not None
        stream.write("x" * 200)
        stream.flush()
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", no_descriptor)
            rotation(10)
        assert files_of(log) == [log]
        rotation(10)
        assert files_of(log) == [older(log, 1), log]
        assert older(log, 1).read_text() == "x" * 200
        assert sorted(tmp_path.iterdir()) == [log, older(log, 1)]


def test_a_log_is_rotated_by_its_age_also_when_the_node_was_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log, now = tmp_path / "r1.jsonl", datetime(2026, 11, 27, tzinfo=UTC)
    log.write_text(json.dumps({"ts": "2026-11-20T00:00:00.000Z", "event": "x"}) + "\n")
    assert began_at(log) == datetime(2026, 11, 20, tzinfo=UTC)
    with log.open("a") as stream:
        duplicate = os.dup(stream.fileno())
    with os.fdopen(duplicate, "a") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(sys, "stdout", stream)
        clock = [now - timedelta(days=1)]
        rotation = rotation_of(log, LogLimits(1 << 20, 7 * 86_400, 3))
        assert rotation is not None
        rotation._utc_now = lambda: clock[0]
        rotation(10)
        assert files_of(log) == [log]
        clock[0] = now + timedelta(seconds=1)
        rotation(10)
        assert files_of(log) == [older(log, 1), log]
        stream.write("new\n")
        stream.flush()
        assert log.read_text() == "new\n"
        rotation(10)
        assert files_of(log) == [older(log, 1), log]


def test_the_cause_of_a_death_is_found_behind_a_rotation(tmp_path: Path):
    log = tmp_path / "r1.jsonl"
    log.write_text('{"level": "error", "event": "node_failed", "reason": "of another life"}\n')
    since = log_tail.end_of(log)
    with log.open("a") as stream:
        stream.write('{"level": "error", "event": "node_failed", "reason": "the disk is full"}\n')
    shift(log, 3)
    log.write_text('{"level": "info", "event": "node_stopped"}\n')
    assert log_tail.first_cause(log, since) == "the disk is full"
    shift(log, 3)
    log.write_text("")
    assert log_tail.first_cause(log, since) == "the disk is full"
    assert "of another life" not in log_tail.text_since(log, since)
    assert log_tail.first_cause(log, log_tail.end_of(log)) is None


def test_at_a_start_only_a_large_log_is_rotated(tmp_path: Path):
    log = tmp_path / "r1.jsonl"
    rotate_large(log, LogLimits(10))
    log.write_text("0123456789")
    rotate_large(log, LogLimits(10))
    assert files_of(log) == [log]
    log.write_text("0123456789a")
    rotate_large(log, LogLimits(10))
    assert files_of(log) == [older(log, 1)]
