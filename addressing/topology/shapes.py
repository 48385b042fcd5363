"""Turns pydantic's errors about the topology model into problems in the words of the file's author."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from addressing.names import similar_node_name, similar_user_name
from addressing.topology.broker_settings import Broker, BrokerTls
from addressing.topology.descriptions import describe
from addressing.topology.link_log_settings import LinkLogs, Redaction
from addressing.topology.log_settings import Logs
from addressing.topology.metric_settings import Metrics
from addressing.topology.model import (
    Connection,
    DeclaredAddress,
    Listener,
    ListenerTls,
    Router,
    Topology,
    User,
)
from addressing.topology.part import TopologyPart
from addressing.topology.problem import Path, Problem, hint_for, listing, nearest
from addressing.topology.watch_settings import Watch

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# The model class of each mapping in a topology file, by the mapping's path; * stands for any name or number.
PARTS: dict[Path, type[TopologyPart]] = {
    (): Topology,
    ("routers", "*"): Router,
    ("routers", "*", "listeners", "*"): Listener,
    ("routers", "*", "listeners", "*", "tls"): ListenerTls,
    ("routers", "*", "connect", "*"): Connection,
    ("brokers", "*"): Broker,
    ("brokers", "*", "tls"): BrokerTls,
    ("addresses", "*"): DeclaredAddress,
    ("users", "*"): User,
    ("link_logs",): LinkLogs,
    ("link_logs", "redact"): Redaction,
    ("metrics",): Metrics,
    ("watch",): Watch,
    ("logs",): Logs,
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

_SHORTHANDS: dict[type[TopologyPart], str] = {
    DeclaredAddress: "a type, or a mapping with 'type'",
    Connection: "the name of a router, or a mapping with 'to'",
    Listener: "a port, or a mapping",
    ListenerTls: "true, false, or a mapping",
    LinkLogs: "off, summary, full, or a mapping",
    Redaction: "a path, or a mapping with 'key'",
    Watch: "on, off, a port, or a mapping",
}


_BOUNDS = {"ge": "{} or more", "gt": "more than {}", "le": "{} or less"}


def problems_of(error: ValidationError, data: Any) -> Iterator[Problem]:
    """Yield a Problem for each error in ``error``. ``data`` is the validated data, for values to show in messages."""
    for detail in error.errors(include_url=False):
        yield _problem(detail, data)


def _problem(detail: ErrorDetails, data: Any) -> Problem:
    path: Path = tuple(detail["loc"])
    kind = detail["type"]
    # Pydantic marks an error of a key itself, such as a malformed name, by a last step '[key]' in the error's path.
    if path and path[-1] == "[key]":
        message = f"{_subject(path[:-2])}{detail['msg']}"
        return Problem(path[:-1], kind, message, fix=_fix_of_name(path, detail), at_key=True)
    if kind.startswith("AM"):
        return Problem(path, kind, f"{_subject(path)}{detail['msg']}", fix=_fix_of_name(path, detail))
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "missing":
        return _missing_key(path)
    return _wrong_value(path, detail, data)


def _fix_of_name(path: Path, detail: ErrorDetails) -> str:
    if detail["type"] != "AM107":
        return ""
    suggestion = similar_user_name(detail["input"]) if path[0] == "users" else similar_node_name(detail["input"])
    return f"write {suggestion!r}, for example, and change references to the old name, too."


def _unknown_key(path: Path) -> Problem:
    key = str(path[-1])
    known = tuple(part_at(path[:-1]).model_fields)
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
        hint=f"{key}: {describe(part_at(path[:-1]).__name__, key)}",
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
        part = PARTS.get(shape_of(path))
        wanted = _SHORTHANDS.get(part, wanted) if part else wanted
        hint = "put the value in quotes to make it text" if wanted == "text" and isinstance(value, int | float) else ""
        return Problem(path, "AM105", f"{_subject(path)}expected {wanted}{found}", hint=hint, fix=f"write {wanted}.")
    fix = f"write {_range(path) or _limit(detail)}."
    return Problem(path, "AM106", f"{_subject(path)}expected {_limit(detail)}{found}", fix=fix)


def _no_such_word(path: Path, value: str, expected: str) -> Problem:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    message = f"{_subject(path)}expected {listing(words)}, got {value!r}"
    suggestion = nearest(value, words)
    fix = f"write {suggestion!r}, or another of the allowed words." if suggestion else ""
    fix = fix or f"write one of: {', '.join(words)}."
    return Problem(path, "AM106", message, hint=hint_for(value, words, title="allowed"), fix=fix, suggestion=suggestion)


def _range(path: Path) -> str:
    """Return the range of numbers that the key at ``path`` allows, in words; "" for a key without such limits."""
    field = part_at(path[:-1]).model_fields.get(str(path[-1])) if shape_of(path[:-1]) in PARTS else None
    limits = field.metadata if field else ()
    found = {name: getattr(limit, name) for name in _BOUNDS for limit in limits if hasattr(limit, name)}
    if "ge" in found and "le" in found:
        return f"a number from {found['ge']} to {found['le']}"
    told = [words.format(found[name]) for name, words in _BOUNDS.items() if name in found]
    return f"a number, {' and '.join(told)}" if told else ""


def _limit(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "greater_than_equal":
            return f"{context['ge']} or more"
        case "greater_than":
            return f"more than {context['gt']}"
        case "less_than_equal":
            return f"{context['le']} or less"
        case "string_too_short":
            return "at least one character"
        case "string_too_long":
            return f"{context['max_length']} characters or less"
        case _:
            return detail["msg"].removeprefix("Input should be ")


def part_at(path: Path) -> type[TopologyPart]:
    """Return the model class of the mapping at ``path``."""
    return PARTS[shape_of(path)]


def shape_of(path: Path) -> Path:
    """Return ``path`` with * for each name and list position: for every second step below a section of names.

    Unchanged for a path outside the sections routers, brokers, addresses and users, where all steps are keys.
    """
    if path and path[0] not in _SINGULAR:
        return path
    return tuple("*" if i % 2 else step for i, step in enumerate(path))


def _subject(path: Path) -> str:
    """Return the begin of an error message about ``path``: ``router 'r1': port: ``, without positions in lists."""
    if len(path) < 2:
        return f"{path[0]}: " if path else ""
    section, name, *rest = path
    if section not in _SINGULAR:
        return "".join(f"{step}: " for step in path if isinstance(step, str))
    keys = [step for step in rest if isinstance(step, str)]
    key = f"{keys[-1]}: " if keys else ""
    return f"{_SINGULAR[str(section)]} {name!r}: {key}"


_SINGULAR = {"routers": "router", "brokers": "broker", "addresses": "address", "users": "user"}


def _value_at(path: Path, data: Any) -> Any:
    for step in path:
        if isinstance(data, str):
            break
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
