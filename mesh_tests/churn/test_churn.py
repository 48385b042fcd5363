"""A short churn in each run of the tests; `make soak` leads one of half an hour."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mesh_tests.churn.churn import lead
from mesh_tests.churn.samples import BLOCKS, DESCRIPTORS, trends
from mesh_tests.seeds import seeds

SECONDS = float(os.environ.get("LIFE_SECONDS", "20"))
BLOCKS_A_NAME = 40
"""Objects in cycles wait for a collection, which a life this short may not come to."""


@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("seed", seeds(1))
def test_clients_and_addresses_that_come_and_go_leave_no_descriptor_and_few_objects(tmp_path: Path, seed: int) -> None:
    samples, population = lead(seed, SECONDS, tmp_path)
    for kind in ("accepted", "released", "arrived", "closed in order", "dropped without a close"):
        assert population.counts[kind] > 0, population.counts
    assert not [name for name in population.counts if "by the router" in name], population.counts
    most = BLOCKS_A_NAME * population.names.count
    grown = [
        each
        for each in trends(samples)
        if (each.measure == DESCRIPTORS and not each.is_flat) or (each.measure == BLOCKS and each.growth > most)
    ]
    assert grown == []
