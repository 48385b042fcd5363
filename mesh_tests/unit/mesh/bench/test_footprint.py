"""`bench footprint`: the memory of processes and their children, under the names of our own processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mesh.bench import footprint as module
from mesh.bench.footprint import FootprintBenchRequest, footprint, name_in, pss_bytes, rows_of
from mesh.bench.meter import resident_bytes
from mesh.terminal.failure import CommandFailed

ORDER = FootprintBenchRequest(idle_s=0.0, busy_s=60.0, repeat=1, stall_s=1.0)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python", "-m", "mesh", "node", "r1", "--topology", "f"], "node r1"),
        (["python", "-P", "-m", "mesh.deploy.link_log_writer_process", "5"], "link log writer"),
        (["python", "-P", "-m", "linklogs.writer.encoding_process"], "link log encoder"),
        (["python", "-m", "mesh.bench.orphan_guard", "7", "up", "-t", "f"], "supervisor"),
        (["beam.smp", "-W", "w"], None),
        ([], None),
    ],
)
def test_our_own_processes_are_named_by_their_command_lines(words: Sequence[str], name: str | None) -> None:
    assert name_in(words) == name


# A process of its own: the part that a worker of pytest has of shared pages changes as processes beside it end.
GROWING = """
import mmap, sys
print("before", flush=True)
sys.stdin.readline()
held = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.write(bytes(16 << 20))
print("after", flush=True)
sys.stdin.readline()
"""


def test_memory_of_a_process_is_a_part_of_what_is_resident() -> None:
    command = [sys.executable, "-c", GROWING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "before\n"
        before = pss_bytes(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "after\n"
        assert before + (12 << 20) < pss_bytes(process.pid) <= resident_bytes(process.pid) + (1 << 20)
        process.stdin.close()
    assert process.returncode == 0


def test_a_process_that_may_not_be_inspected_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "PROC", tmp_path)
    with pytest.raises(CommandFailed, match="the memory of process 7 cannot be read: No such file"):
        pss_bytes(7)


def test_children_count_and_processes_of_one_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "parents_of_all", lambda: {2: 1, 3: 1, 4: 1})
    monkeypatch.setattr(module, "name_of", {1: "supervisor", 2: "node r1", 3: "other", 4: "other"}.__getitem__)
    monkeypatch.setattr(module, "pss_bytes", lambda pid: pid * 10)
    monkeypatch.setattr(module, "resident_bytes", lambda pid: pid * 100)
    found = footprint([1])
    assert {name: figures["pss_bytes"] for name, figures in found.items()} == {
        "supervisor": 10,
        "node r1": 20,
        "other": 30,
        "other (4)": 40,
        "together": 100,
    }


def test_rows_have_medians_idle_and_busy_and_lost_messages_are_wrong() -> None:
    runs = [
        [{"together": {"pss_bytes": float(pss)}}, {"together": {"pss_bytes": pss + 1.0, "lost": 1}}]
        for pss in (10, 30, 20)
    ]
    idle, busy = rows_of("up", ORDER, runs)
    assert (idle.work, idle.mode, idle.figures["pss_bytes"]) == ("up: together", "idle", 20.0)
    assert idle.figures["pss_bytes_spread"] == [10.0, 30.0]
    assert (busy.mode, busy.figures["pss_bytes"]) == ("after 60 s, 1/s", 21.0)
    assert busy.wrongs == ("up, after 60 s, 1/s: 3 messages lost",)
