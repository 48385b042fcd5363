"""End the processes of a benchmark together with the benchmark, however the benchmark ends."""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1


def leash(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this process ``number`` when ``parent`` is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def main() -> None:
    """`python -m mesh.bench.orphan_guard PARENT ARGUMENTS`: run `amqpmesh ARGUMENTS` until PARENT is gone."""
    leash(int(sys.argv[1]), signal.SIGTERM)
    sys.argv[:2] = ["amqpmesh"]
    runpy.run_module("mesh", run_name="__main__")


if __name__ == "__main__":
    main()
