"""Runs the program of the observer: `python -m mesh.commands.run_observer watch --topology FILE --topology-fd NUMBER`.

`amqpmesh watch` becomes this program, and `amqpmesh up` starts it once the mesh is ready.
"""

from __future__ import annotations

import sys

from mesh.commands.cli import exit_code_of


def main() -> None:
    sys.exit(exit_code_of(run, as_json="--json" in sys.argv))


def run() -> None:
    from mesh.deploy.node_process import TOPOLOGY_FD
    from mesh.deploy.node_program import read_topology
    from mesh.operations.observer_requests import ObserverRequests
    from mesh.watch.observer import PORT, observe

    topology = read_topology(int(sys.argv[sys.argv.index(TOPOLOGY_FD) + 1]))
    port = int(sys.argv[sys.argv.index(PORT) + 1]) if PORT in sys.argv else topology.watch.port or 0
    observe(topology, port, ObserverRequests(topology))


if __name__ == "__main__":
    main()
