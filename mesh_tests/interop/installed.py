"""Is a broker or client of others there? If not: skip and say how to get it, or fail where it must be there."""

import os
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[2] / ".peers"


def require(is_installed: bool, what: str, by: str = "make peers") -> None:
    if is_installed:
        return
    reason = f"needs {what}: run `{by}`"
    if os.environ.get("AMQPMESH_REQUIRE_PEERS"):
        pytest.fail(reason)
    pytest.skip(reason)
