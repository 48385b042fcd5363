"""Random lives with fickle consumers, by seed. A seed that failed once stays in the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_tests.seeds import seeds
from mesh_tests.sim.fickle import FickleWalk
from router.forwarding import ties

SEEDS = seeds(20, 30, 40, 58, 68, 76, 1407, 2349, 3015, 4040, 5044, 9009, 100_097, 100_402, 100_709, 100_780)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_consumers_do_with_their_credit_nobody_is_starved(tmp_path: Path, seed: int):
    ties_before = ties.count()
    walk = FickleWalk(seed, tmp_path)
    walk.live(150)
    assert walk.kept() == []
    assert ties.count() == ties_before, "a delivery that nobody has any more is still tied"
