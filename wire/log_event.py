"""The base of all log events: frozen dataclasses, which cores may return and `wire.log` writes. Sans-IO."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

Level = Literal["debug", "info", "warning", "error"]
Emit = Callable[["LogEvent"], None]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """Base of all events. ``level`` is a property of the kind, not of the occurrence."""

    level: ClassVar[Level] = "info"
    event_name: ClassVar[str] = "log_event"
    kinds: ClassVar[dict[str, type[LogEvent]]] = {}

    @property
    def peer_host(self) -> str | None:
        """Host of the peer of the event: ``remote`` is the peer's address, ``client`` ends in the address."""
        peer = getattr(self, "remote", None) or getattr(self, "client", None)
        return str(peer).split(" at ")[-1].rpartition(":")[0] or None if peer else None

    def __init_subclass__(cls) -> None:
        # Not super(): with slots=True the class is made twice, and the second is the one to keep.
        cls.event_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        LogEvent.kinds[cls.event_name] = cls
