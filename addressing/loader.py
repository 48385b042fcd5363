"""Reads topology files; says all that is wrong with one at once, each with its place in the file."""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from addressing.checks import check
from addressing.codes import CODES
from addressing.declared import Declared
from addressing.document import Document, parse_document
from addressing.errors import ConfigError, TopologyErrors
from addressing.problem import Path, Problem
from addressing.shapes import problems_of
from addressing.topology import Topology, with_defaults

TOPOLOGY_NAME = "amqpmesh.yml"
_NAMED_SECTIONS = ("routers", "brokers", "addresses", "users")
# Where paths such as ("routers", "r1", "connect", 0, "cost") have the position in a list.
_ITEM = 3


@dataclass(frozen=True, slots=True)
class Loaded:
    """A topology that is right, and what one may still want to know about it."""

    topology: Topology
    warnings: tuple[ConfigError, ...]


def load_topology(path: str | os.PathLike[str]) -> Topology:
    """Return the topology of a file; raise TopologyErrors with everything that is wrong with it."""
    return load(path).topology


def load(path: str | os.PathLike[str]) -> Loaded:
    """Return the topology of a file, and warnings; raise TopologyErrors with everything that is wrong with it."""
    file = pathlib.Path(path)
    return _parse(_read(file), str(file), file.absolute())


def parse_topology(text: str, *, file: str = "<text>") -> Topology:
    """Return the topology that ``text`` describes; errors name ``file``."""
    return _parse(text, file, None).topology


def find_topology(directory: str | os.PathLike[str]) -> pathlib.Path:
    """Return ``amqpmesh.yml`` in ``directory``, else the only ``*.amqpmesh.yml``; raise TopologyErrors without one."""
    folder = pathlib.Path(directory)
    if (folder / TOPOLOGY_NAME).is_file():
        return folder / TOPOLOGY_NAME
    found = sorted(folder.glob(f"*.{TOPOLOGY_NAME}"))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found)
        raise _file_error(folder, "AM001", f"several topologies here: {names}", fix=f"choose one: -t {found[0].name}")
    raise _file_error(folder, "AM001", f"no {TOPOLOGY_NAME} here, and no *.{TOPOLOGY_NAME}")


