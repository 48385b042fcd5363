"""Signals that are sent out of habit end nothing; a terminal that is gone ends what ran in its foreground."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mesh.deploy.running_processes import living
from mesh.deploy.workdir import SUPERVISOR, WRITER, WorkDir
from mesh_tests.ports import free_port
from mesh_tests.programs import Program
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

WAIT_S = 60.0
TOPOLOGY = """
mesh: signals
routers: {r1: {}}
brokers: {b1: {routers: [r1]}}
addresses: {orders: queue}
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2], ids=lambda number: number.name)
@pytest.mark.parametrize("process", ["r1", "b1", SUPERVISOR, WRITER])
def test_a_signal_sent_out_of_habit_is_logged_and_ends_no_process(
    mesh: RunningMesh, process: str, number: signal.Signals
) -> None:
    before = living(WorkDir(mesh.pki.parent))
    os.kill(mesh.pid(process), number)

    def ignored() -> list[str]:
        return [line["signal"] for line in mesh.log(process) if line["event"] == "signal_ignored"]

    wait_until(lambda: number.name in ignored(), WAIT_S, "the signal to be logged")
    assert mesh.run("send", "orders", "-m", "x") == "sent 1  accepted 1\n"
    assert living(WorkDir(mesh.pki.parent)) == before


@pytest.mark.parametrize("command", [["node", "r1"], ["up"], ["linklogs", "write"]], ids=" ".join)
def test_what_runs_in_a_terminal_ends_in_order_when_the_terminal_is_closed(tmp_path: Path, command: list[str]) -> None:
    port, listener = free_port(), free_port()
    (tmp_path / "amqpmesh.yml").write_text(f"mesh: m\nrouters: {{r1: {{port: {port}, listeners: [{listener}]}}}}\n")
    Program("certs", [AMQPMESH, "certs", "make"], tmp_path).wait_success(WAIT_S)
    log = tmp_path / "log"
    terminal, other_end = os.openpty()
    with log.open("wb") as output:
        # As `nohup` may have started the tests, and programs inherit that.
        whole = ["env", "--default-signal=HUP", "setsid", "--ctty", AMQPMESH, *command]
        child = subprocess.Popen(whole, cwd=tmp_path, stdin=other_end, stdout=output, stderr=output)
    os.close(other_end)
    try:
        ready = {"node": "node_started", "up": "is ready", "linklogs": "writer_started"}[command[0]]
        wait_until(lambda: ready in log.read_text(), WAIT_S, ready)
        child.send_signal(signal.SIGHUP)
        noted = log if command[0] != "up" else WorkDir(tmp_path / ".amqpmesh" / "m").log_file(SUPERVISOR)
        wait_until(lambda: "signal_ignored" in noted.read_text(), WAIT_S, "the signal to be logged")
        os.close(terminal)
        assert child.wait(WAIT_S) == 0
    finally:
        child.kill()
        child.wait()
    assert living(WorkDir(tmp_path / ".amqpmesh" / "m")) == {}
    assert "Traceback" not in log.read_text()


def test_a_writer_of_link_logs_alone_goes_on(tmp_path: Path) -> None:
    (tmp_path / "rings").mkdir()
    writer = Program("writer", [sys.executable, "-m", "linklogs.writer", "rings", "out"], tmp_path)
    try:
        writer.wait_for("writer_started", WAIT_S)
        os.kill(writer.pid, signal.SIGHUP)
        writer.wait_for('"event": "signal_ignored", "signal": "SIGHUP"', WAIT_S)
        os.kill(writer.pid, signal.SIGTERM)
        writer.wait_success(WAIT_S)
    finally:
        writer.stop()
