"""`amqpmesh node NAME`"""

from __future__ import annotations

import gc
from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("node")
@click.argument("name")
@topology_option
@click.option(
    "--as-read", type=click.Path(path_type=Path), hidden=True, help="Copy of the topology file, made by `up`."
)
@output_options
def command(name: str, topology_path: Path | None, as_read: Path | None, out: Output) -> None:
    """Run router or broker NAME in this process, until SIGTERM or Ctrl-C.

    This is what `up` starts for each node, and what systemd (Type=notify) or a container runs. The node's log is on
    stderr, one JSON object a line.

    \b
    Examples:
      amqpmesh node r1
      amqpmesh node b1 -t /etc/amqpmesh/amqpmesh.yml
    """
    # The garbage collector is off during the start of the node: collections would take a tenth of the start's time, and
    # find nothing, because imported modules and settings stay until the node ends. `node_run` enables the collector
    # once the node has started.
    gc.disable()
    try:
        from mesh.deploy import node_run
        from mesh.terminal.topology_file import load_file

        node_run.run(load_file(topology_path, copy=as_read).topology, name, out)
    finally:
        gc.enable()
