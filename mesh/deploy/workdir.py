"""The layout of a mesh's work directory, and paths for its control sockets.

The work directory lies beside the topology file, so that two checkouts of one topology file are two separate meshes:

    .amqpmesh/<mesh>/
      pki/                certificates
      run/<node>.sock     control socket of a node
      run/<node>.pid      has the node's process id, and is locked while the node lives; see mesh/deploy/pid_file.py
      run/<node>.held     locked by a drill for as long as the supervisor must not start the node again
      run/<node>.trace-<number>.jsonl  frames of a connection, for an operator who asked for them
      run/apply.json      the revision on its way, until all nodes have it; run/apply.yml is its topology
      run/apply.lease     locked while `amqpmesh apply` runs
      run/_supervisor.pid locked while `up` runs
      run/topology.yml    the committed topology, as `up` read it
      run/revision.json   number and hash of the committed topology; see mesh/deploy/revision.py
      run/_watch.json     the URL of the observer, while it runs
      run/_watch.host     the id of this host among the hosts of the mesh
      run/_watch.token    the owner's token, which requests to the observer need for a change, or once there are users
      audit/              what operators have changed, or tried to; the keys of changes
      log/<node>.jsonl    events of a node, one JSON object a line
      rings/              records of link logs, which the writer moves into files
      linklogs/           files of link logs, unless the topology names another folder
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# Names of the supervisor, the link log writer and the observer in file names; a node's name begins
# with a letter or digit.
SUPERVISOR = "_supervisor"
WRITER = "_linklogs"
OBSERVER = "_watch"
# A longer path goes through /proc (see SocketPath): a Unix socket address has 108 bytes, one of them the closing zero.
MAX_SOCKET_PATH_BYTES = 107


@dataclass(frozen=True, slots=True)
class WorkDir:
    root: Path

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def running_topology(self) -> Path:
        return self.root / "run" / "topology.yml"

    @property
    def revision_file(self) -> Path:
        return self.root / "run" / "revision.json"

    @property
    def journal_file(self) -> Path:
        return self.root / "run" / "apply.json"

    @property
    def next_topology(self) -> Path:
        return self.root / "run" / "apply.yml"

    @property
    def lease_file(self) -> Path:
        return self.root / "run" / "apply.lease"

    @property
    def rings(self) -> Path:
        return self.root / "rings"

    @property
    def link_logs(self) -> Path:
        return self.root / "linklogs"

    @property
    def audit(self) -> Path:
        return self.root / "audit"

    @property
    def observer_file(self) -> Path:
        return self.root / "run" / f"{OBSERVER}.json"

    def control_socket(self, node: str) -> Path:
        return self.root / "run" / f"{node}.sock"

    def pid_file(self, node: str) -> Path:
        return self.root / "run" / f"{node}.pid"

    def hold_file(self, node: str) -> Path:
        return self.root / "run" / f"{node}.held"

    def trace_file(self, node: str, connection: int) -> Path:
        return self.root / "run" / f"{node}.trace-{connection}.jsonl"

    def traces_of(self, node: str) -> list[Path]:
        """Return the files of all traces of connections of ``node``."""
        return list((self.root / "run").glob(f"{node}.trace-*.jsonl"))

    def log_file(self, node: str) -> Path:
        return self.root / "log" / f"{node}.jsonl"

    def make(self) -> None:
        for folder in (self.root / "run", self.root / "log"):
            folder.mkdir(parents=True, exist_ok=True)
        # Only this user may reach the control sockets: a process that can write to a control socket controls the node.
        (self.root / "run").chmod(0o700)


class SocketPath:
    """A context manager that gives a Unix socket at ``path`` a path short enough for the system.

    A path that is too long is replaced by one through an open folder: `/proc/self/fd/<n>/r1.sock`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = -1

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= MAX_SOCKET_PATH_BYTES:
            return str(self._path)
        self._folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._folder}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        if self._folder >= 0:
            os.close(self._folder)
