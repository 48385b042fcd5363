"""Runs `amqpmesh plan`: the steps from the topology that `up` started to the file as it is now, with their costs.

Numbers come from the rings of the routers on this host, and from its brokers. Nodes of other hosts are not observed,
and their numbers are unknown.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from addressing.book import AddressBook
from addressing.names import ANONYMOUS
from addressing.topology.document import parse_document
from addressing.topology.loader import load, read_text
from mesh.change.observations import (
    CountedConnection,
    CountedLink,
    CountedQueue,
    DriftedValue,
    Observations,
)
from mesh.change.plan import ChangePlan, plan
from mesh.change.source import TopologySource
from mesh.deploy.control import ask
from mesh.deploy.running_processes import living, option_for
from mesh.deploy.workdir import WorkDir
from mesh.operations.host_watch import HostWatch, watching
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output
from mesh.watch.states import RUNNING

if TYPE_CHECKING:
    from addressing.topology.model import Topology

CHANGES_FOUND: Final = 2
"""Exit code of `--detailed-exitcode` for a plan with steps, as Terraform has it."""
_CLIENT: Final = "client"
_ROLES: Final = ("producer", "consumer")


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What the command line asks. ``allowed``: names of addresses and brokers whose messages may be lost."""

    file: Path
    named: Path | None
    allowed: tuple[str, ...]
    written: Path | None
    is_detailed: bool


def run(order: PlanRequest, topology: Topology, out: Output) -> int:
    """Show the plan, and return the exit code. Raises CommandFailed if no topology has been started, or names lack."""
    found = plan_of(order.file, topology, order.named)
    if order.written is not None:
        text = json.dumps({"schema": f"amqpmesh.{out.schema}/1", **found.to_map()}, ensure_ascii=False, indent=2)
        order.written.write_text(f"{text}\n")
    if out.is_json:
        out.document(found.to_map())
    else:
        out.data("\n".join(lines_of(found, topology.mesh)))
    missing = [name for name in found.loss if name not in order.allowed]
    if missing:
        raise CommandFailed(
            f"messages may be lost of {', '.join(missing)}",
            exit_code=ExitCode.DATA_LOSS,
            fix=f"keep them, or allow it: {' '.join(f'--allow-data-loss {name!r}' for name in missing)}.",
        )
    return CHANGES_FOUND if order.is_detailed and found.steps else ExitCode.OK


def plan_of(file: Path, topology: Topology, named: Path | None = None) -> ChangePlan:
    """Return the plan from the topology that `up` started last to ``topology``, which is that of ``file`` now.

    Raises CommandFailed if `up` has never started the mesh.
    """
    workdir = WorkDir(topology.work_dir)
    if not workdir.running_topology.exists():
        raise CommandFailed(
            f"{topology.mesh} has never been started here, so there is nothing to compare with",
            fix=f"`amqpmesh up{option_for(named)}` starts the mesh.",
        )
    started = load(file, copy=workdir.running_topology).topology
    before = TopologySource(started, parse_document(read_text(workdir.running_topology)))
    return plan(before, TopologySource(topology, parse_document(read_text(file))), observe(started, workdir))


def observe(topology: Topology, workdir: WorkDir) -> Observations:
    """Return what the nodes on this host have, by their rings."""
    running = set(living(workdir)).intersection(topology.node_names)
    if not running:
        return Observations()
    if not topology.is_recorded:
        return Observations(unknown_because="the nodes do not record (link_logs: off)")
    with watching(topology) as watch:
        watch.look()
        return _observed(topology, watch)


def _observed(topology: Topology, watch: HostWatch) -> Observations:
    nodes = {name: node for name, node in watch.host.nodes.items() if node.state == RUNNING}
    connections = [
        CountedConnection(name, each.id, each.user_name or ANONYMOUS)
        for name, node in nodes.items()
        for each in node.connections.values()
        if each.role == _CLIENT
    ]
    links = [
        CountedLink(
            name,
            each.connection.id,
            each.connection.user_name or ANONYMOUS,
            each.role == _ROLES[0],
            each.address_text,
        )
        for name, node in nodes.items()
        for each in node.links.values()
        if each.role in _ROLES and each.connection is not None and not each.is_ended
    ]
    queues, told = _stored(topology)
    drift = tuple(_drifted_costs(topology, nodes))
    because = "not every node runs on this host"
    seen = frozenset(name for name in nodes if name in topology.routers) | told
    return Observations(seen, tuple(connections), tuple(links), tuple(queues), drift, because)


def _stored(topology: Topology) -> tuple[list[CountedQueue], frozenset[str]]:
    """Return the queues of the brokers that answer at their control sockets, and the names of these brokers.

    The rings have the messages of a queue as they were up to a second ago, and a queue that is said to be empty has to
    be empty.
    """
    book, workdir = AddressBook(topology), WorkDir(topology.work_dir)
    queues: list[CountedQueue] = []
    told: set[str] = set()
    for broker in topology.node_names:
        if broker in topology.routers:
            continue
        try:
            rows = ask(workdir.control_socket(broker), "snapshot")["node"]["queues"]
        except (OSError, KeyError):
            continue
        told.add(broker)
        queues += [
            CountedQueue(
                broker,
                book.name_in_mesh(broker, row["address"]),
                row["available_count"] + row["acquired_count"] + row["unreadable_count"],
                row["size_bytes"],
                is_subscription=bool(row.get("subscriber")),
            )
            for each in rows
            for row in [{**each, **each.get("queue", {})}]
        ]
    return queues, frozenset(told)


def _drifted_costs(topology: Topology, nodes: Mapping[str, Any]) -> Iterator[DriftedValue]:
    for edge in topology.edges():
        ends = ((edge.dialer, edge.to), (edge.to, edge.dialer))
        found = [
            nodes[one].neighbors[other].cost for one, other in ends if one in nodes and other in nodes[one].neighbors
        ]
        costs = [cost for cost in found if cost is not None]
        if costs and max(costs) != edge.cost:
            command = f"amqpmesh cost {edge.dialer} {edge.to} {edge.cost}"
            yield DriftedValue(f"cost of {edge.dialer} - {edge.to}", str(edge.cost), str(max(costs)), command)


def lines_of(found: ChangePlan, mesh: str) -> list[str]:
    """Return a plan as text, the same text for the same plan."""
    lines = [f"{mesh}: no changes" if found.is_empty else f"{mesh}: {_counted(found.steps, 'step')}"]
    for number, step in enumerate(found.steps, 1):
        lines += ["", f"{number}. {step.change_class.value:<9} {step.title}"]
        lines += [f"   line {line}" for line in _places(step.differences)]
        lines += [f"   {cost}" for cost in step.costs]
        lines += [f"   may lose messages: --allow-data-loss {name!r}" for name in step.loss]
        lines += [f"   before: {step.precondition}", f"   after:  {step.postcondition}"] if step.precondition else []
        lines += [f"   fix: {step.fix}"] if step.fix else []
    if found.kept:
        ports = ", ".join(f"{node} {port}" for node, port in sorted(found.kept.items()))
        lines += ["", f"ports that differ from the positions in the file: {ports}"]
    if found.drift:
        lines += ["", "drift, set while the mesh runs:", *(f"   {each}" for each in found.drift)]
    return lines


def _places(differences: Collection[Any]) -> list[str]:
    found = {each.resource.line for each in differences if each.resource.line is not None}
    return [", ".join(map(str, sorted(found)[:10]))] if found else []


def _counted(items: Collection[object], noun: str) -> str:
    return f"{len(items):,} {noun}{'s' if len(items) != 1 else ''}"
