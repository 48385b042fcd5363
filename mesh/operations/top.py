"""Runs `amqpmesh top`: the busiest addresses, links, clients, queues or nodes of this machine, from the nodes' rings.

No node is asked, and no observer has to run: `top` reads the rings itself.
"""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Any, Final

from addressing.topology.model import Topology
from mesh.client.errors import Unreachable
from mesh.operations.host_watch import HostWatch, watching
from mesh.operations.status import fix_not_running
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output, format_cell, is_terminal, rich_table
from mesh.watch.host_model import LEAST_RATED_S, HostModel
from mesh.watch.states import GETTERS, RUNNING, row_of
from recording.entities import ADDRESS, CONNECTION, LINK, NODE, QUEUE, Entity, EntityFieldType

LEAST_EVERY_S: Final = 0.5
"""The shortest time between two live tables; their rates are computed each LEAST_RATED_S."""
_BETWEEN_LOOKS_S: Final = LEAST_RATED_S + 0.1
"""Time between the two looks of which a single table has its rates."""
_LINES_AROUND: Final = 5
"""Lines of a terminal that a live table needs beside its rows and notes: title, head, rule, and a line below."""


@dataclass(frozen=True, slots=True)
class TopView:
    """A table of `top`: ``columns`` maps headings to fields of ``entity``, and ``sort`` is a field.

    ``is_shown`` tells which states of the entity are rows; all are, if it is None.
    """

    entity: Entity
    columns: Mapping[str, str]
    sort: str
    is_shown: Callable[[Any], bool] | None = None


VIEWS: Final = {
    "addresses": TopView(
        ADDRESS,
        {
            "ADDRESS": "address",
            "PATTERN": "pattern",
            "TREATMENT": "treatment",
            "PRODUCERS": "producers",
            "WAITING": "waiting_producers",
            "CONSUMERS": "consumers",
            "DEPTH": "depth",
            "IN/S": "in_rate",
            "OUT/S": "out_rate",
            "IN": "in_deliveries",
            "OUT": "out_deliveries",
            "RELEASED": "in_released",
            "REJECTED": "in_rejected",
        },
        "in_rate",
    ),
    "links": TopView(
        LINK,
        {
            "LINK": "id",
            "ROLE": "role",
            "ADDRESS": "address",
            "CONTAINER": "container",
            "USER": "user",
            "CREDIT": "credit",
            "WAITS FOR": "waits_for",
            "UNSETTLED": "unsettled",
            "PER S": "rate",
            "DELIVERIES": "deliveries",
            "ACCEPTED": "accepted",
            "RELEASED": "released",
        },
        "rate",
    ),
    "clients": TopView(
        CONNECTION,
        {
            "CONNECTION": "id",
            "CONTAINER": "container",
            "USER": "user",
            "REMOTE": "remote_address",
            "LINKS": "links",
            "IN/S": "in_rate",
            "OUT/S": "out_rate",
            "IN": "in_deliveries",
            "OUT": "out_deliveries",
        },
        "in_rate",
        # A connection of a client, and no other, has a user whose sums it counts for.
        lambda connection: connection.user is not None,
    ),
    "queues": TopView(
        QUEUE,
        {
            "NODE": "node",
            "ADDRESS": "address",
            "SUBSCRIBER": "subscriber",
            "DEPTH": "depth",
            "BYTES": "depth_bytes",
            "ACQUIRED": "acquired",
            "OLDEST S": "oldest_s",
            "ENQUEUED": "enqueued",
            "DEQUEUED": "dequeued",
            "EXPIRED": "expired",
            "DEAD": "dead_lettered",
        },
        "depth",
    ),
    "nodes": TopView(
        NODE,
        {
            "NODE": "name",
            "ROLE": "role",
            "STATE": "state",
            "AGE S": "age_s",
            "CLIENTS": "clients",
            "LINKS": "links",
            "WAITING": "waiting_producers",
            "IN/S": "in_rate",
            "OUT/S": "out_rate",
            "FROM CLIENTS/S": "ingress_rate",
            "TO CLIENTS/S": "egress_rate",
        },
        "in_rate",
    ),
}
"""By the word that the user types."""


def run(
    topology: Topology,
    thing: str,
    *,
    sort: str | None,
    limit: int,
    every_s: float,
    is_once: bool,
    out: Output,
    path: Path | None = None,
) -> int:
    """Show the first ``limit`` rows of the table ``thing``, one of VIEWS, by the field ``sort``.

    On a terminal, show them anew each ``every_s``, until Ctrl-C; elsewhere, with --json, or if ``is_once``: one table
    after two looks. ``path`` is the topology file that the user named, if any. Raises CommandFailed for a wrong sort
    field or period, or without records; Unreachable if no node of the mesh runs here.
    """
    view = VIEWS[thing]
    by = check_sort(thing, sort)
    if every_s < LEAST_EVERY_S:
        raise CommandFailed(f"--every is {every_s:g} s: expected {LEAST_EVERY_S} s or more", exit_code=ExitCode.USAGE)
    if not topology.is_recorded:
        raise CommandFailed(
            f"nodes of mesh {topology.mesh} write no records: `link_logs: off` turns off what `top` reads",
            fix="remove `link_logs: off` from the topology file, and start the mesh again.",
        )
    with watching(topology) as watch:
        watch.look()
        if not watch.is_any_running:
            raise Unreachable(f"no node of mesh {topology.mesh} runs here", fix=fix_not_running(topology, path))
        table = TopTable(topology, view, thing, by, limit)
        if is_once or out.is_json or not is_terminal(sys.stdout):
            time.sleep(_BETWEEN_LOOKS_S)
            watch.look()
            table.print(watch.host, out)
        else:
            with suppress(KeyboardInterrupt):
                _show_live(table, watch, every_s, out)
    return ExitCode.OK


