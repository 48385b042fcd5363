"""YAML text as plain data, with the place of every key and value in the file.

The data is as YAML 1.2 reads the text, except that keys are always text (a router may be called 1) and dates stay text.
Anchors, aliases and merge keys work; tags, duplicate keys and aliases that multiply without end become problems.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from addressing.topology.bracket_comments import swallowed_in_brackets
from addressing.topology.problem import Path, Problem, TextSpan

_MAX_VALUES = 200_000
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Spot:
    """Place in the file of one value, and of the value's key if the value is in a mapping."""

    key: TextSpan | None
    value: TextSpan
    is_scalar: bool
    is_empty: bool


@dataclass(slots=True)
class Document:
    """A parsed YAML file: its ``data``, the ``spots`` of values by path, and the ``problems`` found in the text."""

    data: Any = None
    spots: dict[Path, Spot] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    refused: set[Path] = field(default_factory=set)
    """Paths that have no data because a problem was reported there: later checks must not report them as missing."""

    def span(self, path: Path, *, at_key: bool) -> TextSpan | None:
        """Return the place of the value at ``path``, or of its key, in the file.

        If the file has no such value, return the place of the nearest value around it; None for a file without values.
        """
        for length in range(len(path), -1, -1):
            spot = self.spots.get(path[:length])
            if spot:
                # A value that the file does not have is shown at the key of the mapping that it would be in, or at the
                # short form that stands for this mapping.
                wants_key = at_key or (length < len(path) and not spot.is_scalar)
                return spot.key if wants_key and spot.key else spot.value
        return None


def parse_document(text: str) -> Document:
    """Return the document that ``text`` is as YAML; faults of the text are in ``problems``, and raise no error."""
    document = Document()
    try:
        root = YAML(typ="safe", pure=True).compose(text)
        if root is not None:
            document.data = _Reader(document).value((), root, None)
    except YAMLError as error:
        document.problems.append(_syntax_problem(error, text))
    except RecursionError:
        document.problems.append(Problem((), "AM004", "brackets or lists are nested too deeply to be read"))
    return document


def as_key(name: str) -> str:
    """Return ``name`` as an author must write it as a YAML key: in quotes where YAML would read something else."""
    document = parse_document(f"{name}: x")
    return name if document.data == {name: "x"} and not document.problems else json.dumps(name, ensure_ascii=False)


