"""Hosts, nodes and observers are killed, or cut off, in random orders: pages and metrics of the others go on.

Each host has a network of its own. After each step every observer that is left has to show every node as it is: lost,
if the observer of its host tells so, and unknown with the reason, if nobody can tell. In the end all are known again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from mesh.deploy.workdir import OBSERVER
from mesh_tests.live.host_network import HostNetwork, has_namespaces
from mesh_tests.live.several_hosts import SeveralHosts
from mesh_tests.seeds import seeds
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: killed
routers:
  r1: {connect: [r2, r3, r4]}
  r2: {connect: [r3, r4]}
  r3: {connect: [r4]}
  r4: {}
brokers:
  b1: {routers: [r2]}
addresses:
  work/#: anycast
  kept/#: queue
"""
HOSTS = {"h1": ("r1",), "h2": ("r2", "b1"), "h3": ("r3",), "h4": ("r4",)}
LONG_S = 90.0
LIFE_S = 600


class KilledHosts:
    """The mesh, and what was killed or cut of it; at least one observer is left that is not cut off."""

    def __init__(self, mesh: SeveralHosts, network: HostNetwork, random: Random) -> None:
        self.mesh, self._network, self._random = mesh, network, random
        self.killed: set[tuple[str, str]] = set()
        """Host, and node or observer."""
        self.cut: set[str] = set()
        self.steps: list[str] = []

    # Steps
    def kill_half(self) -> None:
        for host in self._random.sample(sorted(HOSTS), len(HOSTS) // 2):
            self._kill(host, *HOSTS[host], OBSERVER)

    def kill_observer(self) -> None:
        self._kill(self._random.choice(sorted(HOSTS)), OBSERVER)

    def kill_node(self) -> None:
        host = self._random.choice(sorted(HOSTS))
        self._kill(host, self._random.choice(HOSTS[host]))

    def cut_host(self) -> None:
        host = self._random.choice(sorted(HOSTS))
        if self._left({*self.cut, host}):
            self.steps.append(f"cut {host}")
            self._network.set_cut(host, True)
            self.cut.add(host)

    def bring_back(self) -> None:
        self.steps.append("all back")
        for host in sorted(self.cut):
            self._network.set_cut(host, False)
        self.cut.clear()
        for host, name in sorted(self.killed):
            self.mesh[host].start(name)
        self.killed.clear()

    def _kill(self, host: str, *names: str) -> None:
        again = {(host, name) for name in names}
        if self._left(self.cut, again):
            alive = [name for name in names if (host, name) not in self.killed]
            self.steps.append(f"kill {', '.join(alive)} of {host}")
            if alive:
                self.mesh[host].kill(*alive)
            self.killed |= again

    def _left(self, cut: set[str], killed: set[tuple[str, str]] = frozenset()) -> set[str]:  # type: ignore[assignment]
        """The hosts with an observer that are not cut off."""
        gone = self.killed | killed
        return {host for host in HOSTS if host not in cut and (host, OBSERVER) not in gone}

    # What has to hold
    def expected(self, at: str) -> dict[str, str]:
        """The state of each node as the observer of host ``at`` has to show it."""
        found: dict[str, str] = {}
        for host, nodes in HOSTS.items():
            is_apart = host != at and (host in self.cut or at in self.cut)
            for node in nodes:
                if is_apart or (host, OBSERVER) in self.killed:
                    found[node] = "unknown"
                else:
                    found[node] = "lost" if (host, node) in self.killed else "running"
        return found

    def check(self) -> None:
        observers = [host for host in HOSTS if (host, OBSERVER) not in self.killed]
        for at in observers:
            wanted = self.expected(at)
            # Each page asks the other hosts anew, and on a busy machine one of them may be late with its answer.
            wait_until(lambda at=at, wanted=wanted: self._is_shown(at, wanted), LONG_S, f"{at}: {wanted}: {self.steps}")
            metrics = self.mesh[at].text("/metrics")
            for node in HOSTS[at]:
                assert f'node="{node}"' in metrics, self.steps

    def _is_shown(self, at: str, wanted: dict[str, str]) -> bool:
        """Whether all pages of an observer show the nodes so; what one page says of a node has to fit together."""
        page = self.mesh[at].observed("/api/nodes")
        for row in page["items"]:
            if row["state"] == "unknown":
                assert row["unknown_because"], (row, self.steps)
                assert row["in_rate"] is None, (row, self.steps)
        links = self.mesh[at].observed("/api/links")
        known = {node for node, state in wanted.items() if state != "unknown"}
        return (
            {row["id"]: row["state"] for row in page["items"]} == wanted
            and {node for each in page["missing"] for node in each["nodes"]} == wanted.keys() - known
            and {row["node"] for row in links["items"]} <= known
            and self.mesh[at].observed("/healthz/mesh")["ok"] == (set(wanted.values()) == {"running"})
        )


@pytest.fixture
def network() -> Iterator[HostNetwork]:
    if not has_namespaces():
        pytest.skip("needs the right to make network namespaces, which root has")
    network = HostNetwork(sorted(HOSTS))
    try:
        yield network
    finally:
        network.close()


@pytest.mark.timeout(LIFE_S)
@pytest.mark.parametrize("seed", seeds(2))
def test_observers_that_are_left_show_what_is_known_and_what_is_not(
    network: HostNetwork, tmp_path: Path, seed: int
) -> None:
    mesh = SeveralHosts(TOPOLOGY, HOSTS, tmp_path, network)
    life = KilledHosts(mesh, network, Random(seed))
    try:
        mesh.start()
        life.check()
        steps = [life.kill_half, life.kill_observer, life.kill_node, life.cut_host]
        life._random.shuffle(steps)
        for step in steps:
            step()
            life.check()
            if life._random.random() < 0.5:
                life.bring_back()
        life.bring_back()
        life.check()
    finally:
        for host in life.cut:
            network.set_cut(host, False)
        mesh.down()
