"""A short random life over sockets in each run of the tests; `make soak` leads one of half an hour."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mesh_tests.engines import free_engines
from mesh_tests.faults.life import lead
from mesh_tests.seeds import seeds

__all__ = ["free_engines"]

SECONDS = float(os.environ.get("LIFE_SECONDS", "20"))


@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("seed", seeds(2))
def test_whatever_processes_and_clients_do_nothing_is_lost_stuck_or_left_behind(tmp_path: Path, seed: int) -> None:
    lead(seed, SECONDS, tmp_path)
