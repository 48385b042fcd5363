"""What was expected at this place of the topology? Errors of the model in the words of the file's author."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from addressing.descriptions import describe
from addressing.problem import Path, Problem, hint_for, listing, nearest
from addressing.topology import (
    Address,
    Broker,
    BrokerTls,
    Connection,
    Listener,
    ListenerTls,
    Part,
    Router,
    Topology,
    User,
)

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Which keys belong where; * is any name or number.
_PARTS: dict[Path, type[Part]] = {
    (): Topology,
    ("routers", "*"): Router,
    ("routers", "*", "listeners", "*"): Listener,
    ("routers", "*", "listeners", "*", "tls"): ListenerTls,
    ("routers", "*", "connect", "*"): Connection,
    ("brokers", "*"): Broker,
    ("brokers", "*", "tls"): BrokerTls,
    ("addresses", "*"): Address,
    ("users", "*"): User,
}

_WANTED_TYPES = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "path": "a path",
    "dict": "a mapping",
    "model": "a mapping",
    "list": "a list",
    "tuple": "a list",
}

_SHORTHANDS: dict[type[Part], str] = {
    Address: "a type, or a mapping with 'type'",
    Connection: "the name of a router, or a mapping with 'to'",
    Listener: "a port, or a mapping",
    ListenerTls: "true, false, or a mapping",
}


def problems_of(error: ValidationError, data: Any) -> Iterator[Problem]:
    """Yield what pydantic found, one Problem per error. ``data`` is what was validated, to show the value."""
    for detail in error.errors(include_url=False, include_input=False):
        yield _problem(detail, data)


def _problem(detail: ErrorDetails, data: Any) -> Problem:
    path: Path = tuple(detail["loc"])
    kind = detail["type"]
    # Pydantic marks an error of a key itself, such as a malformed name, by a last step '[key]'.
    if path and path[-1] == "[key]":
        return Problem(path[:-1], kind, f"{_subject(path[:-2])}{detail['msg']}", at_key=True)
    if kind.startswith("AM"):
        return Problem(path, kind, f"{_subject(path)}{detail['msg']}")
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "missing":
        return _missing_key(path)
    return _wrong_value(path, detail, data)


def _unknown_key(path: Path) -> Problem:
    key = str(path[-1])
    known = tuple(_part_at(path[:-1]).model_fields)
    return Problem(
        path,
        "AM101",
        f"{_subject(path[:-1])}unknown key {key!r}",
        hint=hint_for(key, known, title="allowed"),
        suggestion=nearest(key, known),
        at_key=True,
    )


def _missing_key(path: Path) -> Problem:
    key = str(path[-1])
    return Problem(
        path,
        "AM102",
        f"{_subject(path[:-1])}the key {key!r} is missing",
        hint=f"{key}: {describe(_part_at(path[:-1]).__name__, key)}",
        fix=f"add '{key}:'.",
        at_key=True,
    )


def _wrong_value(path: Path, detail: ErrorDetails, data: Any) -> Problem:
    kind, context = detail["type"], detail.get("ctx", {})
    value = _value_at(path, data)
    found = f", got {_shown(value)}"
    if kind == "enum":
        return _no_such_word(path, str(value), str(context["expected"]))
    wanted = _WANTED_TYPES.get(kind.split("_")[0]) if kind.endswith(("_type", "_parsing", "_from_float")) else None
    if wanted:
        part = _PARTS.get(_shape(path))
        wanted = _SHORTHANDS.get(part, wanted) if part else wanted
        hint = "put it in quotes to make it text" if wanted == "text" and isinstance(value, int | float) else ""
        return Problem(path, "AM105", f"{_subject(path)}expected {wanted}{found}", hint=hint)
    return Problem(path, "AM106", f"{_subject(path)}expected {_limit(detail)}{found}")


def _no_such_word(path: Path, value: str, expected: str) -> Problem:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    message = f"{_subject(path)}expected {listing(words)}, got {value!r}"
    return Problem(
        path, "AM106", message, hint=hint_for(value, words, title="allowed"), suggestion=nearest(value, words)
    )


def _limit(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "greater_than_equal":
            return f"{context['ge']} or more"
        case "greater_than":
            return f"more than {context['gt']}"
        case "less_than_equal":
            return f"{context['le']} or less"
        case "too_short" | "string_too_short":
            return "at least one"
        case _:
            return detail["msg"].removeprefix("Input should be ")


def _part_at(path: Path) -> type[Part]:
    return _PARTS[_shape(path)]


def _shape(path: Path) -> Path:
    """Return the path with names and numbers as *: every second step is one."""
    return tuple("*" if i % 2 else step for i, step in enumerate(path))


def _subject(path: Path) -> str:
    """Say what the error is about: ``router 'r1': port: ``. Positions in lists are left to the caret."""
    if len(path) < 2:
        return f"{path[0]}: " if path else ""
    section, name, *rest = path
    keys = [step for step in rest if isinstance(step, str)]
    key = f"{keys[-1]}: " if keys else ""
    return f"{_SINGULAR.get(str(section), section)} {name!r}: {key}"


_SINGULAR = {"routers": "router", "brokers": "broker", "addresses": "address", "users": "user"}


def _value_at(path: Path, data: Any) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            break
    return data


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
