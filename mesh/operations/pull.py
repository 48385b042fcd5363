"""Runs `amqpmesh pull`: writes costs that operators set in a running mesh into the topology file."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from addressing.errors import BadValue
from addressing.topology.cost_edits import read_exactly, with_costs, write_costs
from addressing.topology.redaction import redact
from mesh.deploy.running_processes import living
from mesh.deploy.workdir import WorkDir
from mesh.operations.change_plan import absences, started_source
from mesh.operations.drift import DriftedCost, drifted_costs, drifted_levels
from mesh.operations.host_watch import watching
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.watch.states import RUNNING

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.change.observations import DriftedValue
    from mesh.terminal.output import Output


@dataclass(frozen=True, slots=True)
class Drift:
    """What differs from the file. ``unseen``: sentences about routers that were not observed."""

    costs: tuple[DriftedCost, ...]
    levels: tuple[DriftedValue, ...]
    unseen: tuple[str, ...] = ()


def run(file: Path, named: Path | None, topology: Topology, out: Output, *, is_dry: bool) -> None:
    """Show what is written into the file, and write it unless ``is_dry``.

    Raises CommandFailed if no router runs on this host, or the file has a form in which a cost cannot be written.
    """
    write(file, drift_of(file, named, topology), out, is_dry=is_dry)


def drift_of(file: Path, named: Path | None, topology: Topology) -> Drift:
    """Return the drift of the nodes on this host."""
    workdir = WorkDir(topology.work_dir)
    started = started_source(file, topology, named).topology
    running = frozenset(living(workdir)).intersection(started.routers)
    if not running:
        raise CommandFailed(
            f"no router of {topology.mesh} runs on this host, so nothing is known of its costs",
            exit_code=ExitCode.UNREACHABLE,
            fix="`amqpmesh status` shows which nodes run.",
        )
    if not started.is_recorded:
        raise CommandFailed(
            "the nodes do not record (link_logs: off), so nothing is known of their costs",
            fix="`amqpmesh status` shows costs that differ; write them into the file.",
        )
    with watching(started) as watch:
        watch.look()
        nodes = {
            name: node
            for name, node in watch.host.nodes.items()
            if node.state == RUNNING and name in started.node_names
        }
        costs = tuple(drifted_costs(started, topology, nodes))
    absent = absences(started, running, nodes)
    unseen = tuple(
        f"{name} {absence.value}: costs that were set there are unknown"
        for name, absence in absent.items()
        if name in started.routers
    )
    return Drift(costs, tuple(drifted_levels(workdir, nodes)), unseen)


def write(file: Path, drift: Drift, out: Output, *, is_dry: bool) -> None:
    """Write the costs of ``drift`` into the file, but for those that the file was given others for since `up`."""
    costs = {(each.dialer, each.to): each.running for each in drift.costs if not each.is_edited}
    try:
        text = read_exactly(file)
        changed = with_costs(text, costs)
        if costs and not is_dry:
            write_costs(file, costs, text)
    except BadValue as error:
        raise CommandFailed(f"{file}: {error}", fix="correct the file by hand; nothing was written.") from None
    kept = [
        f"cost of {each.dialer} - {each.to} is {each.running}, but the file was changed to {each.declared} since `up`: "
        "left as it is"
        for each in drift.costs
        if each.is_edited
    ]
    levels = [f"{each}; the file has no levels of logs" for each in drift.levels]
    if out.is_json:
        out.document(_document(drift, costs, is_dry=is_dry))
    else:
        out.data("\n".join(_changed_lines(text, changed)) or f"{file.name}: no cost to write")
    for sentence in (*kept, *levels, *(f"warning: {each}" for each in drift.unseen)):
        out.say(sentence)
    if costs:
        count = f"{len(costs):,} cost{'s' if len(costs) != 1 else ''}"
        out.say(f"{file.name}: {count} {'to write; nothing was written' if is_dry else 'written'}")


def _document(drift: Drift, costs: dict[tuple[str, str], int], *, is_dry: bool) -> dict[str, Any]:
    return {
        "written": not is_dry and bool(costs),
        "costs": [
            {
                "routers": [each.dialer, each.to],
                "declared": each.declared,
                "running": each.running,
                "is_kept": each.is_edited,
            }
            for each in drift.costs
        ],
        "log_levels": [
            {"subject": each.subject, "running": each.running, "command": each.command} for each in drift.levels
        ],
        "unknown": list(drift.unseen),
    }


def _changed_lines(before: str, after: str) -> list[str]:
    """Return the lines that differ, each with its number and `-` or `+`, and secrets masked."""
    old, new = redact(before).splitlines(), redact(after).splitlines()
    found = []
    for kind, i, j, k, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            found += [f"{number + 1:>5} -{old[number]}" for number in range(i, j)]
            found += [f"{number + 1:>5} +{new[number]}" for number in range(k, n)]
    return found
