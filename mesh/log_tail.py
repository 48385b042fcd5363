"""Why a node died, in one sentence, from the end of its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TAIL_BYTES = 64 * 1024
GRAVE = ("error", "critical")
SURVIVED = frozenset({"connection_bug", "node_bug", "loop_trouble", "message_unreadable", "duplicate_router_id"})
"""Grave events after which a node goes on: none of them is why it died."""
# Fields of a log line that say where it comes from, not what happened.
FRAME = frozenset({"ts", "level", "node", "event"})


def size_bytes(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def first_cause(log: Path, since_bytes: int = 0) -> str | None:
    """The last grave event after ``since_bytes`` that no node survives; without one, the last words of a crash."""
    for line in reversed(_tail(log, since_bytes)):
        event = _parse(line)
        if event is not None and event.get("level") in GRAVE and event.get("event") not in SURVIVED:
            return to_sentence(event)
    return last_words(log, since_bytes)


def last_words(log: Path, since_bytes: int = 0) -> str | None:
    """The last line that is not an event, if no event follows it: what Python or C said of a crash."""
    for line in reversed(_tail(log, since_bytes)):
        if _parse(line) is not None:
            return None
        if line.strip():
            return line.strip()
    return None


def to_sentence(event: dict[str, Any]) -> str:
    for key in ("reason", "message", "error"):
        if isinstance(text := event.get(key), str) and text:
            return text
    details = " ".join(f"{key}={value}" for key, value in event.items() if key not in FRAME)
    return f"{event.get('event', 'error')} {details}".strip()


def text_since(log: Path, since_bytes: int) -> str:
    return "\n".join(_tail(log, since_bytes))


def _tail(log: Path, since_bytes: int) -> list[str]:
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(since_bytes, size_bytes(log) - TAIL_BYTES))
        return file.read().decode(errors="replace").splitlines()


def _parse(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
