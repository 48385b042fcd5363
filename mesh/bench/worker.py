"""One side of a measurement as a process of its own: `python -m mesh.bench.worker PARENT`.

Standard input: a line with the plan, then a line for each step that the parent wants. Standard output: a line for each
step taken, or `{"failed": {...}}`. All lines are JSON. A side is a generator function in one of the modules below: each
yielded step is reported, and the side goes on at the parent's next line. At the end of input the side is closed where
it stands.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mesh.bench.orphan_guard import leash
from mesh.client.errors import MeshError
from mesh.terminal.failure import as_failure

STDIN = 0
# Role -> module of its generator function of the same name
ROLES = {
    "produce": "mesh.bench.sides",
    "consume": "mesh.bench.sides",
    "sink": "mesh.bench.sides",
    "pair": "mesh.bench.pair",
    "forward_bytes": "mesh.bench.pair",
    "hold_connections": "mesh.bench.idle_connections",
    "hold_links": "mesh.bench.idle_connections",
}
BEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A report. ``keeper`` is called every second until the parent goes on, so that idle connections stay alive."""

    told: dict[str, Any]
    keeper: Any = None


Steps = Iterator[WorkerReport]


def main() -> None:
    leash(int(sys.argv[1]))
    # Unbuffered: a side that waits for input must see in the descriptor that there is some.
    commands = os.fdopen(STDIN, "rb", buffering=0, closefd=False)
    plan = json.loads(commands.readline())
    role = getattr(import_module(ROLES[plan["role"]]), plan["role"])
    try:
        for step in role(plan):
            tell(step.told)
            keep(step)
            if not commands.readline():
                return
    except MeshError as error:
        tell({"failed": as_failure(error).to_map()})
    except KeyboardInterrupt:
        return


def keep(step: WorkerReport) -> None:
    while step.keeper is not None and not select.select([STDIN], [], [], BEAT_S)[0]:
        step.keeper()


def tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
