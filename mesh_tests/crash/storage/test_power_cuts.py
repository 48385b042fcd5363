"""At any moment, with any part left of what was not synced: is what was promised there, and each batch whole or not?"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.store.batch import QueueKind
from mesh_tests.crash.storage.judging import look_at
from mesh_tests.crash.storage.operations import Kept, disks
from mesh_tests.crash.storage.plan import Plan
from mesh_tests.crash.storage.recording import record
from mesh_tests.crash.storage.workload import BATCHES
from mesh_tests.seeds import seeds

MOMENTS = 40


@pytest.mark.parametrize("seed", seeds(3))
def test_after_a_power_cut_what_was_promised_is_there_and_a_batch_is_there_whole_or_not(
    recorder: Path, tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    plan, recording, chance = Plan(seed, BATCHES), record(recorder, seed, tmp_path), random.Random(seed)
    assert recording.exit_code == 0, recording.said
    assert recording.batches_before(len(recording.operations)) == BATCHES
    moments = {*chance.sample(range(len(recording.operations)), MOMENTS - 1), len(recording.operations)}
    for number, disk in disks(recording.operations):
        if number in moments:
            for kept in Kept:
                left = disk.left(kept, chance)
                look_at(left, tmp_path / f"{number}-{kept.value}", plan, recording.batches_before(number))
    record_property("power cuts", MOMENTS * len(Kept))


def test_the_batches_have_all_that_a_broker_writes() -> None:
    plans = [Plan(seed, BATCHES) for seed in range(1, 4)]
    batches = [batch for plan in plans for batch in plan.batches]
    for what in (
        "queues",
        "messages",
        "entries",
        "counts",
        "causes",
        "marks",
        "archived",
        "forgotten_causes",
        "annotations",
    ):
        assert sum(bool(getattr(batch, what)) for batch in batches) > 3, what
    for what in ("dropped_messages", "dropped_queues", "pieces", "sealed", "unlinked"):
        assert sum(bool(getattr(batch, what)) for batch in batches) > 3, what
    kinds = {row.kind for batch in batches for row in batch.queues}
    assert kinds == set(QueueKind)
    assert {expires_at_ms is None for plan in plans for expires_at_ms in plan.expires_at_ms.values()} == {True, False}
    had_messages = [
        plan.states[number].entries
        for plan in plans
        for number, batch in enumerate(plan.batches)
        if any(queue in batch.dropped_queues for queue, _ in plan.states[number].entries)
    ]
    assert had_messages, "no queue was dropped with what it had"
