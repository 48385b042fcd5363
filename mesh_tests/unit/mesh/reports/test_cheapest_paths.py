"""Cheapest paths of a topology as a report takes them."""

from pathlib import Path

from addressing.topology.loader import load_topology
from mesh.reports.cheapest_paths import cheapest_paths

RING = """
mesh: ring
routers:
  r1: {connect: [r2, {to: r3, cost: 4}]}
  r2: {connect: [r3]}
  r3:
  e1: {mode: edge, connect: [{to: r3, cost: 2}, {to: r1, cost: 3}]}
"""


def told(tmp_path: Path, text: str) -> set[tuple[str, str, str, int]]:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(text)
    rows = cheapest_paths(load_topology(file)).to_pylist()
    return {(row["node"], row["egress"], row["cheapest"], row["cheapest_cost"]) for row in rows}


def test_paths_go_where_they_cost_least_and_edges_by_their_first_uplink(tmp_path: Path) -> None:
    found = told(tmp_path, RING)
    assert len(found) == 4 * 3
    assert {("r1", "r3", "r1>r2>r3", 2), ("r3", "r1", "r3>r2>r1", 2), ("e1", "r1", "e1>r3>r2>r1", 4)} <= found


def test_a_router_alone_has_none(tmp_path: Path) -> None:
    assert told(tmp_path, "mesh: m\nrouters: {r1: {}}\n") == set()
