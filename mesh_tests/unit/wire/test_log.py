from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from hypothesis import given, settings, strategies

from wire.log import BURST, HOST_BURST, HOST_RATE_PER_S, EventLog, Level, LogEvent


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


hosts_and_waits = strategies.lists(
    strategies.tuples(strategies.integers(0, 3), strategies.sampled_from((0.0, 1.0, 20.0, 49.0, 50.0, 51.0)))
)


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


@settings(max_examples=200)
@given(hosts_and_waits)
def test_a_host_without_recent_events_takes_no_memory(steps: list[tuple[int, float]]) -> None:
    """``steps``: a host, and the seconds to its event."""
    paper, seen = Paper(), dict[int, float]()
    for host, wait_s in steps:
        paper.now += wait_s
        paper.log.emit(TestPeerRefused(f"192.0.2.{host}:1"))
        seen[host] = paper.now
        recent = [each for each, at in seen.items() if paper.now - at < HOST_BURST / HOST_RATE_PER_S]
        assert {key[1] for key in paper.log._hosts} == {f"192.0.2.{each}" for each in recent}


@settings(max_examples=200)
@given(hosts_and_waits)
def test_a_forgotten_host_may_cause_as_many_lines_as_one_that_was_kept(steps: list[tuple[int, float]]) -> None:
    """The reference keeps all hosts. No line is written too many, and none is lost without being counted."""
    paper, tokens, seen = Paper(), dict[int, float](), dict[int, float]()
    written = emitted = 0
    for host, wait_s in steps:
        paper.now += wait_s
        whole = HOST_BURST
        tokens[host] = min(whole, tokens.get(host, whole) + (paper.now - seen.get(host, paper.now)) * HOST_RATE_PER_S)
        seen[host] = paper.now
        for _ in range(HOST_BURST // 2):
            emitted += 1
            paper.log.emit(TestPeerRefused(f"192.0.2.{host}:1"))
            if tokens[host] >= 1:
                tokens[host], written = tokens[host] - 1, written + 1
        assert len(paper.lines) == written
    paper.now += 1000.0
    paper.log.emit(TestPeerRefused("198.51.100.1:1"))
    assert len(paper.lines) + sum(line.get("suppressed", 0) for line in paper.lines) == emitted + 1


def test_a_closed_stream_is_no_reason_to_fail() -> None:
    paper = Paper()
    paper.stream.close()
    paper.log.emit(TestNeighborExpired("r3"))


def test_every_kind_is_known_by_its_stable_name() -> None:
    assert LogEvent.kinds["test_neighbor_expired"] is TestNeighborExpired