def check_sort(thing: str, sort: str | None) -> str:
    """Return the field to sort by. Raises CommandFailed, with the fields that are allowed."""
    view = VIEWS[thing]
    by = view.sort if sort is None else sort
    if view.entity.field(by) is None:
        near = difflib.get_close_matches(by, view.entity.names, 1)
        raise CommandFailed(
            f"--sort is {by!r}: expected a field of {thing}: {', '.join(view.entity.names)}",
            exit_code=ExitCode.USAGE,
            fix=f"did you mean {near[0]}?" if near else None,
        )
    return by


class TopTable:
    """A table of `top`: at most ``limit`` rows, by the field ``sort``: the largest number, or the first text, first."""

    def __init__(self, topology: Topology, view: TopView, thing: str, sort: str, limit: int) -> None:
        self._topology, self._view, self._thing = topology, view, thing
        self._sort, self._limit = sort, limit
        field = view.entity.field(sort)
        self._is_text = field is not None and field.type is EntityFieldType.TEXT

    def print(self, host: HostModel, out: Output) -> None:
        states, count = self.choose(host, self._limit)
        notes = list(self.notes(host))
        if out.is_json:
            rows = [row_of(self._view.entity, state) for state in states]
            out.document(
                {
                    "mesh": self._topology.mesh,
                    "things": self._thing,
                    "sort": self._sort,
                    "count": count,
                    "rows": rows,
                    "notes": notes,
                }
            )
            return
        out.table(tuple(self._view.columns), self.cells(states))
        if len(states) < count:
            out.say(f"first {len(states):,} of {count:,} {self._thing} by {self._sort}; --limit shows more")
        for note in notes:
            out.say(note)

    def rendered(self, host: HostModel, height: int) -> Any:
        """Return what a terminal of ``height`` lines shows."""
        from rich.console import Group
        from rich.text import Text

        notes = list(self.notes(host))
        limit = max(1, min(self._limit, height - _LINES_AROUND - len(notes)))
        states, count = self.choose(host, limit)
        shown = f"{count:,}" if len(states) == count else f"first {len(states):,} of {count:,}"
        title = f"{self._topology.mesh}: {shown} {self._thing} by {self._sort}; Ctrl-C ends"
        cells = [[format_cell(cell) for cell in row] for row in self.cells(states)]
        return Group(rich_table(tuple(self._view.columns), cells, title), *(Text(note) for note in notes))

    def choose(self, host: HostModel, limit: int) -> tuple[list[Any], int]:
        """Return the states of the first ``limit`` rows, and the number of all rows; those without a value are last."""
        states = host.states(self._view.entity)
        if self._view.is_shown is not None:
            states = [state for state in states if self._view.is_shown(state)]
        get, name = GETTERS[self._view.entity][self._sort], GETTERS[self._view.entity]["id"]

        def key(state: Any) -> tuple[bool, Any, str]:
            value = get(state)
            if value is None:
                return True, 0, name(state)
            return False, value if self._is_text else -value, name(state)

        return nsmallest(limit, states, key), len(states)

    def cells(self, states: list[Any]) -> list[list[object]]:
        getters = GETTERS[self._view.entity]
        return [[getters[name](state) for name in self._view.columns.values()] for state in states]

    def notes(self, host: HostModel) -> Iterator[str]:
        """Say what the table cannot show: nodes that are not seen here, and records that are missing in the counts."""
        for name in (*self._topology.routers, *self._embedded()):
            node = host.nodes.get(name)
            if node is None:
                yield f"{name}: unknown, no records on this machine"
                continue
            if node.state != RUNNING:
                yield f"{name}: {node.state}, last heard of {node.age_s:.0f} s ago"
            if node.records_missed:
                yield f"{name}: counters lack what was recorded before `top` began or caught up"
            if node.records_dropped:
                yield f"{name}: counters lack {node.records_dropped:,} records for which the ring had no room"

    def _embedded(self) -> list[str]:
        return [name for name, broker in self._topology.brokers.items() if broker.is_embedded]


def _show_live(table: TopTable, watch: HostWatch, every_s: float, out: Output) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(no_color=not out.is_colored, highlight=False)
    with Live(table.rendered(watch.host, console.height), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(every_s)
            watch.look()
            live.update(table.rendered(watch.host, console.height), refresh=True)
