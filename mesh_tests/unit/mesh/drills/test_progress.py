"""What is shown while a drill runs."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace

from rich.console import Console

from mesh.drills.progress import DrillProgress
from mesh.terminal.output import Output


def test_a_command_with_brackets_is_told_as_it_is():
    told = StringIO()
    progress = DrillProgress(Output("drill"))
    progress._bar = SimpleNamespace(console=Console(file=told))
    progress.say("fault 1: test -d [/tmp] [red]")
    assert told.getvalue() == "fault 1: test -d [/tmp] [red]\n"
