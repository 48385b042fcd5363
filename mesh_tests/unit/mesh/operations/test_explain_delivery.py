"""How the decisions of routers name the links that they are about."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from addressing.topology.loader import load_topology
from addressing.topology.model import Topology
from mesh.deploy.control import RequestRefused
from mesh.deploy.workdir import WorkDir
from mesh.operations import explain_delivery as explaining
from mesh.operations.explain_delivery import ExplainedDeliveries, explain_delivery
from mesh.terminal.failure import CommandFailed

LINKS: dict[str, dict[str, Any]] = {
    "1": {"role": "producer", "container": "till"},
    "2": {"role": "circuit", "ingress": "r1", "egress": "r3", "path": "r1>r2>r3", "container": "r2"},
    "3": {"role": "circuit", "ingress": "r0", "egress": "r1", "path": "r0>r1", "container": "r0"},
    "4": {"role": "circuit", "container": "r2"},
    "5": {"role": "circuit"},
    "6": {"role": "consumer"},
}


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (1, "r1/1 producer till"),
        (2, "r1/2 circuit to r3 over r1>r2>r3"),
        (3, "r1/3 circuit from r0 over r0>r1"),
        (4, "r1/4 circuit over r2"),
        (5, "r1/5 circuit over ?"),
        (6, "r1/6 consumer ?"),
        (7, "r1/7"),
        (None, ""),
    ],
)
def test_a_link_is_named_by_its_number_role_and_other_end(number: int | None, name: str) -> None:
    assert ExplainedDeliveries("work.a", links={"r1": LINKS}).end("r1", number) == name


class Routers:
    """The control sockets of r1 and r2, by name of the router what it answers to `record_decisions`."""

    def __init__(self, **begun: Any) -> None:
        self.begun = begun
        self.asked: list[tuple[str, str, Any]] = []

    def ask(self, socket: Path, op: str, **arguments: Any) -> Any:
        name = socket.name.partition(".")[0]
        self.asked.append((name, op, arguments.get("after", arguments.get("seconds"))))
        if op == "record_decisions":
            if isinstance(self.begun[name], Exception):
                raise self.begun[name]
            return self.begun[name]
        after = arguments["after"]
        row = {"number": after + 1, "at": float(after), "candidates": []}
        return {"next": after + 1, "links": {}, "decisions": [row], "lost": 0}


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    file = tmp_path / "amqpmesh.yml"
    file.write_text("mesh: m\nrouters: {r1: {connect: [r2]}, r2: }\naddresses: {rpc: anycast}\n")
    return load_topology(file)


def explained(monkeypatch: pytest.MonkeyPatch, topology: Topology, routers: Routers) -> ExplainedDeliveries:
    monkeypatch.setattr(explaining, "ask", routers.ask)
    monkeypatch.setattr(explaining, "_LOOK_S", 0)
    return explain_delivery(topology, "rpc", 30, 3, itertools.count().__next__)


def audited(topology: Topology) -> list[dict[str, Any]]:
    files = sorted(WorkDir(topology.work_dir).audit.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_it_reads_on_from_the_newest_decision_and_ends_nobodys_recording(
    monkeypatch: pytest.MonkeyPatch, topology: Topology
) -> None:
    routers = Routers(r1={"seconds": 60, "after": 7}, r2=ConnectionRefusedError())
    found = explained(monkeypatch, topology, routers)
    assert [row["number"] for row in found.decisions] == [8, 9, 10]
    assert found.notes == ["not asked: r2 does not run on this machine"]
    assert [(op, number) for name, op, number in routers.asked if name == "r1"] == [
        ("record_decisions", 30), ("decisions", 7), ("decisions", 8), ("decisions", 9)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("begun", "told"),
    [
        (
            {"r1": {"after": 0}, "r2": {"after": 0}},
            {"outcome": "done", "status": 200, "done": {"routers": 2}},
        ),
        ({"r1": RequestRefused("no"), "r2": {"after": 0}}, {"outcome": "refused", "status": 409, "error": "r1: no"}),
        ({"r1": {"after": 0}, "r2": RequestRefused("no")}, {"outcome": "uncertain", "status": 504, "error": "r2: no"}),
        ({"r1": FileNotFoundError(), "r2": FileNotFoundError()}, {"outcome": "refused", "status": 409}),
    ],
)
def test_its_begin_is_one_line_of_the_audit(
    monkeypatch: pytest.MonkeyPatch, topology: Topology, begun: dict[str, Any], told: dict[str, Any]
) -> None:
    try:
        explained(monkeypatch, topology, Routers(**begun))
        is_done = True
    except CommandFailed:
        is_done = False
    (line,) = audited(topology)
    assert is_done == (told["outcome"] == "done")
    assert {name: line.get(name) for name in told} == told
    assert (line["operation"], line["target"], line["arguments"]) == ("record", "rpc", {"seconds": 30})
    assert (line["login"], line["is_owner"]) == ("command", True)
