"""Parses quantities that users type, such as `500/s`, `30s` or `1k`; a function's name has the unit of its result."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

Number = TypeVar("Number", bound=float)

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# Units of sizes are powers of 1024, in options, drill files and traffic profiles.
BYTES = {"": 1, "b": 1, "k": 1024, "kb": 1024, "m": 1024**2, "mb": 1024**2, "g": 1024**3, "gb": 1024**3}
QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]*)", re.IGNORECASE)


def parse_duration_s(text: str) -> float:
    """Parse a duration such as `10`, `10s`, `250ms`, `5m`, `1h` or `30d`; the unit is seconds by default."""
    number, unit = _split(text)
    if (unit or "s") not in SECONDS:
        raise ValueError(f"{text!r} is not a valid duration: expected a number and ms, s, m, h or d, such as 30s")
    return number * SECONDS[unit or "s"]


def parse_size_bytes(text: str) -> int:
    """Parse a size such as `100`, `1k`, `64kb`, `1.5m` or `1g`, in powers of 1024."""
    number, unit = _split(text)
    if unit not in BYTES:
        raise ValueError(f"{text!r} is not a valid size: expected a number and k, m or g, such as 1k")
    return int(number * BYTES[unit])


def parse_rate_per_s(text: str) -> float:
    """Parse a rate such as `500`, `500/s`, `30/m` or `1k/s`, which is per second by default; k is 1000, m a million."""
    amount, _, per = (part.strip() for part in text.strip().partition("/"))
    number, multiple = _split(amount)
    factor = {"": 1, "k": 1000, "m": 1_000_000}.get(multiple)
    seconds = SECONDS.get(per or "s")
    if factor is None or seconds is None or per == "ms":
        raise ValueError(f"{text!r} is not a valid rate: expected a number and /s, /m or /h, such as 500/s")
    if number == 0:
        raise ValueError(f"{text!r} is not a valid rate: expected more than 0")
    return number * factor / seconds


def parse_count(text: str) -> int:
    """Parse a count such as `500`, `10k`, `100m` or `1g`, in powers of 1000."""
    number, unit = _split(text)
    factor = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}.get(unit)
    if factor is None or number * factor < 1:
        raise ValueError(f"{text!r} is not a valid count: expected a number of at least 1 and k, m or g, such as 10m")
    return int(number * factor)


def parse_share(text: str) -> float:
    """Parse a share such as `5%`, which is 0.05."""
    try:
        number, is_share = float(text.strip().removesuffix("%")), text.strip().endswith("%")
    except ValueError:
        is_share = False
    if not is_share:
        raise ValueError(f"{text!r} is not a valid share: expected a number and %, such as 5%")
    return number / 100


def _split(text: str) -> tuple[float, str]:
    found = QUANTITY.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"expected a number, or a number and a unit, got {text!r}")
    return float(found["number"]), found["unit"].lower()


class Quantity(click.ParamType[Number]):
    """A Click type that parses an option's value with ``parse``, and shows its ValueError as a usage error."""

    def __init__(self, name: str, parse: Callable[[str], Number]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Number:
        try:
            return self.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = Quantity("duration", parse_duration_s)
SIZE = Quantity("size", parse_size_bytes)
RATE = Quantity("rate", parse_rate_per_s)
COUNT = Quantity("count", parse_count)
