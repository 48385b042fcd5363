"""The reference of log events is current, and has all of them.

``REWRITE=1 pytest mesh_tests/unit/test_event_reference.py`` makes it anew; the diff is for review.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from linklogs.writer import events as writer_events
from linklogs.writer.events import WriterEvent
from mesh_tests.unit.addressing.topology.test_generated_files import ROOT, assert_current
from wire.log import LogEvent

REFERENCE = ROOT / "docs" / "reference" / "events.md"
MODULES = {
    "Of nodes: connections": ("wire.transport.log_events", "wire.log_events"),
    "Of routers": ("router.routing.events", "router.events"),
    "Of brokers": ("broker.events",),
    "Of nodes: link logs": ("recording.recorder",),
    "Of nodes: their process": ("mesh.deploy.node_run",),
    "Of nodes and `amqpmesh up`: signals": ("mesh.deploy.signals",),
    "Of `amqpmesh up`": ("mesh.deploy.supervisor_log",),
    "Of the observer": ("mesh.watch.observer",),
}
HEAD = """\
# Log events

Made from the code; a test compares. Each is one JSON object a line on stderr: `ts`, `level`, `event`, of nodes `node`,
and the fields below; what has no value is left out. Names are stable, fields are added and never changed. `amqpmesh up`
keeps the lines of each process in `log/` of the work directory.
"""

Event = type[LogEvent] | type[WriterEvent]


def test_the_reference_has_every_event() -> None:
    assert_current(REFERENCE, "\n".join(reference()) + "\n")


def test_each_event_of_a_router_has_one_dataclass() -> None:
    modules = map(importlib.import_module, (*MODULES["Of routers"], "router.routing.actions"))
    names = [each.__name__ for module in modules for each in vars(module).values() if is_own_class(each, module)]
    assert sorted(set(names)) == sorted(names)


def test_no_module_with_events_is_forgotten() -> None:
    packages = ("addressing", "wire", "recording", "router", "broker", "mesh")
    files = [file for package in packages for file in (ROOT / package).rglob("*.py")]
    assert {name_of(file) for file in files if "(LogEvent)" in file.read_text()} == set(
        itertools.chain(*MODULES.values())
    )


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def reference() -> Iterator[str]:
    yield HEAD
    for title, names in MODULES.items():
        modules = map(importlib.import_module, names)
        yield from section(title, itertools.chain.from_iterable(events_of(module, LogEvent) for module in modules))
    yield from section("Of the writer of link logs", events_of(writer_events, WriterEvent))


def events_of(module: ModuleType, base: type) -> list[Event]:
    """In the order of the file."""
    found = [each for each in vars(module).values() if is_own_class(each, module)]
    return [each for each in found if issubclass(each, base) and each is not base]


def is_own_class(found: object, module: ModuleType) -> bool:
    return inspect.isclass(found) and found.__module__ == module.__name__


def section(title: str, events: Iterable[Event]) -> Iterator[str]:
    yield from (f"## {title}", "", "| event | level | fields | meaning |", "|---|---|---|---|")
    for event in events:
        fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(event))
        yield f"| `{called(event)}` | {event.level} | {fields} | {meaning(event)} |".replace("|  |", "| |")
    yield ""


def called(event: Event) -> str:
    return event.event_name() if issubclass(event, WriterEvent) else event.event_name


def meaning(event: Event) -> str:
    text = inspect.cleandoc(event.__doc__ or "").partition("\n\n")[0]
    # A dataclass without one is given its signature.
    if text.startswith(f"{event.__name__}("):
        return ""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("``", "`")
