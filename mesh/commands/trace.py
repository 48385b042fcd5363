"""`amqpmesh trace`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION


@click.command("trace")
@click.argument("node")
@click.argument("connection")
@click.option("--for", "for_s", type=DURATION, default="30s", show_default=True, help="How long to trace, up to 1 h.")
@topology_option
@output_options
def command(node: str, connection: str, for_s: float, topology_path: Path | None, out: Output) -> None:
    """Print the frames of one connection of a running node, both ways, with all fields of their performatives.

    CONNECTION is a number or id, or the container-id of the peer, as `amqpmesh top clients` shows them. Bodies of
    messages, with their headers and properties, and logins are never printed or kept. Ctrl-C ends the trace.

    The node writes the frames into a file in the work directory, which stays after the command: at most 16 MiB, and at
    most 1,000 frames of each second. A line that says SKIPPED follows frames that were left out. With --json, each
    frame is a line of JSON.

    \b
    Examples:
      amqpmesh trace r1 7
      amqpmesh trace r1 till-12 --for 5m
      amqpmesh trace b1 b1/3 --json
    """
    from mesh.operations.traces import trace
    from mesh.terminal.topology_file import load_topology

    trace(load_topology(topology_path), node, connection, for_s, out)
