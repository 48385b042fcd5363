"""The cheapest paths of a topology, with all of it up: what detours of a report are measured against."""

from __future__ import annotations

import pyarrow as pa

from addressing.topology import Topology
from mesh.link_logs.epochs import Epochs

COLUMNS = pa.schema(
    [("node", pa.string()), ("egress", pa.string()), ("cheapest", pa.string()), ("cheapest_cost", pa.int64())]
)
"""As told_paths of linklogs.replay.paths has them."""


def cheapest_paths(topology: Topology) -> pa.Table:
    """From each router to each other that it reaches, as routers would choose it."""
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
