"""A sync, a write or all room fails: does the store end, and is what was promised there?"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mesh_tests.crash.storage.judging import look_at
from mesh_tests.crash.storage.operations import Kept, disks
from mesh_tests.crash.storage.plan import Plan
from mesh_tests.crash.storage.recording import Recording, record
from mesh_tests.crash.storage.workload import BATCHES, REFUSED

NUMBERS = (2, 30, 58)
"""Of the write or sync that fails, or of one of the next. One that fails in a checkpoint, or for the copy of the first
page, is no error, because the next checkpoint or start writes all of it again."""
MOST_OF_A_CHECKPOINT = 60


def record_failing(recorder: Path, folder: Path, failing: str) -> Recording:
    kind, _, number = failing.partition(":")
    for later in range(0, MOST_OF_A_CHECKPOINT, 3):
        recording = record(recorder, 1, folder / f"{later}", failing=f"{kind}:{int(number) + later}")
        if recording.exit_code:
            break
    return recording


@pytest.mark.parametrize("failing", [f"{kind}:{number}" for kind in ("sync", "write", "full") for number in NUMBERS])
def test_a_disk_that_fails_ends_the_store_and_what_was_promised_is_there(
    recorder: Path, tmp_path: Path, failing: str
) -> None:
    recording = record_failing(recorder, tmp_path, failing)
    assert recording.exit_code == REFUSED, recording.said
    promised = recording.batches_before(len(recording.operations))
    assert promised < BATCHES
    *_, (_, disk) = disks(recording.operations)
    for kept in Kept:
        look_at(disk.left(kept, random.Random(1)), tmp_path / kept.value, Plan(1, BATCHES), promised)


@pytest.mark.parametrize("number", NUMBERS)
def test_of_a_write_that_was_cut_short_the_rest_follows(recorder: Path, tmp_path: Path, number: int) -> None:
    recording = record(recorder, 1, tmp_path, failing=f"short:{number}")
    assert recording.exit_code == 0, recording.said
    *_, (_, disk) = disks(recording.operations)
    look_at(disk.left(Kept.NOTHING, random.Random(1)), tmp_path / "left", Plan(1, BATCHES), BATCHES)
