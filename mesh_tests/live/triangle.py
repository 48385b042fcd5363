"""Three routers that all live on while a test cuts the connections of one of them: how does it get them?

r1 ---- r2     r1 reaches r3 by way of r2, and would reach each of them by way of the other.
  \\    /      Only r1's two connections can be cut: it alone is told of other ports than the routers listen on.
   \\  /
    r3
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from mesh.deploy.control import ask
from mesh.deploy.workdir import WorkDir
from mesh_tests.live.trunk import Trunk
from mesh_tests.ports import free_port
from mesh_tests.programs import Program
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

START_S = 30.0
KNOWN_S = 30.0

FAR = """
mesh: triangle
node_tls: false
routers:
  r2: {connect: [r3]}
  r3:
brokers:
  b2: {routers: [r2]}
  b3: {routers: [r3]}
addresses:
  work.#: anycast
  news.#: multicast
  queue.r2.#: {type: queue, broker: b2}
  queue.r3.#: {type: queue, broker: b3}
"""


class Triangle:
    def __init__(self, directory: Path) -> None:
        with ExitStack() as stack:
            self._far = RunningMesh(FAR, directory)
            stack.callback(self._far.down)
            self.trunks = {name: stack.enter_context(Trunk(self._far.node_port(name))) for name in ("r2", "r3")}
            self._port = free_port()
            self._work_dir = WorkDir(directory / "r1" / ".amqpmesh" / "triangle")
            self._r1 = Program("r1", [AMQPMESH, "node", "r1"], self._write_topology(directory / "r1"))
            stack.callback(self._r1.stop)
            self.wait_path("r2", ["r1", "r2"])
            self.wait_path("r3", ["r1", "r2", "r3"])
            self._stack = stack.pop_all()

    def _write_topology(self, directory: Path) -> Path:
        """As r1 is to see it."""
        model = YAML(typ="safe").load(FAR)
        for router, trunk in self.trunks.items():
            model["routers"][router] = {"port": trunk.port, "connect": {"r2": ["r3"], "r3": []}[router]}
        model["routers"]["r1"] = {
            "port": free_port(),
            "listeners": [self._port],
            "connect": ["r2", {"to": "r3", "cost": 5}],
        }
        for name, broker in model["brokers"].items():
            broker.update(port=free_port(), data=f"./{name}")
        directory.mkdir()
        YAML().dump(model, directory / "amqpmesh.yml")
        return directory

    def port(self, router: str) -> int:
        return self._port if router == "r1" else self._far.port(router)

    def pid(self, node: str) -> int:
        return self._far.pid(node)

    def snapshot(self, node: str) -> Any:
        if node != "r1":
            return self._far.snapshot(node)
        try:
            return ask(self._work_dir.control_socket("r1"), "snapshot")
        except OSError:
            return None

    def cut_off(self) -> None:
        """No way leads from r1 to anybody. It learns of both losses at once: else what it has takes the other way."""
        os.kill(self._r1.pid, signal.SIGSTOP)
        try:
            for trunk in self.trunks.values():
                trunk.cut()
        finally:
            os.kill(self._r1.pid, signal.SIGCONT)

    def mend(self) -> None:
        for trunk in self.trunks.values():
            trunk.mend()
        self.wait_path("r3", ["r1", "r2", "r3"])

    def path(self, router: str) -> list[str] | None:
        """The one that r1 takes."""
        assert self._r1.is_running, self._r1.output()
        known = (self.snapshot("r1") or {"node": {"routers": []}})["node"]["routers"]
        return next((each["path"] for each in known if each["router"] == router), None)

    def wait_path(self, router: str, path: list[str] | None) -> None:
        """Until r1 takes it; None: until it knows of none."""
        wait_until(lambda: self.path(router) == path, START_S, f"r1 to take {path} to {router}")

    def down(self) -> None:
        self._stack.close()
        assert "Traceback" not in self._r1.output()
