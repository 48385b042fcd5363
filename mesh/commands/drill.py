"""`amqpmesh drill`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.options import output_options, topology_option
from mesh.output import Output


@click.command("drill")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@topology_option
@click.option("--seed", type=int, help="Of random faults, jitter and loss (default: that of the file).")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder of the report.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the page.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the JUnit XML.")
@output_options
def command(
    file: Path,
    topology_path: Path | None,
    seed: int | None,
    output: Path | None,
    html: Path | None,
    junit: Path | None,
    out: Output,
) -> int:
    """Rehearse failures: run a copy of a topology under traffic, break what FILE says, judge what users would notice.

    The copy has ports and a folder of its own; nothing that runs is touched, and all is healed and stopped however the
    drill ends. The report is kept in .amqpmesh/drills/.

    \b
    Examples:
      amqpmesh drill topologies/drills/lose_a_router.yml
      amqpmesh drill my_drill.yml -t amqpmesh.yml --json
    """
    from mesh.drills.run import Order, run

    return run(Order(file, topology_path, seed, output, html, junit), out)
