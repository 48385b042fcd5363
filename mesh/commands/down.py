"""`amqpmesh down`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mesh.options import output_options, topology_option
from mesh.output import Output

if TYPE_CHECKING:
    from mesh.workdir import WorkDir


@click.command("down")
@topology_option
@output_options
def command(topology_path: Path | None, out: Output) -> None:
    """Stop what `up` started, in order; also what is left of a supervisor that crashed. Data stays.

    \b
    Example:
      amqpmesh down -t topologies/ring_4.yml
    """
    from mesh.running import find_running, stop_mesh

    stopped: dict[str, int] = {}
    asked = workdirs(topology_path)
    for workdir in asked:
        found = stop_mesh(workdir)
        stopped |= found
        if found:
            out.say(f"stopped {workdir.root.name}: {', '.join(name.lstrip('_') for name in found)}")
    if not stopped:
        own, folder = asked[0].root.name, asked[0].root.parent.parent
        others = [workdir.root.name for workdir in find_running(folder)]
        if others:
            out.say(f"nothing of {own} runs here, but {', '.join(others)} does: `down` stops it under that name")
        else:
            out.say("nothing runs here")
    if out.is_json:
        out.document({"stopped": [{"name": name.lstrip("_"), "pid": pid} for name, pid in stopped.items()]})


def workdirs(topology_path: Path | None) -> list[WorkDir]:
    """That of the topology; while the file is wrong, all of its folder: what runs must be stoppable."""
    from mesh.running import find_running
    from mesh.topology_file import TopologyInvalid, load_topology, locate
    from mesh.workdir import WorkDir

    path = locate(topology_path)
    try:
        return [WorkDir(load_topology(path).work_dir)]
    except TopologyInvalid:
        running = find_running(path.resolve().parent)
        if not running:
            raise
        return running
