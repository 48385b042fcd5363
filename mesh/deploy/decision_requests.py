"""Requests at a router's control socket about its decision record: to begin a recording, and to read decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mesh.deploy.control import Handler


class RecordingNode(Protocol):
    """A running router; both methods raise ValueError for an unknown address and for a wrong number."""

    def record_decisions(self, address: str, seconds: object) -> dict[str, Any]: ...

    def decisions(self, address: str, after: int) -> dict[str, Any]: ...


def decision_handlers(node: RecordingNode) -> dict[str, Handler]:
    """Return the handlers of `record_decisions` and `decisions`.

    A recording that is on goes on after `record_decisions`, for `seconds` more at least, and ends by itself. Its answer
    has the `seconds` that are left, and `after`, from which on `decisions` returns those that come now.
    """

    def record_decisions(request: Mapping[str, Any]) -> dict[str, Any]:
        address = _address_in(request)
        return {"address": address, **node.record_decisions(address, request.get("seconds"))}

    def decisions(request: Mapping[str, Any]) -> dict[str, Any]:
        after = request.get("after", 0)
        if not isinstance(after, int) or isinstance(after, bool) or not 0 <= after < 2**32:
            raise ValueError(f"after: expected the `next` of an answer before, or 0, got {after!r:.80}")
        return node.decisions(_address_in(request), after)

    return {"record_decisions": record_decisions, "decisions": decisions}


def _address_in(request: Mapping[str, Any]) -> str:
    address = request.get("address")
    if not isinstance(address, str) or not address:
        raise ValueError(f"address: expected the name of an address, got {address!r:.80}")
    return address
