"""Requests and answers of AMQP management, as messages. Sans-IO.

A request's application properties are `operation` and, depending on it, `type`, `name`, `identity`, `entityType`,
`offset`, `count` and `limit`; its body is a map. The answer has `statusCode` and `statusDescription`, and the
correlation-id of the request with the same AMQP type.

Source: AMQP Management 1.0, working draft 9; Qpid Dispatch 1.19 where the draft leaves a choice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from wire.codec.faults import CodecFault
from wire.codec.values import Described, Int, Pairs, Symbol, ULong, decode, encode

MAX_ROWS: Final = 5000
"""The most entities in one answer; a query without `count` gets the first ones, and the description says so."""
MAX_NAMES: Final = 256
"""The most attributes that a query may name, each of which costs time and memory in each row; all types have fewer."""
MAX_SHOWN_CHARS: Final = 80
_PROPERTIES, _APPLICATION_PROPERTIES, _VALUE = 0x73, 0x74, 0x77
_SECTIONS = range(0x70, 0x79)
_MOST_SECTIONS: Final = 16
_NAMES_OF_SECTIONS: Final = {
    f"amqp:{name}": 0x70 + number
    for number, name in enumerate(
        ("header:list", "delivery-annotations:map", "message-annotations:map", "properties:list",
         "application-properties:map", "data:binary", "amqp-sequence:list", "amqp-value:*", "footer:map")
    )
}  # fmt: skip
_MESSAGE_ID, _REPLY_TO, _CORRELATION_ID = 0, 4, 5
"""Places of fields in the list of section properties. [3.2.4]"""


class Status(IntEnum):
    """Status codes of answers: those of HTTP."""

    OK = 200
    CREATED = 201
    NO_CONTENT = 204
    BAD_REQUEST = 400
    FORBIDDEN = 403
    NOT_FOUND = 404
    NOT_IMPLEMENTED = 501
    UNAVAILABLE = 503
    TIMEOUT = 504


class ManagementError(Exception):
    """A request that is answered with another status than OK. The message names the place and the expected value."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ManagementRequest:
    """A request. ``reply_to`` is None, and ``correlation_id`` too, where the message has none.

    ``properties`` are the application properties by name, as Python values of `wire.codec.values`; ``body`` is {} for a
    body that is not a map. ``odd_keys``: the keys of the body that are not texts, as an error shows them.
    """

    reply_to: str | None = None
    correlation_id: Any = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    odd_keys: tuple[str, ...] = ()

    @property
    def operation(self) -> str:
        """The operation in upper case. Raises ManagementError if there is none."""
        found = self.text("operation")
        if found is None:
            raise ManagementError(Status.BAD_REQUEST, "the request has no application property 'operation'")
        return found.upper()

    def text(self, name: str) -> str | None:
        """Return the application property ``name``, None without one. Raises ManagementError if it is not a string."""
        value = self.properties.get(name)
        if value is not None and not isinstance(value, str):
            raise ManagementError(Status.BAD_REQUEST, f"{name}: expected a string, got {shown(value)}")
        return None if value is None else str(value)

    def number(self, name: str) -> int | None:
        """Return the whole number in the application property ``name``, None without one.

        Raises ManagementError for a negative number, and for a value of any other type.
        """
        value = self.properties.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ManagementError(
                Status.BAD_REQUEST, f"{name}: expected a whole number of 0 or more, got {shown(value)}"
            )
        return int(value)

    def attribute_names(self) -> tuple[str, ...]:
        """Return the names in the body's list `attributeNames`; () for all. Raises ManagementError for other bodies."""
        names = self.body.get("attributeNames")
        if names is None:
            return ()
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ManagementError(Status.BAD_REQUEST, f"attributeNames: expected a list of strings, got {shown(names)}")
        if len(names) > MAX_NAMES:
            raise ManagementError(
                Status.BAD_REQUEST, f"attributeNames: expected at most {MAX_NAMES} names, got {len(names):,}"
            )
        return tuple(map(str, names))

    def page(self) -> tuple[int, int]:
        """Return the offset of the first row, and the most rows. Raises ManagementError for invalid ones."""
        count = self.number("count")
        if count is not None and count > MAX_ROWS:
            raise ManagementError(
                Status.BAD_REQUEST, f"count: expected at most {MAX_ROWS:,}, got {count:,}; ask for more with offset"
            )
        return self.number("offset") or 0, MAX_ROWS if count is None else count


