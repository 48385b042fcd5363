"""A broker of a simulated mesh: a real broker node with a real store on disk, whose writes take no virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from addressing.topology.model import DeclaredAddress, Topology
from broker.node import BrokerNode
from broker.store.batch import Store
from broker.store.sqlite import SqliteStore
from mesh.simulation.world import World
from recording.records import Recorder

WALL_OFFSET_S = 1_700_000_000.0
"""Unix time minus virtual time, the same for every node of a simulation."""


class SimBroker(BrokerNode):
    def __init__(
        self,
        world: World,
        topology: Topology,
        name: str,
        folder: Path,
        recorder: Recorder,
        spaces: Mapping[str, Mapping[str, DeclaredAddress]] | None = None,
    ) -> None:
        self.world = world
        self.store: Store = SqliteStore(folder)
        self._is_closed = False
        super().__init__(
            name,
            topology,
            self.store.load(),
            now=world.now,
            wall_offset_s=WALL_OFFSET_S,
            secret=f"secret-{world.now}",
            log=lambda event: world.log.append((world.now, name, event)),
            recorder=recorder,
            spaces=spaces,
        )

    def close(self) -> None:
        """Close the files of the broker's store; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self.store.close()

    def serve_disk(self) -> bool:
        """Do the pending reads of bodies and the pending commit of the broker node; return True if there were any."""
        fetches = self.take_fetches()
        if fetches:
            self.on_fetched(fetches, self.store.read([fetch.wanted for fetch in fetches]), self.world.now)
        batch = self.take_batch()
        if batch is not None:
            self.store.commit(batch)
            self.on_committed(self.world.now)
        return bool(fetches) or batch is not None
