"""A whole message as JSON: an encoded message, also one that is damaged or cut, as fields, and fields as a message.

Each field of the properties is in the JSON form of `wire.value_json`, with the types that the spec gives it as plain
strings: content_type "text/plain" is a symbol, user_id "alice" a binary, creation_time a text such as
"2026-11-27T23:44:38.123Z". ``properties`` are the application-properties, and ``annotations`` the message-annotations,
whose names are symbols. A body is

    {"kind": "text" | "json" | "binary" | "value" | "none", "section": "data" | "value" | "sequence" | None,
     "text" or "base64", "bytes": n, "is_cut": bool, "why": a sentence, if the body cannot be shown}

The ``text`` of a body of kind "value" is the JSON form of its value, or of the list of its amqp-sequences.

Spec: AMQP 1.0 [3.2] message format. The bytes come from a stranger: nothing here raises an error for them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wire.codec.faults import CodecFault
from wire.codec.scan import find_fault
from wire.codec.values import Described, Symbol, Timestamp, UByte, UInt, ULong, encode, take
from wire.value_json import Json, ValueJsonError, bytes_of, cut, from_json, symbol_of, text_of, to_json

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = 0x70, 0x71, 0x72, 0x73, 0x74
DATA, SEQUENCE, VALUE, FOOTER = 0x75, 0x76, 0x77, 0x78
FIELDS = (
    "message_id",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
)
"""The fields of the properties, in their order. [3.2.4]"""
VALUE_BYTES = 2048
"""A field, a name or a value of more encoded bytes than this is shown cut."""
MAP_BYTES = 8192
"""Of properties and of annotations so many encoded bytes are shown, and the rest is counted."""
MAP_ENTRIES = 256
BODY_VALUE_BYTES = 16384
"""The value of a body that is neither text nor binary is shown only if it has at most so many encoded bytes."""
START_CHARACTERS = 200
NAMESPACE = b"amqp:"
_NAMES = {
    b"header:list": HEADER,
    b"delivery-annotations:map": DELIVERY_ANNOTATIONS,
    b"message-annotations:map": ANNOTATIONS,
    b"properties:list": PROPERTIES,
    b"application-properties:map": APPLICATION_PROPERTIES,
    b"data:binary": DATA,
    b"amqp-sequence:list": SEQUENCE,
    b"amqp-value:*": VALUE,
    b"footer:map": FOOTER,
}
_SECTIONS = {DATA: "data", SEQUENCE: "sequence", VALUE: "value"}
_TEXT_CODES = (0xA1, 0xB1)
_BINARY_CODES = (0xA0, 0xB0)
_LISTS = {0x45: 0, 0xC0: 1, 0xD0: 4}
_MAPS = {0xC1: 1, 0xD1: 4}


class MessageJsonError(ValueError):
    """JSON that stands for no message: the text says the place, the value, and what was expected."""


class _Damage(Exception):
    """Bytes that are no message: the text is the rest of a sentence about the message."""


class _End(Exception):
    """The bytes at hand end within a value."""


# From encoded messages to JSON


@dataclass(slots=True)
class MessageParts:
    """The sections of an encoded message, of which only the first bytes may be at hand.

    ``why``: the sentence why no more could be read, or None. ``body_bytes`` is the size of the whole body.
    """

    is_durable: bool = False
    properties: dict[str, Json] = field(default_factory=dict)
    application: Json = field(default_factory=dict)
    annotations: Json = field(default_factory=dict)
    body_kind: int | None = None
    body: bytes = b""
    body_bytes: int = 0
    why: str | None = None
    left_out: list[str] = field(default_factory=list)


def parts_of(encoded: bytes, size_bytes: int | None = None) -> MessageParts:
    """Return the sections of a message of ``size_bytes`` bytes, of which ``encoded`` has all or the first ones."""
    parts = MessageParts()
    whole = len(encoded) if size_bytes is None else size_bytes
    try:
        _read_sections(encoded, max(whole, len(encoded)), parts)
    except _Damage as damage:
        parts.why = f"the message cannot be decoded: {damage}"
    except _End:
        parts.why = f"the message cannot be decoded: {_end_of_bytes(len(encoded), whole)}"
    return parts


def _end_of_bytes(at_hand: int, whole: int) -> str:
    if at_hand < whole:
        return f"its headers go beyond the first {at_hand:,} of its {whole:,} bytes"
    return f"it ends within a section, after {whole:,} bytes"


def _read_sections(encoded: bytes, whole: int, parts: MessageParts) -> None:
    at = 0
    while at < len(encoded):
        section, at = _descriptor(encoded, at)
        if section in _SECTIONS:
            at = _read_body(encoded, at, section, whole, parts)
            continue
        end = _end_of(encoded, at)
        if section == HEADER:
            fields = list(_items(encoded, at, end, _LISTS, "header"))
            parts.is_durable = bool(fields) and encoded[fields[0][0]] in (0x41, 0x56) and encoded[fields[0][1] - 1] != 0
        elif section == PROPERTIES:
            _read_properties(encoded, at, end, parts)
        elif section == APPLICATION_PROPERTIES:
            parts.application = _map_to_json(encoded, at, end, "application properties", str, parts)
        elif section == ANNOTATIONS:
            parts.annotations = _map_to_json(encoded, at, end, "message annotations", Symbol, parts)
        at = end


def _descriptor(encoded: bytes, at: int) -> tuple[int, int]:
    """Return the code of the section at ``at``, and the offset of its value."""
    if encoded[at] != 0:
        raise _Damage(f"expected a section at byte {at:,}, got 0x{encoded[at]:02x}")
    end = _end_of(encoded, at + 1)
    code = encoded[at + 1]
    if code in (0x53, 0x80):
        return int.from_bytes(encoded[at + 2 : end], "big"), end
    if code in (0xA3, 0xB3):
        name = encoded[at + (3 if code == 0xA3 else 6) : end]
        return _NAMES.get(name.removeprefix(NAMESPACE), 0), end
    raise _Damage(f"expected a number or a symbol as the descriptor of the section at byte {at:,}, got 0x{code:02x}")


def _end_of(encoded: bytes, at: int) -> int:
    """Return the offset of the end of the value at ``at``; raise _End if that is not at hand, _Damage for no value."""
    start, size = _extent(encoded, at)
    if start + size > len(encoded):
        raise _End
    return start + size


def _extent(encoded: bytes, at: int) -> tuple[int, int]:
    """Return the offset and size of what follows the constructor of the value at ``at``; values nest without recursion.

    The bytes of a value of fixed or told size need not be at hand.
    """
    count = 1
    while True:
        if at >= len(encoded):
            raise _End
        code = encoded[at]
        at += 1
        if code == 0:
            count += 1
            continue
        count -= 1
        kind = code >> 4
        if kind < 4:
            raise _Damage(f"0x{code:02x} at byte {at - 1:,} is not a valid AMQP type")
        if kind < 0xA:
            size = 0 if kind == 4 else 1 << (kind - 5)
        else:
            width = 4 if kind & 1 else 1
            if at + width > len(encoded):
                raise _End
            size = int.from_bytes(encoded[at : at + width], "big")
            at += width
        if not count:
            return at, size
        at += size


def _items(encoded: bytes, at: int, end: int, codes: Mapping[int, int], what: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each value in the list or map at ``at``."""
    code = encoded[at]
    if code == 0x45 and code in codes:
        return
    if code not in codes:
        raise _Damage(f"its {what} are of the type 0x{code:02x}, expected a {'list' if codes is _LISTS else 'map'}")
    width = codes[code]
    place = at + 1 + 2 * width
    if place > end:
        raise _Damage(f"its {what} have no count")
    for _ in range(int.from_bytes(encoded[at + 1 + width : place], "big")):
        try:
            after = _end_of(encoded, place)
        except _End:
            after = end + 1
        if after > end:
            raise _Damage(f"its {what} end within a value")
        yield place, after
        place = after


