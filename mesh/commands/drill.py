"""`amqpmesh drill`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mesh.terminal.connection_options import connection_options, requests_to
from mesh.terminal.options import is_typed, output_options
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION

if TYPE_CHECKING:
    from mesh.drills.running_mesh import RunningMesh

NEEDS_AGAINST = {"fault": "--fault", "heal": "--heal", "proof": "--proof", "lasts_s": "--for"}
LASTS_S = 10.0


@click.command("drill")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--seed", type=int, help="Seed of random faults, jitter and loss (default: the seed of the file).")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for the report.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="File for the HTML page.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="File for the JUnit XML.")
@click.option(
    "--link-logs",
    is_flag=True,
    help="Also make a report of the nodes' link logs with Spark; the page has a link to that report.",
)
@click.option("--against", metavar="URLS", help="Drill a running mesh, at these listeners: amqp://HOST[:PORT],...")
@click.option("--fault", metavar="COMMAND", help="With --against: shell command that injects the fault.")
@click.option(
    "--heal",
    metavar="COMMAND",
    help="With --against: shell command that heals the fault; it runs however the drill ends.",
)
@click.option(
    "--proof", metavar="COMMAND", help="With --against: shell command that exits with 0 while the fault is in effect."
)
@click.option("--for", "lasts_s", type=DURATION, help="With --against: duration of the fault. [default: 10s]")
@connection_options
@output_options
def command(file: Path, seed: int | None, out: Output, **options: Any) -> int:
    """Rehearse failures: run a copy of a topology under traffic, break what FILE says, judge what users would notice.

    The copy has ports and a folder of its own; nothing that runs is touched, and all is healed and stopped however the
    drill ends. With --against, the traffic of FILE goes to a mesh that runs already, and the fault is a command. The
    report is kept in .amqpmesh/drills/.

    \b
    Examples:
      amqpmesh drill topologies/drills/lose_a_router.yml
      amqpmesh drill my_drill.yml -t amqpmesh.yml --json
      amqpmesh drill my_drill.yml --against amqp://a.example,amqp://c.example \\
          --fault 'ssh b.example systemctl kill -s KILL amqpmesh@r2' --for 20s
    """
    from mesh.drills.report_folder import ReportPaths
    from mesh.drills.run import DrillRequest, run

    places = ReportPaths(options["output"], options["html"], options["junit"])
    where = (file, options["topology_path"], seed, places, _against(options))
    return run(DrillRequest(*where, is_link_log_reported=options["link_logs"], is_preferred=is_typed()), out)


def _against(options: dict[str, Any]) -> RunningMesh | None:
    from mesh.drills.running_mesh import RunningMesh

    if options["against"] is None:
        given = [option for name, option in NEEDS_AGAINST.items() if options[name] is not None]
        if given:
            raise click.UsageError(f"{given[0]} is only for --against: without --against, the faults are those of FILE")
        return None
    if options["link_logs"]:
        raise click.UsageError(
            "--link-logs is not allowed with --against: the nodes of a running mesh record elsewhere"
        )
    if options["fault"] is None:
        raise click.UsageError("--against needs --fault COMMAND, which injects the fault")
    urls = [url.strip() for url in options["against"].split(",")]
    if not all(urls):
        raise click.UsageError(f"--against {options['against']!r} has an empty URL")
    requests = requests_to(urls, options)
    return RunningMesh(requests, options["fault"], options["heal"], options["proof"], options["lasts_s"] or LASTS_S)
