"""Random lives of random meshes with every option of an address, by seed. A seed that failed once stays in the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_tests.seeds import seeds
from mesh_tests.sim.broad import BroadWalk
from router.forwarding import ties

SEEDS = seeds(15)


@pytest.mark.parametrize("seed", SEEDS)
def test_in_any_mesh_every_delivery_is_answered_and_no_accepted_one_is_lost(tmp_path: Path, seed: int) -> None:
    ties_before = ties.count()
    walk = BroadWalk(seed, tmp_path)
    walk.live(250)
    assert ties.count() == ties_before, "a delivery that is settled everywhere is still tied"
