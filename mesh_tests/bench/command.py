"""Runs `amqpmesh bench` as a user does, and reads the rows that it prints."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from mesh.terminal.exit_codes import ExitCode
from mesh_tests.running_mesh import AMQPMESH

COMMAND_S = 100.0


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [AMQPMESH, "bench", *arguments],
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def rows(*arguments: str) -> list[dict[str, Any]]:
    done = bench(*arguments, "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    listed: list[dict[str, Any]] = json.loads(done.stdout)
    assert {row["schema"] for row in listed} == {f"amqpmesh.bench.{arguments[0]}/1"}
    return listed
