"""Runs `amqpmesh top`: the busiest addresses, links, clients, queues or nodes, of the whole mesh or of this machine.

The observer of this host shows the whole mesh. Without an observer, `top` reads the rings of this host's nodes itself.
"""

from __future__ import annotations

import difflib
import http.client
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Any, Final, Protocol

from addressing.topology.model import Topology
from mesh.client.errors import Unreachable
from mesh.operations.entity_rows import ObserverRows, Row, observer_rows
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
_PAGE: Final = 1000
_MOST_NODES: Final = 10_000
_LINES_AROUND: Final = 5
"""Lines of a terminal that a live table needs beside its rows and notes: title, head, rule, and a line below."""


@dataclass(frozen=True, slots=True)
class TopView:
    """A table of `top`: ``columns`` maps headings to fields of ``entity``, and ``sort`` is a field.

    ``is_shown`` tells which states of the entity are rows, and ``filter`` says the same to an observer. If both are
    None, all are rows.
    """

    entity: Entity
    columns: Mapping[str, str]
    sort: str
    is_shown: Callable[[Any], bool] | None = None
    filter: str | None = None

    def is_text(self, field: str) -> bool:
        found = self.entity.field(field)
        return found is not None and found.type is EntityFieldType.TEXT


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
        "role=client",
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

    On a terminal, show them anew each ``every_s``, until Ctrl-C; elsewhere, with --json, or if ``is_once``: one table.
    ``path`` is the topology file that the user named, if any. Raises CommandFailed for a wrong sort
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
    is_single = is_once or out.is_json or not is_terminal(sys.stdout)
    table = TopTable(topology, view, thing, by, limit)
    observed = observer_rows(topology)
    if observed is not None:
        _show(table, ObservedMesh(topology, observed), every_s, out, is_single=is_single)
        return ExitCode.OK
    with watching(topology) as watch:
        watch.look()
        if not watch.is_any_running:
            raise Unreachable(f"no node of mesh {topology.mesh} runs here", fix=fix_not_running(topology, path))
        if is_single:
            time.sleep(_BETWEEN_LOOKS_S)
        _show(table, WatchedHost(topology, watch.host, watch), every_s, out, is_single=is_single)
    return ExitCode.OK


def _show(table: TopTable, source: TopSource, every_s: float, out: Output, *, is_single: bool) -> None:
    if is_single:
        source.look()
        table.print(source, out)
        return
    with suppress(KeyboardInterrupt):
        _show_live(table, source, every_s, out)


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


class TopSource(Protocol):
    """Where `top` has its rows from."""

    def look(self) -> None:
        """Take in what has happened since the last look."""
        ...

    def choose(self, view: TopView, sort: str, limit: int) -> tuple[list[Row], int]:
        """Return the first ``limit`` rows, and the number of all rows; those without a value are last.

        Raises CommandFailed if there are no rows in this order.
        """
        ...

    def notes(self) -> Iterator[str]:
        """Say what the rows lack: nodes that are not seen, and records that are missing in the counts."""
        ...


class WatchedHost:
    """The nodes of this host, by their rings; ``watch`` reads them, if they are to be read."""

    def __init__(self, topology: Topology, host: HostModel, watch: HostWatch | None = None) -> None:
        self._topology, self._host, self._watch = topology, host, watch

    def look(self) -> None:
        if self._watch is not None:
            self._watch.look()

    def choose(self, view: TopView, sort: str, limit: int) -> tuple[list[Row], int]:
        states = self._host.states(view.entity)
        if view.is_shown is not None:
            states = [state for state in states if view.is_shown(state)]
        get, name, is_text = GETTERS[view.entity][sort], GETTERS[view.entity]["id"], view.is_text(sort)

        def key(state: Any) -> tuple[bool, Any, str]:
            value = get(state)
            if value is None:
                return True, 0, name(state)
            return False, value if is_text else -value, name(state)

        return [row_of(view.entity, state) for state in nsmallest(limit, states, key)], len(states)

    def notes(self) -> Iterator[str]:
        for name in _nodes_of(self._topology):
            node = self._host.nodes.get(name)
            if node is None:
                yield f"{name}: unknown, no records on this machine"
            else:
                yield from _notes_of(row_of(NODE, node), "before `top` began or caught up")


