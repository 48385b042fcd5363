"""Shows the progress of a simulation on stderr: a line for each change of the mesh and, on a terminal, a bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mesh.simulation.simulation import ChangeReport
from mesh.terminal.output import Output, is_terminal

Observer = Callable[[float, ChangeReport | None], None]
"""Called with the virtual seconds passed since the start, and with the report of a change or None."""


@contextmanager
def display(out: Output, duration_s: float) -> Iterator[Observer]:
    if not is_terminal(sys.stderr) or out.is_quiet:
        yield lambda _, change: say(out.say, change)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, no_color=not out.is_colored, highlight=False)
    columns = (TextColumn("{task.fields[now]:>6.1f} s"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("virtual time", total=duration_s, now=0.0)

        def observe(now: float, change: ChangeReport | None) -> None:
            bar.update(task, completed=min(now, duration_s), now=now)
            say(bar.console.print, change)

        yield observe


def say(write: Callable[[str], None], change: ChangeReport | None) -> None:
    if change is not None:
        write(f"{change.at_s:8.3f} s  {change.what}: {change.verdict}")
