"""Errors of a topology file in the form that its author reads: place, mistake, expectation and fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


# Most characters of the file's line that an error shows before and after the place at fault; CUT stands for the rest.
SHOWN_BEFORE, SHOWN_AFTER = 80, 120
CUT = "..."


def visible(text: str) -> str:
    """Return ``text``, safe for a terminal: a visible character replaces each unprintable character but the tab."""
    return "".join(c if c == "\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


@dataclass(slots=True, eq=False)
class ConfigError(Exception):
    """One mistake or warning in a topology file, or in a drill's file; its text has an excerpt of the file.

    Lines and columns count from 1, as editors do; line 0 means the file as a whole.
    """

    file: str
    line: int
    col: int
    code: str
    message: str
    hint: str = ""
    fix: str = ""
    suggestion: str | None = None
    source_line: str = ""
    """The line of the file at fault, with each secret masked."""
    caret_width: int = 1
    caret_col: int = 0
    """Column of the place in ``source_line``, if masked secrets before the place have moved it; 0: same as ``col``."""
    severity: Severity = "error"

    def __str__(self) -> str:
        lines = [f"{self._place}  {self.code}  {self._severity_mark}{visible(self.message)}"]
        lines += self._excerpt()
        lines.append(f"fix: {self.fix}      amqpmesh explain {self.code}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, str | int | None]:
        return {
            "file": self.file,
            "line": self.line,
            "column": self.col,
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
            "suggestion": self.suggestion,
            "fix": self.fix,
        }

    @property
    def _place(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.line else self.file

    @property
    def _severity_mark(self) -> str:
        return "warning: " if self.severity == "warning" else ""

    def _excerpt(self) -> list[str]:
        if not self.line:
            return [f"      | {self.hint}"] if self.hint else []
        column = (self.caret_col or self.col) - 1
        before, after = visible(self.source_line[:column]), visible(self.source_line[column:])
        before = before if len(before) <= SHOWN_BEFORE else CUT + before[len(CUT) - SHOWN_BEFORE :]
        after = after if len(after) <= SHOWN_AFTER else after[: SHOWN_AFTER - len(CUT)] + CUT
        # Tabs before the caret stay tabs, so that the terminal puts the caret under the character at fault.
        padding = "".join("\t" if c == "\t" else " " for c in before)
        caret = "^" * max(1, min(self.caret_width, len(after)))
        return [
            f"{self.line:5d} | {before}{after}",
            f"      | {padding}{caret} {self.hint}".rstrip(),
        ]


class BadValue(ValueError):
    """A fault in the form of a value of a topology file; ``code`` (AMxxx) is the code of the error to report."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class TopologyErrors(Exception):
    """All mistakes and warnings of a topology file with mistakes, in the file's order, or why it cannot be read."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n\n".join(str(error) for error in self.errors))

    def to_json(self) -> list[dict[str, str | int | None]]:
        return [error.to_json() for error in self.errors]
