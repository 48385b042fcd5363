"""One node by itself: what its service manager hears, what its clients' links become when it stops, its event loop."""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from mesh_tests.live.wire_client import WireClient
from mesh_tests.ports import free_port
from mesh_tests.programs import Program
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until
from wire.terminus import Durability, Expiry

COMMAND_S = 60.0
TOPOLOGY = """
mesh: node
routers:
  r1: {connect: [r2]}
  r2:
brokers:
  b1: {routers: [r2]}
addresses:
  news: topic
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


def subscribers(mesh: RunningMesh) -> list[str | None]:
    """Those of durable subscriptions by name, None for each of the others."""
    queues = (mesh.snapshot("b1") or {"node": {"queues": []}})["node"]["queues"]
    return [queue["subscriber"] for queue in queues if queue["is_subscription"]]


def start_alone(folder: Path, environment: dict[str, str]) -> tuple[Program, int]:
    port = free_port()
    router = f"{{port: {free_port()}, listeners: [{port}]}}"
    (folder / "amqpmesh.yml").write_text(f"mesh: alone\nrouters: {{r1: {router}}}\n")
    subprocess.run([AMQPMESH, "certs", "make"], cwd=folder, check=True, capture_output=True)
    node = Program("r1", [AMQPMESH, "node", "r1"], folder, environment)
    node.wait_for('"event": "node_started"', COMMAND_S)
    return node, port


@pytest.mark.parametrize("router", ["r1", "r2"])
def test_a_router_that_stops_keeps_durable_subscriptions_and_ends_the_others(mesh: RunningMesh, router: str) -> None:
    with WireClient(mesh.port(router), container_id=f"at-{router}") as subscriber:
        subscriber.receiver("news", credit=1, name="passing")
        lasting = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "capabilities": ("topic",)}
        subscriber.receiver("news", credit=1, name="lasting", **lasting)
        assert None in subscribers(mesh)
        os.kill(mesh.pid(router), signal.SIGTERM)
        error = subscriber.wait_closed().error
        assert str(error) == f"amqp:connection:forced: {router} shuts down"
    wait_until(lambda: None not in subscribers(mesh), COMMAND_S, "the passing subscription to end")
    assert any(f"at-{router}" in name for name in subscribers(mesh))


def test_systemd_hears_of_the_stop_while_clients_are_still_being_closed(mesh: RunningMesh, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(COMMAND_S)
        node, port = start_alone(tmp_path, {"NOTIFY_SOCKET": str(tmp_path / "notify")})
        try:
            assert systemd.recv(200).startswith(b"READY=1\n")
            client = WireClient(port)
            os.kill(node.pid, signal.SIGTERM)
            assert systemd.recv(200) == b"STOPPING=1"
            assert "node_stopped" not in node.output()
            client.wait_closed()
            client.kill()
            node.wait_success(COMMAND_S)
        finally:
            node.stop()


@pytest.mark.parametrize("lost", [".", "ca.pem", "router", "router/r1.pem", "router/r1-key.pem"])
def test_a_node_whose_certificates_were_not_copied_does_not_start_and_names_them(tmp_path: Path, lost: str) -> None:
    (tmp_path / "amqpmesh.yml").write_text(f"mesh: alone\nrouters: {{r1: {{listeners: [{free_port()}]}}}}\n")
    pki = tmp_path / ".amqpmesh" / "alone" / "pki"
    subprocess.run([AMQPMESH, "certs", "make"], cwd=tmp_path, check=True, capture_output=True)
    (pki / "ca-key.pem").unlink()
    if (pki / lost).is_dir():
        shutil.rmtree(pki / lost)
    else:
        (pki / lost).unlink()
    there = sorted(pki.rglob("*"))
    command = [AMQPMESH, "node", "r1"]
    node = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert node.returncode == 1
    wanted = [pki / "ca.pem", pki / "router" / "r1.pem", pki / "router" / "r1-key.pem"]
    missing = ", ".join(str(path) for path in wanted if not path.exists())
    assert f"node r1 has no certificate here: expected files {missing}\n" in node.stderr
    assert "amqpmesh certs make" in node.stderr
    assert '"event": "node_failed"' in node.stderr
    assert "Traceback" not in node.stderr
    assert sorted(pki.rglob("*")) == there


def test_a_node_runs_without_uvloop(tmp_path: Path) -> None:
    (tmp_path / "uvloop.py").write_text("raise ImportError('as if it were not installed')\n")
    node, port = start_alone(tmp_path, {"PYTHONPATH": str(tmp_path)})
    try:
        with WireClient(port):
            assert '"event_loop": "asyncio"' in node.output()
    finally:
        node.stop()


def test_a_node_runs_on_uvloop_where_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("uvloop", reason="pip install uvloop")
    node, port = start_alone(tmp_path, {})
    try:
        with WireClient(port):
            assert '"event_loop": "uvloop"' in node.output()
    finally:
        node.stop()
