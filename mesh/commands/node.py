"""`amqpmesh node NAME`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("node")
@click.argument("name")
@topology_option
@output_options
def command(name: str, topology_path: Path | None, out: Output) -> None:
    """Run router or broker NAME in this process, until SIGTERM or Ctrl-C.

    This is what `up` starts for each node, and what systemd (Type=notify) or a container runs. The node's log is on
    stderr, one JSON object a line.

    \b
    Examples:
      amqpmesh node r1
      amqpmesh node b1 -t /etc/amqpmesh/amqpmesh.yml
    """
    # The process goes on as another program, which knows the checked topology only.
    from mesh.deploy.node_program import become_node
    from mesh.terminal.topology_file import load_file

    become_node(load_file(topology_path).topology, name, is_json=out.is_json)
