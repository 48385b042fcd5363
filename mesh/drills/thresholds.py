"""Parses expectations of drills, in the notation of k6, such as `p(99) < 250ms`: metric, comparison, value with
unit.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from addressing.topology.problem import hint_for
from mesh.terminal.units import parse_duration_s, parse_rate_per_s

PERCENTILES = ("p(50)", "p(99)")


class Unit(StrEnum):
    COUNT = "count"
    TIME = "time"
    RATE = "rate"


METRICS = {
    **dict.fromkeys(("attempted", "accepted", "rejected", "released", "modified", "unknown"), Unit.COUNT),
    **dict.fromkeys(("received", "lost", "duplicated", "reordered", "stalls", "reconnects"), Unit.COUNT),
    **dict.fromkeys(("detection", "outage", "first_delivery", "recovery", "longest_stall"), Unit.TIME),
    **dict.fromkeys((*PERCENTILES, "max"), Unit.TIME),
    "rate": Unit.RATE,
}
SYNONYMS = {"duplicates": "duplicated", "p50": "p(50)", "p99": "p(99)"}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
EXAMPLES = {Unit.COUNT: "a number, such as 0", Unit.TIME: "a time such as 250ms", Unit.RATE: "a rate such as 100/s"}
FORM = re.compile(
    r"\s*(?P<metric>[a-z_]+(?:\(\d+\)|\d+)?)\s*(?P<how>[<>=!]=|[<>])\s*(?P<value>\S+(?:\s+\S+)*)\s*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Threshold:
    """An expectation: a metric compared with ``bound``, in milliseconds, messages a second, or a count, by metric."""

    text: str
    metric: str
    how: str
    bound: float

    @property
    def unit(self) -> Unit:
        return METRICS[self.metric]

    def holds(self, observed: float) -> bool:
        return COMPARISONS[self.how](observed, self.bound)

    def worst(self, observed: list[float]) -> float:
        """Return the observation that is furthest on the wrong side of the bound or, if all hold, nearest to the bound;
        for `==` and `!=`, the first that fails, or else the first.
        """
        if self.how in ("==", "!="):
            return next((value for value in observed if not self.holds(value)), observed[0])
        return max(observed) if self.how in ("<", "<=") else min(observed)

    def show(self, observed: float) -> str:
        match self.unit:
            case Unit.TIME:
                return show_ms(observed)
            case Unit.RATE:
                return f"{observed:.1f}/s"
            case Unit.COUNT:
                return f"{observed:,.0f}"

    def margin(self, observed: float) -> str:
        """Return the ratio between an observation and the bound, such as `2.0x below`, or only the side if one of the
        two is 0; an empty text for `==`, `!=` and equal values.
        """
        if self.how in ("==", "!=") or observed == self.bound:
            return ""
        low, high = sorted((abs(observed), abs(self.bound)))
        side = "below" if observed < self.bound else "above"
        return f"{high / low:.1f}x {side}" if low > 0 else side


def parse_threshold(text: str) -> Threshold:
    """Parse an expectation. Raise ValueError, with the expected form, for any other text."""
    found = FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a threshold: expected METRIC, one of < <= == != >= >, and a value")
    metric = found["metric"].lower()
    metric = SYNONYMS.get(metric, metric)
    if metric not in METRICS:
        raise ValueError(f"threshold {text!r}: unknown metric {found['metric']!r}  {hint_for(metric, list(METRICS))}")
    return Threshold(text.strip(), metric, found["how"], _bound(text, METRICS[metric], found["value"]))


def _bound(text: str, unit: Unit, value: str) -> float:
    try:
        match unit:
            case Unit.COUNT:
                return float(int(value))
            case Unit.TIME if not value[-1].isdigit():
                return parse_duration_s(value) * 1000
            case Unit.RATE if "/" in value:
                return parse_rate_per_s(value)
    except ValueError:
        pass
    raise ValueError(f"threshold {text!r}: expected {EXAMPLES[unit]}, got {value!r}")


def show_ms(value: float) -> str:
    return f"{value:.0f} ms" if value < 10_000 else f"{value / 1000:.1f} s"
