"""Prints the result of a drill on the terminal: a table of results, the checks, and the verdict in the last line."""

from __future__ import annotations

import textwrap

import click

from mesh.drills import words
from mesh.drills.report import Check, DrillReport, DrillVerdict, FaultResult
from mesh.terminal.output import Output

COLUMNS = (
    "FAULT",
    "ADDRESS",
    "DETECTED",
    "OUTAGE",
    "RECOVERED",
    "ACCEPTED",
    "OTHER",
    "LOST",
    "TWICE",
    "VERDICT",
)
MARKS = {True: "✓", False: "✗", None: "?"}
COLORS = {True: "green", False: "red", None: "yellow"}
VERDICT_COLORS = {
    DrillVerdict.PASS: "green",
    DrillVerdict.FAIL: "red",
    DrillVerdict.INVALID: "magenta",
    DrillVerdict.UNKNOWN: "yellow",
}
INDENT = " " * 4
ADVICE_WIDTH = 100


def tell(report: DrillReport, out: Output) -> None:
    """Print the report of a drill; color is used only on a terminal."""
    if report.results:
        out.table(COLUMNS, _rows(report))
        out.data("")
    if report.checks:
        for line in _check_lines(report, out):
            out.data(line)
        out.data("")
    for reason in report.reasons:
        out.data(_one_line(reason))
    sentence = _one_line(words.Headline.of(report).sentence(report))
    out.data(_styled(sentence, VERDICT_COLORS[report.verdict], out, bold=True))


def _rows(report: DrillReport) -> list[list[object]]:
    labels = words.fault_labels(report)
    return [_row(labels.get(result.fault, result.fault), result) for result in report.results]


def _row(label: str, result: FaultResult) -> list[object]:
    return [
        _one_line(label),
        _one_line(result.address),
        words.duration(result.detection_ms),
        words.duration(result.outage_ms),
        words.duration(result.recovery_ms),
        words.count(result.counts.accepted),
        words.count(words.not_accepted(result.counts)),
        words.count(result.counts.lost),
        words.count(result.counts.duplicated),
        "ok" if result.passed else "failed",
    ]


def _check_lines(report: DrillReport, out: Output) -> list[str]:
    """Return an aligned line for each check, and lines of advice below each failed check."""
    cells = [(check.text, check.observed or words.NONE, check.margin, check.scope) for check in report.checks]
    rows = [[_one_line(cell) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for check, row in zip(report.checks, rows, strict=True):
        padded = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"{_mark(check, out)} {padded}".rstrip())
        if check.advice and not check.passed:
            lines.extend(
                textwrap.wrap(_one_line(check.advice), ADVICE_WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
            )
    return lines


def _mark(check: Check, out: Output) -> str:
    return _styled(MARKS[check.passed], COLORS[check.passed], out)


def _styled(text: str, color: str, out: Output, *, bold: bool = False) -> str:
    return click.style(text, fg=color, bold=bold) if out.is_colored else text


def _one_line(text: str) -> str:
    """Replace control characters, so that text from a drill file cannot move the cursor or begin a line of its own."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
