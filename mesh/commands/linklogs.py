"""`amqpmesh linklogs write|compact`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.options import output_options, topology_option
from mesh.output import Output


@click.group("linklogs")
def command() -> None:
    """Look after link logs: what the nodes of a mesh record of their traffic."""


@command.command("write")
@topology_option
@click.option("--as-read", type=click.Path(path_type=Path), hidden=True, help="A copy of the file, from `up`.")
@output_options
def write(topology_path: Path | None, as_read: Path | None, out: Output) -> None:
    """Write what the nodes of a mesh record on this host to files, until SIGTERM or Ctrl-C.

    This is what `up` starts beside the nodes when the topology has `link_logs`. Where nodes are started one by one,
    start it once on each host. Its log is on stderr, one JSON object a line.

    \b
    Example:
      amqpmesh linklogs write -t /etc/amqpmesh/amqpmesh.yml
    """
    from mesh.link_logs.writing import write
    from mesh.topology_file import load_file

    write(load_file(topology_path, copy=as_read).topology)


@command.command("compact")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@output_options
def compact_it(directory: Path, out: Output) -> None:
    """Make one file of those of each node and hour that is over. Who reads or writes there may go on.

    DIR is `folder` of `link_logs`, or linklogs in the work directory. What cannot be read stays as it is.

    \b
    Example:
      amqpmesh linklogs compact .amqpmesh/shop/linklogs
    """
    from mesh.link_logs.compacted import compact_and_tell

    compact_and_tell(directory, out)
