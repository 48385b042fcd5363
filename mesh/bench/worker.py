"""One side of a measurement as a process of its own: `python -m mesh.bench.worker PARENT`.

Standard input: a line with the plan, then a line each time the parent wants the next step. Standard output: a line for
each step taken, or `{"failed": {...}}`. All in JSON. A side is a generator function in one of the modules below; what
it yields is told, and it goes on when the parent says so. At the end of input it is closed where it stands.
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

from mesh.bench.leash import leash
from mesh.failure import CommandFailed

STDIN = 0
# role -> where its generator function of the same name is
ROLES = {
    "produce": "mesh.bench.sides",
    "consume": "mesh.bench.sides",
    "sink": "mesh.bench.sides",
    "pair": "mesh.bench.pair",
    "forward_bytes": "mesh.bench.pair",
    "hold_connections": "mesh.bench.crowd",
    "hold_links": "mesh.bench.crowd",
}
BEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class Step:
    """``keeper``: called every second while the parent makes up its mind, so that idle connections stay alive."""

    told: dict[str, Any]
    keeper: Any = None


Steps = Iterator[Step]


def main() -> None:
    leash(int(sys.argv[1]))
    # Unbuffered: a side that waits for more input must see in the descriptor that there is some.
    commands = os.fdopen(STDIN, "rb", buffering=0, closefd=False)
    plan = json.loads(commands.readline())
    role = getattr(import_module(ROLES[plan["role"]]), plan["role"])
    try:
        for step in role(plan):
            tell(step.told)
            keep(step)
            if not commands.readline():
                return
    except CommandFailed as failed:
        tell({"failed": failed.to_map()})
    except KeyboardInterrupt:
        return


def keep(step: Step) -> None:
    while step.keeper is not None and not select.select([STDIN], [], [], BEAT_S)[0]:
        step.keeper()


def tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
