"""What proton has for a test's connections goes when the test does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from wire.endpoint import Endpoint


@pytest.fixture(autouse=True)
def free_engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Simulated worlds end in the middle of everything: what proton has for each would stay, gigabytes in the end."""
    endpoints: list[Endpoint] = []
    begin = Endpoint.__init__

    def begin_and_remember(endpoint: Endpoint, *arguments: Any, **settings: Any) -> None:
        begin(endpoint, *arguments, **settings)
        endpoints.append(endpoint)

    monkeypatch.setattr(Endpoint, "__init__", begin_and_remember)
    yield
    for endpoint in endpoints:
        endpoint.free()
