"""How does a test get a whole mesh: one process per node, on free ports, from a topology without port numbers?"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ruamel.yaml import YAML

from addressing.topology.loader import load_topology
from mesh.deploy.control import ask
from mesh.deploy.mesh_status import MeshStatus, NodeState
from mesh.deploy.pid_file import PidFile
from mesh.deploy.readiness import MeshReadiness
from mesh.deploy.workdir import OBSERVER, SUPERVISOR, WorkDir
from mesh_tests.ports import free_port
from mesh_tests.waiting import wait_until

AMQPMESH = str(Path(sys.executable).with_name("amqpmesh"))
COMMAND_S = 60.0


class RunningMesh:
    """Started by the constructor (`amqpmesh up --detach`), stopped by ``down`` (`amqpmesh down`).

    ``down`` raises AssertionError if a stack trace is in what any node has written.
    """

    def __init__(self, topology: str, directory: Path) -> None:
        # A mesh has no observer unless its test asks for one: most tests would only wait for another process.
        self._model = {"watch": "off", **_with_ports(YAML(typ="safe").load(topology))}
        self.topology_file = directory / "amqpmesh.yml"
        YAML().dump(self._model, self.topology_file)
        self._work_dir = WorkDir(directory / ".amqpmesh" / self._model["mesh"])
        try:
            self.run("up", "--detach")
        except (AssertionError, subprocess.TimeoutExpired):
            self.run("down", is_checked=False)
            raise

    def url(self, router: str, user: str = "") -> str:
        """Of the router's first listener; ``user`` is ``name:password``."""
        return f"amqp://{user + '@' if user else ''}127.0.0.1:{self.port(router)}"

    def port(self, router: str, listener: int = 0) -> int:
        return int(self._model["routers"][router]["listeners"][listener]["port"])

    def node_port(self, node: str) -> int:
        return int({**self._model["routers"], **self._model.get("brokers", {})}[node]["port"])

    def pid(self, node: str) -> int:
        """Of the process that runs the node now; after a crash that is a new one."""
        holder = wait_until(PidFile(self._work_dir.pid_file(node)).holder, COMMAND_S, f"{node} to run")
        return holder.pid

    def kill(self, node: str) -> None:
        """As a crash would: SIGKILL. It is started again after the supervisor's back-off."""
        os.kill(self.pid(node), signal.SIGKILL)

    def wait_linked(self) -> None:
        """Until every connection and path of the topology is up again, by what `amqpmesh up` takes for that."""
        readiness = MeshReadiness(load_topology(self.topology_file), self._work_dir)
        try:
            asyncio.run(asyncio.wait_for(readiness.wait_linked(), COMMAND_S))
        except TimeoutError:
            raise AssertionError(f"not linked within {COMMAND_S} s: {readiness.missing()}") from None

    def snapshot(self, node: str) -> Any:
        """What the node says of itself now; None while it does not run."""
        try:
            return ask(self._work_dir.control_socket(node), "snapshot")
        except OSError:
            return None

    def is_up(self, node: str) -> bool:
        """Whether the supervisor has noticed that the node is up: by that it chooses the delay after the next death."""
        status = MeshStatus.from_map(ask(self._work_dir.control_socket(SUPERVISOR), "status")).node(node)
        return status is not None and status.state is NodeState.UP

    def observed(self, path: str, token: str | None = None) -> tuple[int, Any]:
        """The status and the JSON of the observer's answer to GET ``path``, once the observer has said where it is."""
        url = self.observer_url
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        try:
            answer = urlopen(Request(url + path, headers=headers), timeout=COMMAND_S)
        except HTTPError as error:
            answer = error
        with answer:
            return answer.status, json.load(answer)

    @property
    def observer_url(self) -> str:
        """Where the observer answers, once it has said so."""
        file = self._work_dir.root / "run" / f"{OBSERVER}.json"
        url = wait_until(lambda: json.loads(file.read_text())["url"] if file.exists() else None, COMMAND_S, "a URL")
        return str(url)

    def control_socket(self, name: str) -> Path:
        """Of a node or of the supervisor."""
        return self._work_dir.control_socket(name)

    @property
    def pki(self) -> Path:
        return self._work_dir.pki

    def log_file(self, node: str) -> Path:
        return self._work_dir.log_file(node)

    def log(self, node: str) -> list[dict[str, Any]]:
        """But for the line that is being written: a file's readers may see half of one write."""
        *lines, _unfinished = self.log_file(node).read_text().split("\n")
        return [json.loads(line) for line in lines]

    def run(self, *arguments: str, is_checked: bool = True) -> str:
        """Standard output of `amqpmesh ARGUMENTS -t FILE`."""
        command = [AMQPMESH, *arguments, "-t", str(self.topology_file)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_S, stdin=subprocess.DEVNULL, check=False
        )
        if is_checked:
            assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def down(self) -> None:
        self.run("down")
        for reserve in self.topology_file.parent.rglob("reserve"):
            reserve.unlink()  # pytest keeps the directories of several runs
        for log in self._work_dir.root.glob("log/*"):
            assert "Traceback" not in log.read_text(errors="replace"), f"stack trace in {log}"


def _with_ports(model: dict[str, Any]) -> dict[str, Any]:
    for name, router in model["routers"].items():
        model["routers"][name] = router = router or {}
        router.setdefault("port", free_port())
        for listener in router.setdefault("listeners", [{}]):
            listener.setdefault("host", "127.0.0.1")
            listener.setdefault("port", free_port())
    for name, broker in model.get("brokers", {}).items():
        if "url" not in broker:
            broker.setdefault("port", free_port())
            broker.setdefault("data", f"./data/{name}")
    return model
