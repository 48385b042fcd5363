"""What does it cost neighbors to say the same again and again?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mesh_tests.sim.line import line
from router.circuits import neighbor


def test_a_hello_that_says_the_same_is_encoded_and_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    for name in ("encode", "decode"):
        original = getattr(neighbor, name)

        def counted(what: Any, name: str = name, original: Any = original) -> Any:
            calls[name] += 1
            return original(what)

        monkeypatch.setattr(neighbor, name, counted)
    mesh = line(2)
    mesh.run(2)
    calls.clear()
    mesh.run(10)
    assert calls.total() == 0
    mesh.routers["r1"].set_cost("r2", 7, mesh.now)
    mesh.run(5)
    assert set(mesh.routers["r2"].edges().values()) == {7}
    assert calls["encode"] == calls["decode"] <= 6


def test_a_long_control_message_is_not_kept() -> None:
    mesh = line(2)
    client = mesh.client("r1")
    for number in range(200):
        client.receiver(f"work.{number:03}-{'x' * 100}")
    mesh.run(1)
    (ends,) = (pipe.ends for pipe in mesh.trunks.values())
    for _, endpoint in ends:
        assert len(endpoint.owner._said[2]) <= 256
        assert len(endpoint.owner._in._heard[0]) <= 256
