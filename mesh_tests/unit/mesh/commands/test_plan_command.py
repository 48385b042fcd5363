"""What does `amqpmesh plan` say, and with which exit code?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from addressing.topology.loader import load_topology
from mesh.commands.cli import cli
from mesh.deploy.workdir import WorkDir
from mesh.terminal.exit_codes import ExitCode

TEXT = "mesh: shop\nrouters: {r1: {listeners: [5672]}}\nbrokers: {b1: {data: ./b1}}\naddresses:\n  orders: queue\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A topology that `up` started once, and that does not run."""
    path = tmp_path / "amqpmesh.yml"
    path.write_text(TEXT)
    workdir = WorkDir(load_topology(path).work_dir)
    workdir.make()
    workdir.running_topology.write_text(TEXT)
    return path


def plan(file: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["plan", str(file), *options])


def test_a_file_that_is_as_it_was_started_has_no_changes(file: Path) -> None:
    done = plan(file, "--detailed-exitcode")
    assert (done.exit_code, done.stdout) == (ExitCode.OK, "shop: no changes\n")


def test_each_step_has_its_class_line_cost_and_conditions(file: Path) -> None:
    file.write_text(TEXT + "  rpc: anycast\n")
    done = plan(file)
    assert (done.exit_code, done.stdout) == (
        ExitCode.OK,
        "shop: 1 step\n\n1. LIVE      add address rpc: anycast\n   line 6\n   clients notice nothing\n"
        "   before: no node has address rpc\n   after:  every node has address rpc\n",
    )
    assert plan(file, "--detailed-exitcode").exit_code == 2


def test_messages_that_may_be_lost_have_to_be_named(file: Path) -> None:
    file.write_text(TEXT.replace("queue", "anycast"))
    done = plan(file)
    assert done.exit_code == ExitCode.DATA_LOSS
    assert "loses messages: how many is unknown, the mesh does not run" in done.stdout
    assert "fix: keep them, or allow it: --allow-data-loss orders." in done.stderr
    assert plan(file, "--allow-data-loss", "orders").exit_code == ExitCode.OK


def test_a_name_that_nothing_has_is_a_slip_and_does_not_pass(file: Path) -> None:
    file.write_text(TEXT.replace("queue", "anycast"))
    done = plan(file, "--allow-data-loss", "orders", "--allow-data-loss", "oders")
    assert done.exit_code == ExitCode.USAGE
    assert "--allow-data-loss oders: no address or broker has this name; messages may be lost of orders" in done.stderr


def test_a_name_that_loses_nothing_is_told_with_those_that_do(file: Path) -> None:
    file.write_text(TEXT.replace("queue", "anycast"))
    done = plan(file, "--allow-data-loss", "b1", "--allow-data-loss", "orders")
    assert done.exit_code == ExitCode.OK
    assert "warning: --allow-data-loss b1: nothing of b1 would be lost; messages may be lost of orders" in done.stderr
    file.write_text(TEXT)
    assert "nothing of orders would be lost; no step loses messages" in plan(file, "--allow-data-loss", "orders").stderr
    assert plan(file, "--allow-data-loss", "b1").exit_code == ExitCode.OK


def test_a_name_of_a_pattern_is_quoted_for_the_shell(file: Path) -> None:
    file.write_text(TEXT + "  q.#: queue\n")
    WorkDir(load_topology(file).work_dir).running_topology.write_text(file.read_text())
    file.write_text(TEXT)
    assert "--allow-data-loss 'q.#'" in plan(file).stderr


def test_the_plan_is_a_document_and_a_file(file: Path, tmp_path: Path) -> None:
    file.write_text(TEXT + "  rpc: anycast\n")
    written = tmp_path / "plan.json"
    told = json.loads(plan(file, "--json", "--out", str(written)).stdout)
    assert told["schema"] == "amqpmesh.plan/1"
    assert [each["id"] for each in told["steps"]] == ["address rpc"]
    assert json.loads(written.read_text()) == told


def test_a_mesh_that_was_never_started_has_nothing_to_compare_with(tmp_path: Path) -> None:
    (tmp_path / "amqpmesh.yml").write_text(TEXT)
    done = plan(tmp_path / "amqpmesh.yml")
    assert done.exit_code == ExitCode.FAILED
    assert "shop has never been started here" in done.stderr


def test_an_invalid_file_has_its_own_exit_code(file: Path) -> None:
    file.write_text("mesh: shop\n")
    assert plan(file).exit_code == ExitCode.TOPOLOGY_INVALID