def _read_properties(encoded: bytes, at: int, end: int, parts: MessageParts) -> None:
    for name, (start, after) in zip(FIELDS, _items(encoded, at, end, _LISTS, "properties"), strict=False):
        parts.properties[name] = _field_to_json(name, _value_to_json(encoded, start, after))


def _field_to_json(name: str, form: Json) -> Json:
    """Return the form of a field of the properties without the tag of the type that the spec gives the field."""
    if isinstance(form, dict) and len(form) == 1:
        ((tag, inner),) = form.items()
        if tag == _PLAIN.get(name):
            return inner
        if name == "user_id" and tag == "$binary":
            text = _text_in(base64.b64decode(inner))
            return form if text is None else text
    return form


_PLAIN = {
    "content_type": "$symbol",
    "content_encoding": "$symbol",
    "expiry_time": "$timestamp",
    "creation_time": "$timestamp",
    "group_sequence": "$uint",
}


def _value_to_json(encoded: bytes, start: int, end: int, most_bytes: int = VALUE_BYTES) -> Json:
    """Return the JSON form of the value in these bytes, cut if it has more than ``most_bytes`` or is malformed."""
    raw = encoded[start:end]
    if len(raw) > most_bytes:
        return cut(_type_name(raw[0]), len(raw), _start_of(raw))
    fault = find_fault(raw)
    if fault is not None:
        return cut(f"unreadable, {fault}", len(raw), _start_of(raw))
    return to_json(take(raw, 0)[0])


