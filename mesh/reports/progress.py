"""Shows the progress of a report on stderr: a bar on a terminal, and a line for each step elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mesh.terminal.output import Output, is_terminal

Step = Callable[[str], None]
"""Function that is called with the name of each step of the report, as the step begins."""


@contextmanager
def progress(out: Output, steps: int) -> Iterator[Step]:
    if is_terminal(sys.stderr) and not out.is_quiet and not out.is_json:
        with _bar(out, steps) as step:
            yield step
    else:
        began = time.monotonic()
        yield lambda text: out.say(f"{time.monotonic() - began:5.1f} s  {text}")


@contextmanager
def _bar(out: Output, steps: int) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TimeElapsedColumn(), BarColumn(), TextColumn("{task.description}", markup=False))
    console = Console(stderr=True, no_color=not out.is_colored, highlight=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=steps)

        def step(text: str) -> None:
            bar.update(task, description=text, advance=1)

        yield step