class ObservedMesh:
    """The nodes of the mesh, as the observer of this host sees them."""

    def __init__(self, topology: Topology, observed: ObserverRows) -> None:
        self._topology, self._observed = topology, observed

    def look(self) -> None:
        self._observed.notes.clear()

    def choose(self, view: TopView, sort: str, limit: int) -> tuple[list[Row], int]:
        parameters = [("sort", sort if view.is_text(sort) else f"-{sort}")]
        parameters += [("filter", view.filter)] if view.filter is not None else []
        rows: list[Row] = []
        after: list[tuple[str, str]] = []
        try:
            while True:
                most = min(limit - len(rows), _PAGE)
                page = self._observed.page(view.entity, [*parameters, ("limit", str(most)), *after])
                rows += page["items"]
                if page["next"] is None or len(rows) >= limit:
                    return rows, page["matched"]
                after = [("after", page["next"])]
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            raise CommandFailed(f"the observer of this host gives no rows: {error}") from None

    def notes(self) -> Iterator[str]:
        nodes = {row["name"]: row for row in self.choose(VIEWS["nodes"], "name", _MOST_NODES)[0]}
        for name in _nodes_of(self._topology):
            if name in nodes:
                yield from _notes_of(nodes[name], "before the observer began or caught up")
            else:
                yield f"{name}: unknown, no observer has told of it"
        yield from self._observed.notes


def _nodes_of(topology: Topology) -> Iterator[str]:
    yield from topology.routers
    yield from (name for name, broker in topology.brokers.items() if broker.is_embedded)


def _notes_of(node: Row, missed: str) -> Iterator[str]:
    name = node["name"]
    if node["state"] != RUNNING:
        heard = f", last heard of {node['age_s']:.0f} s ago" if node["age_s"] is not None else ""
        yield f"{name}: {node['state']}{heard}"
    if node["records_missed"]:
        yield f"{name}: counters lack what was recorded {missed}"
    if node["records_dropped"]:
        yield f"{name}: counters lack {node['records_dropped']:,} records for which the ring had no room"


class TopTable:
    """A table of `top`: at most ``limit`` rows, by the field ``sort``: the largest number, or the first text, first."""

    def __init__(self, topology: Topology, view: TopView, thing: str, sort: str, limit: int) -> None:
        self._topology, self._view, self._thing = topology, view, thing
        self._sort, self._limit = sort, limit

    def print(self, source: TopSource, out: Output) -> None:
        rows, count = source.choose(self._view, self._sort, self._limit)
        notes = list(source.notes())
        if out.is_json:
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
        out.table(tuple(self._view.columns), self.cells(rows))
        if len(rows) < count:
            out.say(f"first {len(rows):,} of {count:,} {self._thing} by {self._sort}; --limit shows more")
        for note in notes:
            out.say(note)

    def rendered(self, source: TopSource, height: int) -> Any:
        """Return what a terminal of ``height`` lines shows."""
        from rich.console import Group
        from rich.text import Text

        notes = list(source.notes())
        limit = max(1, min(self._limit, height - _LINES_AROUND - len(notes)))
        rows, count = source.choose(self._view, self._sort, limit)
        shown = f"{count:,}" if len(rows) == count else f"first {len(rows):,} of {count:,}"
        title = f"{self._topology.mesh}: {shown} {self._thing} by {self._sort}; Ctrl-C ends"
        cells = [[format_cell(cell) for cell in row] for row in self.cells(rows)]
        return Group(rich_table(tuple(self._view.columns), cells, title), *(Text(note) for note in notes))

    def cells(self, rows: list[Row]) -> list[list[object]]:
        return [[row[name] for name in self._view.columns.values()] for row in rows]


def _show_live(table: TopTable, source: TopSource, every_s: float, out: Output) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(no_color=not out.is_colored, highlight=False)
    with Live(table.rendered(source, console.height), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(every_s)
            source.look()
            live.update(table.rendered(source, console.height), refresh=True)
