"""`amqpmesh status`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.options import output_options, topology_option
from mesh.output import Output


@click.command("status")
@topology_option
@click.option("-c", "--connections", is_flag=True, help="Also every connection.")
@click.option("-a", "--addresses", is_flag=True, help="Also every address in use, at each router.")
@click.option("-q", "--queues", is_flag=True, help="Also every queue and subscription of the embedded brokers.")
@output_options
def command(topology_path: Path | None, connections: bool, addresses: bool, queues: bool, out: Output) -> int:
    """Show the nodes of a running mesh. With --json: the whole snapshot of each.

    Exit code 1 when a node is down, or when `up` crashed and nothing restarts nodes; 69 when none runs.

    \b
    Examples:
      amqpmesh status
      amqpmesh status -a -c -q
      watch amqpmesh ps
    """
    from mesh import status
    from mesh.topology_file import load_topology

    tables = [
        table
        for table, is_wanted in (
            (status.CONNECTIONS, connections),
            (status.ADDRESSES, addresses),
            (status.QUEUES, queues),
        )
        if is_wanted
    ]
    return status.run(load_topology(topology_path), tables, out)
