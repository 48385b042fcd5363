"""`amqpmesh check`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output

if TYPE_CHECKING:
    from addressing.topology.model import Topology


@click.command("check")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE|DIR]")
@topology_option
@click.option("-q", "--quiet", is_flag=True, help="Print no drawing; the exit code says whether the file is valid.")
@output_options
def command(file: Path | None, topology_path: Path | None, quiet: bool, out: Output) -> None:
    """Validate a topology file and draw it. All errors are shown at once; nothing is started.

    \b
    Examples:
      amqpmesh check
      amqpmesh check topologies/ring_4.yml
      amqpmesh check --json
    """
    from mesh.deploy.running_processes import change_note
    from mesh.terminal.topology_file import load_file, locate

    path = locate(file or topology_path)
    loaded = load_file(path)
    for warning in loaded.warnings:
        out.say(f"{warning}\n")
    if note := change_note(loaded.topology, file or topology_path):
        out.say(f"{note}\n")
    if out.is_json:
        warnings = [warning.to_json() for warning in loaded.warnings]
        out.document({"file": str(path), "ok": True, "warnings": warnings, "topology": summary(loaded.topology)})
    elif not quiet:
        from addressing.topology.drawing import draw_topology

        out.data(draw_topology(loaded.topology))
        out.data(link_logs(loaded.topology))
        out.say(f"\n{path} is right")


def summary(topology: Topology) -> dict[str, Any]:
    return {
        "mesh": topology.mesh,
        "routers": list(topology.routers),
        "brokers": list(topology.brokers),
        "connections": [{"from": edge.dialer, "to": edge.to, "cost": edge.cost} for edge in topology.edges()],
        "addresses": {address: str(entry.type) for address, entry in topology.addresses.items()},
        "users": list(topology.users),
        "link_logs": topology.link_logs.model_dump(mode="json") if topology.is_recorded else None,
    }


def link_logs(topology: Topology) -> str:
    """Return a line on the link logs that nodes will record; nodes record unless the topology says otherwise."""
    if not topology.is_recorded:
        return "link logs: none"
    from mesh.reports import words

    logs = topology.link_logs
    if not logs.keep:
        return f"link logs: {logs.level}, not kept in files"
    folder = logs.folder or "linklogs of the work directory"
    kept = f"for {words.duration(logs.keep_s * 1e6)}, up to {words.size(logs.keep_bytes)}"
    hashed = f"; hashed with {logs.redact.key}: {', '.join(logs.redact.columns)}" if logs.redact else ""
    return f"link logs: {logs.level}, in {folder}, {kept}{hashed}"
