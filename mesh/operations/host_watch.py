"""The model of this host for a command, from the nodes' rings: no node is asked for more than a list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from addressing.topology.model import Topology
from mesh.deploy.control import ask
from mesh.deploy.workdir import WorkDir
from mesh.watch.host_model import HostModel
from mesh.watch.host_rings import HostRings
from mesh.watch.pattern_lookup import pattern_lookup
from mesh.watch.states import RUNNING, SILENT


class HostWatch:
    """The rings of a mesh's nodes on this host, and the model that their records make."""

    def __init__(self, topology: Topology) -> None:
        workdir = WorkDir(topology.work_dir)

        def relist(node: str) -> None:
            with suppress(OSError):
                ask(workdir.control_socket(node), "relist")

        self.host = HostModel(pattern_lookup(topology))
        self.rings = HostRings(workdir.rings, self.host, relist, lambda sentence: None)

    def look(self) -> None:
        """Read all that the nodes have written so far."""
        while self.rings.step():
            pass

    @property
    def is_any_running(self) -> bool:
        return any(node.state in (RUNNING, SILENT) for node in self.host.nodes.values())


@contextmanager
def watching(topology: Topology) -> Iterator[HostWatch]:
    watch = HostWatch(topology)
    try:
        yield watch
    finally:
        watch.rings.close()
