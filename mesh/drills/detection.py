"""Finds when another node noticed a fault: the first event in a log, after the fault, that reports the target as
lost.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

# Events that report a lost neighbor or broker, each with the field that names the lost node.
NOTICES = {"neighbor_down": "router", "neighbor_expired": "router", "broker_down": "broker"}


@dataclass(frozen=True, slots=True)
class Notice:
    node: str
    event: str
    about: str
    at: float
    """Seconds since 1970"""

    def __str__(self) -> str:
        return f"{self.node}: {self.event} {self.about}"


def read_notices(logs: Iterable[Path]) -> list[Notice]:
    """Read the events of lost neighbors and brokers from all logs, and sort the events by time."""
    found = [notice for log in logs if log.exists() for notice in _in_log(log)]
    return sorted(found, key=lambda notice: notice.at)


def first_notice(notices: Iterable[Notice], targets: Collection[str], since: float, until: float) -> Notice | None:
    """Return the first event between ``since`` and ``until`` that reports one of ``targets`` as lost, or None.

    For a fault of a node, the event of any other node counts. For a fault of a link, ``targets`` are its two ends, and
    only an event in which one end reports the other as lost counts.
    """
    for notice in notices:
        is_in_time = since <= notice.at < until
        if is_in_time and notice.about in targets and (len(targets) == 1 or notice.node in targets):
            return notice
    return None


def _in_log(log: Path) -> Iterator[Notice]:
    for line in log.read_text(errors="replace").splitlines():
        event = _parse(line)
        about = event.get(NOTICES.get(str(event.get("event")), ""))
        if about:
            at = datetime.fromisoformat(event["ts"]).timestamp()
            yield Notice(str(event.get("node")), event["event"], str(about), at)


def _parse(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}
