"""One role of the load generator as a process of its own: `python -m mesh.bench.worker PARENT`.

Standard input: a line of JSON with the plan, then a line of any text for each step that the parent process wants.
Standard output: a line of JSON for each step taken, or `{"failed": {...}}` as the last line. A role is a generator
function: each report that it yields is printed, and the function goes on at the parent's next line. At the end of input
the process exits.
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
# Key: the name of a role. Value: the module whose generator function of the same name plays the role.
ROLES = {
    "produce": "mesh.bench.sides",
    "consume": "mesh.bench.sides",
    "sink": "mesh.bench.sides",
    "pair": "mesh.bench.pair",
    "forward_bytes": "mesh.bench.pair",
    "hold_connections": "mesh.bench.idle_connections",
    "hold_links": "mesh.bench.idle_connections",
    "send_anonymously": "mesh.bench.anonymous_senders",
    "cycle": "mesh.bench.cycles",
    "share": "mesh.bench.crowd",
    "swarm": "mesh.bench.crowd",
    "shake_hands": "mesh.bench.tls_load",
    "bystand": "mesh.bench.bystander",
    "attach_crowd": "mesh.bench.link_crowd",
    "receive_addresses": "mesh.bench.address_receivers",
}
BEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """The report of a role on one step, with the data ``told`` for the parent process; ``keeper``, if given, is called
    every second until the parent asks for the next step, to keep idle connections alive.
    """

    told: dict[str, Any]
    keeper: Any = None


Steps = Iterator[WorkerReport]


def main() -> None:
    leash(int(sys.argv[1]))
    # The input is unbuffered, so that ``select`` on the descriptor sees all lines that were not read yet.
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
