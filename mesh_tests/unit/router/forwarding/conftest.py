"""Rigs for tests, and what every rig must leave behind: nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mesh_tests.unit.router.forwarding.rig import Rig
from router.forwarding import ties

MakeRig = Callable[..., Rig]


@pytest.fixture
def make_rig() -> Iterator[MakeRig]:
    """Makes rigs. After the test all connections are lost: no tie may be left then, and no byte of a copy."""
    before, rigs = ties.count(), []

    def make(**settings: Any) -> Rig:
        rigs.append(Rig(**settings))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()
        assert rig.copies.used_bytes == 0
    assert ties.count() == before


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    return make_rig()
