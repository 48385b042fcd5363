"""Is there what a test needs beside amqpmesh? If not: skip and say how to get it, or fail where it must be there."""

import os
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[1] / ".peers"


def require(is_there: bool, what: str, command: str = "make peers") -> None:
    """``command`` is what gets it."""
    if is_there:
        return
    reason = f"needs {what}: run `{command}`"
    if os.environ.get("AMQPMESH_REQUIRE_PEERS"):
        pytest.fail(reason)
    pytest.skip(reason)
