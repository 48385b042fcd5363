"""Random lives of a mesh, by seed. A seed that failed once stays in the list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mesh_tests.seeds import seeds
from mesh_tests.sim.walk import RETRANSMITTED, Walk
from router.forwarding import ties

FAILED_ONCE = 722
SEEDS = seeds(25, FAILED_ONCE, 100_079, 100_946)


class RetransmittingWalk(Walk):
    RPC = RETRANSMITTED


class CostlyWalk(Walk):
    """Operators change what connections cost all the time, and paths with it."""

    def acts(self) -> list[tuple[int, Callable[[], None]]]:
        return [*super().acts(), (6, self.change_cost)]

    def change_cost(self) -> None:
        edge = self.random.choice(list(self.mesh.topology.edges()))
        cost = self.random.randint(1, 6)
        for router, other in ((edge.dialer, edge.to), (edge.to, edge.dialer)):
            if router in self.mesh.routers:
                self.mesh.routers[router].set_cost(other, cost, self.mesh.now)
        self.mesh.flush()


KINDS: tuple[type[Walk], ...] = (Walk, RetransmittingWalk, CostlyWalk)
LIVES = [(kind, seed) for seed in SEEDS for kind in (KINDS if seed == FAILED_ONCE else [KINDS[seed % 3]])]


@pytest.mark.parametrize(("kind", "seed"), LIVES)
def test_after_any_faults_every_delivery_is_answered_and_no_accepted_one_is_lost(
    tmp_path: Path, kind: type[Walk], seed: int
):
    ties_before = ties.count()
    walk = kind(seed, tmp_path)
    walk.live(250)
    assert ties.count() == ties_before, "a delivery that is settled everywhere is still tied"
