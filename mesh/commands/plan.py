"""`amqpmesh plan`"""

from __future__ import annotations

from pathlib import Path

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output


@click.command("plan")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE|DIR]")
@topology_option
@click.option(
    "--allow-data-loss",
    "allowed",
    multiple=True,
    metavar="NAME",
    help="Address or broker whose messages may be lost; once for each.",
)
@click.option(
    "--out", "written", type=click.Path(path_type=Path, dir_okay=False), help="Write the plan to a JSON file."
)
@click.option("--detailed-exitcode", "is_detailed", is_flag=True, help="Exit with 2 when there are changes.")
@output_options
def command(
    file: Path | None,
    topology_path: Path | None,
    allowed: tuple[str, ...],
    written: Path | None,
    is_detailed: bool,
    out: Output,
) -> int:
    """Show what a changed topology file would do to the mesh that `up` started. Nothing is changed.

    Each step has a class: LIVE (clients notice nothing), REMADE (a pause), TOLD (links or connections end), MOVED
    (messages move), RESTARTED (processes restart), REFUSED (not while the mesh runs). Numbers are counted at the nodes
    on this host, and are unknown for others.

    Exit code 96 when messages may be lost whose names --allow-data-loss does not give.

    \b
    Examples:
      amqpmesh plan
      amqpmesh plan --detailed-exitcode --json
      amqpmesh plan --allow-data-loss orders --out plan.json
    """
    from mesh.operations import change_plan
    from mesh.terminal.topology_file import load_file, locate

    named = file or topology_path
    path = locate(named)
    order = change_plan.PlanRequest(path, named, allowed, written, is_detailed)
    return change_plan.run(order, load_file(path).topology, out)
