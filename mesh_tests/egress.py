"""How many routers are there between a producer at r1 of a line and its consumer, and where is a row known to fail?"""

from __future__ import annotations

from collections.abc import Collection

import pytest

BETWEEN = {"r1": "1 router", "r2": "2 routers", "r3": "3 routers"}


def egress_at(*routers: str, failing: Collection[str] = (), reason: str = "") -> pytest.MarkDecorator:
    """The consumer is at each of ``routers`` in turn; at those in ``failing`` the test fails today, for ``reason``."""
    known = pytest.mark.xfail(strict=True, reason=reason)
    params = [
        pytest.param(router, id=BETWEEN[router], marks=[known] if router in failing else []) for router in routers
    ]
    return pytest.mark.parametrize("egress", params, indirect=True)
