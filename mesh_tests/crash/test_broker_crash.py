"""Kill -9 at random moments under load and at every failpoint: what a broker promised must hold."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mesh_tests.crash.crashes import WAYS, Crashes
from mesh_tests.seeds import seeds

ROUNDS = 20


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds(1))
def test_nothing_accepted_is_lost_and_nothing_confirmed_comes_back(
    tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(seed)
    crashes = Crashes(tmp_path, chance)
    ways = [*WAYS, *chance.choices(WAYS, k=ROUNDS - len(WAYS))]
    chance.shuffle(ways)
    for way in ways:
        print(way)  # noqa: T201 (the last is what it died of)
        crashes.crash(way)
    crashes.finish()
    record_property("crashes", len(ways))
    for ledger in crashes.ledgers.values():
        for name, count in ledger.counts.items():
            record_property(name, count)
