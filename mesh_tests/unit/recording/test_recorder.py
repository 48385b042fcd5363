"""A node's own part of its ring: that it is told each second what changes, and at the end that it ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from addressing.topology.model import Topology
from mesh_tests.rings import Ring, read_ring
from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sites import site
from recording import recorder as module
from recording import ring_format as layout
from recording.recorder import recording, seconds
from recording.records import Recorder
from wire.log_events import NodeBug

pytestmark = pytest.mark.usefixtures("every_loop")

RECORDED = Topology.model_validate(
    {"mesh": "m", "routers": {"r1": {}}, "link_logs": {"level": "full", "ring_bytes": 1 << 20}}
)


@pytest.fixture(autouse=True)
def short_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PERIOD_S", 0.01)


def test_a_fault_in_what_a_second_brings_is_told_and_the_next_second_comes() -> None:
    async def scenario() -> None:
        recorder = Recorder(Ring(64).memory, "full")
        came: list[float] = []
        again = asyncio.Event()

        def stumble(now: float) -> None:
            came.append(now)
            if len(came) == 1:
                raise RuntimeError("stumbled")
            again.set()

        async with site() as server:
            async with seconds(recorder, server.driver, stumble):
                await again.wait()
            (bug,) = server.log.of(NodeBug)
            assert "stumbled" in bug.error
            assert "in stumble" in bug.traceback

    run(scenario)


def test_what_changed_last_is_told_when_the_driver_is_closed_and_utc_is_known() -> None:
    async def scenario() -> None:
        ring = Ring(64)
        recorder = Recorder(ring.memory, "full")
        told: list[bool] = []
        is_over = False
        async with site() as server, seconds(recorder, server.driver, lambda now: told.append(is_over)):
            await asyncio.sleep(0)
            is_over = True
        assert told[-1] is True
        assert told.count(True) == 1
        assert ring.number(layout.CLOCK_AT) > 0

    run(scenario)


def ends_of(rings: Path) -> list[dict[str, Any]]:
    (path,) = rings.glob("*.ring")
    return read_ring(path)


def test_the_last_that_a_node_records_is_that_it_stopped(tmp_path: Path) -> None:
    with recording(RECORDED, "r1", "router", tmp_path, lambda event: None) as (recorder, _):
        recorder.tell({"kind": "path", "egress": "r2"})
    assert ends_of(tmp_path)[-1] == {"kind": "node", "event": "closed", "cause": "stopped"}


def test_one_that_cannot_go_on_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no disk"), recording(RECORDED, "r1", "router", tmp_path, lambda event: None):
        raise OSError("no disk")
    assert ends_of(tmp_path) == [{"kind": "node", "event": "closed", "cause": "failed"}]


def test_that_a_node_stopped_is_recorded_though_its_ring_is_full(tmp_path: Path) -> None:
    with recording(RECORDED, "r1", "router", tmp_path, lambda event: None) as (recorder, _):
        while recorder.tell({"kind": "path", "egress": "r2"}):
            pass
    found = ends_of(tmp_path)
    assert len(found) > 1000
    assert found[-1] == {"kind": "node", "event": "closed", "cause": "stopped"}


def test_one_that_is_killed_says_nothing(tmp_path: Path) -> None:
    with recording(RECORDED, "r1", "router", tmp_path, lambda event: None) as (recorder, _):
        recorder.tell({"kind": "path", "egress": "r2"})
        assert ends_of(tmp_path) == [{"kind": "path", "egress": "r2"}]
