"""`amqpmesh demo`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.options import output_options
from mesh.output import Output


@click.command("demo")
@click.option(
    "--keep", "folder", type=click.Path(path_type=Path, file_okay=False), help="Keep the report in this folder."
)
@output_options
def command(folder: Path | None, out: Output) -> int:
    """Run a mesh, send and receive on all address types, kill a router, clean up.

    A drill of three routers and an embedded broker, on free ports of this machine: messages flow on an anycast, a
    multicast, a queue and a topic address while router r1, over which they go, is killed. It passes only if traffic
    went on, and nothing that was accepted got lost. Of a multicast, accepted says that one consumer has the message:
    what another one missed is counted as LOST, and no failure.

    \b
    Example:
      amqpmesh demo --json
    """
    from mesh import demo

    return demo.run(out, folder)
