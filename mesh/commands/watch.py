"""`amqpmesh watch`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("watch")
@topology_option
@click.option("--port", type=click.IntRange(0, 65535), help="Port on 127.0.0.1 (default: `watch` of the topology).")
@output_options
def command(topology_path: Path | None, port: int | None, out: Output) -> None:
    """Observe the nodes of a mesh on this host, and answer over HTTP, until SIGTERM or Ctrl-C.

    This is what `up` starts once the mesh is ready, unless the topology says `watch: "off"`. On a host that
    runs `amqpmesh node` for each node, run an observer as well. It reads the records of the nodes and asks
    no node for anything, so that it costs the traffic nothing. Its log is on stderr, one JSON object a line,
    and names the URL; `/api` there says what there is to see.

    \b
    Examples:
      amqpmesh watch
      amqpmesh watch -t /etc/amqpmesh/amqpmesh.yml --port 15680
      curl 'http://127.0.0.1:15680/api/links?filter=role=producer&sort=-rate&limit=20'
    """
    # The process goes on as another program, which knows the checked topology only.
    from mesh.terminal.topology_file import load_file
    from mesh.watch.observer import become_observer

    become_observer(load_file(topology_path).topology, port, is_json=out.is_json)
