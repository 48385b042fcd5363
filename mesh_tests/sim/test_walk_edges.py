"""Random lives of a mesh with edge routers, by seed. A seed that failed once stays in the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_tests.seeds import seeds
from mesh_tests.sim.fickle import FickleWalk
from mesh_tests.sim.walk import RETRANSMITTED, WITH_EDGES, Walk
from router.forwarding import ties

SEEDS = seeds(4, 100, 104, 100_228, 100_237, 100_239, 100_300, 100_315, 100_913)


class EdgeWalk(Walk):
    ROUTERS = WITH_EDGES


class RetransmittingEdgeWalk(EdgeWalk):
    RPC = RETRANSMITTED


class FickleEdgeWalk(FickleWalk):
    ROUTERS = WITH_EDGES


@pytest.mark.parametrize("kind", [EdgeWalk, RetransmittingEdgeWalk])
@pytest.mark.parametrize("seed", SEEDS)
def test_after_any_faults_every_delivery_is_answered_and_no_accepted_one_is_lost(
    tmp_path: Path, seed: int, kind: type[Walk]
):
    ties_before = ties.count()
    walk = kind(seed, tmp_path)
    walk.live(250)
    assert ties.count() == ties_before, "a delivery that is settled everywhere is still tied"


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_consumers_do_with_their_credit_nobody_is_starved(tmp_path: Path, seed: int):
    ties_before = ties.count()
    walk = FickleEdgeWalk(seed, tmp_path)
    walk.live(250)
    assert walk.kept() == []
    assert ties.count() == ties_before, "a delivery that nobody has any more is still tied"
