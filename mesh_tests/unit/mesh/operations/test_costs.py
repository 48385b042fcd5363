"""Whose cost may an operator change?"""

from __future__ import annotations

import click
import pytest

from addressing.topology.loader import parse_topology
from mesh.operations.costs import set_cost

TOPOLOGY = parse_topology(
    "mesh: m\nrouters: {r1: {connect: [r2]}, r2: , r3: {connect: [r2]}, e1: {mode: edge, connect: [r1, r2]}}\n"
)


@pytest.mark.parametrize(
    ("router", "neighbor", "said"),
    [
        ("e1", "r1", "e1 is an edge router"),
        ("r1", "e1", "e1 is an edge router"),
        ("r1", "r3", "in the topology, router r1 is not connected to r3, but to r2$"),
        ("r1", "r9", "unknown router 'r9'"),
    ],
)
def test_only_of_connections_between_interior_routers(router: str, neighbor: str, said: str) -> None:
    with pytest.raises(click.UsageError, match=said):
        set_cost(TOPOLOGY, router, neighbor, 5)
