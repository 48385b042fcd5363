"""Requests at a node's control socket about the levels of its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from mesh.deploy.control import Handler
from wire import log
from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class LogLevelSet(LogEvent):
    """An operator set the lowest level of events that `module` writes to this log; without `module`: of all modules.

    The level holds until the node ends.
    """

    level: ClassVar[Level] = "warning"

    module: str | None
    lowest: str
    before: str
    operator: str | None


def _set_level(request: Mapping[str, Any]) -> dict[str, str]:
    module, level, operator = (request.get(field, "") for field in ("module", "level", "operator"))
    for field, value in (("module", module), ("level", level), ("operator", operator)):
        if not isinstance(value, str) or not value.isprintable():
            raise ValueError(f"{field}: expected one line of text, got {value!r:.80}")
    before = log.set_level(module, level)
    if before != level:
        log.emit(LogLevelSet(module or None, level, before, operator or None))
    return {"module": module, "level": level, "before": before}


LOG_HANDLERS: Final[Mapping[str, Handler]] = {"log_level": _set_level, "log_levels": lambda _: log.levels()}
"""The handlers of `log_level`, which answers with the level before, and of `log_levels`."""
