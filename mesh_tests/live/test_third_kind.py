"""A mesh with nodes of a kind that only this test knows: `up`, `status` and `down` treat them like all nodes."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mesh
from mesh.deploy.pid_file import PidFile
from mesh.deploy.running_processes import living
from mesh.deploy.workdir import SUPERVISOR, WRITER, WorkDir
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.ports import free_port
from mesh_tests.running_mesh import AMQPMESH
from mesh_tests.third_kind import SITE
from mesh_tests.waiting import wait_until

ROOT = Path(mesh.__file__).parents[1]
COMMAND_S = 60.0


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workdir = WorkDir(folder / ".amqpmesh" / "small")
        self.greeter_port = free_port()
        (folder / "amqpmesh.yml").write_text(
            f'mesh: small\nwatch: "off"\nrouters:\n  r1: {{port: {free_port()}}}\n'
            f"  r2: {{port: {free_port()}, connect: [r1]}}\n"
            f"brokers: {{b1: {{data: ./data, port: {free_port()}, routers: [r2]}}}}\n"
            f"x-greeters: {{g1: {{port: {self.greeter_port}}}}}\n"
        )
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(SITE)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [AMQPMESH, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": f"{self.folder / 'site'}{os.pathsep}{ROOT}"},
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("status", "--json").stdout)
        return {node["name"]: node for node in found["nodes"]} | {"": found}

    def events(self, node: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.workdir.log_file(node).read_text().splitlines()]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.run("down")


def test_a_third_kind_of_node_starts_is_probed_is_shown_comes_back_and_stops(scene: Scene) -> None:
    up = scene.run("up", "--detach")
    assert up.returncode == ExitCode.OK, up.stderr
    assert "greeter g1: up" in up.stderr
    assert living(scene.workdir).keys() == {SUPERVISOR, WRITER, "b1", "r1", "r2", "g1"}
    started = next(event for event in scene.events("g1") if event["event"] == "node_started")
    assert (started["kind"], started["pid"]) == ("greeter", living(scene.workdir)["g1"])
    assert (scene.workdir.pki / "operator" / "g1.pem").exists()

    table = scene.run("status")
    assert table.returncode == ExitCode.OK, table.stderr
    names = [line.split()[0] for line in table.stdout.splitlines()]
    assert names == ["NODE", "b1", "r1", "r2", "g1"]
    assert "g1    polite greeter  up" in table.stdout
    found = scene.status()
    assert found["g1"]["kind"] == "greeter"
    assert found["g1"]["snapshot"]["greeted_count"] == 1, "the probe of `up` was one greeting"
    assert (found[""]["missing"], found[""]["tired_greeters"]) == ([], [])
    assert "g1 runs there as process" in scene.run("doctor").stdout

    holder = PidFile(scene.workdir.pid_file("g1")).holder()
    assert holder is not None
    os.kill(holder.pid, signal.SIGKILL)
    wait_until(lambda: scene.status()["g1"]["state"] == "up" and scene.status()["g1"]["restarts"], 30, "g1 to be back")

    down = scene.run("down")
    assert down.returncode == ExitCode.OK, down.stderr
    assert living(scene.workdir) == {}
    stopped = [event["stopped"] for event in scene.events(SUPERVISOR) if event["event"] == "node_stopped"]
    assert (stopped[0], set(stopped[1:3]), stopped[3]) == ("g1", {"r1", "r2"}, "b1")
    for log in (scene.workdir.root / "log").iterdir():
        assert "Traceback" not in log.read_text(), log


def test_a_node_of_a_third_kind_that_cannot_start_fails_the_start_with_its_cause(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", scene.greeter_port)):
        up = scene.run("up", "--json")
    assert up.returncode == ExitCode.FAILED
    message = json.loads(up.stdout)["error"]["message"]
    assert message.startswith("g1 ended with exit code 1: ")
    assert "in use" in message
    assert living(scene.workdir) == {}
