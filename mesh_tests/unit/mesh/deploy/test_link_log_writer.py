"""The process that writes link logs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from linklogs.live_files import live_files
from mesh.deploy.pid_file import PidFile
from mesh.deploy.workdir import WRITER, WorkDir
from mesh_tests.programs import IMPORT_PATH, Program
from mesh_tests.unit.linklogs.host import rows_of
from mesh_tests.unit.linklogs.rings import RingWriter
from mesh_tests.waiting import wait_until

START_S = 20.0
TOPOLOGY = "mesh: m\nrouters: {r1: }\nlink_logs: {redact: {key: key}}\n"
HEAVY = ("pyarrow", "pydantic", "ruamel", "asyncio", "cryptography", "proton", "click")
"""Parts of the names of modules that an idle writer does without."""


def command(workdir: WorkDir) -> list[str]:
    return [sys.executable, "-m", "mesh", "linklogs", "write", "-t", str(workdir.root.parents[1] / "amqpmesh.yml")]


@pytest.fixture
def workdir(tmp_path: Path) -> WorkDir:
    (tmp_path / "amqpmesh.yml").write_text(TOPOLOGY)
    (tmp_path / "key").write_text("secret\n")
    found = WorkDir(tmp_path / ".amqpmesh" / "m")
    found.rings.mkdir(parents=True)
    return found


@pytest.fixture
def writer(tmp_path: Path, workdir: WorkDir) -> Iterator[Program]:
    program = Program("writer", command(workdir), tmp_path, IMPORT_PATH)
    try:
        program.wait_for('"event": "writer_started"', START_S)
        yield program
    finally:
        program.kill()


def test_the_writer_goes_on_with_little_memory_and_keeps_its_locks(workdir: WorkDir, writer: Program) -> None:
    holder = PidFile(workdir.pid_file(WRITER)).holder()
    assert holder is not None
    maps = Path(f"/proc/{holder.pid}/maps").read_text()
    assert [name for name in ("arrow", "pydantic", "ssl", "cproton") if name in maps] == []
    again = subprocess.run(command(workdir), env=os.environ | IMPORT_PATH, capture_output=True, text=True)
    assert again.returncode == 1
    assert "another process already writes the link logs of mesh m" in again.stderr
    writer.stop()
    writer.wait_success(START_S)
    assert PidFile(workdir.pid_file(WRITER)).holder() is None
    assert not PidFile(workdir.pid_file(WRITER)).is_left_behind()


def test_the_writer_writes_redacted_files_and_its_key_is_in_no_command_line(workdir: WorkDir, writer: Program) -> None:
    node = RingWriter(workdir.rings)
    node.delivery(5)
    node.text(kind="connection", event="opened", user="alice")
    wait_until(lambda: node.taken == node.written, START_S, "the records to be taken")
    writer.stop()
    writer.wait_success(START_S)
    rows = [row for path in live_files(workdir.link_logs) for row in rows_of(path)]
    assert [row["size_bytes"] for row in rows if row["kind"] == "delivery"] == [5]
    users = [row["user"] for row in rows if row.get("user")]
    assert users
    assert "alice" not in users


def test_the_program_of_the_writer_imports_nothing_heavy() -> None:
    code = "import sys; import mesh.deploy.link_log_writer_process, linklogs.writer.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | IMPORT_PATH, capture_output=True, text=True)
    found = {name.partition(".")[0] for name in done.stdout.split()}
    assert "numpy" in found
    assert found.isdisjoint(HEAVY)
