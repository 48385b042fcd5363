"""The reference of log events is current, and has all of them.

``REWRITE=1 pytest mesh_tests/unit/test_event_reference.py`` makes it anew; the diff is for review.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from mesh.operations.event_catalog import MODULES, DescribedEvent, described_events
from mesh_tests.unit.addressing.topology.test_generated_files import ROOT, assert_current

REFERENCE = ROOT / "docs" / "reference" / "events.md"
OF_CONSOLE = ROOT / "mesh" / "watch" / "page" / "events.json"
HEAD = """\
# Log events

Made from the code; a test compares. Each is one JSON object a line on stderr: `ts`, `level`, `event`, of nodes `node`,
and the fields below; what has no value is left out. Names are stable, fields are added and never changed. `amqpmesh up`
keeps the lines of each process in `log/` of the work directory. A node writes events of level `info` and above;
`amqpmesh log-level` changes this for a module, or for all, while the node runs.
"""


def test_the_reference_has_every_event() -> None:
    assert_current(REFERENCE, "\n".join(reference()) + "\n")


def test_the_console_has_every_event_with_its_meaning() -> None:
    told = {each.name: {"origin": each.origin, "level": each.level, "meaning": plain(each.meaning)}
            for each in described_events()}  # fmt: skip
    assert_current(OF_CONSOLE, json.dumps(told, indent=0) + "\n")


def test_each_event_of_a_router_has_one_dataclass() -> None:
    modules = map(importlib.import_module, (*MODULES["Routers"], "router.routing.actions"))
    names = [each.__name__ for module in modules for each in vars(module).values() if is_own_class(each, module)]
    assert sorted(set(names)) == sorted(names)


def test_no_module_with_events_is_forgotten() -> None:
    packages = ("addressing", "wire", "recording", "router", "broker", "linklogs", "mesh")
    files = [file for package in packages for file in (ROOT / package).rglob("*.py")]
    having = {name_of(file) for file in files if "(LogEvent)" in (text := file.read_text()) or "(WriterEvent)" in text}
    assert having == set(itertools.chain(*MODULES.values()))


def plain(meaning: str) -> str:
    return meaning.replace("``", "`")


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def is_own_class(found: object, module: ModuleType) -> bool:
    return inspect.isclass(found) and found.__module__ == module.__name__


def reference() -> Iterator[str]:
    yield HEAD
    for title, events in itertools.groupby(described_events(), lambda event: event.origin):
        yield from section(title, events)


def section(title: str, events: Iterable[DescribedEvent]) -> Iterator[str]:
    yield from (f"## {title}", "", "| event | level | module | fields | meaning |", "|---|---|---|---|---|")
    for event in events:
        fields = ", ".join(f"`{field}`" for field in event.fields)
        meaning = event.meaning.replace("|", "\\|").replace("``", "`")
        module = f"`{event.module}`" if event.module else ""
        yield f"| `{event.name}` | {event.level} | {module} | {fields} | {meaning} |".replace("|  |", "| |")
    yield ""
