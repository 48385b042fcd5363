"""What the answers of the observer have in common: the JSON, the requester, and the refusal of a right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from mesh.watch.access import Requester

if TYPE_CHECKING:
    from starlette.requests import Request

REQUESTER: Final = "amqpmesh.requester"
"""The key of the ASGI scope under which the guard leaves who sends the request."""


def as_json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in JSON, in ASCII: a name of a peer could have half of a surrogate pair, which UTF-8 cannot."""
    return Response(json.dumps(content, separators=(",", ":")), status, headers, "application/json")


def requester_of(request: Request) -> Requester:
    """Return who sends ``request``, as the guard has found out."""
    found = request.scope[REQUESTER]
    assert isinstance(found, Requester)
    return found


def refuse_unless(may: bool, what: str) -> None:
    """Raise the exception for an answer with status 403, unless the requester ``may``."""
    if not may:
        raise HTTPException(403, f"your user has no right to see this: {what}")
