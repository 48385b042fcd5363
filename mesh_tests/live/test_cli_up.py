"""Starting and stopping a mesh: in the foreground, when something is in the way, after a crash."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from mesh.deploy.pid_file import PidFile
from mesh.deploy.running_processes import find_running, living
from mesh.deploy.workdir import SUPERVISOR, WRITER, WorkDir
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.ports import free_port
from mesh_tests.programs import Program
from mesh_tests.running_mesh import AMQPMESH
from mesh_tests.waiting import wait_until

COMMAND_S = 60.0


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def folder(tmp_path: Path, port: int) -> Path:
    (tmp_path / "amqpmesh.yml").write_text(
        f'mesh: small\nwatch: "off"\nrouters:\n  r1: {{port: {free_port()}, listeners: [{port}]}}\n'
        f"  r2: {{port: {free_port()}, connect: [r1]}}\n"
        f"brokers: {{b1: {{data: ./data, port: {free_port()}, routers: [r2]}}}}\naddresses: {{orders: queue}}\n"
    )
    return tmp_path


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [AMQPMESH, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )


def workdir(folder: Path) -> WorkDir:
    return WorkDir(folder / ".amqpmesh" / "small")


def assert_clean(folder: Path) -> None:
    assert living(workdir(folder)) == {}
    for log in (workdir(folder).root / "log").glob("*"):
        assert "Traceback" not in log.read_text(), log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_in_the_foreground_says_ready_and_stops_all_in_order(folder: Path, number: signal.Signals) -> None:
    up = Program("up", [AMQPMESH, "up"], folder)
    try:
        up.wait_for("^small is ready$", COMMAND_S)
        assert set(living(workdir(folder))) == {SUPERVISOR, WRITER, "b1", "r1", "r2"}
        assert run(folder, "send", "orders", "-m", "x").stdout == "sent 1  accepted 1\n"
        os.kill(up.pid, number)
        told = up.wait_success(COMMAND_S)
    finally:
        up.stop()
    assert told.index("router r1: stopping") < told.index("broker b1: stopping")
    assert_clean(folder)


def test_up_stopped_before_it_is_ready_exits_130(folder: Path) -> None:
    up = subprocess.Popen([AMQPMESH, "up"], cwd=folder, stderr=subprocess.PIPE, text=True)
    assert up.stderr is not None
    assert up.stderr.readline() == "broker b1: starting\n"
    up.send_signal(signal.SIGINT)
    up.communicate(timeout=COMMAND_S)
    assert up.returncode == ExitCode.INTERRUPTED
    assert_clean(folder)


@pytest.mark.parametrize("options", [[], ["--detach"]])
def test_a_port_that_is_taken_fails_the_start_at_once_and_names_it(folder: Path, port: int, options: list[str]) -> None:
    with socket.create_server(("127.0.0.1", port)):
        started_at = time.monotonic()
        up = run(folder, "up", "--json", *options)
    assert time.monotonic() - started_at < 20
    assert up.returncode == ExitCode.FAILED
    error = json.loads(up.stdout)["error"]
    message = error["message"]
    assert f"`amqpmesh doctor -t {folder / 'amqpmesh.yml'}`" in error["fix"]
    assert message.startswith("r1 ended with exit code 1: ")
    assert str(port) in message
    assert "in use" in message
    assert_clean(folder)


def test_a_mesh_that_does_not_get_ready_in_time_exits_75_and_says_what_is_missing(folder: Path) -> None:
    (folder / "amqpmesh.yml").write_text(
        f'mesh: small\nwatch: "off"\nrouters: {{r1: {{port: {free_port()}}}}}\n'
        f'brokers: {{old: {{url: "amqp://127.0.0.1:{free_port()}", routers: [r1]}}}}\n'
    )
    # Long enough for a router to start beside others' tests.
    up = run(folder, "up", "--timeout", "10s")
    assert up.returncode == ExitCode.TIMEOUT, up.stderr
    assert "r1 has no connection to broker old (cannot connect: connection refused)" in up.stderr
    assert_clean(folder)


def test_down_stops_nodes_whose_supervisor_was_killed_and_up_takes_over(folder: Path) -> None:
    assert run(folder, "up", "--detach").returncode == ExitCode.OK
    kill_supervisor(folder)
    assert set(living(workdir(folder))) == {WRITER, "b1", "r1", "r2"}
    status = run(folder, "status")
    assert status.returncode == ExitCode.FAILED
    assert status.stderr == "no supervisor runs: nodes that die are not restarted; run `amqpmesh up`\n"
    old = living(workdir(folder))
    assert run(folder, "up", "--detach").returncode == ExitCode.OK
    assert not set(old.values()) & set(living(workdir(folder)).values())
    kill_supervisor(folder)
    down = run(folder, "down")
    assert down.stderr == "stopped small: linklogs, b1, r1, r2\n"
    assert run(folder, "down").stderr == "nothing runs here\n"
    assert_clean(folder)


@pytest.mark.parametrize("what", ["pid files", "run"])
def test_a_mesh_whose_files_were_deleted_is_found_and_stopped(folder: Path, what: str) -> None:
    assert run(folder, "up", "--detach").returncode == ExitCode.OK
    before = living(workdir(folder))
    run_folder = workdir(folder).root / "run"
    if what == "run":
        shutil.rmtree(run_folder)
    else:
        for path in run_folder.glob("*.pid"):
            path.unlink()
    again = run(folder, "up", "--detach")
    if what == "run":
        assert again.returncode == ExitCode.FAILED
        assert "`amqpmesh down` stops the mesh" in again.stderr
    else:
        assert again.returncode == ExitCode.OK
        assert "small already runs" in again.stderr
    assert living(workdir(folder)) == before
    status = run(folder, "status")
    assert all(str(pid) in status.stdout for name, pid in before.items() if name in ("b1", "r1", "r2")), status
    assert run(folder, "down").stderr == "stopped small: linklogs, supervisor, b1, r1, r2\n"
    assert living(workdir(folder)) == {}
    assert run(folder, "up", "--detach").returncode == ExitCode.OK
    assert run(folder, "down").returncode == ExitCode.OK
    assert_clean(folder)


def kill_supervisor(folder: Path) -> None:
    file = PidFile(workdir(folder).pid_file(SUPERVISOR))
    holder = file.holder()
    assert holder is not None
    os.kill(holder.pid, signal.SIGKILL)
    wait_until(lambda: file.holder() is None, COMMAND_S, "the supervisor to be gone")


def test_down_works_while_the_topology_file_is_wrong(folder: Path) -> None:
    assert run(folder, "up", "--detach").returncode == ExitCode.OK
    (folder / "amqpmesh.yml").write_text("mesh: [\n")
    assert run(folder, "down").stderr == "stopped small: linklogs, supervisor, b1, r1, r2\n"
    assert_clean(folder)


def test_down_stops_a_mesh_that_was_renamed_while_it_ran(folder: Path) -> None:
    assert run(folder, "up", "--detach").returncode == ExitCode.OK
    file = folder / "amqpmesh.yml"
    file.write_text(file.read_text().replace("mesh: small", "mesh: other"))
    assert run(folder, "down").stderr == "stopped small: linklogs, supervisor, b1, r1, r2\n"
    assert find_running(folder) == []


def test_without_waiting_up_returns_while_the_mesh_starts(folder: Path) -> None:
    up = run(folder, "up", "--detach", "--no-wait", "--json")
    assert up.returncode == ExitCode.OK, up.stderr
    assert json.loads(up.stdout)["schema"] == "amqpmesh.up/1"
    wait_until(
        lambda: json.loads(run(folder, "status", "--json").stdout or "{}").get("phase") == "ready", COMMAND_S, "ready"
    )
    assert run(folder, "down").returncode == ExitCode.OK


def test_a_node_by_itself_tells_systemd_and_stops_on_sigterm(folder: Path) -> None:
    assert run(folder, "certs", "make").returncode == ExitCode.OK
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(folder / "notify"))
        systemd.settimeout(COMMAND_S)
        node = Program("r1", [AMQPMESH, "node", "r1"], folder, {"NOTIFY_SOCKET": str(folder / "notify")})
        try:
            assert systemd.recv(200).startswith(b"READY=1\nSTATUS=router r1 of mesh small")
            second = run(folder, "node", "r1")
            assert second.returncode == ExitCode.FAILED
            assert f"node r1 already runs, as process {node.pid}" in second.stderr
            os.kill(node.pid, signal.SIGTERM)
            assert '"event": "node_stopped"' in node.wait_success(COMMAND_S)
            assert systemd.recv(200) == b"STOPPING=1"
        finally:
            node.stop()


@pytest.mark.timeout(180)
def test_the_demo_works_and_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = run(tmp_path, "demo", "--json", TMPDIR=str(tmp_path))
    assert demo.returncode == ExitCode.OK, demo.stdout + demo.stderr
    told = json.loads(demo.stdout)
    assert [fault["label"] for fault in told["faults"]] == ["kill r1"]
    assert {address["type"] for address in told["addresses"]} == {"anycast", "multicast", "queue", "topic"}
    assert all(result["passed"] and result["received"] > 100 for result in told["results"])
    assert list(tmp_path.iterdir()) == []


def test_a_demo_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen([AMQPMESH, "demo"], stderr=subprocess.PIPE, text=True, env=environment)
    assert demo.stderr is not None
    assert any("traffic on" in line for line in demo.stderr)
    folders = list(tmp_path.iterdir())
    demo.terminate()
    demo.communicate(timeout=COMMAND_S)
    assert demo.returncode == ExitCode.INTERRUPTED
    assert list(tmp_path.iterdir()) == []
    assert not any(find_running(folder) for folder in folders)


def test_up_says_that_link_logs_cannot_be_redacted_before_anything_starts(folder: Path) -> None:
    with (folder / "amqpmesh.yml").open("a") as file:
        file.write("link_logs: {redact: no.key}\n")
    up = run(folder, "up", "--detach")
    assert up.returncode == ExitCode.FAILED
    assert f"link_logs: redact: key: cannot read {folder / 'no.key'}: No such file or directory" in up.stderr
    assert_clean(folder)
