"""Hostile dialogues at every kind of port of a simulated mesh: no death, no exception of ours, and others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_tests.engines import free_engines
from mesh_tests.fuzz.dialogues import dialogue
from mesh_tests.fuzz.simulated import TARGETS, FuzzedMesh
from mesh_tests.seeds import seeds

__all__ = ["free_engines"]

BATCH = 100


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("batch", seeds(4))
def test_no_dialogue_of_a_peer_is_a_fault_of_ours(tmp_path: Path, target: str, batch: int):
    mesh = FuzzedMesh(tmp_path)
    try:
        for seed in range(batch * BATCH, (batch + 1) * BATCH):
            mesh.speak(target, dialogue(seed, voice=TARGETS[target]))
            assert not mesh.faults, mesh.faults[0]
            if seed % 10 == 0:
                mesh.check_bystanders()
        mesh.check_bystanders()
        assert mesh.left_behind() == []
    finally:
        mesh.close()
