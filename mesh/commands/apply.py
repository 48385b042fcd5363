"""`amqpmesh apply`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("apply")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE|DIR]")
@topology_option
@output_options
def command(file: Path | None, topology_path: Path | None, out: Output) -> int:
    """Bring the mesh that `up` runs here to its changed topology file, while clients go on.

    Today this adds addresses: of any type, also patterns. A file with any other change is refused, and so is an address
    that takes over names from a pattern that is there; then nothing is changed. `amqpmesh plan` shows the steps before.

    Every node prepares before the first one changes. When the command returns, all nodes serve the new addresses, and
    start with them again. A command that was cut off is completed by the next one.

    \b
    Examples:
      amqpmesh apply
      amqpmesh apply --json
    """
    from mesh.operations import change_apply
    from mesh.terminal.topology_file import locate

    named = file or topology_path
    return change_apply.run(change_apply.ApplyRequest(locate(named), named), out)
