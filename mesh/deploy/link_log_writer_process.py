"""The program of the process that writes link logs, which `amqpmesh linklogs write` becomes.

Nothing that reads topologies is imported here: an idle writer takes 20 MB of memory, half of which is numpy.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any, Final

from mesh.deploy.pid_file import PidFile
from mesh.deploy.signals import HARMLESS, HarmlessSignals

PROGRAM: Final = "mesh.deploy.link_log_writer_process"
HELD_BACK: Final = (signal.SIGTERM, signal.SIGINT, *HARMLESS)
"""The signals that wait while the process becomes this program."""


def main() -> int:
    """Write link logs until SIGTERM or Ctrl-C, with the settings in the file whose descriptor is the only argument."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    ignored: deque[str] = deque()
    HarmlessSignals().call(ignored.append, stop.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
    with open(int(sys.argv[1]), "rb") as file:
        told = json.load(file)
    pid_file = PidFile(Path(told["pid_file"]))
    pid_file.adopt(*told["descriptors"])
    with pid_file:
        return write(told, stop, ignored)


def write(told: dict[str, Any], stop: threading.Event, ignored: deque[str]) -> int:
    # numpy would start a thread for each core, and would keep a buffer for each.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from linklogs.writer.run import run
    from linklogs.writer.settings import Settings
    from linklogs.writer.writer import WriterInUse

    key = told["redact_key"]
    settings = Settings(
        Path(told["rings"]),
        Path(told["out"]),
        bytes.fromhex(key) if key is not None else None,
        tuple(told["redact_columns"]),
        keep_s=told["keep_s"],
        keep_bytes=told["keep_bytes"],
    )
    try:
        run(settings, stop, ignored)
    except (WriterInUse, OSError) as error:
        sys.stderr.write(f"error: link logs: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
