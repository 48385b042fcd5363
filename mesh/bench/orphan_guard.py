"""Ends the processes of a benchmark when the benchmark's own process ends, in whichever way."""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1


def leash(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this process the signal ``number`` when its parent process ``parent`` ends; send the signal
    at once if ``parent`` has ended already.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def main() -> None:
    """Run `amqpmesh ARGUMENTS` in this process, which gets SIGTERM when its parent process PARENT ends:
    `python -m mesh.bench.orphan_guard PARENT ARGUMENTS`.
    """
    leash(int(sys.argv[1]), signal.SIGTERM)
    sys.argv[:2] = ["amqpmesh"]
    runpy.run_module("mesh", run_name="__main__")


if __name__ == "__main__":
    main()
