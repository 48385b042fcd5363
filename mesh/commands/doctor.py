"""`amqpmesh doctor`"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output

if TYPE_CHECKING:
    from addressing.topology.model import Topology


@click.command("doctor")
@topology_option
@output_options
def command(topology_path: Path | None, out: Output) -> int:
    """Check whether this machine can run a mesh; with a topology, also its ports and certificates.

    Exit code 1 if a mesh cannot run on this machine.

    \b
    Examples:
      amqpmesh doctor
      amqpmesh doctor --json > for-the-bug-report.json
    """
    from mesh.operations.doctor import examine

    findings = list(examine(*topology(topology_path)))
    if out.is_json:
        from mesh.terminal.version import read_version

        failed = any(finding.state == "failed" for finding in findings)
        out.document({"ok": not failed, "version": read_version(), "findings": [asdict(found) for found in findings]})
    else:
        out.table(("STATE", "CHECK", "FOUND"), [(found.state, found.check, found.detail) for found in findings])
        for found in findings:
            if found.fix and found.state != "ok":
                out.say(f"{found.check}: {found.fix}")
    return ExitCode.FAILED if any(finding.state == "failed" for finding in findings) else ExitCode.OK


def topology(path: Path | None) -> tuple[Topology | None, str | None]:
    """Return the topology of -t or of the current folder, and the error text of an invalid one in this folder.

    Either may be None: with an invalid topology in the current folder, or none there, the machine is examined all the
    same. Raises TopologyInvalid for an invalid topology of -t.
    """
    from mesh.terminal.topology_file import TopologyInvalid, find_nearby, load_topology

    if path is not None:
        return load_topology(path), None
    try:
        return find_nearby(), None
    except TopologyInvalid as wrong:
        return None, str(wrong.to_map()["message"])
