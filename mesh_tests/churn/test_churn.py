"""A short churn in each run of the tests; `make soak` leads one of half an hour."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mesh_tests.churn.churn import lead
from mesh_tests.churn.samples import BLOCKS, DESCRIPTORS, SMALL
from mesh_tests.seeds import seeds

SECONDS = float(os.environ.get("LIFE_SECONDS", "20"))
RESTS = 2
BLOCKS_A_NAME = 12
"""Caches of addresses are not full after a life this short."""


@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("seed", seeds(1))
def test_clients_and_addresses_that_come_and_go_leave_no_descriptor_and_few_objects(tmp_path: Path, seed: int) -> None:
    record = lead(seed, SECONDS, tmp_path, rests=RESTS)
    for kind in ("accepted", "released", "arrived", "closed in order", "dropped without a close"):
        assert record.counts[kind] > 0, record.counts
    assert not [name for name in record.counts if "by the router" in name], record.counts
    first, last = record.rests[0].processes, record.rests[-1].processes
    for name, measures in last.items():
        assert measures[DESCRIPTORS] <= first[name][DESCRIPTORS] + SMALL[DESCRIPTORS]
        assert measures.get(BLOCKS, 0) <= first[name].get(BLOCKS, 0) + BLOCKS_A_NAME * record.counts["names"]
