"""`amqpmesh demo`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options
from mesh.terminal.output import Output


@click.command("demo")
@click.option(
    "--keep", "folder", type=click.Path(path_type=Path, file_okay=False), help="Keep the report in this folder."
)
@output_options
def command(folder: Path | None, out: Output) -> int:
    """Run a mesh, send and receive on all address types, kill a router, clean up.

    A drill of three routers and an embedded broker, on free ports of this machine: messages flow on an anycast, a
    multicast, a queue and a topic address through router r1, and r1 is killed. The drill passes only if traffic went
    on, and no accepted message was lost. An accepted multicast message has reached at least one consumer: messages
    that another consumer missed count as LOST, which is not a failure.

    \b
    Example:
      amqpmesh demo --json
    """
    from mesh.drills import demo

    return demo.run(out, folder)
