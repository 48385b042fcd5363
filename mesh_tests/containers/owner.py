"""Which process does a container belong to, and does that process still live?"""

from __future__ import annotations

import os
from pathlib import Path

LABEL = "amqpmesh.tests.owner"
"""Of containers, networks and images; what a killed run left behind is known by it."""


def this_process() -> str:
    return _identity(os.getpid())


def is_gone(owner: str) -> bool:
    return _identity(owner.partition("-")[0]) != owner


def _identity(pid: object) -> str:
    """Process ids come again, together with the time of the start they do not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return f"{pid}-{fields[19]}"
