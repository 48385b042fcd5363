"""Does a seed lead to the same life in every process, to the last byte that a consumer saw?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mesh_tests.programs import IMPORT_PATH

TELL = """
import sys
from pathlib import Path
from mesh_tests.sim.fickle import FickleWalk
walk = FickleWalk(int(sys.argv[1]), Path(sys.argv[2]))
walk.live(100)
print(walk.trace)
print([(f"{at:.6f}", who, str(event)) for at, who, event in walk.mesh.log])
print([receiver.messages for _, _, receiver in walk.receivers])
print([sender.outcomes for _, _, sender in walk.senders])
"""


def life(seed: int, folder: Path, hash_seed: int) -> str:
    """What was done, logged, seen and answered; text has other hashes with each ``hash_seed``."""
    folder.mkdir()
    command = [sys.executable, "-c", TELL, str(seed), str(folder)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), **IMPORT_PATH}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("seed", [7, 8])
def test_the_same_seed_leads_the_same_life_in_any_process(tmp_path: Path, seed: int) -> None:
    first = life(seed, tmp_path / "first", 1)
    assert len(first) > 10_000
    assert life(seed, tmp_path / "second", 2) == first


def test_another_seed_leads_another_life(tmp_path: Path) -> None:
    assert life(7, tmp_path / "first", 1) != life(8, tmp_path / "second", 1)
