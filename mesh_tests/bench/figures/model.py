"""Measured figures: a catalogue of commands, the values that each command gives, and a file of the last results.

Pure: nothing here runs a command or reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Documents = Sequence[Any]
"""JSON documents that a command printed, one a line of its standard output"""


class NotMeasured(Exception):
    """The output of a command does not hold a figure; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Value:
    """Median, least and most of the runs; without least and most if there was one run only."""

    median: float
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    key: str
    """The name of the figure in the file of results: `forward.unsettled.cpu`"""
    title: str
    unit: str
    """`us`, `/s`, `B`, `KB`, `MB`, `ms`, `s`, `%` or `instructions`"""
    read: Callable[[Documents], Value]
    target: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One command, and the figures that stand in its output."""

    section: str
    command: tuple[str, ...]
    """Words after the Python interpreter: `-m mesh bench forward --json`"""
    figures: tuple[Figure, ...]
    limit_s: float = 600.0
    folder: Sequence[tuple[str, ...]] = ()
    """Commands that make input files in the working folder of ``command`` first, in the form of ``command``"""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Revision, machine and day of a measurement."""

    revision: str
    """Short hash of the commit, with `+` behind the hash if the checkout differs from the commit"""
    machine: str
    """`2 x AMD EPYC, Linux 6.1, Python 3.11.7`"""
    date: str
    """ISO 8601, the day"""
    loop_ms: float
    """The time of a fixed loop in Python just before: on a shared host, the speed of that hour"""


@dataclass(frozen=True, slots=True)
class Result:
    value: Value
    circumstances: Circumstances


@dataclass(frozen=True, slots=True)
class History:
    """The last result of a figure, and the last one of another revision."""

    last: Result
    before: Result | None = None

    def followed_by(self, result: Result) -> History:
        is_new = result.circumstances.revision != self.last.circumstances.revision
        return History(result, self.last if is_new else self.before)


Histories = Mapping[str, History]
"""By the key of the figure"""


def to_json(histories: Histories) -> dict[str, Any]:
    return {key: asdict(histories[key]) for key in sorted(histories)}


def from_json(document: Mapping[str, Any]) -> dict[str, History]:
    def result(fields: Mapping[str, Any]) -> Result:
        return Result(Value(**fields["value"]), Circumstances(**fields["circumstances"]))

    return {
        key: History(result(fields["last"]), result(fields["before"]) if fields["before"] is not None else None)
        for key, fields in document.items()
    }
