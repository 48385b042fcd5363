"""`amqpmesh cost`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("cost")
@click.argument("router")
@click.argument("neighbor")
@click.argument("cost", type=click.IntRange(1), metavar="COST")
@topology_option
@output_options
def command(router: str, neighbor: str, cost: int, topology_path: Path | None, out: Output) -> None:
    """Change the cost of the connection between two routers of a running mesh.

    Traffic takes the cheapest path: a high cost keeps traffic off a connection, say before maintenance. Existing
    traffic moves after two seconds; links to queues and topics stay where they are. A router that is started again has
    the cost of the file.

    \b
    Examples:
      amqpmesh cost r1 r2 100
      amqpmesh cost r1 r2 1
    """
    from mesh.operations.costs import set_cost
    from mesh.terminal.topology_file import load_topology

    before = set_cost(load_topology(topology_path), router, neighbor, cost)
    out.say(
        f"{router} - {neighbor}: cost {cost}, was {before}; to keep the new cost after a restart, "
        "write it into the topology file"
    )
    if out.is_json:
        out.document({"routers": [router, neighbor], "cost": cost, "before": before})
