"""Leases: faults of a drill that are healed in any case, even if the drill is killed.

A lease names a remedy, such as SIGCONT for a paused process. A separate process, the guardian, applies the remedies of
all leases that are left when the drill ends, and of each lease whose time has run out while the drill lives.

The drill writes JSON lines to the guardian's stdin: {"grant": 3, "remedy": {...}, "seconds": 30} and {"return": 3}. At
the end of its input the guardian heals all leases granted and not returned, the latest first, and exits.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

from mesh.deploy.node_process import node_environment
from mesh.deploy.running_processes import living, stop_mesh
from mesh.deploy.workdir import WorkDir

COMMAND_S = 60.0
Remedy = Mapping[str, Any]


def let_go_on(pid: int) -> Remedy:
    """Return the remedy that continues a process after SIGSTOP."""
    return {"do": "let_go_on", "pid": pid, "born": born(pid)}


def lift_file_limit(pid: int) -> Remedy:
    return {"do": "lift_file_limit", "pid": pid, "born": born(pid)}


def run_command(command: str) -> Remedy:
    return {"do": "run_command", "command": command}


def stop(workdir: WorkDir, topology: Path) -> Remedy:
    """Return the remedy that stops the mesh of a drill, whether this mesh has started or is just starting."""
    return {"do": "stop", "workdir": str(workdir.root), "topology": str(topology)}


def apply(remedy: Remedy) -> None:
    """Apply a remedy to its target; do nothing to a process that is gone, and no harm to one that is healed already."""
    remedies: dict[str, Callable[[Remedy], None]] = {
        "let_go_on": _let_go_on,
        "lift_file_limit": _lift_file_limit,
        "run_command": _run_command,
        "stop": _stop,
    }
    remedies[remedy["do"]](remedy)


def born(pid: int) -> int:
    """Return the start time of a process in ticks since boot, or 0 if the process is gone.

    The start time tells two processes apart that had the same process id in turn.
    """
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return 0


def limit_files(pid: int, size_bytes: int) -> None:
    """Limit the size of every file that process ``pid`` writes to ``size_bytes``. [setrlimit(2): RLIMIT_FSIZE]"""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, hard))


def _let_go_on(remedy: Remedy) -> None:
    if remedy["born"] and born(remedy["pid"]) == remedy["born"]:
        os.kill(remedy["pid"], signal.SIGCONT)


def _lift_file_limit(remedy: Remedy) -> None:
    if remedy["born"] and born(remedy["pid"]) == remedy["born"]:
        _, hard = resource.prlimit(remedy["pid"], resource.RLIMIT_FSIZE)
        limit_files(remedy["pid"], hard)


def _run_command(remedy: Remedy) -> None:
    subprocess.run(remedy["command"], shell=True, check=False, timeout=COMMAND_S, stdin=subprocess.DEVNULL)


def _stop(remedy: Remedy) -> None:
    workdir = WorkDir(Path(remedy["workdir"]))
    known = set(living(workdir).values())
    # A supervisor that has just started has no pid file yet, so supervisors are found by their command line. A
    # supervisor with a pid file is left to `stop_mesh`: at a second signal it would kill its nodes, and their last
    # records would be lost.
    for pid in set(started_from(remedy["topology"], "up")) - known:
        _end(pid, signal.SIGTERM)
    stop_mesh(workdir)
    for pid in started_from(remedy["topology"]):
        _end(pid, signal.SIGKILL)


def started_from(topology: str, *words: str) -> list[int]:
    """Return the ids of the processes of this machine whose command line has `--topology`, the file ``topology`` and
    all of ``words`` among its arguments.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = path.read_bytes().split(b"\0")
            if {os.fsencode(word) for word in (topology, "--topology", *words)} <= set(line):
                found.append(int(path.parent.name))
    return sorted(found)


def _end(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


class Leases:
    """The leases of a drill, as the drill's own process holds them.

    The injection of a fault grants a lease and returns it after healing. Leases left when the context ends are healed
    then; a guardian process heals leases if this process dies.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._held: dict[int, Remedy] = {}
        self._guardian: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def __enter__(self) -> Leases:
        reading, self._pipe = os.pipe()
        # The guardian runs in a session of its own, so that Ctrl-C, a closed terminal or a kill of the process group
        # does not end the guardian with the drill.
        self._guardian = subprocess.Popen(
            [sys.executable, "-P", "-m", "mesh.drills.leases"],
            stdin=reading,
            start_new_session=True,
            env=node_environment(),
        )
        os.close(reading)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number in reversed(list(self._held)):
            self.heal(number)
        os.close(self._pipe)
        if self._guardian is not None:
            self._guardian.wait()

    def grant(self, remedy: Remedy, seconds: float = 86_400.0) -> int:
        """Grant a lease, before the damage is done, and return its number.

        The guardian applies ``remedy`` after ``seconds`` unless the lease is returned before.
        """
        number = next(self._numbers)
        self._held[number] = remedy
        self._tell({"grant": number, "remedy": dict(remedy), "seconds": seconds})
        return number

    def heal(self, number: int) -> None:
        remedy = self._held.get(number)
        if remedy is not None:
            apply(remedy)
            self.give_back(number)

    def give_back(self, number: int) -> None:
        """Give lease ``number`` back, whose damage was healed by other means: its remedy is never applied then."""
        if self._held.pop(number, None) is not None:
            self._tell({"return": number})

    def _tell(self, message: Mapping[str, Any]) -> None:
        os.write(self._pipe, json.dumps(message).encode() + b"\n")


@dataclass(slots=True)
class _Granted:
    remedy: Remedy
    ends_at: float


def guard() -> None:
    """Run the main loop of the guardian process: take leases from stdin, heal those whose time has run out, and at the
    end of stdin all others that were not returned.
    """
    granted: dict[int, _Granted] = {}
    reading = selectors.DefaultSelector()
    reading.register(sys.stdin, selectors.EVENT_READ)
    lines = _Lines(sys.stdin.fileno())
    while not lines.is_over:
        nearest = min((lease.ends_at for lease in granted.values()), default=None)
        if reading.select(None if nearest is None else max(0.0, nearest - time.monotonic())):
            for line in lines.read():
                _obey(json.loads(line), granted)
        for number in [number for number, lease in granted.items() if lease.ends_at <= time.monotonic()]:
            apply(granted.pop(number).remedy)
    for lease in reversed(granted.values()):
        apply(lease.remedy)


def _obey(message: Mapping[str, Any], granted: dict[int, _Granted]) -> None:
    if "grant" in message:
        granted[message["grant"]] = _Granted(message["remedy"], time.monotonic() + message["seconds"])
    else:
        granted.pop(message["return"], None)


class _Lines:
    """A reader of the lines of a pipe, without the buffer of a file object: ``select`` would not see lines that lie in
    such a buffer.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._begun = b""
        self.is_over = False

    def read(self) -> list[bytes]:
        data = os.read(self._descriptor, 65_536)
        self.is_over = not data
        *lines, self._begun = (self._begun + data).split(b"\n")
        return lines


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    guard()
