"""Runs `amqpmesh status`: shows each node of a mesh, from the node's own snapshot and the supervisor's view of it.

Of nodes on other hosts, the observers there tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from addressing.address import Address
from addressing.topology.model import Topology
from mesh.client.errors import Unreachable
from mesh.deploy.control import ask
from mesh.deploy.mesh_status import MeshStatus, NodeState
from mesh.deploy.node_kind import NodeKind, NodePlan, Snapshot
from mesh.deploy.node_kinds import NODE_KINDS, plan
from mesh.deploy.readiness import missing_links
from mesh.deploy.revision import read_revision
from mesh.deploy.running_processes import (
    change_note,
    is_supervisor_lost,
    node_pid,
    option_for,
    other_meshes,
    supervisor_pid,
)
from mesh.deploy.workdir import SUPERVISOR, WorkDir
from mesh.operations.costs import changed_costs
from mesh.operations.nodes_elsewhere import NodeElsewhere, nodes_elsewhere
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.output import Output

NODE_COLUMNS = ("NODE", "KIND", "STATE", "PID", "RESTARTS", "NEIGHBORS", "BROKERS", "CLIENTS", "DETAIL")


@dataclass(frozen=True, slots=True)
class NodeView:
    node: NodePlan
    state: NodeState
    pid: int | None
    restarts: int
    detail: str
    snapshot: Snapshot | None
    elsewhere: NodeElsewhere | None = None
    """What is known of a node that is not on this host; None for a node of this host."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kind(self) -> NodeKind:
        return self.node.kind

    @property
    def is_well(self) -> bool:
        """Tell whether nobody says that the node is not up: a node elsewhere, of which nobody can tell, is no fault."""
        return self.state is NodeState.UP or (self.elsewhere is not None and self.state is NodeState.UNKNOWN)

    def count_clients(self) -> int | None:
        if self.elsewhere is not None:
            return self.elsewhere.clients
        if self.snapshot is None or "connections" not in self.snapshot:
            return None
        return len([one for one in self.snapshot["connections"] if one["kind"] == "client"])


def run(topology: Topology, tables: Sequence[StatusTable], out: Output, path: Path | None = None) -> int:
    """Show the status of a mesh; return exit code OK if all nodes are up and a supervisor has not crashed, else FAILED.

    A node of another host is no fault if nobody can tell of it. ``path`` is the topology file that the user named, if
    any. Raises Unreachable if nothing of the mesh runs here, and nobody tells of a node elsewhere.
    """
    workdir = WorkDir(topology.work_dir)
    supervised = ask_supervisor(workdir)
    views = add_elsewhere(topology, [view(workdir, node, supervised) for node in plan(topology)], supervised)
    is_told = any(found.elsewhere is not None and found.state is not NodeState.UNKNOWN for found in views)
    if all(found.pid is None for found in views) and supervised is None and not is_told:
        raise Unreachable(f"no node of mesh {topology.mesh} runs here", fix=fix_not_running(topology, path))
    note = change_note(topology, path)
    here = [found for found in views if found.elsewhere is None]
    missing = list(missing_links(topology, [(found.node, found.snapshot) for found in here]))
    costs = list(changed_costs(topology, {found.name: found.snapshot for found in views}))
    notes = {
        key: [sentence for found in views if found.kind is kind for sentence in tell(found.name, found.snapshot)]
        for kind in NODE_KINDS.values()
        for key, tell in kind.notes.items()
    }
    if out.is_json:
        out.document(to_map(topology, workdir, supervised, views, missing, costs, notes, is_changed=note is not None))
    else:
        show(out, views, missing, tables)
        if supervised is not None and (revision := read_revision(workdir)) is not None:
            out.say(f"{topology.mesh} runs {revision}")
            if workdir.journal_file.exists():
                out.say(
                    "some nodes may run the next revision already: unless `amqpmesh apply` is at work, it was cut off, "
                    f"and `amqpmesh apply{option_for(path)}` completes it"
                )
        for sentence in chain.from_iterable(notes.values()):
            out.say(sentence)
    is_lost = is_supervisor_lost(workdir)
    if is_lost:
        out.say(f"no supervisor runs: nodes that die are not restarted; run `amqpmesh up{option_for(path)}`")
    for sentence in costs:
        out.say(sentence)
    if note:
        out.say(note)
    is_well = not is_lost and all(found.is_well for found in views)
    return ExitCode.OK if is_well else ExitCode.FAILED


def fix_not_running(topology: Topology, path: Path | None) -> str:
    others = other_meshes(topology)
    start = f"start it with `amqpmesh up{option_for(path)}`."
    if not others:
        return start
    before = f"{', '.join(others)} runs here: if that is the former name of this mesh, `amqpmesh down` stops it."
    return before if path is None else f"{start[:-1]}; {before}"


def ask_supervisor(workdir: WorkDir) -> MeshStatus | None:
    if supervisor_pid(workdir) is None:
        return None
    try:
        return MeshStatus.from_map(ask(workdir.control_socket(SUPERVISOR), "status"))
    except OSError:
        return None


def view(workdir: WorkDir, node: NodePlan, supervised: MeshStatus | None) -> NodeView:
    name = node.name
    pid = node_pid(workdir, name)
    snapshot = ask_node(workdir, name) if pid is not None else None
    known = supervised.node(name) if supervised is not None else None
    if snapshot is not None:
        state = NodeState.UP
    elif known is not None:
        state = known.state if known.state is not NodeState.UP else unanswered(pid)
    else:
        state = NodeState.STARTING if pid is not None else NodeState.DOWN
    restarts = known.restarts if known is not None else 0
    return NodeView(node, state, pid, restarts, known.detail if known is not None else "", snapshot)


