"""How is one value of a control message read, or refused with a sentence that names it?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wire.errors import ConnectionFault


class ControlMessageError(ConnectionFault):
    """A neighbor sent a control message that cannot be understood."""

    def __init__(self, description: str) -> None:
        super().__init__("amqp:invalid-field", description)


def text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise _unexpected(key, value, "a string")
    return str(value)


def number(body: Mapping[str, Any], key: str, default: int | None = None, least: int = 0) -> int:
    value = body.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise _unexpected(key, value, f"an integer of at least {least}")
    return int(value)


def packed(values: Iterable[str]) -> str:
    """A list in one text, JSON: proton holds 65,535 values in a message, and takes its time for each."""
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))


def texts(body: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of texts, packed or not; a missing one is empty."""
    value = body.get(key, ())
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise _unexpected(key, value, "a list of strings, or JSON of one") from None
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise _unexpected(key, value, "a list of strings")
    if not all(isinstance(item, str) for item in value):
        raise _unexpected(key, value, "a list of strings")
    return tuple(value)


def submap(body: Mapping[str, Any], key: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    value = body.get(key, default)
    if not isinstance(value, Mapping):
        raise _unexpected(key, value, "a map")
    return value


def costs(body: Mapping[str, Any], key: str) -> dict[str, int]:
    by_router = submap(body, key)
    return {str(router): number(by_router, router, least=1) for router in by_router}


def _unexpected(key: str, value: Any, expected: str) -> ControlMessageError:
    shown = repr(value)
    return ControlMessageError(f"{key} is {shown if len(shown) <= 60 else shown[:57] + '...'}, expected {expected}")
