"""Log of events, for people and machines: one JSON object a line on stderr.

    {"ts": "2025-06-01T12:00:00.123Z", "level": "warning", "node": "r1", "event": "neighbor_expired", ...}

An event is a frozen dataclass that extends ``LogEvent``. The name on the line is the class name in snake_case, and
stable: renaming the class is a change that users see. Fields that are None are left out.

Repeats: each kind of event may come ``BURST`` times at once and ``RATE_PER_S`` lasting; events beyond are counted, and
the next line of the kind says how many were ``suppressed``. So a port scan costs no disk. For warnings and errors
about a peer, each host may cause ``HOST_BURST`` of a kind at once and ``HOST_RATE_PER_S`` lasting, so that one
peer does not use up the allowance of all peers. The log forgets a host whose allowance is whole again.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TextIO

from wire.log_event import Emit, Level, LogEvent
from wire.log_levels import RANKS, LogLevels

__all__ = ["Emit", "EventLog", "Level", "LogEvent", "configure", "emit", "levels", "set_level"]

BURST = 200
RATE_PER_S = 20.0
HOST_BURST = 50
HOST_RATE_PER_S = 1.0
_MOST_HOSTS = 1000
_WHOLE_AFTER_S = HOST_BURST / HOST_RATE_PER_S
"""After this time without an event, the allowance of a host is that of a host that nobody knows."""


@dataclass(slots=True)
class _Allowance:
    """A token bucket that limits one kind of event, about all peers or about one host.

    ``take`` says whether to write an event now, and counts each event that is not written.

    Always: ``0 <= tokens <= burst``.
    """

    burst: int
    rate_per_s: float
    tokens: float
    refilled_at: float
    suppressed: int = 0

    def take(self, now: float) -> bool:
        self.tokens = min(self.burst, self.tokens + (now - self.refilled_at) * self.rate_per_s)
        self.refilled_at = now
        if self.tokens < 1:
            self.suppressed += 1
            return False
        self.tokens -= 1
        return True


class EventLog:
    """Writes events of one node as JSON lines; thread-safe. Errors in writing to stderr are ignored."""

    def __init__(
        self,
        node: str | None = None,
        *,
        stream: TextIO | None = None,
        level: Level = "info",
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._node = node
        self._stream = stream
        self.levels = LogLevels(level)
        self.before_line: Callable[[int], None] | None = None
        """Called with the size in bytes of each line before the line is written, by one thread at a time."""
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._allowances: dict[str, _Allowance] = {}
        self._hosts: dict[tuple[str, str], _Allowance] = {}
        """By name of the event and host; the one that was unused longest is first."""

    def emit(self, event: LogEvent) -> None:
        if not self.levels.admits(event):
            return
        with self._lock:
            suppressed = self._admit(event)
            if suppressed is not None:
                self._write(self._format(event, suppressed))

    def _admit(self, event: LogEvent) -> int | None:
        """Return None if ``event`` has to be left out, since its kind, or the host it is about, has too many.

        Otherwise return how many events of the kind were left out since the kind's last line.
        """
        now = self._clock()
        self._forget_whole(now)
        host = event.peer_host if RANKS[event.level] >= RANKS["warning"] else None
        if host is not None:
            of_host = self._allowance_of(event.event_name, host, now)
            if not of_host.take(now):
                return None
        else:
            of_host = None
        allowance = self._allowance_of_all(event.event_name, now)
        if not allowance.take(now):
            return None
        suppressed, allowance.suppressed = allowance.suppressed, 0
        if of_host is not None:
            suppressed, of_host.suppressed = suppressed + of_host.suppressed, 0
        return suppressed

    def _allowance_of(self, event_name: str, host: str, now: float) -> _Allowance:
        """Return the allowance of ``host`` for a kind of event, made at the first call.

        Beyond 1,000 allowances, the one that was unused longest is forgotten.
        """
        key = (event_name, host)
        allowance = self._hosts.pop(key, None) or _Allowance(HOST_BURST, HOST_RATE_PER_S, HOST_BURST, now)
        self._hosts[key] = allowance
        if len(self._hosts) > _MOST_HOSTS:
            self._forget(next(iter(self._hosts)), now)
        return allowance

    def _allowance_of_all(self, event_name: str, now: float) -> _Allowance:
        """Return the allowance of a kind of event about all peers, made at the first call."""
        return self._allowances.setdefault(event_name, _Allowance(BURST, RATE_PER_S, BURST, now))

    def _forget_whole(self, now: float) -> None:
        """Forget the hosts whose allowances are whole again: each host that ever failed would stay otherwise."""
        while self._hosts:
            key, allowance = next(iter(self._hosts.items()))
            if now - allowance.refilled_at < _WHOLE_AFTER_S:
                return
            self._forget(key, now)

    def _forget(self, key: tuple[str, str], now: float) -> None:
        """Forget the allowance of one host. What it suppressed is counted in the next line of the kind."""
        suppressed = self._hosts.pop(key).suppressed
        if suppressed:
            self._allowance_of_all(key[0], now).suppressed += suppressed

    def _format(self, event: LogEvent, suppressed: int) -> str:
        line: dict[str, object] = {
            "ts": self._wall_clock().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": event.level,
        }
        if self._node is not None:
            line["node"] = self._node
        line["event"] = event.event_name
        for field in dataclasses.fields(event):
            value = getattr(event, field.name)
            if value is not None:
                line[field.name] = value
        if suppressed:
            line["suppressed"] = suppressed
        return json.dumps(line, default=str, ensure_ascii=False)

    def _write(self, line: str) -> None:
        if self.before_line is not None:
            self.before_line(len(line.encode(errors="replace")) + 1)
        stream = self._stream or sys.stderr
        try:
            stream.write(line + "\n")
            stream.flush()
        except (OSError, ValueError):
            return


_log = EventLog()


def configure(
    node: str,
    *,
    level: Level = "info",
    stream: TextIO | None = None,
    before_line: Callable[[int], None] | None = None,
) -> None:
    """Set up the log of this process: the node to name in each line, the lowest level to write, and the stream.

    ``before_line``, which may rotate the log's file, is called with the size in bytes of each line to be written.
    """
    global _log
    _log = EventLog(node, level=level, stream=stream)
    _log.before_line = before_line


def emit(event: LogEvent) -> None:
    _log.emit(event)


def set_level(module: str, level: str) -> Level:
    """Set the lowest level of events of ``module`` that this process writes, "" for all; return the level before.

    Raises ValueError for an unknown module or level.
    """
    before = _log.levels.set(module, level)
    for kind in LogEvent.kinds.values():
        kind.is_wanted = kind.level == "debug" and _log.levels.wants(kind)
    return before


def levels() -> dict[str, Level]:
    """Return the levels that this process's log has, by module; "" is for all modules without one of their own."""
    return _log.levels.settings()
