"""Random lives in which an operator closes connections and links of routers and brokers, by seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from mesh_tests.seeds import seeds
from mesh_tests.sim.fickle import FickleWalk
from mesh_tests.sim.invariants import CheckedMesh
from mesh_tests.sim.walk import RETRANSMITTED, WITH_EDGES, Walk
from recording.records import Recorder
from router.forwarding import ties
from wire.forced_end import ForcedEnd
from wire.log_events import ConnectionForced, LinkForced

FORCED = ForcedEnd("alice", "a random life")


class ForcedWalk(Walk):
    """Connections between nodes are closed, too; as a driver would, `heal` dials them again."""

    def make_mesh(self, folder: Path) -> SimMesh:
        rings: list[Ring] = []

        def recorder_of(name: str) -> Recorder:
            rings.append(Ring(1024, overwrites=True))
            return Recorder(rings[-1].memory, "full")

        return CheckedMesh(self, self.topology(), folder, recorder_of=recorder_of)

    def acts(self) -> list[tuple[int, Callable[[], None]]]:
        return [*super().acts(), (4, self.force_connection), (8, self.force_link), (1, self.force_all_links)]

    def _nodes(self) -> list[Any]:
        return [*self.mesh.routers.values(), *self.mesh.brokers.values()]

    def _numbers(self, node: Any) -> list[int]:
        """Of the connections that are open, in the node's records."""
        log = node._link_log
        return sorted(log.connection_numbers() if node in self.mesh.brokers.values() else log._recorded)

    def _links(self, node: Any, connection: int) -> list[int]:
        log = node._link_log
        if node in self.mesh.brokers.values():
            return sorted(log.links_of(log.endpoint_of(connection)))
        return sorted(log.numbers_of(connection))

    def force_connection(self) -> None:
        node = self.random.choice(self._nodes())
        if numbers := self._numbers(node):
            self._try(node.close_connection, self.random.choice(numbers), FORCED, self.mesh.now)
        self.mesh.flush()

    def force_link(self, share: float = 0.2) -> None:
        for node in self._nodes():
            for connection in self._numbers(node):
                links = self._links(node, connection)
                if links and self.random.random() < share:
                    self._try(node.close_link, connection, self.random.choice(links), FORCED, self.mesh.now)
        self.mesh.flush()

    def force_all_links(self) -> None:
        self.force_link(share=1)

    def _try(self, close: Callable[..., None], *arguments: Any) -> None:
        try:
            close(*arguments)
        except ValueError as refused:
            assert "expected" in str(refused)  # noqa: PT017 (many numbers are of circuits, which are kept)

    def heal(self) -> None:
        self.mesh.trunks = {pair: pipe for pair, pipe in self.mesh.trunks.items() if pipe in self.mesh.pipes}
        super().heal()


class RetransmittingForcedWalk(ForcedWalk):
    RPC = RETRANSMITTED


class ForcedEdgeWalk(ForcedWalk):
    ROUTERS = WITH_EDGES


class ForcedFickleWalk(ForcedWalk, FickleWalk):
    pass


KINDS: tuple[type[ForcedWalk], ...] = (ForcedWalk, RetransmittingForcedWalk, ForcedEdgeWalk, ForcedFickleWalk)


@pytest.mark.parametrize("seed", seeds(16))
def test_whatever_an_operator_closes_nothing_accepted_is_lost_and_nothing_is_stuck(tmp_path: Path, seed: int):
    ties_before = ties.count()
    walk = KINDS[seed % len(KINDS)](seed, tmp_path)
    walk.live(200)
    assert ties.count() == ties_before, "a delivery that is settled everywhere is still tied"
    kinds = {type(event) for _, _, event in walk.mesh.log}
    assert {ConnectionForced, LinkForced} <= kinds
