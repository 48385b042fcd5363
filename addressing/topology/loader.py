"""Reads topology files; reports all mistakes at once, each with its place in the file."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from addressing.errors import ConfigError, TopologyErrors
from addressing.topology.checks import check, check_reach
from addressing.topology.codes import CODES
from addressing.topology.comments import swallowed
from addressing.topology.declared_names import DeclaredNames
from addressing.topology.document import Document, parse_document
from addressing.topology.model import Topology
from addressing.topology.problem import Path, Problem, TextSpan
from addressing.topology.redaction import MASK, mask, masked_column, secret_parts, without_quotations
from addressing.topology.repair import repair
from addressing.topology.split_topics import check_split_topics
from addressing.topology.subscription_checks import check_subscriptions

TOPOLOGY_NAME = "amqpmesh.yml"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of loading a valid topology file: the topology, the warnings about the file, and its text."""

    topology: Topology
    warnings: tuple[ConfigError, ...]
    text: str


def load_topology(path: str | os.PathLike[str]) -> Topology:
    """Return the topology of a file; raise TopologyErrors with all mistakes in the file."""
    return load(path).topology


def load(path: str | os.PathLike[str], *, copy: str | os.PathLike[str] | None = None) -> Loaded:
    """Return the topology of a file, and warnings; raise TopologyErrors with all mistakes in the file.

    If ``copy`` is given, the text is read from that file, an earlier copy; errors and relative paths refer to ``path``.
    """
    file = pathlib.Path(path)
    return _parse(read_text(file if copy is None else pathlib.Path(copy)), str(file), file.absolute())


def parse_topology(text: str, *, file: str = "<text>") -> Topology:
    """Return the topology that ``text`` describes; errors name ``file``."""
    return _parse(text, file, None).topology


def has_topology(directory: str | os.PathLike[str]) -> bool:
    """Whether ``directory`` has a file with the name of a topology, valid or not."""
    folder = pathlib.Path(directory)
    return (folder / TOPOLOGY_NAME).is_file() or any(folder.glob(f"*.{TOPOLOGY_NAME}"))


def find_topology(directory: str | os.PathLike[str]) -> pathlib.Path:
    """Return the path of ``amqpmesh.yml`` in ``directory``, else of the only ``*.amqpmesh.yml`` there.

    Raise TopologyErrors if ``directory`` has neither, or several files ``*.amqpmesh.yml``.
    """
    folder = pathlib.Path(directory)
    if (folder / TOPOLOGY_NAME).is_file():
        return folder / TOPOLOGY_NAME
    found = sorted(folder.glob(f"*.{TOPOLOGY_NAME}"))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found)
        raise _file_error(
            folder, "AM001", f"several topologies in this folder: {names}", fix=f"choose one: -t {found[0].name}"
        )
    raise _file_error(folder, "AM001", f"this folder has no {TOPOLOGY_NAME}, and no *.{TOPOLOGY_NAME}")


