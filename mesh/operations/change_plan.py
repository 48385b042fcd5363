"""Runs `amqpmesh plan`: the steps from the topology that `up` started to the file as it is now, with their costs.

Numbers come from the rings of the routers on this host, and from its brokers. Nodes of other hosts are not observed,
and their numbers are unknown.
"""

from __future__ import annotations

import errno
import json
import shlex
import socket
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from addressing.book import AddressBook
from addressing.errors import TopologyErrors
from addressing.names import ANONYMOUS
from addressing.topology.document import parse_document
from addressing.topology.loader import load, read_text
from mesh.change.observations import (
    Absence,
    CountedConnection,
    CountedLink,
    CountedQueue,
    Observations,
)
from mesh.change.plan import ChangePlan, plan
from mesh.change.resource import ResourceKind
from mesh.change.source import TopologySource
from mesh.deploy.control import ask
from mesh.deploy.running_processes import living, option_for
from mesh.deploy.workdir import WorkDir
from mesh.operations.drift import drifted_costs, drifted_levels
from mesh.operations.host_watch import HostWatch, watching
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output
from mesh.watch.states import RUNNING

if TYPE_CHECKING:
    from addressing.topology.model import Topology

CHANGES_FOUND: Final = 2
"""Exit code of `--detailed-exitcode` for a plan with steps, as Terraform has it."""
_NO_RECORDS: Final = "as routers do not record (link_logs: off)"
_LOSING: Final = (ResourceKind.ADDRESS, ResourceKind.BROKER)
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
    check_allowed(found, order.allowed, out)
    return CHANGES_FOUND if order.is_detailed and found.steps else ExitCode.OK


def check_allowed(found: ChangePlan, allowed: Collection[str], out: Output) -> None:
    """Compare the addresses and brokers that may lose messages with the names in ``allowed``.

    Raises CommandFailed for a name that neither topology has, which may be a slip, and for names that lack. A name that
    loses nothing, as when its queue is empty now, is told.
    """
    losing = f"messages may be lost of {', '.join(found.loss)}" if found.loss else "no step loses messages"
    known = {name for each in (found.before, found.after) for kind, name in each.resources if kind in _LOSING}
    wrong = [name for name in allowed if name not in known]
    if wrong:
        raise CommandFailed(
            f"--allow-data-loss {shlex.quote(wrong[0])}: no address or broker has this name; {losing}",
            exit_code=ExitCode.USAGE,
            fix="correct the name, or leave the option out.",
        )
    missing = [name for name in found.loss if name not in allowed]
    if missing:
        raise CommandFailed(
            f"messages may be lost of {', '.join(missing)}",
            exit_code=ExitCode.DATA_LOSS,
            fix=f"keep them, or allow it: {' '.join(f'--allow-data-loss {shlex.quote(name)}' for name in missing)}.",
        )
    for name in allowed:
        if name not in found.loss:
            out.say(f"warning: --allow-data-loss {shlex.quote(name)}: nothing of {name} would be lost; {losing}")


def plan_of(file: Path, topology: Topology, named: Path | None = None) -> ChangePlan:
    """Return the plan from the topology that `up` started last to ``topology``, which is that of ``file`` now.

    Raises CommandFailed if `up` has never started the mesh, or has started it with a file that is no longer valid.
    """
    before = started_source(file, topology, named)
    observed = observe(before.topology, WorkDir(topology.work_dir), topology)
    return plan(before, TopologySource(topology, parse_document(read_text(file))), observed)


def started_source(file: Path, topology: Topology, named: Path | None = None) -> TopologySource:
    """Return the topology that `up` started last. Raises CommandFailed as `plan_of`."""
    workdir = WorkDir(topology.work_dir)
    if not workdir.running_topology.exists():
        raise CommandFailed(
            f"{topology.mesh} has never been started here, so there is nothing to compare with",
            fix=f"`amqpmesh up{option_for(named)}` starts the mesh.",
        )
    try:
        started = load(file, copy=workdir.running_topology).topology
    except TopologyErrors as errors:
        first = errors.errors[0]
        raise CommandFailed(
            f"this version of amqpmesh does not accept the topology that {topology.mesh} was started with: "
            f"{first.code}, {first.message}",
            fix="`amqpmesh down`, then `amqpmesh up`, start the mesh from the file.",
        ) from None
    return TopologySource(started, parse_document(read_text(workdir.running_topology)))


