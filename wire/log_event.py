"""The base class of all log events: frozen dataclasses, which any code may return and `wire.log` writes. Sans-IO."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

Level = Literal["debug", "info", "warning", "error"]
Emit = Callable[["LogEvent"], None]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """Base class of all log events. All events of a class have the same ``level``, and the same ``event_name``."""

    level: ClassVar[Level] = "info"
    is_wanted: ClassVar[bool] = False
    """Whether this process's log writes events of a class with level debug; code that makes such an event asks before.

    `wire.log.set_level` keeps it; False also for other classes, whose events are always made.
    """
    event_name: ClassVar[str] = "log_event"
    kinds: ClassVar[dict[str, type[LogEvent]]] = {}

    @property
    def peer_host(self) -> str | None:
        """Host of the peer that an event is about, from its field ``remote`` or ``client``; None without either."""
        peer = getattr(self, "remote", None) or getattr(self, "client", None)
        return str(peer).split(" at ")[-1].rpartition(":")[0] or None if peer else None

    def __init_subclass__(cls) -> None:
        # Python calls this twice for each event class, as dataclass(slots=True) makes a second class, which replaces
        # the first in `kinds`. There is no call of super(), since it would fail in the second class.
        cls.event_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        LogEvent.kinds[cls.event_name] = cls
