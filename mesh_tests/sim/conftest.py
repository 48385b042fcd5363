"""What simulations share: how many routers there are between a producer at r1 of a line and its consumer."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["r1", "r2", "r3"], ids=["1 router", "2 routers", "3 routers"])
def egress(request: pytest.FixtureRequest) -> str:
    return str(request.param)