def _read(file: pathlib.Path) -> str:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise _file_error(file, "AM001", "no such file", hint=_similar_file(file)) from None
    except IsADirectoryError:
        raise _file_error(file, "AM002", "this is a folder, expected a file", hint=_topologies_in(file)) from None
    except OSError as error:
        raise _file_error(file, "AM002", f"cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TopologyErrors([_encoding_error(file, content, error)]) from None


def _parse(text: str, file: str, path: pathlib.Path | None) -> Loaded:
    document = parse_document(text)
    topology, problems = None, list(document.problems)
    if not any(problem.code == "AM004" for problem in problems):
        topology, found = _judge(document.data)
        problems += found
    located = [_locate(problem, document, text.splitlines(), file) for problem in problems]
    located.sort(key=lambda error: (error.line, error.col))
    errors = [error for error in located if error.severity == "error"]
    if errors or topology is None:
        raise TopologyErrors(errors)
    topology._file = path
    return Loaded(topology, tuple(error for error in located if error.severity == "warning"))


def _judge(data: Any) -> tuple[Topology | None, list[Problem]]:
    """Return the topology, and what is wrong with it. Where entries are wrong in themselves, the rest is judged too."""
    if data is None:
        return None, [Problem((), "AM006", "the file has no content")]
    if not isinstance(data, dict):
        return None, [Problem((), "AM007", "expected a mapping with keys such as 'mesh' and 'routers'")]
    try:
        topology = Topology.model_validate(data)
    except ValidationError as error:
        problems = list(problems_of(error, data))
        return None, problems + _judge_rest(data, problems)
    return topology, list(check(topology, _declared(data, is_complete=True)))


def _judge_rest(data: dict[str, Any], problems: Iterable[Problem]) -> list[Problem]:
    """Check what is left without the entries that have ``problems``, but knowing their names."""
    # Ports go by position, so they are given out before anything is taken away.
    rest = deepcopy(with_defaults(data))
    faults = {_at_fault(problem) for problem in problems}
    # Items of lists go last, and backwards: until then, each stands where its path says.
    for path in sorted(faults, key=lambda path: path[-1] if isinstance(path[-1], int) else math.inf, reverse=True):
        _remove(rest, path)
    rest = {"mesh": "mesh", "routers": {}, **rest}
    try:
        topology = Topology.model_validate(rest)
    except ValidationError:
        return []
    return [_as_in_file(problem, faults) for problem in check(topology, _declared(data, is_complete=False))]


def _as_in_file(problem: Problem, removed: Collection[Path]) -> Problem:
    """Count the position of an item as in the file, where those of its list that were removed still stand."""
    path = problem.path
    position = path[_ITEM] if len(path) > _ITEM else None
    if not isinstance(position, int):
        return problem
    around, i = path[:_ITEM], 0
    while i <= position:
        position += (*around, i) in removed
        i += 1
    return replace(problem, path=(*around, position, *path[_ITEM + 1 :]))


def _at_fault(problem: Problem) -> Path:
    """Return what to take away so that the rest can be judged, without making it look wrong by what then lacks."""
    path = problem.path
    if problem.code == "AM101":
        return path
    if path[0] == "routers" and len(path) > _ITEM:
        # Listeners are counted in messages, so all or none of them stay.
        return path[: _ITEM + 1] if path[2] == "connect" else path[:_ITEM]
    return path[:2] if path[0] in _NAMED_SECTIONS else path[:1]


def _remove(data: Any, path: Path) -> None:
    for step in path[:-1]:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return
    key = path[-1]
    if isinstance(data, dict):
        data.pop(key, None)
    elif isinstance(data, list) and isinstance(key, int):
        del data[key]


def _declared(data: dict[str, Any], *, is_complete: bool) -> Declared:
    return Declared(_names(data, "routers"), _names(data, "brokers"), _names(data, "addresses"), is_complete)


def _names(data: dict[str, Any], section: str) -> Collection[str] | None:
    names = data.get(section)
    if names is None:
        return ()
    return names.keys() if isinstance(names, dict) else None


def _locate(problem: Problem, document: Document, lines: list[str], file: str) -> ConfigError:
    span = problem.span or document.span(problem.path, at_key=problem.at_key)
    error = ConfigError(file, 0, 0, problem.code, problem.message, problem.hint)
    error.fix = problem.fix or CODES[problem.code].fix
    error.suggestion = problem.suggestion
    error.severity = problem.severity
    if span and span.line < len(lines):
        error.line, error.col = span.line + 1, span.col + 1
        error.source_line, error.caret_width = lines[span.line], span.width
    return error


def _file_error(path: pathlib.Path, code: str, message: str, *, hint: str = "", fix: str = "") -> TopologyErrors:
    return TopologyErrors([ConfigError(str(path), 0, 0, code, message, hint, fix or CODES[code].fix)])


def _encoding_error(file: pathlib.Path, content: bytes, error: UnicodeDecodeError) -> ConfigError:
    before = content[: error.start]
    line_start = before.rfind(b"\n") + 1
    line = content[line_start:].split(b"\n", 1)[0].decode("utf-8", "replace")
    col = len(content[line_start : error.start].decode("utf-8", "replace")) + 1
    message = f"the byte 0x{content[error.start]:02x} is not UTF-8"
    place = ConfigError(str(file), before.count(b"\n") + 1, col, "AM003", message, fix=CODES["AM003"].fix)
    place.source_line = line.rstrip("\r")
    return place


def _similar_file(file: pathlib.Path) -> str:
    from addressing.problem import nearest

    # Endings are left out: all topologies have them in common.
    by_stem = {_stem(path): path for path in _siblings(file.parent)}
    similar = nearest(_stem(file), by_stem, likeness=0.7)
    return f"did you mean {str(by_stem[similar])!r}?" if similar else ""


def _stem(file: pathlib.Path) -> str:
    return file.stem.removesuffix(".amqpmesh")


def _topologies_in(folder: pathlib.Path) -> str:
    names = [str(path) for path in _siblings(folder)]
    return f"in it: {', '.join(names[:8])}" if names else "it has no .yml files"


def _siblings(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    return iter(sorted((*folder.glob("*.yml"), *folder.glob("*.yaml"))) if folder.is_dir() else ())
