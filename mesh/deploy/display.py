"""Shows the start of a mesh on stderr: a live table of nodes on a terminal, otherwise a line for each change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mesh.deploy.mesh_status import MeshStatus, NodeStatus
from mesh.terminal.output import Output, format_cell, is_terminal, rich_table

Observer = Callable[[MeshStatus], None]
COLUMNS = ("NODE", "KIND", "STATE", "PID", "RESTARTS", "")


@contextmanager
def display(out: Output) -> Iterator[Observer]:
    if is_terminal(sys.stderr) and not out.is_quiet:
        with _live_table(out) as observe:
            yield observe
    else:
        yield PlainLines(out)


@contextmanager
def _live_table(out: Output) -> Iterator[Observer]:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, no_color=not out.is_colored, highlight=False)
    with Live(console=console, refresh_per_second=10) as live:
        yield lambda status: live.update(rich_table(COLUMNS, node_rows(status), title=title(status)))


class PlainLines:
    def __init__(self, out: Output) -> None:
        self._out = out
        self._shown: MeshStatus | None = None

    def __call__(self, status: MeshStatus) -> None:
        known = self._shown
        for node in status.nodes:
            before = known.node(node.name) if known is not None else None
            if before is None or (before.state, before.detail) != (node.state, node.detail):
                self._out.say(line(node))
        if known is None or known.phase is not status.phase:
            self._out.say(title(status))
        self._shown = status


def title(status: MeshStatus) -> str:
    return f"{status.mesh}: {status.phase}" + (f": {status.detail}" if status.detail else "")


def line(node: NodeStatus) -> str:
    return f"{node.kind} {node.name}: {node.state}" + (f": {node.detail}" if node.detail else "")


def node_rows(status: MeshStatus) -> list[list[str]]:
    return [
        [format_cell(cell) for cell in (node.name, node.kind, node.state, node.pid, node.restarts, node.detail)]
        for node in status.nodes
    ]
