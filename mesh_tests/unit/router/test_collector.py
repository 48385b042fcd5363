"""How long may Python's garbage collector stop a router? It looks through few objects at a time."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from router.run import _calm_collector


@pytest.fixture
def _as_in_a_router() -> Iterator[None]:
    before = gc.get_threshold()
    try:
        _calm_collector()
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@pytest.mark.usefixtures("_as_in_a_router")
def test_no_collection_of_a_storm_looks_through_more_than_ten_thousand_objects() -> None:
    looked_through: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looked_through.append(sum(len(gc.get_objects(young)) for young in range(info["generation"] + 1)))

    gc.callbacks.append(note)
    try:
        kept = [[number] for number in range(100_000)]
    finally:
        gc.callbacks.remove(note)
    assert len(kept) == 100_000
    assert len(looked_through) >= 10
    assert max(looked_through) <= 10_500
