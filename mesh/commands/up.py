"""`amqpmesh up`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION

if TYPE_CHECKING:
    from addressing.topology.model import Topology


@click.command("up", context_settings={"show_default": True})
@topology_option
@click.option(
    "-d", "--detach", is_flag=True, help="Return once the mesh is ready, and leave it running. Stop it with `down`."
)
@click.option(
    "--no-wait", is_flag=True, help="Do not wait until the mesh is ready; a node that dies early is started again."
)
@click.option(
    "--timeout", "timeout_s", type=DURATION, default="60s", help="Fail if the mesh is not ready after this time."
)
@click.option("--report-fd", type=int, hidden=True)
@output_options
def command(
    topology_path: Path | None, detach: bool, no_wait: bool, timeout_s: float, report_fd: int | None, out: Output
) -> int:
    """Start every node of the topology, a process each, and keep it running.

    A mesh is ready when every connection is up and a probe message went round through every router and broker, on
    internal addresses. If a node dies before, the start fails and shows the cause, unless --no-wait is given; a node
    that dies later is started again, with back-off. Ctrl-C stops the mesh in order.

    A mesh that runs is left as it is; where the file has changed since, the command fails, and shows what
    `amqpmesh plan` shows.

    \b
    Examples:
      amqpmesh up
      amqpmesh up --detach && amqpmesh send orders -m hello
      amqpmesh up -t topologies/ring_4.yml --json
    """
    from mesh.deploy import up

    order = up.UpRequest(topology_path, detach, no_wait, timeout_s, report_fd, planned)
    return up.run(order, out)


def planned(file: Path, topology: Topology) -> list[str]:
    """Return what `amqpmesh plan` says about a file; no line where nothing changes."""
    # Imported here: a supervisor, which this process may become, does without the code of plans.
    from mesh.operations.change_plan import lines_of, plan_of

    found = plan_of(file, topology)
    return [] if found.is_empty else lines_of(found, topology.mesh)
