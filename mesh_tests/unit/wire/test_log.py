from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from wire.log import BURST, HOST_BURST, EventLog, Level, LogEvent


@dataclass(frozen=True, slots=True)
class TestNeighborExpired(LogEvent):
    __test__: ClassVar[bool] = False
    level: ClassVar[Level] = "warning"
    router: str
    silent_s: float | None = None


@dataclass(frozen=True, slots=True)
class TestPeerRefused(LogEvent):
    __test__: ClassVar[bool] = False
    level: ClassVar[Level] = "warning"
    remote: str


@dataclass(frozen=True, slots=True)
class TestLinkEnded(LogEvent):
    __test__: ClassVar[bool] = False
    level: ClassVar[Level] = "warning"
    client: str


class Paper:
    def __init__(self, level: Level = "info") -> None:
        self.stream = io.StringIO()
        self.now = 0.0
        moment = datetime(2025, 6, 1, 12, 0, 0, 123456, UTC)
        self.log = EventLog("r1", stream=self.stream, level=level, clock=lambda: self.now, wall_clock=lambda: moment)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


def test_an_event_is_one_json_object_on_a_line() -> None:
    paper = Paper()
    paper.log.emit(TestNeighborExpired("r3\nr4", silent_s=3.1))
    assert paper.stream.getvalue() == (
        '{"ts": "2025-06-01T12:00:00.123Z", "level": "warning", "node": "r1", '
        '"event": "test_neighbor_expired", "router": "r3\\nr4", "silent_s": 3.1}\n'
    )


def test_fields_without_a_value_are_left_out() -> None:
    paper = Paper()
    paper.log.emit(TestNeighborExpired("r3"))
    assert "silent_s" not in paper.lines[0]


def test_events_below_the_level_are_not_written() -> None:
    paper = Paper(level="error")
    paper.log.emit(TestNeighborExpired("r3"))
    assert paper.lines == []


def test_a_flood_is_cut_and_counted() -> None:
    paper = Paper()
    for _ in range(BURST + 50):
        paper.log.emit(TestNeighborExpired("r3"))
    assert len(paper.lines) == BURST
    paper.now = 1.0
    paper.log.emit(TestNeighborExpired("r3"))
    assert paper.lines[-1]["suppressed"] == 50
    paper.log.emit(TestNeighborExpired("r3"))
    assert "suppressed" not in paper.lines[-1]


def test_one_host_does_not_use_up_the_lines_of_all() -> None:
    paper = Paper()
    for port in range(BURST + 50):
        paper.log.emit(TestPeerRefused(f"192.0.2.1:{port}"))
        paper.log.emit(TestLinkEnded(f"evil at 192.0.2.1:{port}"))
    assert len(paper.lines) == 2 * HOST_BURST
    paper.log.emit(TestPeerRefused("192.0.2.2:1"))
    paper.log.emit(TestLinkEnded("good at [2001:db8::1]:1"))
    assert [line.get("remote") or line.get("client") for line in paper.lines[-2:]] == [
        "192.0.2.2:1",
        "good at [2001:db8::1]:1",
    ]
    paper.now = 1.0
    paper.log.emit(TestPeerRefused("192.0.2.1:9"))
    assert paper.lines[-1]["suppressed"] == BURST + 50 - HOST_BURST


def test_hosts_without_number_take_no_memory() -> None:
    paper = Paper()
    for host in range(5000):
        paper.log.emit(TestPeerRefused(f"192.0.{host >> 8}.{host & 255}:1"))
    assert len(paper.log._hosts) <= 1000


def test_a_closed_stream_is_no_reason_to_fail() -> None:
    paper = Paper()
    paper.stream.close()
    paper.log.emit(TestNeighborExpired("r3"))


def test_every_kind_is_known_by_its_stable_name() -> None:
    assert LogEvent.kinds["test_neighbor_expired"] is TestNeighborExpired
