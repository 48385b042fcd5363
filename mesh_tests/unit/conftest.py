"""What all unit tests share. Tests over sockets run on asyncio's loop and, where it is installed, on uvloop."""

import pytest

from mesh_tests.engines import free_engines
from mesh_tests.unit.wire import loops

__all__ = ["free_engines"]


@pytest.fixture(params=["asyncio", "uvloop"])
def every_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "uvloop":
        uvloop = pytest.importorskip("uvloop", reason="pip install uvloop")
        monkeypatch.setattr(loops, "factory", uvloop.new_event_loop)
