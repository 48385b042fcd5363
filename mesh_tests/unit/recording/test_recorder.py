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
from recording.process_load import cpu_us
from recording.recorder import recording, seconds
from recording.records import Recorder
from wire.log_events import NodeBug

pytestmark = pytest.mark.usefixtures("every_loop")

RECORDED = Topology.model_validate(
    {"mesh": "m", "routers": {"r1": {}}, "link_logs": {"level": "full", "ring_bytes": 1 << 20}}
)


def nobody() -> tuple[int, int]:
    return 0, 0


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
            async with seconds(recorder, server.driver, stumble, nobody):
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
        async with site() as server, seconds(recorder, server.driver, lambda now: told.append(is_over), nobody):
            await asyncio.sleep(0)
            is_over = True
        assert told[-1] is True
        assert told.count(True) == 1
        assert ring.number(layout.CLOCK_AT) > 0

    run(scenario)


def test_every_tenth_second_a_node_tells_what_load_it_has() -> None:
    async def scenario() -> None:
        ring = Ring(1024)
        recorder = Recorder(ring.memory, "full")
        came: list[float] = []
        is_enough = asyncio.Event()

        def on_second(now: float) -> None:
            came.append(now)
            if len(came) == 12:
                is_enough.set()

        before_us = cpu_us()
        async with site() as server, seconds(recorder, server.driver, on_second, lambda: (3, 7)):
            await is_enough.wait()
        rows = ring.take()[1]
        assert [(row["kind"], row["event"], row["connections"], row["links"]) for row in rows] == [
            ("node", "changed", 3, 7)
        ] * 2
        first, second = rows
        assert before_us <= first["cpu_us"] < second["cpu_us"] <= cpu_us()
        assert 10 << 20 < second["resident_bytes"] < 10 << 30

    run(scenario)


def test_a_full_ring_does_without_the_load_and_counts_no_loss() -> None:
    async def scenario() -> None:
        ring = Ring(64)
        recorder = Recorder(ring.memory, "full")
        while recorder.tell_late({"kind": "path", "egress": "r2"}):
            pass
        is_enough = asyncio.Event()
        async with site() as server, seconds(recorder, server.driver, lambda now: is_enough.set(), nobody):
            await is_enough.wait()
        assert ring.number(layout.DROPPED_AT) == 0
        assert {row["kind"] for row in ring.take()[1]} == {"path"}

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
