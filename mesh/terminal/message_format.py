"""Formats a received message for `amqpmesh receive`: by a template such as `-F '%t %a %k %b\\n'`, or as a line of JSON.

%t  time of receipt     %a  address           %k  key (group-id)      %b  body
%s  subject             %i  message-id        %p  properties (JSON)   %c  content-type
%n  number, from 1      %d  delivery-count    %%  a percent sign
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from wire.message import Message

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
TOKEN = re.compile(r"%(.)|\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message with the address, local time and number of its arrival; `receive` numbers its messages from 1.

    ``address`` is that to which the message was published, if the receiver has wildcards and the broker tells it.
    """

    message: Message
    address: str
    number: int
    received_at: datetime


CODES: dict[str, Callable[[ReceivedMessage], str]] = {
    "t": lambda shown: shown.received_at.isoformat(timespec="milliseconds"),
    "a": lambda shown: shown.address,
    "k": lambda shown: shown.message.group_id or "",
    "b": lambda shown: body_text(shown.message.body),
    "s": lambda shown: shown.message.subject or "",
    "i": lambda shown: "" if shown.message.message_id is None else str(shown.message.message_id),
    "p": lambda shown: json.dumps(to_json(dict(shown.message.properties)), ensure_ascii=False),
    "c": lambda shown: shown.message.content_type or "",
    "n": lambda shown: str(shown.number),
    "d": lambda shown: str(shown.message.delivery_count),
    "%": lambda shown: "%",
}


def check_format(template: str) -> str:
    """Return ``template``. Raises ValueError, with the first unknown code, if the template has an unknown code."""
    for code, _ in TOKEN.findall(template):
        if code and code not in CODES:
            known = " ".join(f"%{name}" for name in CODES)
            raise ValueError(f"unknown format code %{code}: expected one of {known}")
    return template


def format_message(template: str, shown: ReceivedMessage) -> str:
    def replace(found: re.Match[str]) -> str:
        code, escape = found.groups()
        return CODES[code](shown) if code else ESCAPES.get(escape, found[0])

    return TOKEN.sub(replace, template)


def shows_body(template: str) -> bool:
    return any(code == "b" for code, _ in TOKEN.findall(template))


def body_text(body: Any) -> str:
    """Return a message's body as text: a string unchanged, bytes as UTF-8, None as "", another value as JSON."""
    match body:
        case None:
            return ""
        case str():
            return body
        case bytes():
            return body.decode(errors="replace")
        case _:
            return json.dumps(to_json(body), ensure_ascii=False)


def message_map(shown: ReceivedMessage, file: Path | None = None) -> dict[str, Any]:
    """Return the map for a line of `receive --json`: a body that is not UTF-8 is in `body_base64`.

    For a body written to ``file``, the map has the path in place of the body.
    """
    arrival = {
        "number": shown.number,
        "received_at": shown.received_at.isoformat(timespec="milliseconds"),
        "address": shown.address,
    }
    body = body_map(shown.message.body) if file is None else {"body_file": str(file)}
    return arrival | head_map(shown.message) | body


def head_map(message: Message) -> dict[str, Any]:
    """Return the message's header, properties, application properties and annotations for JSON, without the body;
    absent fields are left out.
    """
    fields: dict[str, Any] = {
        "to": message.to,
        "subject": message.subject,
        "message_id": to_json(message.message_id),
        "correlation_id": to_json(message.correlation_id),
        "reply_to": message.reply_to,
        "content_type": message.content_type,
        "key": message.group_id,
        "durable": message.durable,
        "priority": message.priority,
        "ttl_s": message.ttl_s,
        "delivery_count": message.delivery_count,
        "properties": to_json(dict(message.properties)),
        "annotations": to_json(dict(message.annotations)),
        "delivery_annotations": to_json(dict(message.delivery_annotations)) or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def body_map(body: Any) -> dict[str, Any]:
    if isinstance(body, bytes):
        try:
            return {"body": body.decode()}
        except UnicodeDecodeError:
            return {"body_base64": base64.b64encode(body).decode()}
    return {"body": to_json(body)}


def to_json(value: Any) -> Any:
    """Convert an AMQP value to JSON values: bytes become base64, values of types without a JSON form become text."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case None | bool() | int() | float():
            return value
        case dict():
            return {str(key): to_json(item) for key, item in value.items()}
        case list() | tuple():
            return [to_json(item) for item in value]
        case _:
            return str(value)
