"""Repair of a broken topology, to find all other mistakes: a copy of the data with stand-ins for broken values.

The model stops at a value that it cannot read, and the checks need the whole model. So a readable stand-in replaces a
broken value, whose path is *in doubt*: no finding may rest on the value. A misspelt key is read as the key that was
meant: so the value is checked, and the key does not look forgotten. All other values stay in place: positions in
lists, and ports by position, remain the same as in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from addressing.records import PERSONAL_COLUMNS
from addressing.topology.model import Topology
from addressing.topology.problem import Path, Problem, nearest
from addressing.topology.shapes import PARTS, part_at, problems_of, shape_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_STAND_IN = "?"
_SECTIONS = ("routers", "brokers", "addresses", "users")
_TEXTS = (
    *("mesh", "default_broker", "data", "url", "hostname", "to", "broker", "broker_address", "fallback"),
    *("dead_letter", "expiry"),
    *("cert", "key", "ca", "password"),
)
_COLUMNS = ("link_logs", "redact", "columns")
_NAMES = (("brokers", "*", "routers"), ("addresses", "*", "brokers"))
# Nearer than for a suggestion, which the author may ignore.
_LIKENESS = 0.7
# A round finds mistakes that the round before had hidden: below misspelt keys, which may hold misspelt keys again.
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Repaired:
    """``topology`` is None where even stand-ins do not help; paths of ``doubts`` are paths of the topology."""

    topology: Topology | None
    problems: tuple[Problem, ...]
    doubts: frozenset[Path]
    as_in_file: Callable[[Problem], Problem]
    """Give a problem of ``topology`` its path in the file, where keys may be misspelt."""


def repair(data: dict[str, Any], refused: Collection[Path]) -> Repaired:
    """Return the topology that can be made of ``data``, and all mistakes; ``refused`` paths were reported already."""
    draft = _Draft(data)
    for path in refused:
        draft.refuse(path)
    for _ in range(_MOST_ROUNDS):
        topology = draft.read()
        if topology is not None:
            return draft.result(topology)
    return draft.result(None)


class _Draft:
    """Always: ``_doubts`` and paths of errors are paths of ``_data``; ``_renamed`` leads back to paths of the file."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = deepcopy(data)
        self._problems: list[Problem] = []
        self._doubts: set[Path] = set()
        self._renamed: list[tuple[Path, Path]] = []
        self._forgiven: set[str] = {_STAND_IN}

    def result(self, topology: Topology | None) -> Repaired:
        return Repaired(topology, tuple(self._problems), frozenset(self._doubts), self.as_in_file)

    def as_in_file(self, problem: Problem) -> Problem:
        path = problem.path
        for new, old in reversed(self._renamed):
            if _is_at(path, new):
                path = (*old, *path[len(new) :])
        return replace(problem, path=path)

    def read(self) -> Topology | None:
        """Read the data; if the data cannot be read, note the mistakes and repair them."""
        try:
            return Topology.model_validate(self._data, context={"forgiven": self._forgiven})
        except ValidationError as error:
            found = list(zip(error.errors(include_url=False), problems_of(error, self._data), strict=True))
        meant = dict(self._misspelt(detail for detail, _ in found))
        forgotten = {(*path[:-1], key) for path, key in meant.items()}
        for detail, problem in found:
            self._note(detail, problem, forgotten)
        for detail, problem in found:
            if detail["type"] == "extra_forbidden":
                self._rename(problem.path, meant.get(problem.path))
        return None

    def _note(self, detail: ErrorDetails, problem: Problem, forgotten: Collection[Path]) -> None:
        if problem.path in forgotten:
            return
        if self._is_wrong_guess(problem):
            del _value_at(problem.path[:-1], self._data)[problem.path[-1]]
            return
        # The missing value may have been in a part that was not read.
        is_doubtful = detail["type"] == "missing" and any(_is_at(problem.path, doubt) for doubt in self._doubts)
        if not is_doubtful:
            self._problems.append(self.as_in_file(problem))
        if detail["type"] != "extra_forbidden":
            self._mend(detail, problem.path)

    def _misspelt(self, details: Iterator[ErrorDetails]) -> Iterator[tuple[Path, str]]:
        taken: set[Path] = set()
        for detail in details:
            path: Path = tuple(detail["loc"])
            if detail["type"] != "extra_forbidden":
                continue
            around = _value_at(path[:-1], self._data)
            key = nearest(str(path[-1]), tuple(part_at(path[:-1]).model_fields), likeness=_LIKENESS)
            if key is not None and around.get(key) is None and (*path[:-1], key) not in taken:
                taken.add((*path[:-1], key))
                yield path, key

    def _is_wrong_guess(self, problem: Problem) -> bool:
        """Whether the key was not meant after all: the value of the misspelt key makes no sense under the new key."""
        return problem.code == "AM105" and any(problem.path == new for new, _ in self._renamed)

    def _mend(self, detail: ErrorDetails, path: Path) -> None:
        if not detail["type"].startswith("AM"):
            self._stand_in(path)
            return
        # A text of the wrong form still counts as a name: references to the name are not unknown.
        self._forgiven.add(detail["input"])
        if detail["loc"][-1] != "[key]":
            self._doubts.add(path)

    def refuse(self, path: Path) -> None:
        """Put a stand-in where nothing was read. After a merge that was refused, any absent key is in doubt."""
        value, part = _value_at(path, self._data), PARTS.get(shape_of(path))
        if value is None:
            self._stand_in(path)
        elif part is not None:
            self._doubts.update((*path, key) for key in part.model_fields if key not in value)
        else:
            self._doubts.add(path)

    def _stand_in(self, path: Path) -> None:
        self._doubts.add(path)
        around: Any = self._data
        for i, step in enumerate(path[:-1]):
            inner = around.get(step) if isinstance(around, dict) else around[step]
            if not isinstance(inner, dict | list):
                # A short form, or nothing, stands for a mapping; a text stands for a list if the next step is a number.
                inner = around[step] = [inner] if isinstance(path[i + 1], int) else {}
            around = inner
        around[path[-1]] = _stand_in(path)

    def _rename(self, path: Path, key: str | None) -> None:
        """Put ``key`` in place of the key at ``path``; None removes the key at ``path``."""
        around = _value_at(path[:-1], self._data)
        value = around.pop(path[-1])
        if key is None:
            return
        new = (*path[:-1], key)
        around[key] = value
        self._renamed.append((new, path))
        self._doubts = {(*new, *doubt[len(path) :]) if _is_at(doubt, path) else doubt for doubt in self._doubts}


def _stand_in(path: Path) -> Any:
    """Return a readable stand-in for the value at ``path``; the stand-in counts as present as the value does."""
    shape, key = shape_of(path), path[-1]
    if len(path) == 2 and path[0] in _SECTIONS:
        return {"type": "anycast"} if path[0] == "addresses" else {}
    if shape[:-1] == _COLUMNS:
        return PERSONAL_COLUMNS[0]
    if shape[-1] == "*":
        return {"connect": {"to": _STAND_IN}, "listeners": {}}.get(str(path[-2]), _STAND_IN)
    if key in _TEXTS:
        return _STAND_IN
    if len(path) == 1 and key in _SECTIONS:
        return {}
    if shape in _NAMES:
        return [_STAND_IN]
    if key == "type":
        return "anycast"
    # Below an ignored or a still unknown key, anything will do.
    field = PARTS[shape[:-1]].model_fields.get(str(key)) if shape[:-1] in PARTS else None
    return field.default if field else None


def _value_at(path: Path, data: Any) -> Any:
    for step in path:
        data = data[step]
    return data


def _is_at(path: Path, around: Path) -> bool:
    return path[: len(around)] == around