def add_elsewhere(topology: Topology, views: list[NodeView], supervised: MeshStatus | None) -> list[NodeView]:
    """Return ``views``, with what observers tell of nodes that are not here.

    A node that has left a file in the work directory was here: it counts as elsewhere only if an observer says that the
    node runs.
    """
    workdir = WorkDir(topology.work_dir)
    away = {found.name for found in views if found.pid is None}
    if supervised is not None:
        away -= {node.name for node in supervised.nodes}
    told = {
        name: each
        for name, each in nodes_elsewhere(topology, away).items()
        if each.state in (NodeState.UP, NodeState.SILENT) or not workdir.pid_file(name).exists()
    }
    return [
        replace(found, state=each.state, detail=each.detail, elsewhere=each)
        if (each := told.get(found.name)) is not None
        else found
        for found in views
    ]


def unanswered(pid: int | None) -> NodeState:
    """Return the state of a node that is up for the supervisor, but did not answer `status`: SILENT if its process
    ``pid`` runs, DOWN if the process is gone.
    """
    return NodeState.SILENT if pid is not None else NodeState.DOWN


def ask_node(workdir: WorkDir, name: str) -> Snapshot | None:
    try:
        snapshot: Snapshot = ask(workdir.control_socket(name), "snapshot")["node"]
    except OSError:
        return None
    return snapshot


def to_map(
    topology: Topology,
    workdir: WorkDir,
    supervised: MeshStatus | None,
    views: list[NodeView],
    missing: list[str],
    costs: list[str],
    notes: Mapping[str, list[str]],
    *,
    is_changed: bool,
) -> dict[str, Any]:
    return {
        "mesh": topology.mesh,
        "phase": str(supervised.phase) if supervised is not None else None,
        "supervisor_pid": supervisor_pid(workdir),
        "supervisor_lost": is_supervisor_lost(workdir),
        "revision": _revision_map(workdir) if supervised is not None else None,
        "topology_changed": is_changed,
        "missing": missing,
        "changed_costs": costs,
        **notes,
        "nodes": [
            {
                "name": found.name,
                "kind": found.kind.name,
                "state": str(found.state),
                "pid": found.pid,
                "restarts": found.restarts,
                "detail": found.detail,
                "host": found.elsewhere.host if found.elsewhere is not None else None,
                "is_elsewhere": found.elsewhere is not None,
                "age_s": found.elsewhere.age_s if found.elsewhere is not None else None,
                "snapshot": found.snapshot,
            }
            for found in views
        ],
    }


def _revision_map(workdir: WorkDir) -> dict[str, Any] | None:
    revision = read_revision(workdir)
    return revision.to_map() if revision is not None else None


def show(out: Output, views: list[NodeView], missing: list[str], tables: Sequence[StatusTable]) -> None:
    out.table(NODE_COLUMNS, [node_row(found) for found in views])
    for table in tables:
        out.data("")
        out.table(("NODE", *table.columns), [row for found in views for row in table.rows_of(found)])
    for sentence in missing:
        out.say(f"missing: {sentence}")


def node_row(found: NodeView) -> list[object]:
    cells = found.kind.cells(found.snapshot)
    return [
        found.name,
        cells.kind,
        found.state,
        found.pid,
        found.restarts,
        cells.neighbors or None,
        cells.brokers or None,
        found.count_clients(),
        found.detail,
    ]


@dataclass(frozen=True, slots=True)
class StatusTable:
    """A further table of `status`, such as connections, made of the snapshots of all nodes.

    ``field`` names a list in a snapshot: each item becomes a row, and ``columns`` maps headings to fields of the item.
    Items of the mesh's own addresses are left out: --json shows them.
    """

    field: str
    columns: Mapping[str, str]

    def rows_of(self, found: NodeView) -> Iterator[list[object]]:
        for item in (found.snapshot or {}).get(self.field, ()):
            if Address.parse(item.get("address") or "").is_internal:
                continue
            flat = {**item, **item.get("queue", {})}
            yield [found.name, *(flat.get(name) for name in self.columns.values())]


CONNECTIONS = StatusTable(
    "connections",
    {
        "KIND": "kind",
        "CONTAINER": "container_id",
        "REMOTE": "remote_address",
        "USER": "user",
        "LISTENER": "listener",
        "LINKS": "links",
        "IN": "bytes_in",
        "OUT": "bytes_out",
    },
)
ADDRESSES = StatusTable(
    "addresses",
    {
        "ADDRESS": "address",
        "TREATMENT": "treatment",
        "PRODUCERS": "inlets",
        "TAKERS": "takers",
        "UNSETTLED": "unsettled",
        "IN": "deliveries_in",
        "OUT": "deliveries_out",
        "RELEASED": "released",
    },
)
QUEUES = StatusTable(
    "queues",
    {
        "ADDRESS": "address",
        "SUBSCRIBER": "subscriber",
        "DURABLE": "is_durable",
        "AVAILABLE": "available_count",
        "ACQUIRED": "acquired_count",
        "BYTES": "size_bytes",
        "CONSUMERS": "consumer_count",
        "WAITING": "waiting_count",
    },
)
