"""Runs the program of a node: `python -m mesh.commands.run_node node NAME --topology FILE --topology-fd NUMBER`.

`amqpmesh node` becomes this program, and `amqpmesh up` starts it for each node.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

from mesh.commands.cli import exit_code_of

JSON: Final = "--json"


def main() -> None:
    # The garbage collector is off during the start of the node: collections would take a tenth of the start's time, and
    # find nothing, because imported modules and settings stay until the node ends. `node_run` enables the collector
    # once the node has started.
    gc.disable()
    sys.exit(exit_code_of(run, as_json=JSON in sys.argv))


def run() -> None:
    from mesh.deploy import node_run
    from mesh.deploy.node_process import TOPOLOGY_FD
    from mesh.deploy.node_program import read_topology
    from mesh.terminal.output import Output

    topology = read_topology(int(sys.argv[sys.argv.index(TOPOLOGY_FD) + 1]))
    node_run.run(topology, sys.argv[2], Output("node", is_json=JSON in sys.argv))


if __name__ == "__main__":
    main()
