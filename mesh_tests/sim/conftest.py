"""What simulations share: where the consumer is, in a line of routers whose first has the producer."""

from __future__ import annotations

import pytest

from mesh_tests.egress import BETWEEN


@pytest.fixture(params=BETWEEN, ids=BETWEEN.values())
def egress(request: pytest.FixtureRequest) -> str:
    return str(request.param)
