"""`amqpmesh log-level`: levels of the logs of nodes that run."""

from __future__ import annotations

import json
import subprocess

import pytest

from mesh.terminal.exit_codes import ExitCode
from mesh_tests.conftest import StartMesh
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: levels
routers: {r1: }
brokers: {b1: {data: ./data}}
addresses: {rpc: anycast, orders: queue}
"""
WITHIN_S = 20.0


@pytest.fixture
def mesh(start_mesh: StartMesh) -> RunningMesh:
    return start_mesh(TOPOLOGY)


def names(mesh: RunningMesh, node: str) -> list[str]:
    return [event["event"] for event in mesh.log(node)]


def attach(mesh: RunningMesh, address: str) -> None:
    with WireClient(mesh.port("r1")) as client:
        receiver = client.receiver(address)
        client.wait(lambda: receiver.is_peer_attached, "the attach")


def changed(mesh: RunningMesh, *arguments: str) -> tuple[int, str]:
    command = [AMQPMESH, "log-level", *arguments, "-t", str(mesh.topology_file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_a_module_is_set_to_debug_and_back_while_the_nodes_run(mesh: RunningMesh):
    attach(mesh, "orders")
    assert not {"attach_decided", "route_established"} & set(names(mesh, "r1"))
    assert changed(mesh, "r1", "router.routes", "debug") == (
        0, "r1: router.routes at level debug, was info; until r1 ends\n"
    )  # fmt: skip
    assert json.loads(mesh.run("log-level", "r1", "--json"))["levels"] == {"": "info", "router.routes": "debug"}
    attach(mesh, "orders")
    wait_until(lambda: "route_established" in names(mesh, "r1"), WITHIN_S, "the event")
    assert "attach_decided" not in names(mesh, "r1")
    mesh.run("log-level", "b1", "broker", "debug")
    attach(mesh, "orders")
    wait_until(lambda: "attach_answered" in names(mesh, "b1"), WITHIN_S, "the event")
    assert changed(mesh, "r1", "info") == (
        0,
        "r1: all modules at level info, as before; no longer at levels of their own: router.routes (debug); "
        "until r1 ends\n",
    )
    count = names(mesh, "r1").count("route_established")
    attach(mesh, "orders")
    assert names(mesh, "r1").count("route_established") == count
    changes = [event for event in mesh.log("r1") if event["event"] == "log_level_set"]
    assert [(event.get("module"), event["lowest"], event["before"]) for event in changes] == [
        ("router.routes", "debug", "info"),
    ]


def test_bad_input_gets_a_sentence_and_an_exit_code(mesh: RunningMesh):
    code, said = changed(mesh, "r9")
    assert code == ExitCode.USAGE
    assert "unknown node 'r9' in mesh levels: expected one of r1, b1" in said
    code, said = changed(mesh, "r1", "router.rutes", "debug")
    assert code == ExitCode.FAILED
    assert "r1: module: did you mean router.routes? expected one of" in said
    code, said = changed(mesh, "r1", "router.routes")
    assert code == ExitCode.USAGE
    assert "a level for router.routes is missing" in said


ROTATED = """
mesh: rotated
logs: {max_bytes: 65536, keep: 2}
routers: {r1: }
addresses: {rpc: anycast}
"""


def test_a_node_rotates_its_log_while_it_runs_and_a_death_behind_that_still_has_its_cause(start_mesh: StartMesh):
    mesh = start_mesh(ROTATED)
    log = mesh.log_file("r1")
    for number in (1, 2, 3):
        with log.open("a") as stream:
            stream.write("x" * 65_536 + "\n")
        attach(mesh, "rpc")
        wait_until(lambda: "connection_opened" in log.read_text(), WITHIN_S, "the event in the new file")
        assert log.stat().st_size < 65_536
        names_of_files = sorted(file.name for file in log.parent.glob("r1.jsonl*"))
        assert names_of_files == ["r1.jsonl", "r1.jsonl.1", "r1.jsonl.2"][: number + 1]
    pid = mesh.pid("r1")
    mesh.kill("r1")
    wait_until(lambda: mesh.pid("r1") != pid and mesh.is_up("r1"), WITHIN_S, "r1 to be back")
    assert "node_started" in names(mesh, "r1")
