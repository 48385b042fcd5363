"""Requests of operators at a node's control socket that close connections and links: their fields, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mesh.deploy.control import Handler
from wire.forced_end import MOST_REASON_CHARS, ForcedEnd

OWNER = "owner"
"""The operator of a request that names none: who may reach the control socket owns the mesh."""
_MOST_NAME_CHARS = 255


class ClosingNode(Protocol):
    """A running router or broker; both methods raise ValueError for an unknown number."""

    def close_connection(self, number: int, forced: ForcedEnd) -> None: ...

    def close_link(self, connection: int, number: int, forced: ForcedEnd) -> None: ...


def closing_handlers(node: ClosingNode) -> dict[str, Handler]:
    """Return the handlers of `close_connection` and `close_link`, which answer with the numbers that were closed."""

    def close_connection(request: Mapping[str, Any]) -> dict[str, int]:
        number = whole_number(request, "connection")
        node.close_connection(number, forced_end(request))
        return {"connection": number}

    def close_link(request: Mapping[str, Any]) -> dict[str, int]:
        connection, link = whole_number(request, "connection"), whole_number(request, "link")
        node.close_link(connection, link, forced_end(request))
        return {"connection": connection, "link": link}

    return {"close_connection": close_connection, "close_link": close_link}


def whole_number(request: Mapping[str, Any], field: str) -> int:
    """Return a field of ``request`` that has to be a number of an entity. Raises ValueError if it is not."""
    value = request.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{field}: expected a number from 1, as at the end of the {field}'s id, got {value!r}")
    return value


def operator_of(request: Mapping[str, Any]) -> str:
    """Return the operator that ``request`` names; "" for none. Raises ValueError for what is not a short text."""
    return _text(request, "operator", _MOST_NAME_CHARS)


def forced_end(request: Mapping[str, Any]) -> ForcedEnd:
    """Return the operator and the reason in ``request``. Raises ValueError for what is not a short text."""
    return ForcedEnd(
        operator_of(request) or OWNER,
        _text(request, "reason", MOST_REASON_CHARS),
    )


def _text(request: Mapping[str, Any], field: str, most_chars: int) -> str:
    value = request.get(field, "")
    if not isinstance(value, str) or len(value) > most_chars or not value.isprintable():
        raise ValueError(f"{field}: expected one line of text, at most {most_chars} characters, got {value!r:.80}")
    return value
