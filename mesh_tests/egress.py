"""How many routers are there between a producer at r1 of a line and its consumer?"""

from __future__ import annotations

import pytest

BETWEEN = {"r1": "1 router", "r2": "2 routers", "r3": "3 routers"}


def egress_at(*routers: str) -> pytest.MarkDecorator:
    """The consumer is at each of ``routers`` in turn, not at all three."""
    return pytest.mark.parametrize("egress", routers, ids=[BETWEEN[router] for router in routers], indirect=True)
