"""What simulations share: where the consumer is, in a line of routers whose first has the producer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mesh_tests.egress import BETWEEN
from mesh_tests.sim.world import STORES


@pytest.fixture(autouse=True)
def _close_stores() -> Iterator[None]:
    """A world is full of cycles: its brokers' files would stay open until somebody collects them."""
    yield
    while STORES:
        STORES.pop().close()


@pytest.fixture(params=BETWEEN, ids=BETWEEN.values())
def egress(request: pytest.FixtureRequest) -> str:
    return str(request.param)
