"""`amqpmesh trace`: the frames of a connection of a node that runs, and never what messages say."""

from __future__ import annotations

import json
import stat
import subprocess
from typing import Any

import pytest
from proton import Message
from proton.utils import BlockingConnection

from addressing.topology.credentials import make_secret
from mesh.deploy.control import RequestRefused, ask
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = f"""
mesh: traced
routers: {{r1: {{connect: [r2]}}, r2: }}
brokers: {{b1: {{data: ./data, routers: [r2]}}}}
addresses: {{rpc: anycast, orders: queue}}
users:
  alice: {{password: '{make_secret("p4ss-of-alice")}', send: ["#"], receive: ["#"]}}
"""
SECRET = "S3cr3t-body"
WITHIN_S = 20.0


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Any) -> RunningMesh:
    running: RunningMesh = start_module_mesh(TOPOLOGY)
    return running


def connect(mesh: RunningMesh) -> BlockingConnection:
    return BlockingConnection(mesh.url("r1", "alice:p4ss-of-alice"), timeout=WITHIN_S, allowed_mechs="PLAIN")


def begin(mesh: RunningMesh, *arguments: str) -> subprocess.Popen[str]:
    command = [AMQPMESH, "trace", *arguments, "-t", str(mesh.topology_file)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def traces(mesh: RunningMesh, node: str) -> list[Any]:
    return sorted(mesh.control_socket(node).parent.glob(f"{node}.trace-*.jsonl"))


def test_the_frames_of_a_connection_are_printed_by_its_name_without_bodies_and_logins(mesh: RunningMesh):
    till = connect(mesh)
    sender = till.create_sender("orders")
    sender.send(Message(body=SECRET))
    with begin(mesh, "r1", till.container.container_id, "--for", "8s") as running:
        (file,) = wait_until(lambda: traces(mesh, "r1"), WITHIN_S, "the trace")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        sender.send(Message(body=SECRET, subject=SECRET, properties={"key": SECRET}))
        out, err = running.communicate(timeout=60)
    till.close()
    assert running.returncode == ExitCode.OK, err
    lines = out.splitlines()
    assert any("<- ch0 transfer handle=0" in line and "payload=" in line for line in lines), out
    assert any("-> ch0 disposition" in line and 'state={"accepted": {}}' in line for line in lines), out
    assert lines[-1].endswith("frames: the time is over")
    for text in (out, err, file.read_text()):
        assert "S3cr3t" not in text
        assert "p4ss-of-alice" not in text

    def events() -> list[str]:
        return [event["event"] for event in mesh.log("r1") if event["event"].startswith("trace_")]

    # The end is in the file of the trace first.
    wait_until(lambda: events() == ["trace_began", "trace_ended"], WITHIN_S, "the events")


def test_a_trace_of_a_brokers_connection_ends_with_the_connection_and_nothing_stops(mesh: RunningMesh):
    control = mesh.control_socket("b1")
    worker = connect(mesh)
    sender = worker.create_sender("orders")
    sender.send(Message(body=SECRET))
    with begin(mesh, "b1", "b1/999", "--for", "4s") as running:
        _, err = running.communicate(timeout=60)
    number = int(err.partition("with number 999: expected ")[2].split()[-1].rstrip(","))
    answer = ask(control, "trace", connection=number, seconds=600)
    sender.send(Message(body=SECRET))
    ask(control, "close_connection", connection=number)
    lines = wait_until(lambda: _whole(answer["file"]), WITHIN_S, "the end of the trace")
    assert lines[-1]["ended"] == "the connection ended"
    assert lines[-2]["frame"] == "close"
    assert lines[-2]["fields"]["error"]["error"]["condition"] == "amqp:connection:forced"
    mesh.wait_linked()
    worker.close()


def _whole(file: str) -> list[dict[str, Any]] | None:
    with open(file) as stream:
        lines = [json.loads(line) for line in stream]
    return lines if lines and "ended" in lines[-1] else None


def test_bad_requests_get_a_sentence(mesh: RunningMesh):
    control = mesh.control_socket("r1")
    for request, sentence in (
        ({"connection": 9999, "seconds": 5}, "there is no open connection of router r1 with number 9999: expected "),
        ({"connection": 1, "seconds": 3601}, "seconds: expected a number from 0 to 3600, got 3601"),
        ({"connection": 1, "seconds": "5"}, "seconds: expected a number from 0 to 3600, got '5'"),
        ({"connection": 1, "seconds": 0}, "connection r1/1 has no trace: expected seconds above 0"),
        ({"connection": "r1/1", "seconds": 5}, "connection: expected a number from 1, as at the end"),
    ):
        with pytest.raises(RequestRefused, match=sentence):
            ask(control, "trace", **request)
    with begin(mesh, "r1", "nobody") as running:
        _, err = running.communicate(timeout=60)
    assert running.returncode == ExitCode.USAGE
    assert "no connection of r1 has the container-id 'nobody': expected a number, or one of " in err
