"""Faults of nodes in a random life: routers and brokers crash, and all that is missing comes back."""

from __future__ import annotations

import random
from typing import Any

from mesh.simulation.sim_mesh import SimMesh


class NodeFaults:
    """The faults of the nodes of ``mesh``, in a life whose choices are those of ``random``."""

    mesh: SimMesh | Any
    random: random.Random

    def kill_router(self) -> None:
        if len(self.mesh.routers) > 2:
            name = self.random.choice(sorted(self.mesh.routers))
            self.mesh.trunks = {pair: pipe for pair, pipe in self.mesh.trunks.items() if name not in pair}
            self.mesh.kill(name)

    def kill_broker(self) -> None:
        if self.mesh.brokers:
            self.mesh.kill_broker(self.random.choice(sorted(self.mesh.brokers)))

    def heal(self) -> None:
        mesh = self.mesh
        for name in mesh.topology.routers:
            if name not in mesh.routers:
                mesh.start(name)
        for edge in mesh.topology.edges():
            if frozenset({edge.dialer, edge.to}) not in mesh.trunks:
                mesh.link(edge.dialer, edge.to)
        for name in mesh.topology.brokers:
            if name not in mesh.brokers:
                mesh.start_broker(name)
