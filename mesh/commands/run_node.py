"""Runs the program of a node: `python -m mesh.commands.run_node node NAME --topology FILE --topology-fd NUMBER`.

`amqpmesh node` becomes this program, and `amqpmesh up` starts it for each node.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    # The garbage collector is off during the start of the node: collections would take a tenth of the start's time, and
    # find nothing, because imported modules and settings stay until the node ends. `node_run` enables the collector
    # once the node has started.
    gc.disable()
    from mesh.commands.cli import exit_code_of
    from mesh.deploy import node_run
    from mesh.deploy.node_process import TOPOLOGY_FD
    from mesh.deploy.node_program import read_topology
    from mesh.terminal.output import Output

    name, is_json = sys.argv[2], "--json" in sys.argv
    topology = read_topology(int(sys.argv[sys.argv.index(TOPOLOGY_FD) + 1]))
    sys.exit(exit_code_of(lambda: node_run.run(topology, name, Output("node", is_json=is_json)), as_json=is_json))


if __name__ == "__main__":
    main()
