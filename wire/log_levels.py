"""The lowest level of events that a process writes to its log: one for all modules, and others for single modules.

The module of an event is the Python module of its class, without a last part `events` or `log_events`:
`wire.transport.log_events` is `wire.transport`. A setting for `router` holds for `router.routes`, too, unless
`router.routes` has one of its own. Sans-IO.
"""

from __future__ import annotations

import difflib
from typing import Final, get_args

from wire.log_event import Level, LogEvent

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
RANKS: Final[dict[Level, int]] = {level: rank for rank, level in enumerate(LEVELS)}
ALL: Final = ""
"""The name that stands for all modules."""


class LogLevels:
    """The levels in force; ``level`` is the one for all modules."""

    def __init__(self, level: Level) -> None:
        self._levels: dict[str, Level] = {ALL: level}
        self._least: dict[type[LogEvent], int] = {}
        """The least rank in force for each class of events that was asked about since the last change."""

    def settings(self) -> dict[str, Level]:
        """Return the levels that were set, by module; the level for all modules, under "", is the first."""
        return dict(self._levels)

    def level_of(self, module: str) -> Level:
        """Return the level in force for ``module``: its own, or that of the nearest package above."""
        while module not in self._levels:
            module = module.rpartition(".")[0]
        return self._levels[module]

    def admits(self, event: LogEvent) -> bool:
        return self.wants(type(event))

    def wants(self, kind: type[LogEvent]) -> bool:
        """Return whether events of the class ``kind`` are to be written."""
        least = self._least.get(kind)
        if least is None:
            least = self._least[kind] = RANKS[self.level_of(module_of(kind))]
        return RANKS[kind.level] >= least

    def set(self, module: str, level: str) -> Level:
        """Set the level of ``module``, of which this process has events; return the level in force before.

        "" sets the level of all modules, and ends the settings of single ones. Raises ValueError for an unknown module
        or level.
        """
        rank = RANKS.get(level)  # type: ignore[call-overload]
        if rank is None:
            raise ValueError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
        known = known_modules()
        if module != ALL and module not in known:
            near = difflib.get_close_matches(module, known, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ValueError(f"module: {hint}expected one of {', '.join(known)}, or nothing for all, got {module!r}")
        before = self.level_of(module)
        if module == ALL:
            self._levels.clear()
        self._levels[module] = LEVELS[rank]
        self._least.clear()
        return before


def module_of(kind: type[LogEvent]) -> str:
    """Return the module of a class of events, as levels name it."""
    return module_name(kind.__module__)


def module_name(python_module: str) -> str:
    package, _, last = python_module.rpartition(".")
    return package if last in ("events", "log_events") else python_module


def known_modules() -> list[str]:
    """Return, sorted, the modules of all classes of events in this process, and the packages above these modules."""
    found: set[str] = set()
    for kind in LogEvent.kinds.values():
        parts = module_of(kind).split(".")
        found.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
    return sorted(found)
