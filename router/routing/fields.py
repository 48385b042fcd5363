"""Read the fields of a control message between routers; a bad value raises `ControlMessageError`, naming the field."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wire.errors import ConnectionFault


class ControlMessageError(ConnectionFault):
    """A neighbor sent a malformed or early control message: the neighbor's connection is closed with this error."""

    def __init__(self, description: str) -> None:
        super().__init__("amqp:invalid-field", description)


def text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise unexpected(key, value, "expected a string")
    return str(value)


def number(body: Mapping[str, Any], key: str, default: int | None = None, least: int = 0) -> int:
    value = body.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise unexpected(key, value, f"expected an integer of at least {least}")
    return int(value)


def packed(values: Sequence[Any] | Mapping[str, Any]) -> str:
    """Return a list or map as one JSON string, for a field of a control message.

    Proton would encode at most 65,535 values of an AMQP list or map, and slowly.
    """
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def unpacked(body: Mapping[str, Any], key: str, expected: str) -> Any:
    """Return the value of the field ``key``, decoded if the value is a JSON string (`packed`); None if missing.

    Raises ControlMessageError for a string that is not JSON; the error says ``expected``, such as "expected a map".
    """
    value = body.get(key)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise unexpected(key, value, f"{expected} as an AMQP value, or its JSON in a string") from None


def texts(body: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the field ``key``, a list of strings, in AMQP or packed as JSON; a missing field gives an empty list.

    Raises ControlMessageError if the field has another type.
    """
    value = unpacked(body, key, "expected a list of strings")
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise unexpected(key, value, "expected a list of strings")
    if not all(isinstance(item, str) for item in value):
        raise unexpected(key, value, "expected a list of strings")
    return tuple(value)


def submap(body: Mapping[str, Any], key: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return the field ``key``, a map, in AMQP or packed as JSON.

    If the field is missing, return ``default``, or raise ControlMessageError without a default.
    """
    value = unpacked(body, key, "expected a map")
    if value is None:
        value = default
    if not isinstance(value, Mapping):
        raise unexpected(key, value, "expected a map")
    return value


def maps(body: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """Return the field ``key``, a list of maps, in AMQP or packed as JSON.

    Raises ControlMessageError if the field is missing or has another type.
    """
    values = unpacked(body, key, "expected a list of maps")
    if isinstance(values, str) or not isinstance(values, Sequence) or not all(isinstance(v, Mapping) for v in values):
        raise unexpected(key, values, "expected a list of maps")
    return values


def costs(body: Mapping[str, Any], key: str) -> dict[str, int]:
    by_router = submap(body, key)
    return {str(router): number(by_router, router, least=1) for router in by_router}


def unexpected(key: str, value: Any, expected: str) -> ControlMessageError:
    """Return the error of the field ``key`` with a wrong ``value``; its text says ``expected``."""
    shown = repr(value)
    got = shown if len(shown) <= 60 else shown[:57] + "..."
    return ControlMessageError(f"field {key!r} of a neighbor router's control message: {expected}, got {got}")
