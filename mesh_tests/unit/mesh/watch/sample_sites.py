"""Hosts in one process, whose observers ask each other without a mesh: each may be lost, and questions are counted."""

from __future__ import annotations

import json
from typing import Any

from mesh.client.errors import Unreachable
from mesh.watch.host_answers import HostAnswers
from mesh.watch.mesh_pages import MissingHost


class SampleSite:
    """The observer of one host; ``is_lost``: nobody answers. Questions and answers are texts, as over the mesh."""

    def __init__(self, name: str, host: Any) -> None:
        self.name, self.answers = name, HostAnswers(host)
        self.is_lost = False
        self.asked: list[dict[str, Any]] = []
        self.lost_after: int | None = None
        """The host is lost after so many questions."""

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        if self.is_lost or (self.lost_after is not None and len(self.asked) > self.lost_after):
            raise Unreachable("nobody answers")
        found: dict[str, Any] = json.loads(self.answers.answer_text(json.dumps(request)))
        if "error" in found:
            raise Unreachable(found["error"])
        return found

    def missing(self, why: str) -> MissingHost:
        return MissingHost(self.name, (), 0.0, why)
