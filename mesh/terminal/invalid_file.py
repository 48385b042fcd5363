"""Reports all errors in a file that a user wrote for a command, such as a drill file, each with its line and column."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel

from addressing.errors import TopologyErrors
from addressing.topology import problem as problems
from addressing.topology.document import Document
from addressing.topology.loader import locate, read_text
from addressing.topology.problem import Problem, hint_for, nearest
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed


class InvalidFile(CommandFailed):
    """The failure of a command for an invalid file: all errors in the file, as one text, and as maps for JSON."""

    what: ClassVar[str]
    """The kind of file in the message, such as "drill"; each subclass sets its own."""

    def __init__(self, errors: TopologyErrors) -> None:
        super().__init__(str(errors), exit_code=ExitCode.TOPOLOGY_INVALID, is_formatted=True)
        self.errors = errors.to_json()

    def to_map(self) -> dict[str, Any]:
        count = len(self.errors)
        message = f"the {self.what} has {count} error{'s' if count != 1 else ''}"
        return {"message": message, "exit_code": int(self.exit_code), "errors": self.errors}

    @classmethod
    def located(cls, found: Iterable[Problem], document: Document, text: str, file: str) -> Self:
        """Make the failure for the problems ``found`` in ``document``, sorted by their line and column in ``file``."""
        lines = text.splitlines()
        errors = [locate(problem, document, lines, file) for problem in found]
        return cls(TopologyErrors(sorted(errors, key=lambda error: (error.line, error.col))))

    @classmethod
    def read(cls, path: Path) -> str:
        """Return the text of the file at ``path``. Raises an error of this class if the file cannot be read."""
        try:
            return read_text(path)
        except TopologyErrors as errors:
            raise cls(errors) from None


def unknown_key(path: problems.Path, part: type[BaseModel]) -> Problem:
    """Return the problem of an unknown key at ``path``, with the nearest allowed key as a hint.

    ``part`` is the model of the mapping that has the key.
    """
    known = [field.alias or name for name, field in part.model_fields.items()]
    key = str(path[-1])
    hint = hint_for(key, known, title="allowed")
    return Problem(path, "AM101", f"unknown key {key!r}", hint, suggestion=nearest(key, known), at_key=True)


def missing_key(path: problems.Path) -> Problem:
    return Problem(path, "AM102", f"the key {path[-1]!r} is missing", fix=f"add '{path[-1]}:'.", at_key=True)


def wrong_value(path: problems.Path, detail: Any) -> Problem:
    """Return the problem of a wrong value at ``path``; ``detail`` is the error from pydantic."""
    message = sentence(detail).replace("Input should be", "expected")
    given = "" if repr(detail["input"]) in message else f", got {detail['input']!r}"
    return Problem(path, "AM106", f"{message}{given}"[:160], fix="write a value of that kind.")


def sentence(detail: Any) -> str:
    """Return the message of a pydantic error, without the "Value error, " that stands before a validator's text."""
    return str(detail["msg"]).removeprefix("Value error, ")
