"""Reads drill files, and reports all problems of a file at once, each with its line in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from addressing.topology import problem as problems
from addressing.topology.document import parse_document
from addressing.topology.problem import Problem, hint_for, listing, nearest
from mesh.drills.model import FAULTS, SYNONYMS, Drill, Fault, Heal, Load, Random, SteadyState
from mesh.terminal.invalid_file import InvalidFile, missing_key, sentence, unknown_key, wrong_value

Step = Fault | Random | Heal
Model = TypeVar("Model", bound=BaseModel)
PARTS: dict[tuple[str, ...], type[BaseModel]] = {
    (): Drill,
    ("steady_state",): SteadyState,
    ("steady_state", "load"): Load,
}
BEGINNING = "'drill: NAME', 'topology: FILE' and 'steady_state:'"
WANTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "model_type": "a mapping",
}


class DrillInvalid(InvalidFile):
    what = "drill"


@dataclass(frozen=True, slots=True)
class DrillFile:
    path: Path
    drill: Drill
    steps: tuple[tuple[problems.Path, Step], ...]
    """The steps of the key `method`, each with its place in the file."""
    text: str

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    def fail(self, found: list[Problem]) -> None:
        """Raise DrillInvalid with all problems in ``found``; return if there is no problem."""
        if found:
            raise DrillInvalid.located(found, parse_document(self.text), self.text, str(self.path))


def read_drill(path: Path) -> DrillFile:
    """Read and check a drill file. Raise DrillInvalid with every problem that can be found without the topology."""
    text = DrillInvalid.read(path)
    document = parse_document(text)
    found = list(document.problems)
    empty = DrillFile(path, Drill.model_construct(), (), text)
    if not isinstance(document.data, dict):
        message = "expected a mapping with keys such as 'drill' and 'method'"
        empty.fail(found or [Problem((), "AM007", message, fix=f"begin with {BEGINNING}.")])
    if "routers" in document.data and "drill" not in document.data:
        fix = f"write a drill file that names this topology: {BEGINNING}; docs/reference/drills.md describes all keys."
        empty.fail(
            [
                Problem(
                    (), "AM007", "expected a drill, got a topology: a drill describes the faults of a topology", fix=fix
                )
            ]
        )
    drill = _read(Drill, (), document.data, found)
    method = document.data.get("method") or []
    steps = list(_steps(method, found)) if isinstance(method, list) else []
    empty.fail(found)
    assert drill is not None
    return DrillFile(path, drill, tuple(steps), text)


def _steps(method: list[Any], found: list[Problem]) -> Iterator[tuple[problems.Path, Step]]:
    for i, entry in enumerate(method):
        path: problems.Path = ("method", i)
        model = _model_of(entry, path, found)
        if model is None:
            continue
        rest = {key: value for key, value in entry.items() if key != "fault"}
        step = _read(model, path, rest, found)
        if step is not None:
            yield path, step


def _model_of(entry: Any, path: problems.Path, found: list[Problem]) -> type[Step] | None:
    if not isinstance(entry, dict) or not {"fault", "heal"} & entry.keys():
        fix = "write a fault, such as {at: 1s, fault: kill, router: any}, or {at: 9s, heal: all}."
        found.append(Problem(path, "AM102", "expected a mapping with 'fault', or with 'heal: all'", fix=fix))
        return None
    if "fault" not in entry:
        return Heal
    kind = SYNONYMS.get(str(entry["fault"]), str(entry["fault"]))
    if kind == "random":
        return Random
    if kind not in FAULTS:
        known = [*FAULTS, "random"]
        message, hint = f"unknown fault {kind!r}", hint_for(kind, known)
        found.append(Problem((*path, "fault"), "AM602", message, hint, suggestion=nearest(kind, known)))
        return None
    return FAULTS[kind]


def _read(model: type[Model], path: problems.Path, data: Any, found: list[Problem]) -> Model | None:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        told = [_problem(model, path, detail, data) for detail in error.errors(include_url=False)]
        meant = {(*problem.path[:-1], problem.suggestion) for problem in told if problem.code == "AM101"}
        # A misspelled key of the drill file is reported as misspelled only, not as missing as well.
        found += [problem for problem in told if problem.code != "AM102" or problem.path not in meant]
        return None


def _problem(model: type[BaseModel], around: problems.Path, detail: Any, data: Any) -> Problem:
    path = (*around, *_in_file(detail["loc"], data))
    match detail["type"]:
        case "extra_forbidden":
            return unknown_key(path, _part(model, detail["loc"][:-1]))
        case "missing":
            return missing_key(path)
        case kind if kind in WANTED:
            return Problem(path, "AM105", f"expected {WANTED[kind]}, got {detail['input']!r}"[:120])
        case "enum":
            words = [word.strip("'") for word in str(detail["ctx"]["expected"]).replace(" or ", ", ").split(", ")]
            return Problem(path, "AM106", f"expected {listing(words)}, got {detail['input']!r}")
        case "string_pattern_mismatch":
            word = str(detail["ctx"]["pattern"]).strip("^$")
            return Problem(path, "AM106", f"expected {word}, got {detail['input']!r}", fix=f"write {word}.")
        case _ if "expect" in path:
            return Problem(path, "AM601", sentence(detail))
        case _:
            return wrong_value(path, detail)


def _in_file(loc: tuple[str | int, ...], data: Any) -> Iterator[str | int]:
    """Yield, step by step, the place of an error in the file, from ``loc``, the place that pydantic gives.

    Pydantic's place has an index even where the file gives a single item in place of a list; this index is left out.
    """
    for step in loc:
        if isinstance(step, int) and not isinstance(data, list):
            continue
        yield step
        data = data.get(step) if isinstance(data, dict) else data[int(step)] if isinstance(data, list) else None


def _part(model: type[BaseModel], loc: tuple[str | int, ...]) -> type[BaseModel]:
    """Return the class of the model for the mapping at the place ``loc`` within ``model``."""
    names = tuple(str(step) for step in loc if not isinstance(step, int))
    return PARTS[names] if model is Drill else model
