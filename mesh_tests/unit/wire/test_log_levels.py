"""Levels of single modules: which events are written, and which are made at all?"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from broker.events import DiskLow
from router.events import FallbackBegan
from router.routes.events import RouteWaiting
from router.routing.events import NeighborDown, NeighborUp, PathChosen
from wire import log
from wire.log import EventLog, Level, LogEvent
from wire.log_events import ConnectorUp
from wire.log_levels import LogLevels, module_of

WAITS = RouteWaiting("l", "orders", "b1", None)
BEGAN = FallbackBegan("orders", "dead")
UP, DOWN = NeighborUp("r2"), NeighborDown("r2", "cut")


@pytest.fixture(autouse=True)
def _levels_as_before() -> Iterator[None]:
    yield
    log.set_level("", "info")


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        (RouteWaiting, "router.routes"),
        (NeighborUp, "router.routing"),
        (FallbackBegan, "router"),
        (ConnectorUp, "wire"),
        (DiskLow, "broker"),
    ],
)
def test_the_module_of_an_event_is_its_package(kind: type[LogEvent], module: str):
    assert module_of(kind) == module


def test_a_package_stands_for_the_modules_below_unless_they_have_a_level_of_their_own():
    levels = LogLevels("info")
    assert levels.set("router", "error") == "info"
    assert not levels.admits(DOWN)
    assert levels.set("router.routing", "debug") == "error"
    assert [levels.admits(event) for event in (UP, DOWN, BEGAN, WAITS)] == [True, True, False, False]
    assert levels.admits(ConnectorUp("a", "b", "c"))
    assert levels.settings() == {"": "info", "router": "error", "router.routing": "debug"}


def test_the_level_of_all_modules_ends_those_of_single_ones():
    levels = LogLevels("info")
    levels.set("router.routes", "debug")
    assert levels.admits(WAITS)
    assert levels.set("", "warning") == "info"
    assert [levels.admits(event) for event in (UP, DOWN, WAITS)] == [False, True, False]
    assert levels.settings() == {"": "warning"}


def test_an_event_of_debug_is_wanted_only_while_its_module_is_at_debug():
    assert not RouteWaiting.is_wanted
    log.set_level("router.routes", "debug")
    assert (RouteWaiting.is_wanted, PathChosen.is_wanted) == (True, False)
    log.set_level("", "debug")
    assert PathChosen.is_wanted
    log.set_level("router", "warning")
    assert (RouteWaiting.is_wanted, PathChosen.is_wanted) == (False, False)


def test_a_log_writes_what_its_levels_admit():
    stream = io.StringIO()
    events = EventLog("r1", stream=stream)
    for level in ("info", "debug", "error"):
        events.levels.set("router", level)
        events.emit(WAITS)
        events.emit(DOWN)
    found = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    assert found == ["neighbor_down", "route_waiting", "neighbor_down"]


@pytest.mark.parametrize(
    ("module", "level", "sentence"),
    [
        ("router", "verbose", r"^level: expected one of debug, info, warning, error, got 'verbose'$"),
        (
            "router.rotes",
            "debug",
            r"^module: did you mean router.routes\? expected one of broker, .*, got 'router.rotes'",
        ),
        ("rout", "debug", r"^module: did you mean router\?"),
        ("events", "debug", r"^module: .*expected one of "),
    ],
)
def test_bad_input_changes_nothing_and_gets_a_sentence(module: str, level: str, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        log.set_level(module, level)
    assert log.levels() == {"": "info"}


@dataclass(frozen=True, slots=True)
class TestWarning(LogEvent):
    __test__: ClassVar[bool] = False
    level: ClassVar[Level] = "warning"


def test_events_of_other_levels_are_always_made_and_never_wanted():
    log.set_level("", "debug")
    assert not TestWarning.is_wanted
