"""Finds the cause of a node's or supervisor's death in the last 64 KiB of its log, as one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TAIL_BYTES = 64 * 1024
GRAVE = ("error", "critical")
SURVIVED = frozenset({"connection_bug", "node_bug", "loop_trouble", "message_unreadable", "duplicate_router_id"})
"""Events of level error or critical after which a node goes on: none of these is taken for the cause of a death."""
# Fields that say where a log line comes from and nothing about the event itself; a sentence leaves these fields out.
FRAME = frozenset({"ts", "level", "node", "event"})


def size_bytes(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def first_cause(log: Path, since_bytes: int = 0) -> str | None:
    """Return the last event of level error or critical after offset ``since_bytes`` of ``log`` as a sentence.

    Events after which a node goes on are passed over. Without a fatal event, return the ``last_words``.
    """
    for line in reversed(_tail(log, since_bytes)):
        event = _parse(line)
        if event is not None and event.get("level") in GRAVE and event.get("event") not in SURVIVED:
            return to_sentence(event)
    return last_words(log, since_bytes)


def last_words(log: Path, since_bytes: int = 0) -> str | None:
    """Return the log's last line that is not empty if it is no JSON event but, say, the message of Python or C at a
    crash; else None.
    """
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
