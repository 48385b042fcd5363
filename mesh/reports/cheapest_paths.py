"""Computes the cheapest paths of a topology with all nodes and links up, with which a report compares the paths in
use.
"""

from __future__ import annotations

import pyarrow as pa

from addressing.topology.model import Topology
from mesh.sample_logs.epochs import Epochs

COLUMNS = pa.schema(
    [("node", pa.string()), ("egress", pa.string()), ("cheapest", pa.string()), ("cheapest_cost", pa.int64())]
)
"""The columns of the argument ``cheapest`` of `linklogs.replay.paths.circuits`."""


def cheapest_paths(topology: Topology) -> pa.Table:
    """Return a table of the cheapest path, and its cost, from each router to each router that can be reached.

    The paths are computed with the routers' own code.
    """
    [whole] = (epochs := Epochs(topology, (), 0, 1, 0)).epochs
    rows = []
    for source in topology.routers:
        known = epochs.shortest(whole, source)
        assert known is not None
        for target, path in known.paths.items():
            if target != source:
                rows.append((source, target, ">".join(path), known.costs[target]))
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    return pa.table(dict(zip(COLUMNS.names, columns, strict=True)), COLUMNS)
