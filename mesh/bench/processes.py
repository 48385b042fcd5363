"""Runs the processes of a benchmark and controls each over pipes; no process outlives the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mesh.deploy.node_process import describe_exit, node_environment
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed

END_TIMEOUT_S = 10.0


class BenchProcess:
    """A child process that plays one role of the load generator (`mesh.bench.worker`), step by step."""

    def __init__(self, role: str, plan: Mapping[str, Any], inherited: Sequence[int] = ()) -> None:
        self._role = role
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mesh.bench.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            pass_fds=inherited,
            env=node_environment(),
        )
        self._say(json.dumps({**plan, "role": role}))

    @property
    def pid(self) -> int:
        return self._process.pid

    def go_on(self) -> None:
        """Tell the child process, by a line to its standard input, to take its next step.

        Raise CommandFailed with the error of the child process if the child process has ended.
        """
        self._say("go on")

    def step(self) -> dict[str, Any]:
        """Wait until the child process has taken its next step, and return its report.

        Raise CommandFailed with the error of the child process.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CommandFailed(
                f"the load generator's process of role {self._role} {describe_exit(self._process.wait())}"
            )
        told: dict[str, Any] = json.loads(line)
        if "failed" in told:
            raise failure(told["failed"])
        return told

    def end(self) -> None:
        """Close the input of the child process, at which it exits; kill the process if this takes more than 10 s."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(END_TIMEOUT_S)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            # A broken pipe means that the child process has ended: in place of it, `step` raises the reason in the
            # child's last line.
            self.step()


class BenchProcesses:
    """All child processes of one measurement; processes that still run when the context ends are killed."""

    def __init__(self) -> None:
        self._sides: list[BenchProcess] = []

    def __enter__(self) -> BenchProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for side in self._sides:
            side.kill()

    def start(self, role: str, plan: Mapping[str, Any], inherited: Sequence[int] = ()) -> BenchProcess:
        self._sides.append(BenchProcess(role, plan, inherited))
        return self._sides[-1]


def failure(told: Mapping[str, Any]) -> CommandFailed:
    return CommandFailed(
        told["message"], exit_code=ExitCode(told["exit_code"]), fix=told.get("fix"), code=told.get("code")
    )
