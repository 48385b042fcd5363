"""Reads a request for a change: query, headers and JSON object, each checked before anything is done. Sans-IO.

    POST /api/queues/b1/7/purge?dry_run=true
    Content-Type: application/json
    Idempotency-Key: 5c1e0d

    {"up_to": 8301, "expect": {"address": "orders"}}

``expect`` may be given with each change: fields of the entity as they were shown. Ids of queues, connections and links
are numbers that a node gives anew after a restart; with `expect`, nothing else is changed than what was meant.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mesh.watch.write_operations import MAX_NUMBERS, MemberType, WriteMember, WriteOperation
from wire.message_json import MessageJsonError, encode_message

MAX_BODY_BYTES: Final = 1 << 20
"""The largest body of a request; a message to send is a part of it."""
MAX_KEY_CHARS: Final = 128
EXPECT: Final = "expect"
CONTENT_TYPE: Final = "application/json"
KEY_HEADER: Final = "Idempotency-Key"
_SHOWN_CHARS: Final = 80
_IN_WORDS: Final = {
    MemberType.TEXT: "a text",
    MemberType.NUMBER: "a whole number",
    MemberType.NUMBERS: "a list of whole numbers",
    MemberType.FLAG: "true or false",
    MemberType.MESSAGE: "an object with the parts of a message",
}


class WriteRefused(Exception):
    """A change that is not made, with the ``status`` of HTTP.

    ``place`` names the part of the request that is wrong, ``allowed`` what may stand there. ``is_uncertain``: the
    change may have been made, or a part of it.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        place: str | None = None,
        allowed: Iterable[str] = (),
        *,
        is_uncertain: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.place, self.allowed = status, sentence, place, tuple(allowed)
        self.is_uncertain = is_uncertain

    def to_map(self) -> dict[str, Any]:
        told: dict[str, Any] = {"error": self.sentence}
        if self.place is not None:
            told |= {"place": self.place, "allowed": list(self.allowed)}
        if self.is_uncertain:
            told["is_uncertain"] = True
        return told


