"""Reads a message that an operator sends, as an object of JSON: an edited copy of another, for one. Sans-IO.

    {"subject": "paid", "properties": {"shop": "b4"}, "body": {"kind": "json", "text": "{\"order\": 7}"}}

A body of kind `text` becomes an amqp-value; `json` and `binary` become a data section.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from wire.message import Message

MAX_TEXT_CHARS: Final = 65_536
MAX_PROPERTIES: Final = 1000
_LONG_LEAST, _LONG_MOST = -(2**63), 2**63 - 1
"""The numbers of AMQP's type long."""
BODY_MEMBERS: Final = ("kind", "text", "base64")
KINDS: Final = ("text", "json", "binary", "none")
_JSON: Final = "application/json"


class MessageError(ValueError):
    """A part of a message is wrong: ``place`` names it, ``allowed`` what may stand there."""

    def __init__(self, place: str, sentence: str, allowed: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.place, self.allowed = place, tuple(allowed)


def read_message(given: Mapping[str, Any]) -> Message:
    """Return the message; members that are null are left out. Raises MessageError."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        read = _READERS.get(name)
        if read is None:
            raise MessageError(name[:80], f"a message has no member {name[:80]!r}", _READERS)
        if value is not None:
            found[name] = read(name, value)
    body, content_type = found.pop("body", (None, None))
    found.setdefault("content_type", content_type)
    return Message(body, **found)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
        raise MessageError(name, f"expected a text of at most {MAX_TEXT_CHARS} characters as {name}")
    return value


def _content_type(name: str, value: Any) -> str:
    text = _text(name, value)
    if not text.isascii():
        raise MessageError(name, f"expected ASCII as {name}, which is a symbol of AMQP")
    return text


def _priority(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 255:
        raise MessageError(name, f"expected a whole number from 0 to 255 as {name}")
    return value


def _durable(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise MessageError(name, f"expected true or false as {name}", ("true", "false"))
    return value


def _ttl(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 4_294_967:
        raise MessageError(name, f"expected seconds from 0 to 4294967 as {name}")
    return float(value)


def _properties(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > MAX_PROPERTIES:
        raise MessageError(name, f"expected an object of at most {MAX_PROPERTIES} application properties as {name}")
    for key, each in value.items():
        is_number = isinstance(each, float) or (isinstance(each, int) and _LONG_LEAST <= each <= _LONG_MOST)
        if not (each is None or is_number or isinstance(each, str)):
            raise MessageError(f"{name}.{key[:80]}", "expected a text, a number, true, false or null as the property")
    return value


def _body(name: str, value: Any) -> tuple[Any, str | None]:
    """Return the body, and the content-type that it has unless the message says another."""
    if not isinstance(value, dict):
        raise MessageError(name, "expected an object as body", BODY_MEMBERS)
    for each in value:
        if each not in BODY_MEMBERS:
            raise MessageError(f"{name}.{each[:80]}", f"a body has no member {each[:80]!r}", BODY_MEMBERS)
    text, encoded = value.get("text"), value.get("base64")
    match value.get("kind"):
        case "none" if text is None and encoded is None:
            return None, None
        case "text" if isinstance(text, str) and encoded is None:
            return text, None
        case "json" if isinstance(text, str) and encoded is None:
            try:
                json.loads(text)
            except (ValueError, RecursionError):
                raise MessageError(f"{name}.text", "expected JSON as the text of a body of kind json") from None
            return text.encode(), _JSON
        case "binary" if isinstance(encoded, str) and text is None:
            try:
                return base64.b64decode(encoded, validate=True), None
            except (binascii.Error, ValueError):
                raise MessageError(f"{name}.base64", "expected base64 as the bytes of a body of kind binary") from None
    raise MessageError(
        name, "expected a body of kind text or json with text, binary with base64, or none without either", KINDS
    )


_READERS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "subject": _text,
    "message_id": _text,
    "correlation_id": _text,
    "reply_to": _text,
    "group_id": _text,
    "content_type": _content_type,
    "priority": _priority,
    "durable": _durable,
    "ttl_s": _ttl,
    "properties": _properties,
    "body": _body,
}
