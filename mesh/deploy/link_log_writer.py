"""The writer process of link logs, `amqpmesh linklogs write`: writes the records of all nodes on this host to files."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from addressing.topology.model import Topology
from mesh.deploy.link_log_writer_process import HELD_BACK, PROGRAM
from mesh.deploy.node_process import node_environment
from mesh.deploy.pid_file import PidFile
from mesh.deploy.workdir import WRITER, WorkDir
from mesh.terminal.failure import CommandFailed

if TYPE_CHECKING:
    from linklogs.writer.settings import Settings


def write(topology: Topology) -> NoReturn:
    """Become the process that writes the link logs of this mesh until SIGTERM or Ctrl-C.

    The process goes on as another program (exec), which knows the settings only: with the code that reads topologies,
    the writer would take twice the memory. Raises CommandFailed if another process already writes the link logs of this
    work directory, or if a folder or the redaction key is unusable.
    """
    workdir = WorkDir(topology.work_dir)
    workdir.make()
    # Signals wait until the new program has handlers for them.
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    pid_file = PidFile(workdir.pid_file(WRITER))
    try:
        if not pid_file.acquire():
            raise CommandFailed(
                f"another process already writes the link logs of mesh {topology.mesh} in {workdir.root}"
            )
        settings = settings_of(topology, workdir)
        arguments = [sys.executable, "-P", "-m", PROGRAM, str(told(settings, pid_file))]
        os.execve(sys.executable, arguments, node_environment())
    finally:
        pid_file.release()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)


def told(settings: Settings, pid_file: PidFile) -> int:
    """Return the descriptor of a file in memory that tells the new program its settings: no file or argument may have
    the redaction key.
    """
    wanted = {
        "pid_file": str(pid_file.path),
        "descriptors": pid_file.handed_over(),
        "rings": str(settings.rings),
        "out": str(settings.out),
        "redact_key": settings.redact_key.hex() if settings.redact_key is not None else None,
        "redact_columns": list(settings.redact_columns),
        "keep_s": settings.keep_s,
        "keep_bytes": settings.keep_bytes,
    }
    descriptor = os.memfd_create("settings", 0)
    os.pwrite(descriptor, json.dumps(wanted).encode(), 0)
    return descriptor


def settings_of(topology: Topology, workdir: WorkDir) -> Settings:
    from linklogs.writer.settings import Settings

    wanted = topology.link_logs
    workdir.rings.mkdir(mode=0o700, parents=True, exist_ok=True)
    redact = wanted.redact
    key, columns = redaction_key(topology), redact.columns if redact is not None else ()
    folder = topology.locate(wanted.folder) if wanted.folder is not None else workdir.link_logs
    return Settings(workdir.rings, folder, key, columns, keep_s=wanted.keep_s, keep_bytes=wanted.keep_bytes)


def redaction_key(topology: Topology) -> bytes | None:
    """Return the key for the hashes that replace personal values in link logs, or None if the topology asks for none.

    Raises CommandFailed if the key file cannot be read or is empty: values can be guessed from hashes without a key.
    """
    redact = topology.link_logs.redact
    if redact is None:
        return None
    path: Path = topology.locate(redact.key)
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise CommandFailed(f"link_logs: redact: key: cannot read {path}: {error.strerror}") from None
    if not key:
        raise CommandFailed(f"link_logs: redact: key: {path} is empty, expected the key for the hashes")
    return key
