"""`amqpmesh pull`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("pull")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE|DIR]")
@topology_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Show what would be written, and write nothing.")
@output_options
def command(file: Path | None, topology_path: Path | None, is_dry: bool, out: Output) -> None:
    """Write costs that `amqpmesh cost` set in the running mesh into the topology file.

    All else in the file stays as it is, comments and quotes included. A cost that the file was given another one for
    since `up` is left, and told. The file is checked before it is replaced, as a whole or not at all.

    \b
    Examples:
      amqpmesh pull --dry-run
      amqpmesh pull
    """
    from mesh.operations import pull
    from mesh.terminal.topology_file import load_file, locate

    named = file or topology_path
    path = locate(named)
    pull.run(path, named, load_file(path).topology, out, is_dry=is_dry)
