"""How does a test get a mesh of several hosts on one machine: a work directory for each, and nobody else's files?"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ruamel.yaml import YAML

from addressing.topology.loader import load_topology
from mesh.deploy.node_kinds import kind_of
from mesh.deploy.workdir import OBSERVER, WorkDir
from mesh_tests.live.host_network import HostNetwork
from mesh_tests.ports import free_port
from mesh_tests.programs import Program
from mesh_tests.running_mesh import AMQPMESH
from mesh_tests.waiting import wait_until

COMMAND_S = 60.0
FILE = "amqpmesh.yml"


class HostOfMesh:
    """A folder with the topology, and the certificates of the nodes ``names`` only; nothing runs yet.

    ``network``: where the host has a network of its own.
    """

    def __init__(
        self, name: str, folder: Path, mesh: str, names: tuple[str, ...], network: HostNetwork | None = None
    ) -> None:
        self.name, self.folder, self.names, self.network = name, folder, names, network
        self.workdir = WorkDir(folder / ".amqpmesh" / mesh)
        self.programs: dict[str, Program] = {}

    def start(self, *names: str) -> None:
        """Start nodes; all, and the observer, without names."""
        for name in names or (*self.names, OBSERVER):
            what = ["watch", "--port", "0"] if name == OBSERVER else ["node", name]
            self.programs[name] = Program(name, [*self._prefix, AMQPMESH, *what, "-t", FILE], self.folder)
        for name in names or (*self.names, OBSERVER):
            event = "observer_started" if name == OBSERVER else "node_started"
            self.programs[name].wait_for(f'"event": "{event}"', COMMAND_S)

    @property
    def _prefix(self) -> list[str]:
        return [] if self.network is None else self.network.prefix(self.name)

    def kill(self, *names: str) -> None:
        """SIGKILL to programs; to all without names."""
        for name in names or tuple(self.programs):
            os.kill(self.programs[name].pid, signal.SIGKILL)
            self.programs.pop(name).stop()

    def observed(self, path: str) -> Any:
        """The JSON of the observer's answer, whatever its status."""
        return json.loads(self._ask(path)[1])

    def text(self, path: str) -> str:
        """The observer's answer, such as its metrics."""
        return self._ask(path)[1].decode()

    def change(self, path: str, body: Any, key: str = "") -> tuple[int, Any]:
        """Status and JSON of the answer to a change."""
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        status, answer = self._ask(path, json.dumps(body).encode(), headers)
        return status, json.loads(answer)

    def _ask(self, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        url = json.loads(self.workdir.observer_file.read_text())["url"]
        given = dict(headers or {})
        token = self.workdir.root / "run" / f"{OBSERVER}.token"
        if token.exists():
            given["Authorization"] = f"Bearer {token.read_text().strip()}"
        with nullcontext() if self.network is None else self.network.entered(self.name):
            try:
                answer = urlopen(Request(url + path, body, given), timeout=COMMAND_S)
            except HTTPError as error:
                answer = error
            with answer:
                return answer.status, answer.read()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self._prefix, AMQPMESH, *arguments, "-t", FILE]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=COMMAND_S, stdin=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip

    def changed(self, path: str, body: Any, key: str) -> Any:
        """The answer to a change that has to be made: one of which nothing was changed (502) is asked for again."""

        def ask() -> tuple[int, Any] | None:
            answer = self.change(path, body, key)
            return None if answer[0] == 502 else answer

        status, said = wait_until(ask, COMMAND_S, f"the observer of {self.name} to reach that of the node")
        assert status == 200, said
        return said

    def states(self) -> dict[str, str]:
        return {each["id"]: each["state"] for each in self.observed("/api/nodes")["items"]}


class SeveralHosts:
    """``hosts``: by name, the nodes of each host. Nothing runs when the constructor returns.

    ``network``: hosts have networks of their own; else they share that of the machine.
    """

    def __init__(
        self,
        topology: str,
        hosts: dict[str, tuple[str, ...]],
        directory: Path,
        network: HostNetwork | None = None,
    ) -> None:
        addresses = (
            {node: network.addresses[host] for host, nodes in hosts.items() for node in nodes} if network else {}
        )
        model = YAML(typ="safe").load(topology)
        self.ports: dict[str, int] = {}
        for name, router in model["routers"].items():
            self.ports[name] = free_port()
            [options] = (router or {}).get("listeners", [{}])
            listener = {**options, "host": "127.0.0.1", "port": self.ports[name]}
            place = {"host": addresses[name]} if addresses else {}
            model["routers"][name] = {**(router or {}), **place, "port": free_port(), "listeners": [listener]}
        for name, broker in model.get("brokers", {}).items():
            place = {"host": addresses[name]} if addresses else {}
            model["brokers"][name] = {"data": f"./data/{name}", **(broker or {}), **place, "port": free_port()}
        authority = directory / "authority"
        authority.mkdir()
        YAML().dump(model, authority / FILE)
        subprocess.run([AMQPMESH, "certs", "make", "-t", FILE], cwd=authority, check=True, capture_output=True)
        parsed = load_topology(authority / FILE)
        self.authority = HostOfMesh("authority", authority, parsed.mesh, ())
        """A machine without nodes, that has the operator's certificate."""
        self.hosts: dict[str, HostOfMesh] = {}
        for name, nodes in hosts.items():
            host = self.hosts[name] = HostOfMesh(name, directory / name, parsed.mesh, nodes, network)
            host.folder.mkdir()
            shutil.copy2(authority / FILE, host.folder / FILE)
            theirs = WorkDir(parsed.work_dir).pki
            for node in nodes:
                role = kind_of(parsed, node).role
                for file in ("ca.pem", f"{role}/{node}.pem", f"{role}/{node}-key.pem"):
                    (host.workdir.pki / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(theirs / file, host.workdir.pki / file)

    def __getitem__(self, name: str) -> HostOfMesh:
        return self.hosts[name]

    def start(self) -> None:
        for host in self.hosts.values():
            host.start()

    def wait_states(self, name: str, wanted: dict[str, str], timeout_s: float = COMMAND_S) -> None:
        """Until the observer of a host shows all nodes in these states."""
        wait_until(lambda: self[name].states() == wanted, timeout_s, f"{name} to show {wanted}")

    def down(self) -> None:
        programs = [program for host in self.hosts.values() for program in reversed(host.programs.values())]
        for program in programs:
            program.stop()
        for program in programs:
            assert "Traceback" not in program.output(), program.output()
        for reserve in next(iter(self.hosts.values())).folder.parent.rglob("reserve"):
            reserve.unlink()
