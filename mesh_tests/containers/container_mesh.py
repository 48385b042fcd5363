"""How does a test get a mesh whose nodes are on hosts of their own?"""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from addressing.topology.loader import load_topology
from addressing.topology.model import Topology
from mesh.deploy.control import ask
from mesh.deploy.node_kinds import kind_of
from mesh.deploy.workdir import WorkDir
from mesh_tests.containers.engine import Engine
from mesh_tests.containers.host import Host
from mesh_tests.containers.subnet import Subnet
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import AMQPMESH
from mesh_tests.waiting import wait_until

COMMAND_S = START_S = 60.0
CLIENT_PORT = 5672
FILE = "amqpmesh.yml"


class ContainerMesh:
    """All nodes run when the constructor returns. ``hosts`` is by the name of the node.

    Each has a folder with what is copied to its machine: the topology, its own certificate, nobody else's key.
    """

    def __init__(self, engine: Engine, topology: str, directory: Path) -> None:
        self._directory = directory
        self.topology = self._make_certificates(topology)
        self._subnet = Subnet(engine)

        def start(name: str, ip: str) -> Host:
            return Host(engine, self._subnet.network, name, ip, self._copy_files(name))

        names = self.topology.node_names
        with ThreadPoolExecutor(len(names)) as pool:
            hosts = list(pool.map(start, names, self._subnet.addresses))
        self.hosts = {host.name: host for host in hosts}
        for name in names:
            self.wait_answer(name)

    def client(self, router: str, container_id: str) -> WireClient:
        """Of the router's first listener."""
        return WireClient(CLIENT_PORT, host=self.hosts[router].ip, container_id=container_id)

    def url(self, router: str) -> str:
        return f"amqp://{self.hosts[router].ip}:{CLIENT_PORT}"

    def wait_answer(self, node: str) -> None:
        wait_until(lambda: self.snapshot(node), START_S, f"{node} to answer")

    def snapshot(self, node: str) -> Any:
        """What the node says of itself now; None while it does not run."""
        socket = self._work_dir(node).control_socket(node)
        try:
            return ask(socket, "snapshot")
        except OSError:
            return None

    def routers(self, as_seen_by: str) -> dict[str, Any]:
        """What that router knows of the others; nothing while it does not run."""
        snapshot = self.snapshot(as_seen_by)
        return {each["router"]: each for each in snapshot["node"]["routers"]} if snapshot else {}

    def path(self, start: str, end: str) -> list[str] | None:
        """The one that ``start`` takes now."""
        return self.routers(start).get(end, {}).get("path")

    def down(self) -> None:
        """Raises AssertionError if a stack trace is in what any node has written."""
        logs = {host.name: host.log() for host in self.hosts.values()}
        for host in self.hosts.values():
            host.remove()
        self._subnet.remove()
        for name, log in logs.items():
            assert "Traceback" not in log, f"stack trace in the log of {name}:\n{log}"

    # Files
    def _make_certificates(self, topology: str) -> Topology:
        """On the machine that keeps the authority: it runs no node."""
        file = self._folder("authority") / FILE
        file.parent.mkdir(parents=True)
        file.write_text(topology)
        made = subprocess.run(
            [AMQPMESH, "certs", "make", "-t", str(file)],
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        return load_topology(file)

    def _copy_files(self, node: str) -> Path:
        folder = self._folder(node)
        theirs, its = WorkDir(self.topology.work_dir).pki, self._work_dir(node).pki
        role = kind_of(self.topology, node).role
        for file in ("ca.pem", f"{role}/{node}.pem", f"{role}/{node}-key.pem"):
            (its / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(theirs / file, its / file)
        shutil.copy2(self._folder("authority") / FILE, folder / FILE)
        return folder

    def _work_dir(self, node: str) -> WorkDir:
        return WorkDir(self._folder(node) / ".amqpmesh" / self.topology.mesh)

    def _folder(self, node: str) -> Path:
        return self._directory / node
