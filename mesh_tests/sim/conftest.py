"""What simulations share: where the consumer is, in a line of routers whose first has the producer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mesh.simulation.sim_broker import SimBroker
from mesh_tests.egress import BETWEEN
from mesh_tests.engines import free_engines
from mesh_tests.rings import Ring
from router.connections.peers import RouterConnection
from wire.core import LinkCore
from wire.engine import Pointer
from wire.link import Link

__all__ = ["egress", "free_engines"]


@pytest.fixture(autouse=True)
def _close_stores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A world is full of cycles: its brokers' files would stay open until somebody collects them."""
    brokers: list[SimBroker] = []
    begin = SimBroker.__init__

    def begin_and_remember(broker: SimBroker, *arguments: Any) -> None:
        begin(broker, *arguments)
        brokers.append(broker)

    monkeypatch.setattr(SimBroker, "__init__", begin_and_remember)
    yield
    for broker in brokers:
        broker.close()


@pytest.fixture(autouse=True)
def _no_link_is_read_once_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A router's read of what the engine has freed finds whatever is there now: only a sanitizer would notice."""
    stored = vars(LinkCore)["pointer"]

    def pointer(link: Link) -> Pointer:
        is_ours = isinstance(link.endpoint.owner, RouterConnection)
        assert not (is_ours and link.is_gone), f"link {link.name!r} is read after its engine part was freed"
        return stored.__get__(link)

    monkeypatch.setattr(Link, "pointer", property(pointer))


@pytest.fixture(params=BETWEEN, ids=BETWEEN.values())
def egress(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ring() -> Ring:
    return Ring(4096)