def observe(topology: Topology, workdir: WorkDir, wanted: Topology) -> Observations:
    """Return what the nodes on this host have, by their rings. ``wanted``: the file as it is now, for the drift."""
    running = frozenset(living(workdir)).intersection(topology.node_names)
    if not running:
        absent = absences(topology, (), ())
        return Observations(absent=absent) if Absence.ELSEWHERE in absent.values() else Observations()
    if not topology.is_recorded:
        queues, told = _stored(topology)
        absent = absences(topology, running | frozenset(topology.routers), told | frozenset(topology.routers))
        return Observations(told, queues=queues, absent=absent, unknown_because=_NO_RECORDS)
    with watching(topology) as watch:
        watch.look()
        return _observed(topology, wanted, watch, running)


def absences(topology: Topology, running: Collection[str], seen: Collection[str]) -> dict[str, Absence]:
    """Return by name why nodes were not observed. ``running``: the nodes whose processes run on this host."""
    return {
        name: Absence.SILENT
        if name in running
        else Absence.ELSEWHERE
        if is_elsewhere(host_of(topology, name))
        else Absence.DOWN
        for name in topology.node_names
        if name not in seen
    }


def host_of(topology: Topology, node: str) -> str:
    return (topology.routers.get(node) or topology.brokers[node]).host


def is_elsewhere(host: str) -> bool:
    """Tell whether an IP address of the file is of another machine: no socket of this one can have it.

    The name of a host says nothing for sure, and counts as this machine's.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return False
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            return error.errno == errno.EADDRNOTAVAIL
    return False


def _observed(topology: Topology, wanted: Topology, watch: HostWatch, running: Collection[str]) -> Observations:
    nodes = {name: node for name, node in watch.host.nodes.items() if node.state == RUNNING and name in running}
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
    seen = frozenset(name for name in nodes if name in topology.routers) | told
    absent = absences(topology, running, seen)
    costs = (each.as_value() for each in drifted_costs(topology, wanted, nodes))
    drift = (*costs, *drifted_levels(WorkDir(topology.work_dir), seen))
    return Observations(seen, tuple(connections), tuple(links), queues, drift, absent)


def _stored(topology: Topology) -> tuple[tuple[CountedQueue, ...], frozenset[str]]:
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
    return tuple(queues), frozenset(told)


def lines_of(found: ChangePlan, mesh: str) -> list[str]:
    """Return a plan as text, the same text for the same plan."""
    lines = [f"{mesh}: no changes" if found.is_empty else f"{mesh}: {_counted(found.steps, 'step')}"]
    for number, step in enumerate(found.steps, 1):
        lines += ["", f"{number}. {step.change_class.value:<9} {step.title}"]
        lines += [f"   line {line}" for line in _places(step.differences)]
        lines += [f"   {cost}" for cost in step.costs]
        lines += [f"   may lose messages: --allow-data-loss {shlex.quote(name)}" for name in step.loss]
        lines += [f"   before: {step.precondition}", f"   after:  {step.postcondition}"] if step.precondition else []
        lines += [f"   fix: {step.fix}"] if step.fix else []
    if found.kept:
        ports = ", ".join(f"{node} {port}" for node, port in sorted(found.kept.items()))
        lines += ["", f"ports that differ from the positions in the file: {ports}"]
    if found.drift:
        lines += ["", "drift, set while the mesh runs:", *(f"   {each}" for each in found.drift)]
        if any(each.subject.startswith("cost of ") for each in found.drift):
            lines.append("   `amqpmesh pull` writes costs into the file")
    return lines


def _places(differences: Collection[Any]) -> list[str]:
    found = {each.resource.line for each in differences if each.resource.line is not None}
    return [", ".join(map(str, sorted(found)[:10]))] if found else []


def _counted(items: Collection[object], noun: str) -> str:
    return f"{len(items):,} {noun}{'s' if len(items) != 1 else ''}"
