"""Finds and stops the running processes of a mesh on this machine, also after a crash of the supervisor."""

from __future__ import annotations

import difflib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mesh.deploy.node_kinds import count_ranks
from mesh.deploy.pid_file import PidFile
from mesh.deploy.socket_lock import held_in
from mesh.deploy.workdir import SUPERVISOR, WRITER, WorkDir

if TYPE_CHECKING:
    from addressing.topology.model import Topology

POLL_S = 0.05
NODE_GRACE_S = 15.0


def supervisor_pid(workdir: WorkDir) -> int | None:
    holder = PidFile(workdir.pid_file(SUPERVISOR)).holder()
    return holder.pid if holder is not None else None


def is_supervisor_lost(workdir: WorkDir) -> bool:
    """Tell whether the supervisor of `up` crashed: not so for nodes that systemd runs, which never had a supervisor."""
    return PidFile(workdir.pid_file(SUPERVISOR)).is_left_behind()


def node_pid(workdir: WorkDir, node: str) -> int | None:
    holder = PidFile(workdir.pid_file(node)).holder()
    return holder.pid if holder is not None else None


def living(workdir: WorkDir) -> dict[str, int]:
    """Return the process id of every running node by name, also of the supervisor and the writer of link logs."""
    folder = workdir.root / "run"
    # Processes whose pid file, or the whole folder, was deleted are found by their socket locks, the second set.
    names = {path.name for path in folder.glob("*.pid")} | {name for name in held_in(folder) if name.endswith(".pid")}
    found = {}
    for name in sorted(names):
        holder = PidFile(folder / name).holder()
        if holder is not None:
            found[name.removesuffix(".pid")] = holder.pid
    return found


def find_running(folder: Path) -> list[WorkDir]:
    """Return the work directories in ``folder/.amqpmesh`` whose mesh has a running process."""
    candidates = (WorkDir(path) for path in sorted((folder / ".amqpmesh").glob("*")) if path.is_dir())
    return [workdir for workdir in candidates if living(workdir)]


def started_from(workdir: WorkDir) -> Path | None:
    """Return the topology file that the command line of a running process of the mesh names, or None if none does."""
    for pid in living(workdir).values():
        try:
            words = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--topology" in words[:-1]:
            return Path(os.fsdecode(words[words.index(b"--topology") + 1]))
    return None


def stop_mesh(workdir: WorkDir) -> dict[str, int]:
    """Stop a mesh's supervisor, which stops its nodes, then all nodes still running; return the name and pid of each
    process that ran before.
    """
    stopped = living(workdir)
    if SUPERVISOR in stopped:
        stop_processes(workdir, [SUPERVISOR], supervisor_grace_s())
    stop_nodes(workdir)
    return stopped


def supervisor_grace_s() -> float:
    """Return the seconds that a supervisor has to stop its nodes before it is killed: 15 s for each rank of nodes, as
    the ranks stop one after the other, and 10 s more.
    """
    return count_ranks() * NODE_GRACE_S + 10.0


def stop_nodes(workdir: WorkDir) -> list[str]:
    """Stop all nodes that still run without a supervisor, then the writer of link logs; return the names of all."""
    names = [name for name in living(workdir) if name != SUPERVISOR]
    # Nodes write records until they end, so the writer, which puts their records into files, ends last.
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
    """Remove control sockets that a crash left. Pid files stay: a starting process may be about to lock its own."""
    for path in (workdir.root / "run").glob("*.sock"):
        path.unlink(missing_ok=True)


def option_for(path: Path | None) -> str:
    """Return the option ``-t`` for a command line in a text for the user, or an empty text if ``path`` is None.

    ``path`` is the topology file that the user named, if any.
    """
    return f" -t {path}" if path is not None else ""


def change_note(topology: Topology, path: Path | None = None) -> str | None:
    """Return a warning if `up` runs this mesh, or crashed, and the topology file has changed since then; else None."""
    workdir = WorkDir(topology.work_dir)
    is_ours = supervisor_pid(workdir) is not None or is_supervisor_lost(workdir)
    if topology.file is None or not is_ours or not workdir.running_topology.exists():
        return None
    count = len(topology_changes(workdir, topology.file))
    if not count:
        return None
    return (
        f"warning: the {topology.mesh} that runs was started from another version of {topology.file.name} "
        f"({count} line{'s' if count != 1 else ''}): `amqpmesh plan{option_for(path)}` shows the difference; "
        f"`apply`, or `down` and `up`, carry it out"
    )


def other_meshes(topology: Topology) -> list[str]:
    """Return the names of other meshes that run from the folder of the topology file.

    Such a mesh was started from another file of the folder, or from this file before the mesh got a new name.
    """
    own = WorkDir(topology.work_dir)
    return [workdir.root.name for workdir in find_running(topology.directory) if workdir != own]


def topology_changes(workdir: WorkDir, topology_file: Path) -> list[str]:
    """Return a diff of the topology as `up` read it and the topology file as it is now: only lines that differ.

    A line begins with - (running) or + (file); secrets are masked.
    """
    if not workdir.running_topology.exists():
        return []
    # Imported here: the supervisor, which shows no changes, does without the code of topologies.
    from addressing.topology.redaction import redact

    running = workdir.running_topology.read_text().splitlines()
    now = topology_file.read_text().splitlines()
    shown_running, shown_now = redact("\n".join(running)).split("\n"), redact("\n".join(now)).split("\n")
    changes: list[str] = []
    for kind, i, j, k, n in difflib.SequenceMatcher(None, running, now, autojunk=False).get_opcodes():
        if kind != "equal":
            changes += [f"-{line}" for line in shown_running[i:j]]
            changes += [f"+{line}" for line in shown_now[k:n]]
    return changes
