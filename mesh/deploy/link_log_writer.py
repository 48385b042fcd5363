"""The writer process of link logs, `amqpmesh linklogs write`: writes the records of all nodes on this host to files."""

from __future__ import annotations

import signal
import sys
import threading
from collections import deque
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from addressing.topology.model import Topology
from mesh.deploy.pid_file import PidFile
from mesh.deploy.signals import HarmlessSignals
from mesh.deploy.workdir import WRITER, WorkDir
from mesh.terminal.failure import CommandFailed

if TYPE_CHECKING:
    from linklogs.writer.settings import Settings


class _WithoutPandas(MetaPathFinder):
    """A finder of modules that keeps pyarrow from importing pandas in the writer process.

    If pandas is installed, pyarrow imports pandas to recognize values of pandas; the writer has no such values. Without
    pandas, the writer starts in half the time and takes 50 MB less memory.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas; return None, for the next finder, for any other module."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden here: the writer of link logs works without it", name=fullname)


def write(topology: Topology) -> None:
    """Write the link logs of this mesh until SIGTERM or Ctrl-C.

    Raises CommandFailed if another process already writes the link logs of this work directory, or if a folder or the
    redaction key is unusable.
    """
    workdir = WorkDir(topology.work_dir)
    workdir.make()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    ignored: deque[str] = deque()
    HarmlessSignals().call(ignored.append, stop.set)
    with PidFile(workdir.pid_file(WRITER)) as pid_file:
        if not pid_file.acquire():
            raise CommandFailed(
                f"another process already writes the link logs of mesh {topology.mesh} in {workdir.root}"
            )
        # Imported only after the lock says that this process is the writer: the import takes a quarter of a second.
        sys.meta_path.insert(0, _WithoutPandas())
        from linklogs.writer.run import run
        from linklogs.writer.writer import WriterInUse

        try:
            run(settings_of(topology, workdir), stop, ignored)
        except (WriterInUse, OSError) as error:
            raise CommandFailed(f"link logs: {error}") from None


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
