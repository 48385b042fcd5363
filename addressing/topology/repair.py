"""Repair of a broken topology file in memory, to find its other mistakes: stand-ins replace broken values.

The model stops at a value that it cannot read, and the checks need the whole model. So a readable stand-in replaces a
broken value, whose path is then *in doubt*: mistakes that follow from the value are not reported. A misspelt key is
read as the key that was meant, so that its value is checked, and the key is not reported as missing. All other values
stay in place, so that positions in lists, and default ports by position, remain the same as in the file.
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
# How like a known key an unknown key must be (0: not at all, 1: equal) to be read as that key, misspelt. A suggestion
# in an error needs less.
_LIKENESS = 0.7
# Most rounds of reading and mending the file's data. Each round finds mistakes below the misspelt keys that the round
# before renamed.
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Repaired:
    """Result of a repair: the topology with stand-ins, None if none can be made, and the mistakes found on the way.

    ``doubts`` are the paths, in that topology, of values that have stand-ins or may be wrong.
    """

    topology: Topology | None
    problems: tuple[Problem, ...]
    doubts: frozenset[Path]
    as_in_file: Callable[[Problem], Problem]
    """Return a problem of ``topology`` with its path in the file, where keys may be misspelt."""


def repair(data: dict[str, Any], refused: Collection[Path]) -> Repaired:
    """Return the topology that can be made of ``data`` with stand-ins, and all mistakes on the way.

    Mistakes at ``refused`` paths were reported already and are not reported again.
    """
    draft = _Draft(data)
    for path in refused:
        draft.refuse(path)
    for _ in range(_MOST_ROUNDS):
        topology = draft.read()
        if topology is not None:
            return draft.result(topology)
    return draft.result(None)


class _Draft:
    """A copy of a topology file's data, mended round by round until the model can read the data.

    Always: ``_doubts`` and paths of errors are paths of ``_data``; ``_renamed`` leads back to paths of the file.
    """

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
        """Return the topology that the model makes of the data.

        If the model refuses the data, note and mend the mistakes, for another try, and return None.
        """
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
        # A value that is missing from a part of the file in doubt is not reported: the part that could not be read may
        # have the value.
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
        """Say whether ``problem`` is that a value has the wrong type for its key, which was renamed as misspelt."""
        return problem.code == "AM105" and any(problem.path == new for new, _ in self._renamed)

    def _mend(self, detail: ErrorDetails, path: Path) -> None:
        if not detail["type"].startswith("AM"):
            self._stand_in(path)
            return
        # A malformed name, pattern, URL or secret stays in the data, and passes as valid in later rounds, so that
        # references to a malformed name are not reported as unknown.
        self._forgiven.add(detail["input"])
        if detail["loc"][-1] != "[key]":
            self._doubts.add(path)

    def refuse(self, path: Path) -> None:
        """Put a stand-in at ``path``, where the YAML reader refused a value and reported that.

        If the mapping at ``path`` has a refused merge (<<), put all its absent keys in doubt instead: the merge might
        have given any of these.
        """
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
                # A mapping has to take the place of a short form, or of nothing, for the stand-in to go into, and a
                # list of one the place of a single text.
                inner = around[step] = [inner] if isinstance(path[i + 1], int) else {}
            around = inner
        around[path[-1]] = _stand_in(path)

    def _rename(self, path: Path, key: str | None) -> None:
        """Rename the key at ``path`` to ``key``, its value included; None removes the key and its value."""
        around = _value_at(path[:-1], self._data)
        value = around.pop(path[-1])
        if key is None:
            return
        new = (*path[:-1], key)
        around[key] = value
        self._renamed.append((new, path))
        self._doubts = {(*new, *doubt[len(path) :]) if _is_at(doubt, path) else doubt for doubt in self._doubts}


def _stand_in(path: Path) -> Any:
    """Return a value that the model can read in place of the broken value at ``path``."""
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
    # The stand-in of any other key of the model is the key's default. Below a key that the model ignores or does not
    # know, any value serves as the stand-in.
    field = PARTS[shape[:-1]].model_fields.get(str(key)) if shape[:-1] in PARTS else None
    return field.default if field else None


def _value_at(path: Path, data: Any) -> Any:
    for step in path:
        data = data[step]
    return data


def _is_at(path: Path, around: Path) -> bool:
    return path[: len(around)] == around
