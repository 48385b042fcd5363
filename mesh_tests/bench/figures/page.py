"""Makes the page of figures, docs/reference/figures.md, from the file of results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from mesh_tests.bench.figures.model import Circumstances, Figure, Histories, Measurement, Result, Value

HEAD = """\
# Figures

`make figures` measures each row of this page again and writes the page; `make figures ARGS='--only broker'` measures
the rows whose key has that word, and no others. A row has the median, and least and most where the command runs more
than once; the revision, the day and the machine; and the last value of another revision for comparison.
[Performance](../performance.md) says how the figures are measured, and what was tried.

A host may give a virtual machine less on one day than on another. *Loop* is the time of a fixed loop in Python just
before the measurement: compare rows only when their loops are alike, or measure both revisions in turns.
"""


def page(catalogue: Iterable[Measurement], histories: Histories) -> str:
    return "\n".join([HEAD, *_sections(catalogue, histories)])


def _sections(catalogue: Iterable[Measurement], histories: Histories) -> Iterator[str]:
    for section, measurements in groupby(catalogue, lambda each: each.section):
        yield f"## {section}\n"
        yield "| figure | value | target | revision, day, loop | before | command |"
        yield "|---|---|---|---|---|---|"
        for measurement in measurements:
            for number, figure in enumerate(measurement.figures):
                yield _row(figure, command_of(measurement) if number == 0 else "", histories)
        yield ""
    machines = sorted({each.last.circumstances.machine for each in histories.values()})
    yield "## Machines\n"
    yield from (f"* {machine}" for machine in machines)
    yield ""


def _row(figure: Figure, command: str, histories: Histories) -> str:
    history = histories.get(figure.key)
    if history is None:
        return f"| {figure.title} | not measured yet | {figure.target} | | | {command} |"
    before = (
        f"{show(history.before.value, figure.unit)} ({_when(history.before)})" if history.before is not None else ""
    )
    return (
        f"| {figure.title} | **{show(history.last.value, figure.unit)}** | {figure.target} |"
        f" {_when(history.last)} | {before} | {command} |"
    )


def _when(result: Result) -> str:
    was: Circumstances = result.circumstances
    return f"{was.revision}, {was.date}, {was.loop_ms:.0f} ms"


def command_of(measurement: Measurement) -> str:
    """Return the command of a measurement as a user types it, without `--json`."""
    _m, module, *words = measurement.command
    start = "amqpmesh" if module == "mesh" else f"python -m {module}"
    return f"`{' '.join([start, *(word for word in words if word != '--json')])}`"


def show(value: Value, unit: str) -> str:
    suffix = "" if unit == "instructions" else unit if unit == "/s" else f" {unit}"
    text = f"{number(value.median)}{suffix}"
    if value.least is None or value.most is None:
        return text
    return f"{text} ({number(value.least)} to {number(value.most)})"


def number(value: float) -> str:
    """Format a figure with three digits, or a figure of 100 or more as a whole number: `1.22`, `12.6`, `656,012`."""
    if abs(value) >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"
