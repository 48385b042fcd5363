"""Random lives in which connections are traced for a while: nothing changes by that, and each frame is understood."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mesh_tests.seeds import seeds
from mesh_tests.sim.fickle import FickleWalk
from mesh_tests.sim.walk import WITH_EDGES, Walk
from router.forwarding import ties
from wire.endpoint import Endpoint
from wire.frame_trace import FrameTrace, TraceLine


class TracedWalk(Walk):
    ROUTERS = WITH_EDGES

    def __init__(self, *arguments: Any) -> None:
        self.traces: dict[Endpoint, FrameTrace] = {}
        self.lines: list[TraceLine] = []
        super().__init__(*arguments)

    def acts(self) -> list[tuple[int, Callable[[], None]]]:
        return [*super().acts(), (10, self.begin_trace), (5, self.end_trace)]

    def begin_trace(self) -> None:
        ends = [end for pipe in self.mesh.pipes for _, end in pipe.ends if end.remote is not None and not end.is_freed]
        if not ends or (endpoint := self.random.choice(ends)) in self.traces:
            return
        trace = FrameTrace(
            endpoint, self.lines.append, lambda: self.mesh.now, lambda reason: self.traces.pop(endpoint) and None
        )
        self.traces[endpoint] = trace
        trace.begin()

    def end_trace(self) -> None:
        if self.traces:
            self.random.choice(list(self.traces.values())).end("a random life")


class TracedFickleWalk(TracedWalk, FickleWalk):
    pass


@pytest.mark.parametrize("seed", seeds(8))
def test_a_trace_changes_nothing_and_understands_each_frame_but_shows_no_body(tmp_path: Path, seed: int):
    ties_before = ties.count()
    walk = (TracedWalk, TracedFickleWalk)[seed % 2](seed, tmp_path)
    walk.live(150)
    assert ties.count() == ties_before
    assert not [line for line in walk.lines if line["frame"] == "malformed"]
    assert {line["frame"] for line in walk.lines} >= {"transfer", "disposition", "flow", "attach"}
    assert {line["direction"] for line in walk.lines} == {"in", "out"}
    # Each body says `no=` and its number.
    assert "no=0" not in (text := json.dumps(walk.lines))
    assert b"no=0".hex() not in text