_LONG_TYPES = {
    0x00: "described",
    0xA0: "binary",
    0xA1: "string",
    0xA3: "symbol",
    0xC0: "list",
    0xC1: "map",
    0xE0: "array",
}
"""Types of values that can be long, by the code with a size of one byte; codes with a long size have 0x10, too."""


def _type_name(code: int) -> str:
    return _LONG_TYPES.get(code & 0xEF, f"0x{code:02x}")


def _start_of(raw: bytes) -> str:
    """Return the first characters of an encoded text, or of other bytes in hexadecimal."""
    if raw[0] in (0xA1, 0xA3, 0xB1, 0xB3):
        width = 4 if raw[0] & 0x10 else 1
        return raw[1 + width : 1 + width + START_CHARACTERS].decode("utf-8", "replace")
    return raw[: START_CHARACTERS // 2].hex()


def _map_to_json(encoded: bytes, at: int, end: int, what: str, kind: type[str], parts: MessageParts) -> Json:
    """Return a map as an object if all of its keys are texts of the type ``kind``, else as {"$map": pairs}."""
    items = _items(encoded, at, end, _MAPS, what)
    pairs: list[list[Json]] = []
    is_object, shown_bytes = True, 0
    tag = "$symbol" if kind is Symbol else None
    for (key_start, key_end), (start, after) in zip(items, items, strict=False):
        shown = min(key_end - key_start, VALUE_BYTES) + min(after - start, VALUE_BYTES)
        if len(pairs) == MAP_ENTRIES or shown_bytes + shown > MAP_BYTES:
            width = _MAPS[encoded[at]]
            count = int.from_bytes(encoded[at + 1 + width : at + 1 + 2 * width], "big") // 2
            parts.left_out.append(f"{count - len(pairs):,} of {count:,} {what} are not shown")
            break
        shown_bytes += shown
        key = _value_to_json(encoded, key_start, key_end)
        is_object = is_object and (isinstance(key, str) if tag is None else isinstance(key, dict) and set(key) == {tag})
        pairs.append([key, _value_to_json(encoded, start, after)])
    if is_object:
        named = {key if tag is None else key[tag]: value for key, value in pairs}
        if len(named) == len(pairs) and "$map" not in named:
            return named
    return {"$map": pairs}


def _read_body(encoded: bytes, at: int, section: int, whole: int, parts: MessageParts) -> int:
    """Take the bytes of a body section that are at hand; return the offset of the section's end."""
    if parts.body_kind not in (None, section) or (section == VALUE and parts.body_kind is not None):
        raise _Damage(f"it has a second body, at byte {at:,}")
    start, size = _extent(encoded, at)
    if start + size > whole:
        raise _Damage(f"its body ends at byte {start + size:,}, and the message after {whole:,} bytes")
    parts.body_kind = section
    if section == DATA:
        if encoded[at] not in _BINARY_CODES:
            raise _Damage(f"the data of its body are of the type 0x{encoded[at]:02x}, expected a binary")
        parts.body += encoded[start : start + size]
        parts.body_bytes += size
    else:
        parts.body += encoded[at : start + size]
        parts.body_bytes += start + size - at
    return start + size


# Bodies


def body_to_json(parts: MessageParts, most_bytes: int) -> dict[str, Json]:
    """Return the JSON form of the body of ``parts``, of which at most the first ``most_bytes`` bytes are shown."""
    if parts.body_kind is None:
        return {"kind": "none", "section": None, "bytes": 0, "is_cut": False, "why": parts.why}
    form = {"section": _SECTIONS[parts.body_kind], "bytes": parts.body_bytes, "is_cut": False, "why": parts.why}
    if parts.body_kind == DATA:
        return form | _bytes_form(parts.body, parts.body_bytes, most_bytes, parts)
    if parts.body_kind == VALUE and parts.body[0] in _TEXT_CODES + _BINARY_CODES:
        lead = 5 if parts.body[0] & 0x10 else 2
        form["bytes"] = size = parts.body_bytes - lead
        if parts.body[0] in _BINARY_CODES:
            return form | _binary_form(parts.body[lead:], size, most_bytes)
        return form | _bytes_form(parts.body[lead:], size, most_bytes, parts, is_text=True)
    return form | _value_form(parts, most_bytes)


def _bytes_form(
    raw: bytes, size: int, most_bytes: int, parts: MessageParts, *, is_text: bool = False
) -> dict[str, Json]:
    is_cut = size > most_bytes or len(raw) < size
    raw = raw[:most_bytes]
    text = _text_in(_without_half_character(raw) if is_cut else raw, is_strict=not is_text)
    if text is None:
        why = {"why": "the text of the body is not UTF-8"} if is_text else {}
        return {**_binary_form(raw, size, most_bytes), "is_cut": is_cut, **why}
    is_json = "json" in str(parts.properties.get("content_type")).lower() and (is_cut or _is_json(text))
    return {"kind": "json" if is_json else "text", "text": text, "is_cut": is_cut}


def _binary_form(raw: bytes, size: int, most_bytes: int) -> dict[str, Json]:
    is_cut = size > most_bytes or len(raw) < size
    return {"kind": "binary", "base64": base64.b64encode(raw[:most_bytes]).decode("ascii"), "is_cut": is_cut}


def _value_form(parts: MessageParts, most_bytes: int) -> dict[str, Json]:
    raw = parts.body
    limit = min(most_bytes, BODY_VALUE_BYTES)
    if len(raw) < parts.body_bytes or parts.body_bytes > limit:
        why = f"the value of the body has {parts.body_bytes:,} bytes, more than the {limit:,} up to which it is decoded"
        return {**_binary_form(raw, parts.body_bytes, most_bytes), "kind": "value", "is_cut": True, "why": why}
    values, at = [], 0
    while at < len(raw):
        end = _end_of(raw, at)
        fault = find_fault(raw[at:end])
        if fault is not None:
            why = f"the value of the body cannot be decoded: {fault}"
            return {**_binary_form(raw, parts.body_bytes, most_bytes), "kind": "value", "why": why}
        values.append(to_json(take(raw, at)[0]))
        at = end
    form = values if parts.body_kind == SEQUENCE else values[0]
    return {"kind": "value", "text": json.dumps(form, ensure_ascii=False)}


def _text_in(raw: bytes, *, is_strict: bool = True) -> str | None:
    """Return the text in bytes that are UTF-8; None for others and, ``is_strict``, for text with control characters."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if is_strict and any(each < " " and each not in "\t\n\r" for each in text):
        return None
    return text


def _without_half_character(raw: bytes) -> bytes:
    """Return UTF-8 without the bytes of a character at the end that was cut."""
    for back in range(1, min(4, len(raw) + 1)):
        lead = raw[-back]
        if lead >= 0xC0:
            needed = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return raw[:-back] if needed > back else raw
        if lead < 0x80:
            return raw
    return raw


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


# From JSON to encoded messages


def encode_message(fields: Mapping[str, Json]) -> bytes:
    """Return the encoded message that ``fields`` stand for: the fields of ``FIELDS``, and ``durable``, ``priority``,
    ``ttl_s``, ``annotations``, ``properties`` and ``body``; all are optional, and null is as absent.

    Raises MessageJsonError, with the place, for a field that is unknown, of another type, or was shown cut.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    unknown = sorted(set(given) - {*FIELDS, "durable", "priority", "ttl_s", "annotations", "properties", "body"})
    if unknown:
        known = ", ".join((*FIELDS, "durable", "priority", "ttl_s", "annotations", "properties", "body"))
        raise MessageJsonError(f"message: unknown field {unknown[0]!r}: expected {known}")
    try:
        return b"".join(
            (
                _encoded_header(given),
                _encoded_map(ANNOTATIONS, given.get("annotations"), "annotations"),
                _encoded_properties(given),
                _encoded_map(APPLICATION_PROPERTIES, given.get("properties"), "properties"),
                _encoded_body(given.get("body", {})),
            )
        )
    except (ValueJsonError, CodecFault) as error:
        raise MessageJsonError(f"message: {error}") from None


def _encoded_header(given: Mapping[str, Json]) -> bytes:
    durable, priority, ttl_s = given.get("durable", False), given.get("priority", 4), given.get("ttl_s")
    if not isinstance(durable, bool):
        raise ValueJsonError(f"durable: expected true or false, got {durable!r}")
    if type(priority) is not int or not 0 <= priority <= 255:
        raise ValueJsonError(f"priority: expected 0 to 255, got {priority!r}")
    if ttl_s is not None and (isinstance(ttl_s, bool) or not isinstance(ttl_s, (int, float)) or not 0 < ttl_s <= 4e6):
        raise ValueJsonError(f"ttl_s: expected more than 0 and at most 4,000,000 seconds, got {ttl_s!r}")
    ttl = None if ttl_s is None else UInt(round(ttl_s * 1000))
    return _section(HEADER, [durable, UByte(priority), ttl])


def _encoded_properties(given: Mapping[str, Json]) -> bytes:
    values = [_field_from_json(name, given.get(name)) for name in FIELDS]
    while values and values[-1] is None:
        values.pop()
    return _section(PROPERTIES, values) if values else b""


_TEXTS = ("to", "subject", "reply_to", "group_id", "reply_to_group_id")


def _field_from_json(name: str, form: Json) -> Any:
    if form is None:
        return None
    if name in _TEXTS:
        return text_of(form, name)
    if name in ("content_type", "content_encoding"):
        return symbol_of(form, name)
    if name == "user_id" and isinstance(form, str):
        return text_of(form, name).encode()
    if name in _PLAIN and not isinstance(form, dict):
        return from_json({_PLAIN[name]: form}, name)
    found = from_json(form, name)
    expected = {"user_id": bytes, "expiry_time": Timestamp, "creation_time": Timestamp, "group_sequence": UInt}.get(
        name
    )
    if name in ("message_id", "correlation_id"):
        if encode(found)[0] not in _ID_CODES or isinstance(found, Symbol):
            raise ValueJsonError(f"{name}: expected a string, or a $ulong, $uuid or $binary, got {form!r}")
    elif expected is not None and type(found) is not expected:
        raise ValueJsonError(f"{name}: expected a value of the type {expected.__name__.lower()}, got {form!r}")
    return found


_ID_CODES = (0xA1, 0xB1, 0x44, 0x53, 0x80, 0x98, 0xA0, 0xB0)


def _encoded_map(section: int, form: Json, what: str) -> bytes:
    if not form:
        return b""
    if not isinstance(form, dict):
        raise ValueJsonError(f"{what}: expected an object, got {form!r}")
    if set(form) == {"$map"}:
        return _section(section, from_json(form, what))
    key_of = symbol_of if section == ANNOTATIONS else text_of
    return _section(
        section, {key_of(name, what): from_json(value, f"{what}.{name}", 1) for name, value in form.items()}
    )


def _encoded_body(body: Json) -> bytes:
    if not isinstance(body, dict):
        raise ValueJsonError(f"body: expected an object, got {body!r}")
    if body.get("is_cut"):
        raise ValueJsonError("body: this body was cut as it was shown: expected the whole body")
    kind, section = body.get("kind", "none"), body.get("section")
    if section not in (None, *_SECTIONS.values()):
        raise ValueJsonError(f"body.section: expected data, value or sequence, got {section!r}")
    if kind == "none":
        return _section(VALUE, None)
    if kind in ("text", "json"):
        text = text_of(body.get("text"), "body.text")
        if kind == "json" and not _is_json(text):
            raise ValueJsonError("body.text: expected JSON, as its kind is json")
        return _section(DATA, text.encode()) if section == "data" else _section(VALUE, text)
    if kind == "binary":
        raw = bytes_of(body.get("base64"), "body.base64")
        return _section(VALUE, raw) if section == "value" else _section(DATA, raw)
    if kind == "value":
        return _encoded_value(body, section)
    raise ValueJsonError(f"body.kind: expected text, json, binary, value or none, got {kind!r}")


def _encoded_value(body: Mapping[str, Json], section: Json) -> bytes:
    try:
        form = json.loads(text_of(body.get("text"), "body.text"))
    except (json.JSONDecodeError, RecursionError):
        raise ValueJsonError("body.text: expected the JSON form of a value, as its kind is value") from None
    value = from_json(form, "body.text")
    if section != "sequence":
        return _section(VALUE, value)
    if not isinstance(value, list) or not value or not all(isinstance(each, list) for each in value):
        raise ValueJsonError("body.text: expected an array of arrays, one for each amqp-sequence")
    return b"".join(_section(SEQUENCE, each) for each in value)


def _section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))
