"""`amqpmesh down`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mesh.terminal.options import output_options, topology_option
from mesh.terminal.output import Output

if TYPE_CHECKING:
    from mesh.deploy.workdir import WorkDir


@click.command("down")
@topology_option
@output_options
def command(topology_path: Path | None, out: Output) -> None:
    """Stop all nodes that `up` started, in order; also nodes that a crashed supervisor left. Data stays.

    If no mesh of the file's present name runs, a mesh that was started from the file under an earlier name is stopped.

    \b
    Example:
      amqpmesh down -t topologies/ring_4.yml
    """
    from mesh.deploy.running_processes import stop_mesh

    stopped: dict[str, int] = {}
    asked = workdirs(topology_path)
    for workdir in asked:
        found = stop_mesh(workdir)
        stopped |= found
        if found:
            out.say(f"stopped {workdir.root.name}: {', '.join(name.lstrip('_') for name in found)}")
    if not stopped:
        out.say(what_else_runs(asked[0]))
    if out.is_json:
        out.document({"stopped": [{"name": name.lstrip("_"), "pid": pid} for name, pid in stopped.items()]})


def workdirs(topology_path: Path | None) -> list[WorkDir]:
    """Return the work directories of the meshes to stop.

    This is the mesh of the topology, if it runs; else, the meshes that were started from the same file under an old
    name, if any runs; else, the mesh of the topology all the same. If the file is invalid, all meshes that run in the
    file's folder are stopped: a mesh must be stoppable whatever happened to the file.
    """
    from mesh.deploy.running_processes import find_running, living, started_from
    from mesh.deploy.workdir import WorkDir
    from mesh.terminal.topology_file import TopologyInvalid, load_topology, locate

    path = locate(topology_path)
    file = path.resolve()
    running = find_running(file.parent)
    try:
        own = WorkDir(load_topology(path).work_dir)
    except TopologyInvalid:
        if not running:
            raise
        return running
    if living(own):
        return [own]
    return [workdir for workdir in running if started_from(workdir) == file] or [own]


def what_else_runs(own: WorkDir) -> str:
    from mesh.deploy.running_processes import find_running, started_from

    others = find_running(own.root.parent.parent)
    if not others:
        return "nothing runs here"
    files = [(other.root.name, started_from(other) or "its topology file") for other in others]
    return f"no node of {own.root.name} runs here, but " + "; ".join(
        f"{name} does: `amqpmesh down -t {file}` stops it" for name, file in files
    )