def parse(message: bytes) -> ManagementRequest:
    """Return the request in an encoded message. Raises ManagementError for bytes that are not an AMQP message.

    No section that a request is read from may come twice, as the router has looked at the first one only. [3.2]
    """
    properties: Any = None
    application: Any = None
    body: Any = None
    seen: set[int] = set()
    for section, value in _sections(message):
        if section in seen:
            raise ManagementError(Status.BAD_REQUEST, f"the request has its section 0x{section:02x} twice")
        seen.add(section)
        if section == _PROPERTIES:
            properties = value
        elif section == _APPLICATION_PROPERTIES:
            application = value
        elif section == _VALUE:
            body = value
    fields = properties if isinstance(properties, list) else []
    reply_to, correlation_id = _field(fields, _REPLY_TO), _field(fields, _CORRELATION_ID)
    if correlation_id is None:
        correlation_id = _field(fields, _MESSAGE_ID)
    if not isinstance(correlation_id, (str, bytes, uuid.UUID, ULong)) or isinstance(correlation_id, Symbol):
        correlation_id = None
    return ManagementRequest(
        str(reply_to) if isinstance(reply_to, str) else None,
        correlation_id,
        _map_of(application),
        _map_of(body),
        tuple(shown(key) for key, _ in _pairs_of(body) if not isinstance(key, str)),
    )


def _sections(message: bytes) -> Iterator[tuple[int, Any]]:
    for value in _described(message):
        code = _section_of(value)
        if code is None:
            raise ManagementError(Status.BAD_REQUEST, "the request is not an AMQP message: expected sections only")
        yield code, value.value


def _described(message: bytes) -> list[Any]:
    """Return the AMQP values that ``message`` consists of. Raises ManagementError for other bytes."""
    # The sections of a message, one behind the other, are what a list of them contains. The number of them is not known
    # before they are scanned, so each number is tried.
    for count in range(1, _MOST_SECTIONS + 1):
        as_list = b"\xd0" + (len(message) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + message
        try:
            found = decode(as_list)
        except CodecFault:
            continue
        except (ValueError, RecursionError, TypeError) as error:
            raise ManagementError(Status.BAD_REQUEST, f"the request is not an AMQP message: {error}") from None
        return list(found)
    raise ManagementError(
        Status.BAD_REQUEST,
        f"the request is not an AMQP message of 1 to {_MOST_SECTIONS} sections: its bytes are malformed",
    )


def _section_of(value: Any) -> int | None:
    if not isinstance(value, Described):
        return None
    code = _NAMES_OF_SECTIONS.get(value.descriptor) if isinstance(value.descriptor, str) else value.descriptor
    return code if code in _SECTIONS else None


def _field(fields: list[Any], place: int) -> Any:
    return fields[place] if place < len(fields) else None


def _map_of(value: Any) -> Mapping[str, Any]:
    """Return the entries of an AMQP map whose keys are texts; {} for any other value."""
    return {str(key): item for key, item in _pairs_of(value) if isinstance(key, str)}


def _pairs_of(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Pairs):
        return value.items
    return value.items() if isinstance(value, dict) else ()


def encode_answer(
    request: ManagementRequest, status: Status, description: str, body: bytes, count: int | None = None
) -> bytes:
    """Return the encoded answer to ``request``; ``body`` is an encoded AMQP value, and ``count`` its number of rows."""
    properties: dict[str, Any] = {"statusCode": Int(status), "statusDescription": description}
    if count is not None:
        properties["count"] = Int(count)
    fields = [None, None, request.reply_to, None, None, request.correlation_id]
    return b"".join(
        (
            encode(Described(ULong(_PROPERTIES), fields)),
            encode(Described(ULong(_APPLICATION_PROPERTIES), properties)),
            b"\x00" + encode(ULong(_VALUE)),
            body,
        )
    )


def encode_error(request: ManagementRequest, error: ManagementError) -> bytes:
    return encode_answer(request, error.status, str(error), encode({}))


def encode_rows(names: tuple[str, ...], rows: list[bytes]) -> bytes:
    """Return the encoded body of an answer to QUERY, of encoded rows, each a list in the order of ``names``."""
    content = b"".join(rows)
    results = b"\xd0" + (len(content) + 4).to_bytes(4, "big") + len(rows).to_bytes(4, "big") + content
    entries = encode("attributeNames") + encode(list(names)) + encode("results") + results
    return b"\xd1" + (len(entries) + 4).to_bytes(4, "big") + (4).to_bytes(4, "big") + entries


def shown(value: Any) -> str:
    """Return ``value`` as text for an error, cut if it is long."""
    text = repr(str(value)) if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "..."


def audited(value: Any) -> Any:
    """Return ``value`` as the audit, which is JSON, has it: short texts, whole numbers and truth as they are."""
    if value is None or isinstance(value, (bool, int)):
        return value
    return value if isinstance(value, str) and len(value) <= MAX_SHOWN_CHARS else shown(value)
