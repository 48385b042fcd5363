"""Shows the progress of a drill on stderr: a live line below the events on a terminal, only the events elsewhere."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mesh.terminal.output import Output, is_terminal

if TYPE_CHECKING:
    from mesh.drills.rehearsal import RehearsalRecord

REFRESH_S = 0.25


class DrillProgress:
    def __init__(self, out: Output) -> None:
        self._out = out
        self._is_live = is_terminal(sys.stderr) and not out.is_quiet
        self._bar: Any = None
        self._record: RehearsalRecord | None = None
        self._is_over = threading.Event()
        self._refreshing: threading.Thread | None = None

    def __enter__(self) -> DrillProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        if self._refreshing is not None:
            self._refreshing.join()

    @property
    def quiet(self) -> Output:
        """Return a quiet copy of the output, for starting the mesh, because the drill itself prints the important
        events.
        """
        return dataclasses.replace(self._out, is_quiet=True)

    def say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            self._out.say(text)

    def watch(self, record: RehearsalRecord) -> None:
        """Show the progress of the rehearsal ``record`` in a live line from now on, if stderr is a terminal."""
        self._record = record
        if self._is_live:
            self._refreshing = threading.Thread(target=self._refresh, daemon=True)
            self._refreshing.start()

    def _refresh(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        assert self._record is not None
        console = Console(stderr=True, no_color=not self._out.is_colored, highlight=False)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[figures]}"))
        with Bar(*columns, console=console, transient=True) as self._bar:
            task = self._bar.add_task("starting", total=self._record.plan.length_s, figures="")
            while not self._is_over.wait(REFRESH_S):
                begun_s = time.monotonic() - self._record.began_at if self._record.began_at else 0.0
                self._bar.update(task, completed=begun_s, description=self._phase(), figures=self._figures())
        self._bar = None

    def _phase(self) -> str:
        assert self._record is not None
        if not self._record.began_at:
            return "starting"
        broken = [each.planned.label for each in self._record.injected if each.at and each.healed_at is None]
        if broken:
            return ", ".join(broken)
        return "cooldown" if any(each.at for each in self._record.injected) else "baseline"

    def _figures(self) -> str:
        assert self._record is not None
        journals = [traffic.journal for traffic in self._record.traffics]
        sent, received = (sum(len(getattr(each, name)) for each in journals) for name in ("due", "arrivals"))
        return f"sent {sent:,}  received {received:,}"