class _Reader:
    """Turns YAML nodes into plain data, and notes the place of each node."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._open: set[int] = set()
        self._count = 0

    def value(self, path: Path, node: Node, key: Node | None) -> Any:
        self._document.spots[path] = _spot(key, node)
        self._count += 1
        if self._count > _MAX_VALUES:
            raise YAMLError(f"the file has more than {_MAX_VALUES} values, aliases counted each time they are used")
        if id(node) in self._open:
            self._refuse(path, "an alias inside its own anchor's value")
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(path, node)
        self._open.add(id(node))
        found = self._mapping(path, node) if isinstance(node, MappingNode) else self._sequence(path, node)
        self._open.discard(id(node))
        return found

    def _mapping(self, path: Path, node: MappingNode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if _is_merge(key):
                continue
            name = self._key(path, key)
            if name is not None and name in found:
                self._duplicate((*path, name), key)
                found[name] = self._both((*path, name), found[name], value, key)
            elif name is not None:
                found[name] = self.value((*path, name), value, key)
        for key, value in self._merged(path, node):
            name = self._key(path, key)
            if name is not None and name not in found:
                found[name] = self.value((*path, name), value, key)
        return found

    def _both(self, path: Path, first: Any, node: Node, key: Node) -> Any:
        """Return the value to use for a key that is given twice: ``first``, the first value.

        If both values are mappings, the result also has the entries of the second: none may be reported as missing.
        """
        if not isinstance(first, dict) or not isinstance(node, MappingNode):
            return first
        spots, problems = dict(self._document.spots), len(self._document.problems)
        second = self.value(path, node, key)
        self._document.spots.update(spots)
        # The author will delete one of the two mappings, so duplicate keys between the two are not reported again.
        found = self._document.problems[problems:]
        self._document.problems[problems:] = [problem for problem in found if problem.code != "AM005"]
        return {**first, **{name: second[name] for name in second if name not in first}}

    def _merged(self, path: Path, node: MappingNode) -> Iterator[tuple[Node, Node]]:
        for key, value in node.value:
            if not _is_merge(key):
                continue
            for base in value.value if isinstance(value, SequenceNode) else [value]:
                if not isinstance(base, MappingNode) or id(base) in self._open:
                    self._refuse(path, "'<<' with something other than a mapping after it")
                    continue
                self._open.add(id(base))
                yield from ((k, v) for k, v in base.value if not _is_merge(k))
                yield from self._merged(path, base)
                self._open.discard(id(base))

    def _sequence(self, path: Path, node: Node) -> list[Any]:
        return [self.value((*path, i), item, None) for i, item in enumerate(node.value)]

    def _key(self, path: Path, key: Node) -> str | None:
        if isinstance(key, ScalarNode):
            return str(key.value)
        self._refuse(path, "a list or mapping as a key", _span(key))
        return None

    def _scalar(self, path: Path, node: ScalarNode) -> Any:
        kind = node.tag.removeprefix(_TAG) if isinstance(node.tag, str) else str(node.ctag).removeprefix(_TAG)
        text = str(node.value)
        if kind in ("str", "timestamp", "value"):
            return text
        if kind in ("null", "bool", "int", "float"):
            return _plain(kind, text)
        self._refuse(path, f"the tag {kind!r}")
        return None

    def _duplicate(self, path: Path, key: Node) -> None:
        first = self._document.spots[path].key
        line = first.line + 1 if first else 0
        problem = Problem(
            path, "AM005", f"key {path[-1]!r} is given twice; the first is in line {line}", span=_span(key)
        )
        self._document.problems.append(problem)

    def _refuse(self, path: Path, what: str, span: TextSpan | None = None) -> None:
        if span is None:
            self._document.refused.add(path)
        self._document.problems.append(Problem(path, "AM008", f"{what}: not allowed in a topology", span=span))


def _plain(kind: str, text: str) -> Any:
    try:
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                return int(text.replace("_", ""), 0)
            case _:
                return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        # Text such as 007, which some readers of YAML take for a number, stays text.
        return text


def _is_merge(key: Node) -> bool:
    return isinstance(key, ScalarNode) and key.value == "<<" and key.style is None


def _spot(key: Node | None, node: Node) -> Spot:
    is_scalar = isinstance(node, ScalarNode)
    is_empty = isinstance(node, ScalarNode) and not node.value and node.style is None
    if key is None:
        return Spot(None, _span(node), is_scalar, is_empty)
    # The YAML reader places an absent value at whatever comes next, often lines below, so an absent value gets the
    # place of its key.
    return Spot(_span(key), _span(key if is_empty else node), is_scalar, is_empty)


def _span(node: Node) -> TextSpan:
    start, end = node.start_mark, node.end_mark
    # A mapping or list over several lines, or in block style, gets a single caret, at its beginning.
    one_line = isinstance(node, ScalarNode) or getattr(node, "flow_style", False)
    width = end.column - start.column if one_line and end.line == start.line else 1
    return TextSpan(start.line, start.column, max(1, width))


def _syntax_problem(error: YAMLError, text: str) -> Problem:
    if isinstance(error, ReaderError):
        before = text[: error.position]
        col = len(before) - before.rfind("\n") - 1
        message = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
        return Problem((), "AM004", message, span=TextSpan(before.count("\n"), col, 1))
    if not isinstance(error, MarkedYAMLError):
        return Problem((), "AM004", str(error))
    # The YAML reader gives the end of the file as the place of an unclosed bracket or quote, so the problem gets the
    # place where the bracket or quote opens.
    is_open = "end of stream" in str(error.problem) or "<stream end>" in str(error.problem)
    mark = (error.context_mark if is_open else None) or error.problem_mark or error.context_mark
    message = "; ".join(part for part in (error.context, error.problem) if part)
    span = _within(text, TextSpan(mark.line, mark.column, 1)) if mark else None
    return _comment_problem(text, span) or Problem((), "AM004", message, hint=_syntax_hint(message), span=span)


def _comment_problem(text: str, span: TextSpan | None) -> Problem | None:
    """Return the problem of a '#' in brackets, in the line of ``span``, that was meant as a pattern.

    The '#' begins a comment, which hides the line's closing bracket, so that the YAML is malformed. None if the line
    has no such '#'.
    """
    lines = text.splitlines()
    found = swallowed_in_brackets(lines[span.line]) if span and span.line < len(lines) else None
    if span is None or found is None:
        return None
    col, word = found
    message = f"{word!r} begins a comment, which swallows the rest of the line"
    return Problem((), "AM004", message, fix=f'quote it, "{word}".', span=TextSpan(span.line, col, len(word)))


def _within(text: str, span: TextSpan) -> TextSpan:
    """Return ``span``, or the end of the last line if ``span`` is behind all lines of the file."""
    lines = text.rstrip().splitlines()
    return TextSpan(len(lines) - 1, len(lines[-1]), 1) if lines and span.line >= len(lines) else span


def _syntax_hint(message: str) -> str:
    if "\\t" in message:
        return "indent with spaces, not with tabs"
    if "alias" in message:
        return 'a pattern that begins with * must be quoted: "*.news"'
    if "single document" in message:
        return "one file holds one topology: remove '---' and what follows"
    return ""
