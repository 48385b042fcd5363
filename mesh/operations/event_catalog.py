"""All log events that processes of amqpmesh write: name, level, fields, and meaning, from the classes of the events."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from wire.log_levels import module_of

MODULES: Final = {
    "Nodes: connections": ("wire.transport.log_events", "wire.log_events"),
    "Routers": ("router.routing.events", "router.events", "router.clients.events", "router.routes.events"),
    "Brokers": ("broker.events",),
    "Nodes: link logs": ("recording.recorder", "recording.events"),
    "Nodes: the process": (
        "mesh.deploy.node_run",
        "mesh.deploy.log_requests",
        "mesh.deploy.trace_files",
        "mesh.deploy.revision_requests",
    ),
    "Nodes and `amqpmesh up`: signals": ("mesh.deploy.signals",),
    "Supervisor (`amqpmesh up`)": ("mesh.deploy.supervisor_log",),
    "Observer": ("mesh.watch.observer",),
    "Writer of link logs": ("linklogs.writer.events",),
}
"""By kind of process, the modules with the log events of the process."""
_OF_NODES: Final = tuple(origin for origin in MODULES if origin.startswith(("Nodes", "Routers", "Brokers")))
_BASES: Final = ("LogEvent", "WriterEvent")


@dataclass(frozen=True, slots=True)
class DescribedEvent:
    """A log event. ``origin`` is a key of MODULES; ``meaning`` is one paragraph, or empty if the name says it all."""

    name: str
    origin: str
    level: str
    fields: tuple[str, ...]
    meaning: str
    module: str
    """The module by whose name `amqpmesh log-level` sets the level; empty for processes that are no nodes."""


def described_events() -> Iterator[DescribedEvent]:
    """Yield all events, by origin, in the order in which their module has them."""
    for origin, names in MODULES.items():
        for name in names:
            for event in _events_of(importlib.import_module(name)):
                fields = tuple(field.name for field in dataclasses.fields(event))
                module = module_of(event) if origin in _OF_NODES else ""
                yield DescribedEvent(_name_of(event), origin, event.level, fields, _meaning_of(event), module)


def find_event(name: str) -> DescribedEvent | None:
    return next((event for event in described_events() if event.name == name), None)


def _events_of(module: ModuleType) -> list[Any]:
    own = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    return [each for each in own if any(base.__name__ in _BASES for base in each.__mro__[1:])]


def _name_of(event: Any) -> str:
    found: str = event.event_name() if callable(event.event_name) else event.event_name
    return found


def _meaning_of(event: type) -> str:
    text = inspect.cleandoc(event.__doc__ or "").partition("\n\n")[0]
    # A dataclass without a docstring is given its signature.
    return "" if text.startswith(f"{event.__name__}(") else re.sub(r"\s+", " ", text)
