"""The model of measured figures: commands, the figures that each command prints, and the file of the latest results.

The model runs no command and reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Documents = Sequence[Any]
"""The JSON documents that a command printed, in order."""


class NotMeasured(Exception):
    """The output of a command lacks a figure; the text says which part is missing."""


@dataclass(frozen=True, slots=True)
class Value:
    """The median of a figure's runs, with the least and the greatest value; both are None after a single run."""

    median: float
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    key: str
    """The name of the figure in the file of results, such as `forward.unsettled.cpu`."""
    title: str
    unit: str
    """`us`, `/s`, `B`, `KB`, `MB`, `ms`, `s`, `%` or `instructions`."""
    read: Callable[[Documents], Value]
    target: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A command, and the figures that it prints."""

    section: str
    command: tuple[str, ...]
    """Arguments of the Python interpreter, such as `-m mesh bench forward --json`."""
    figures: tuple[Figure, ...]
    limit_s: float = 600.0
    folder: Sequence[tuple[str, ...]] = ()
    """Commands, in the form of ``command``, that first make input files in the folder in which ``command`` works."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Revision, machine and day of a measurement."""

    revision: str
    """Short hash of the commit, with `+` if the checkout differs from the commit."""
    machine: str
    """Processor, kernel and Python, such as `2 x AMD EPYC, Linux 6.1, Python 3.11.7`."""
    date: str
    """The day, in the form of ISO 8601."""
    loop_ms: float
    """Time in ms of a fixed loop in Python just before the measurement; on a shared host, this tells the host's present
    speed.
    """


@dataclass(frozen=True, slots=True)
class Result:
    value: Value
    circumstances: Circumstances


@dataclass(frozen=True, slots=True)
class History:
    """The latest result of a figure, and the latest result of another revision."""

    last: Result
    before: Result | None = None

    def followed_by(self, result: Result) -> History:
        is_new = result.circumstances.revision != self.last.circumstances.revision
        return History(result, self.last if is_new else self.before)


Histories = Mapping[str, History]
"""The history of each figure, by the figure's key."""


def to_json(histories: Histories) -> dict[str, Any]:
    return {key: asdict(histories[key]) for key in sorted(histories)}


def from_json(document: Mapping[str, Any]) -> dict[str, History]:
    def result(fields: Mapping[str, Any]) -> Result:
        return Result(Value(**fields["value"]), Circumstances(**fields["circumstances"]))

    return {
        key: History(result(fields["last"]), result(fields["before"]) if fields["before"] is not None else None)
        for key, fields in document.items()
    }
