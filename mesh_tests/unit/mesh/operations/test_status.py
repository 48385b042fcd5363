"""What `status` says of nodes that tell nothing of themselves."""

from pathlib import Path

import pytest

from addressing.topology.loader import load_topology
from mesh.deploy.mesh_status import MeshPhase, MeshStatus, NodeState, NodeStatus
from mesh.deploy.node_kind import NodePlan
from mesh.deploy.node_kinds import ROUTER
from mesh.deploy.pid_file import PidFile
from mesh.deploy.workdir import WorkDir
from mesh.operations import status
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.output import Output


@pytest.fixture
def workdir(tmp_path: Path) -> WorkDir:
    (tmp_path / "amqpmesh.yml").write_text("mesh: m\nrouters: {r1: }\n")
    workdir = WorkDir(load_topology(tmp_path / "amqpmesh.yml").work_dir)
    workdir.make()
    return workdir


def supervised(state: NodeState) -> MeshStatus:
    return MeshStatus("m", MeshPhase.READY, (NodeStatus("r1", "router", state, 1),))


def test_a_node_that_was_up_and_does_not_answer_is_silent(workdir: WorkDir) -> None:
    with PidFile(workdir.pid_file("r1")) as node:
        assert node.acquire()
        assert status.view(workdir, NodePlan("r1", ROUTER), supervised(NodeState.UP)).state is NodeState.SILENT
        assert status.view(workdir, NodePlan("r1", ROUTER), supervised(NodeState.STARTING)).state is NodeState.STARTING


def test_a_node_whose_process_has_just_gone_is_down(workdir: WorkDir) -> None:
    assert status.view(workdir, NodePlan("r1", ROUTER), supervised(NodeState.UP)).state is NodeState.DOWN


def test_a_silent_node_exits_1(
    workdir: WorkDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "ask_supervisor", lambda _: supervised(NodeState.UP))
    with PidFile(workdir.pid_file("r1")) as node:
        assert node.acquire()
        code = status.run(load_topology(tmp_path / "amqpmesh.yml"), [], Output("status"))
    assert code == ExitCode.FAILED
    shown = capsys.readouterr()
    assert "router  silent" in shown.out
    assert "missing: r1 does not answer" in shown.err
