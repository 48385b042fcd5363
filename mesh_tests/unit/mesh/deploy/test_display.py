"""What `up` shows, and what it tells the one who started it."""

import os
from pathlib import Path

import pytest

from mesh.deploy.detached import StartReport, _follow
from mesh.deploy.display import PlainLines
from mesh.deploy.mesh_status import MeshPhase, MeshStatus, NodeState, NodeStatus
from mesh.deploy.running_processes import topology_changes
from mesh.deploy.workdir import WorkDir
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output, format_plain


def status(phase: MeshPhase, state: NodeState, detail: str = "") -> MeshStatus:
    return MeshStatus("m", phase, (NodeStatus("r1", "router", state, 7, 1, detail),))


def test_off_a_terminal_each_change_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show = PlainLines(Output("up"))
    for seen in (
        status(MeshPhase.STARTING, NodeState.STARTING),
        status(MeshPhase.STARTING, NodeState.STARTING),
        status(MeshPhase.STARTING, NodeState.UP),
        status(MeshPhase.READY, NodeState.UP),
        status(MeshPhase.READY, NodeState.WAITING, "r1 was ended by SIGKILL"),
    ):
        show(seen)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "router r1: starting",
        "m: starting",
        "router r1: up",
        "m: ready",
        "router r1: waiting: r1 was ended by SIGKILL",
    ]


def test_a_status_survives_the_pipe() -> None:
    seen = status(MeshPhase.PROBING, NodeState.UP, "x")
    assert MeshStatus.from_map(seen.to_map()) == seen


def test_a_detached_supervisor_reports_until_it_is_ready() -> None:
    reading, writing = os.pipe()
    report, seen = StartReport(writing), []
    report.status(status(MeshPhase.STARTING, NodeState.UP))
    report.ready()
    report.status(status(MeshPhase.STOPPING, NodeState.UP))
    with os.fdopen(reading) as reports:
        _follow(reports, seen.append)
    assert seen == [status(MeshPhase.STARTING, NodeState.UP)]


def test_a_detached_supervisor_reports_why_it_failed_and_survives_a_listener_that_left() -> None:
    reading, writing = os.pipe()
    StartReport(writing).failed(CommandFailed("too late", exit_code=ExitCode.TIMEOUT, fix="wait"))
    with os.fdopen(reading) as reports, pytest.raises(CommandFailed, match="too late") as failed:
        _follow(reports, lambda _: None)
    assert (failed.value.exit_code, failed.value.fix) == (ExitCode.TIMEOUT, "wait")
    reading, writing = os.pipe()
    os.close(reading)
    report = StartReport(writing)
    report.status(status(MeshPhase.STARTING, NodeState.UP))
    report.ready()


def test_plain_tables_have_one_row_a_line() -> None:
    assert format_plain(("A", "LONG"), [["1", "x"], ["333", "y"]]) == "A    LONG\n1    x\n333  y"


def test_changes_of_a_running_topology_are_its_lines(tmp_path: Path) -> None:
    workdir = WorkDir(tmp_path / "work")
    workdir.make()
    workdir.running_topology.write_text("a\nb\n")
    (tmp_path / "now.yml").write_text("a\nc\n")
    assert topology_changes(workdir, tmp_path / "now.yml") == ["-b", "+c"]