def read_text(file: pathlib.Path) -> str:
    """Return the text of ``file``, a topology file or a drill's file; raise TopologyErrors if it cannot be read."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise _file_error(file, "AM001", "no such file", hint=_similar_file(file)) from None
    except IsADirectoryError:
        raise _file_error(file, "AM002", "expected a file, got a folder", hint=_topologies_in(file)) from None
    except OSError as error:
        raise _file_error(file, "AM002", f"the file cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TopologyErrors([_encoding_error(file, content, error)]) from None


def _parse(text: str, file: str, path: pathlib.Path | None) -> Loaded:
    document = parse_document(text)
    topology, problems = None, list(document.problems)
    if not any(problem.code == "AM004" for problem in problems):
        topology, found = _judge(document)
        problems += found
        # Warnings about the topology as a whole are for a file without mistakes only: such a warning could follow from
        # a mistake.
        if topology and not problems:
            problems += check_reach(topology)
            problems += check_split_topics(topology)
            problems += check_subscriptions(topology)
        problems += swallowed(document, text)
    located = [locate(problem, document, text.splitlines(), file) for problem in problems]
    located.sort(key=lambda error: (error.line, error.col))
    if topology is None or any(error.severity == "error" for error in located):
        raise TopologyErrors(located)
    topology._file = path
    return Loaded(topology, tuple(located), text)


def _judge(document: Document) -> tuple[Topology | None, list[Problem]]:
    """Return the topology of a parsed file, and all problems in the file's data.

    The topology is None if the file has no mapping, or if the YAML reader or the model refuses a value. Stand-ins then
    replace refused values, so that the checks of the whole file run even then.
    """
    data = document.data
    if data is None:
        return None, [Problem((), "AM006", "the file has no content")]
    if not isinstance(data, dict):
        return None, [Problem((), "AM007", "expected a mapping with keys such as 'mesh' and 'routers'")]
    if not document.refused:
        try:
            topology = Topology.model_validate(data)
            return topology, check(topology, DeclaredNames.in_topology(topology))
        except ValidationError:
            pass
    return None, _judge_repaired(data, document.refused)


def _judge_repaired(data: dict[str, Any], refused: Collection[Path]) -> list[Problem]:
    repaired = repair(data, refused)
    found = list(repaired.problems)
    if repaired.topology is not None:
        declared = DeclaredNames.in_topology(repaired.topology, repaired.doubts)
        found += [repaired.as_in_file(problem) for problem in check(repaired.topology, declared)]
    return found


def locate(problem: Problem, document: Document, lines: list[str], file: str) -> ConfigError:
    """Return the error to show for ``problem``, with line, column and an excerpt of the file if its place is known."""
    span = problem.span or document.span(problem.path, at_key=problem.at_key)
    error = ConfigError(file, 0, 0, problem.code, problem.message, problem.hint)
    error.fix = problem.fix or CODES[problem.code].fix
    error.suggestion = problem.suggestion
    error.severity = problem.severity
    if span and span.line < len(lines):
        error.line, error.col = span.line + 1, span.col + 1
        _quote(error, lines, span, is_in_addresses=problem.path[:1] == ("addresses",))
    return error


def _quote(error: ConfigError, lines: list[str], span: TextSpan, *, is_in_addresses: bool = False) -> None:
    """Put the line at fault into ``error``, with secrets masked, and mask these in the error's other texts, too."""
    line, parts = lines[span.line], secret_parts(lines, by_key=not is_in_addresses)[span.line]
    error.source_line, error.caret_width = mask(line, parts), span.width
    error.caret_col = masked_column(span.col, parts) + 1
    if any(start <= span.col < stop for start, stop in parts):
        error.caret_width = len(MASK)
    secrets = [line[start:stop] for start, stop in parts]
    error.message, error.hint, error.fix = (
        without_quotations(text, secrets) for text in (error.message, error.hint, error.fix)
    )
    if error.suggestion is not None:
        error.suggestion = without_quotations(error.suggestion, secrets)


def _file_error(path: pathlib.Path, code: str, message: str, *, hint: str = "", fix: str = "") -> TopologyErrors:
    return TopologyErrors([ConfigError(str(path), 0, 0, code, message, hint, fix or CODES[code].fix)])


def _encoding_error(file: pathlib.Path, content: bytes, error: UnicodeDecodeError) -> ConfigError:
    before = content[: error.start]
    line_start = before.rfind(b"\n") + 1
    col = len(content[line_start : error.start].decode("utf-8", "replace")) + 1
    message = f"the byte 0x{content[error.start]:02x} is not UTF-8"
    place = ConfigError(str(file), before.count(b"\n") + 1, col, "AM003", message, fix=CODES["AM003"].fix)
    lines = content.decode("utf-8", "replace").split("\n")
    _quote(place, [text.rstrip("\r") for text in lines], TextSpan(place.line - 1, col - 1, 1))
    return place


def _similar_file(file: pathlib.Path) -> str:
    from addressing.topology.problem import nearest

    # To suggest a file, names are compared without their endings, which all topology files share.
    by_stem = {_stem(path): path for path in _siblings(file.parent)}
    similar = nearest(_stem(file), by_stem, likeness=0.7)
    return f"did you mean {str(by_stem[similar])!r}?" if similar else ""


def _stem(file: pathlib.Path) -> str:
    return file.stem.removesuffix(".amqpmesh")


def _topologies_in(folder: pathlib.Path) -> str:
    names = [str(path) for path in _siblings(folder)]
    return f"files there: {', '.join(names[:8])}" if names else "the folder has no .yml files"


def _siblings(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    return iter(sorted((*folder.glob("*.yml"), *folder.glob("*.yaml"))) if folder.is_dir() else ())
