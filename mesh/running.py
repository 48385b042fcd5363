"""Which processes of a mesh run now, and how to stop them, also those whose supervisor crashed."""

from __future__ import annotations

import difflib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from addressing.redaction import redact
from addressing.topology import Topology
from mesh.pid_file import PidFile
from mesh.socket_lock import held_in
from mesh.workdir import SUPERVISOR, WRITER, WorkDir

POLL_S = 0.05
# Longer than a supervisor gives its routers, then its brokers.
SUPERVISOR_GRACE_S = 40.0
NODE_GRACE_S = 15.0


def supervisor_pid(workdir: WorkDir) -> int | None:
    holder = PidFile(workdir.pid_file(SUPERVISOR)).holder()
    return holder.pid if holder is not None else None


def is_supervisor_lost(workdir: WorkDir) -> bool:
    """Whether `up` crashed. Nodes that systemd keeps never had a supervisor, and miss none."""
    return PidFile(workdir.pid_file(SUPERVISOR)).is_left_behind()


def node_pid(workdir: WorkDir, node: str) -> int | None:
    holder = PidFile(workdir.pid_file(node)).holder()
    return holder.pid if holder is not None else None


def living(workdir: WorkDir) -> dict[str, int]:
    """Name -> process id of everything that runs, the supervisor included."""
    folder = workdir.root / "run"
    # Also those whose files, or the whole folder, somebody has deleted.
    names = {path.name for path in folder.glob("*.pid")} | {name for name in held_in(folder) if name.endswith(".pid")}
    found = {}
    for name in sorted(names):
        holder = PidFile(folder / name).holder()
        if holder is not None:
            found[name.removesuffix(".pid")] = holder.pid
    return found


def find_running(folder: Path) -> list[WorkDir]:
    """Work directories in ``folder`` of which something runs."""
    candidates = (WorkDir(path) for path in sorted((folder / ".amqpmesh").glob("*")) if path.is_dir())
    return [workdir for workdir in candidates if living(workdir)]


def started_from(workdir: WorkDir) -> Path | None:
    """The topology file of what runs there, as its command lines have it; None if they do not tell."""
    for pid in living(workdir).values():
        try:
            words = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--topology" in words[:-1]:
            return Path(os.fsdecode(words[words.index(b"--topology") + 1]))
    return None


def stop_mesh(workdir: WorkDir) -> dict[str, int]:
    """Stop the supervisor, which stops its nodes, then whatever is left; the name and process id of each."""
    stopped = living(workdir)
    if SUPERVISOR in stopped:
        stop_processes(workdir, [SUPERVISOR], SUPERVISOR_GRACE_S)
    stop_nodes(workdir)
    return stopped


def stop_nodes(workdir: WorkDir) -> list[str]:
    """Stop nodes that no supervisor keeps; their names."""
    names = [name for name in living(workdir) if name != SUPERVISOR]
    # What nodes record until they are gone is for the writer.
    for some in ([name for name in names if name != WRITER], [WRITER]):
        stop_processes(workdir, some, NODE_GRACE_S)
    _sweep(workdir)
    return names


def stop_processes(workdir: WorkDir, names: Iterable[str], grace_s: float) -> None:
    left = set(names)
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        for name in left:
            _signal(workdir, name, number)
        left = _wait_gone(workdir, left, patience_s)


def _signal(workdir: WorkDir, name: str, number: signal.Signals) -> None:
    holder = PidFile(workdir.pid_file(name)).holder()
    if holder is not None:
        os.kill(holder.pid, number)


def _wait_gone(workdir: WorkDir, names: set[str], patience_s: float) -> set[str]:
    deadline = time.monotonic() + patience_s
    while (names := {name for name in names if PidFile(workdir.pid_file(name)).holder()}) and (
        time.monotonic() < deadline
    ):
        time.sleep(POLL_S)
    return names


def _sweep(workdir: WorkDir) -> None:
    """Sockets that a crash left behind. Pid files stay: somebody may be about to lock one."""
    for path in (workdir.root / "run").glob("*.sock"):
        path.unlink(missing_ok=True)


def option_for(path: Path | None) -> str:
    """To be said behind a command. ``path``: of the topology, where the user named one."""
    return f" -t {path}" if path is not None else ""


def change_note(topology: Topology, path: Path | None = None) -> str | None:
    """What to tell when the mesh that runs was started from another version of the file, by `up`."""
    workdir = WorkDir(topology.work_dir)
    is_ours = supervisor_pid(workdir) is not None or is_supervisor_lost(workdir)
    if topology.file is None or not is_ours or not workdir.running_topology.exists():
        return None
    count = len(topology_changes(workdir, topology.file))
    if not count:
        return None
    return (
        f"warning: the {topology.mesh} that runs was started from another version of {topology.file.name} "
        f"({count} line{'s' if count != 1 else ''}): `amqpmesh up{option_for(path)}` shows the difference, "
        f"`down` and `up` apply it"
    )


def other_meshes(topology: Topology) -> list[str]:
    """What else runs beside the topology's file: what a mesh was called before, or that of another file."""
    own = WorkDir(topology.work_dir)
    return [workdir.root.name for workdir in find_running(topology.directory) if workdir != own]


def topology_changes(workdir: WorkDir, topology_file: Path) -> list[str]:
    """Lines that differ between the topology that runs and the file as it is now, with a mask for each secret."""
    if not workdir.running_topology.exists():
        return []
    running = workdir.running_topology.read_text().splitlines()
    now = topology_file.read_text().splitlines()
    shown_running, shown_now = redact("\n".join(running)).split("\n"), redact("\n".join(now)).split("\n")
    changes: list[str] = []
    for kind, i, j, k, n in difflib.SequenceMatcher(None, running, now, autojunk=False).get_opcodes():
        if kind != "equal":
            changes += [f"-{line}" for line in shown_running[i:j]]
            changes += [f"+{line}" for line in shown_now[k:n]]
    return changes