@dataclass(frozen=True, slots=True)
class EditedMessage:
    """A message to send, and the user that it says to be from, in the JSON form of the request."""

    encoded: bytes = field(repr=False)
    user_id: Any


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A request for ``operation`` on the entity with ``id``. ``key`` is None only for a dry run.

    ``digest`` stands for all of the request but its key.
    """

    operation: WriteOperation
    id: str
    arguments: Mapping[str, Any]
    expect: Mapping[str, Any]
    is_dry_run: bool
    key: str | None
    digest: str


def parse_write(
    operation: WriteOperation,
    id_: str,
    headers: Mapping[str, str],
    parameters: Sequence[tuple[str, str]],
    body: bytes,
) -> WriteRequest:
    """Return the request. ``headers``: by name in lower case. Raises WriteRefused with status 400."""
    is_dry_run = _dry_run(parameters)
    _check_content_type(headers.get("content-type"))
    key = _key(headers.get(KEY_HEADER.lower()), is_dry_run=is_dry_run)
    given = _object(body)
    expect = _expect(operation, given.pop(EXPECT, {}))
    arguments = _arguments(operation, given)
    said = json.dumps([operation.name, id_, given, expect], sort_keys=True, separators=(",", ":"))
    return WriteRequest(
        operation, id_, arguments, expect, is_dry_run, key, hashlib.sha256(said.encode()).hexdigest()
    )  # fmt: skip


def _dry_run(parameters: Sequence[tuple[str, str]]) -> bool:
    found = False
    for number, (name, value) in enumerate(parameters):
        if name != "dry_run":
            raise _wrong(_named(name), f"unknown parameter {_shown(name)}", ("dry_run",))
        if number or value not in ("true", "false"):
            raise _wrong("dry_run", f"expected dry_run once, true or false, got {_shown(value)}", ("true", "false"))
        found = value == "true"
    return found


def _check_content_type(text: str | None) -> None:
    kind, _, parameters = (text or "").partition(";")
    charset = parameters.strip().lower().replace('"', "").removeprefix("charset=")
    if kind.strip().lower() != CONTENT_TYPE or charset not in ("", "utf-8"):
        raise _wrong("Content-Type", f"expected {CONTENT_TYPE}, got {_shown(text or '')}", (CONTENT_TYPE,))


def _key(text: str | None, *, is_dry_run: bool) -> str | None:
    if text is None and is_dry_run:
        return None
    if text is None or not 1 <= len(text) <= MAX_KEY_CHARS or not all("!" <= each <= "~" for each in text):
        raise _wrong(
            KEY_HEADER,
            f"expected a header {KEY_HEADER} of 1 to {MAX_KEY_CHARS} visible ASCII characters, a new one for each "
            f"change, got {'none' if text is None else _shown(text)}",
        )
    return text


def _object(body: bytes) -> dict[str, Any]:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = next(name for number, (name, _) in enumerate(pairs) if name in dict(pairs[:number]))
            raise _wrong(_named(twice), f"the member {_shown(twice)} is given twice, expected once")
        return found

    def constant(text: str) -> Any:
        raise ValueError(f"{text} is not JSON")

    try:
        found = json.loads(body.decode() or "{}", object_pairs_hook=members, parse_constant=constant)
        # Half of a surrogate pair is a text in JSON, and not in UTF-8.
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise _wrong("body", "expected an object of JSON in UTF-8 as the body of the request") from None
    if not isinstance(found, dict):
        raise _wrong("body", f"expected an object of JSON as the body of the request, got {_shown(json.dumps(found))}")
    return found


def _expect(operation: WriteOperation, given: Any) -> dict[str, Any]:
    fields = operation.expected
    if not isinstance(given, dict):
        raise _wrong(EXPECT, f"expected an object with fields of the {operation.entity.name}", fields)
    for name, value in given.items():
        if name not in fields:
            raise _wrong(EXPECT, f"{operation.entity.plural} have no field {_shown(name)}", fields)
        if isinstance(value, (dict, list)):
            raise _wrong(f"{EXPECT}.{name}", f"expected the value of a field, got {_shown(json.dumps(value))}")
    return given


def _arguments(operation: WriteOperation, given: Mapping[str, Any]) -> dict[str, Any]:
    names = tuple(member.name for member in operation.members)
    found: dict[str, Any] = {}
    for name, value in given.items():
        member = operation.member(name)
        if member is None:
            raise _wrong(_named(name), f"{operation.name} has no member {_shown(name)}", (*names, EXPECT))
        found[name] = _value(member, value)
    for member in operation.members:
        if member.is_needed and member.name not in found:
            raise _wrong(member.name, f"{operation.name} needs the member {member.name}: {member.meaning}", names)
    count = sum(name in found for name in operation.one_of)
    if operation.one_of and count != 1:
        raise _wrong(
            operation.one_of[0], f"{operation.name} needs exactly one of {', '.join(operation.one_of)}, got {count}",
            operation.one_of,
        )  # fmt: skip
    return found


def _value(member: WriteMember, value: Any) -> Any:
    match member.type:
        case MemberType.FLAG if isinstance(value, bool):
            return value
        case MemberType.NUMBER if type(value) is int:
            if member.least <= value <= member.most:
                return value
            raise _wrong(member.name, f"expected {member.name} from {member.least} to {member.most}, got {value}")
        case MemberType.NUMBERS if isinstance(value, list) and all(type(each) is int for each in value):
            return _numbers(member, value)
        case MemberType.TEXT if isinstance(value, str):
            return _text(member, value)
        case MemberType.MESSAGE if isinstance(value, dict):
            try:
                return EditedMessage(encode_message(value), value.get("user_id"))
            except MessageJsonError as error:
                raise _wrong(member.name, str(error)) from None
    raise _wrong(
        member.name, f"expected {_IN_WORDS[member.type]} as {member.name}, got {_shown(json.dumps(value))}"
    )  # fmt: skip


def _numbers(member: WriteMember, value: list[int]) -> tuple[int, ...]:
    if not 1 <= len(value) <= MAX_NUMBERS:
        raise _wrong(member.name, f"expected 1 to {MAX_NUMBERS} {member.name}, got {len(value)}")
    if len(set(value)) != len(value):
        raise _wrong(member.name, f"expected different {member.name}, got one of them twice")
    for each in value:
        if not member.least <= each <= member.most:
            raise _wrong(member.name, f"expected {member.name} from {member.least} to {member.most}, got {each}")
    return tuple(value)


def _text(member: WriteMember, value: str) -> str:
    if member.values and value not in member.values:
        raise _wrong(member.name, f"unknown {member.name} {_shown(value)}", member.values)
    if not member.least <= len(value) <= member.most:
        raise _wrong(
            member.name, f"expected {member.name} of {member.least} to {member.most} characters, got {len(value)}"
        )  # fmt: skip
    if any(each < " " or each == "\x7f" for each in value):
        raise _wrong(member.name, f"expected {member.name} without control characters, got {_shown(value)}")
    return value


def _wrong(place: str, sentence: str, allowed: Iterable[str] = ()) -> WriteRefused:
    return WriteRefused(400, sentence, place, allowed)


def _named(name: str) -> str:
    return name[:_SHOWN_CHARS] or '""'


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "...")
