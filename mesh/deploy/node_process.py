"""Starts one node as a process, waits for the process, stops the process, and finds the cause of a death."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import mesh
from mesh.deploy import log_tail
from mesh.deploy.log_rotation import LogLimits, rotate_large
from mesh.deploy.log_tail import LogPosition
from mesh.deploy.sd_notify import SOCKET

NODE_PROGRAM: Final = "mesh.commands.run_node"
"""The module that runs the program of a node; it belongs to the commands, whose errors and exit codes it has."""
OBSERVER_PROGRAM: Final = "mesh.commands.run_observer"
"""The module that runs the program of the observer."""
TOPOLOGY_FD: Final = "--topology-fd"
"""The option of that program for the descriptor of the file with the topology (`mesh.deploy.node_program`)."""
STOP_GRACE_S = 15.0
_DEFAULT_LIMITS: Final = LogLimits()


class NodeProcess:
    """A process of this machine that runs one node: start, wait, stop, and the cause of its death.

    ``command`` is the command line that runs the node, as from ``command_line``; ``log`` takes the output of the
    process, which has the descriptors ``descriptors`` of this one; ``log_limits`` say when a start rotates the log.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        descriptors: Sequence[int] = (),
        log_limits: LogLimits = _DEFAULT_LIMITS,
    ) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._descriptors = descriptors
        self._process: asyncio.subprocess.Process | None = None
        self._log_limits = log_limits
        self._log_start: LogPosition | None = None
        self._started_at = 0.0

    def renew(self, command: Sequence[str], descriptors: Sequence[int]) -> None:
        """Have the next start use another command line, and pass on other descriptors."""
        self._command, self._descriptors = command, descriptors

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    @property
    def ran_s(self) -> float:
        return time.monotonic() - self._started_at

    async def start(self) -> None:
        # Processes that are no nodes, and nodes that die before their first event, rotate nothing themselves.
        rotate_large(self._log, self._log_limits)
        self._log_start = log_tail.end_of(self._log)
        self._started_at = time.monotonic()
        with self._log.open("ab") as log:
            # With a process group of its own, the node gets no SIGINT from Ctrl-C in the terminal: only the supervisor
            # does, and stops the nodes in order.
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                pass_fds=self._descriptors,
                env=node_environment(),
            )

    async def wait(self) -> int:
        """Return the exit code once the process has ended; the negative signal number if a signal ended it."""
        assert self._process is not None
        return await self._process.wait()

    async def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Ask the process to stop in order (SIGTERM); kill the process if it still runs after ``grace_s``."""
        if self.pid is None:
            return
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await self.wait()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            await self.wait()

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    def death_sentence(self, exit_code: int) -> str:
        """Describe the death of the process: the exit code or signal, and the cause from the log.

        A process killed by a signal cannot log a cause, so only a last line that is no event is taken for the cause.
        """
        find = log_tail.last_words if exit_code < 0 else log_tail.first_cause
        cause = find(self._log, self._log_start)
        return f"{self.name} {describe_exit(exit_code)}" + (f": {cause}" if cause else f"; see {self._log}")


def describe_exit(exit_code: int) -> str:
    if exit_code < 0:
        return f"was ended by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


def command_line(*arguments: str, program: str = "mesh") -> list[str]:
    """Return the command line that runs this installation of amqpmesh, or another program of it, with ``arguments``.

    `-P` keeps Python from importing modules from the current folder, such as a user's folder named `router`.
    """
    return [sys.executable, "-P", "-m", program, *arguments]


def node_environment() -> dict[str, str]:
    """Return the environment for a node's process: this process's own, without the socket of systemd.

    If this code runs from a checkout and is not installed, the checkout is added to PYTHONPATH.
    """
    home = Path(mesh.__file__).resolve().parent.parent
    environment = {key: value for key, value in os.environ.items() if key != SOCKET}
    if home != Path(sysconfig.get_path("purelib")).resolve():
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{home}{os.pathsep}{known}" if known else str(home)
    return environment
