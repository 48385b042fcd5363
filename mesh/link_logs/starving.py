"""When does a client's link have no credit?"""

from __future__ import annotations

from dataclasses import dataclass

from mesh.link_logs.population import Session


@dataclass(frozen=True, slots=True)
class Span:
    """A session's link had no credit, from when until when."""

    session: Session
    from_us: int
    to_us: int
    cause: str
