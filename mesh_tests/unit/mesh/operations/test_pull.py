"""What does `amqpmesh pull` write into a topology file?"""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from addressing.topology.loader import load_topology, parse_topology
from addressing.topology.model import Topology
from mesh.commands.cli import cli
from mesh.deploy.workdir import WorkDir
from mesh.operations.drift import drifted_costs
from mesh.operations.pull import Drift, write
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.output import Output
from mesh_tests.unit.addressing.topology.test_cost_edits import random_text

TEXT = "mesh: m\nrouters: {r1: {}, r2: {connect: [{to: r1, cost: 2}]}}  # near\n"


def running(topology: Topology, costs: dict[frozenset[str], int]) -> dict[str, Any]:
    """Routers as an observer sees them, where some costs were set."""
    nodes: dict[str, Any] = {name: SimpleNamespace(neighbors={}) for name in topology.routers}
    for edge in topology.edges():
        neighbor = SimpleNamespace(cost=costs.get(frozenset((edge.dialer, edge.to)), edge.cost))
        nodes[edge.dialer].neighbors[edge.to] = nodes[edge.to].neighbors[edge.dialer] = neighbor
    return nodes


def output() -> Output:
    return Output("pull", is_json=False, is_quiet=True)


@pytest.mark.parametrize("seed", range(40))
def test_after_a_pull_nothing_has_drifted_and_remarks_are_as_they_were(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    file = tmp_path / "amqpmesh.yml"
    text = random_text(random)
    file.write_bytes(text.encode())
    started = load_topology(file)
    nodes = running(started, {frozenset((edge.dialer, edge.to)): random.randint(1, 9) for edge in started.edges()})
    costs = tuple(drifted_costs(started, started, nodes))
    write(file, Drift(costs, ()), output(), is_dry=True)
    assert file.read_bytes() == text.encode()
    write(file, Drift(costs, ()), output(), is_dry=False)
    assert list(drifted_costs(started, load_topology(file), nodes)) == []
    remarks = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    assert [line.partition("#")[2] for line in file.read_bytes().decode().splitlines() if "#" in line] == remarks


def test_an_edit_of_the_file_is_no_drift_and_is_not_overwritten(tmp_path: Path) -> None:
    started, edited = parse_topology(TEXT), parse_topology(TEXT.replace("cost: 2", "cost: 3"))
    assert list(drifted_costs(started, edited, running(started, {}))) == []
    (both,) = drifted_costs(started, edited, running(started, {frozenset(("r1", "r2")): 7}))
    assert (both.started, both.declared, both.running, both.is_edited) == (2, 3, 7, True)
    file = tmp_path / "amqpmesh.yml"
    file.write_text(TEXT.replace("cost: 2", "cost: 3"))
    write(file, Drift((both,), ()), output(), is_dry=False)
    assert file.read_text() == TEXT.replace("cost: 2", "cost: 3")


def test_a_connection_that_the_file_no_longer_has_is_no_drift() -> None:
    started = parse_topology(TEXT)
    removed = parse_topology("mesh: m\nrouters: {r1: {}, r2: {}}\n")
    assert list(drifted_costs(started, removed, running(started, {frozenset(("r1", "r2")): 7}))) == []


def test_the_larger_cost_of_both_ends_counts() -> None:
    started = parse_topology(TEXT)
    nodes = running(started, {})
    nodes["r1"].neighbors["r2"] = SimpleNamespace(cost=9)
    assert [each.running for each in drifted_costs(started, started, nodes)] == [9]


def test_of_a_mesh_that_does_not_run_nothing_is_known(tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(TEXT)
    workdir = WorkDir(load_topology(file).work_dir)
    workdir.make()
    workdir.running_topology.write_text(TEXT)
    done = CliRunner().invoke(cli, ["pull", str(file)])
    assert done.exit_code == ExitCode.UNREACHABLE
    assert "no router of m runs on this host" in done.stderr
    assert file.read_text() == TEXT
