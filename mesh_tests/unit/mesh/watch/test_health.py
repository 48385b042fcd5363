"""Health: of the observer, of the nodes of a host, and of the mesh as far as the host sees."""

from __future__ import annotations

import pytest

from addressing.topology.loader import parse_topology
from mesh.watch.expected_nodes import ExpectedNode, expected_nodes
from mesh.watch.health import healthz_mesh, livez, readyz
from mesh_tests.unit.mesh.watch.sample_host import NOW_S, SampleHost, add, closed, small_mesh
from recording.columns import RecordKind

EXPECTED = (
    ExpectedNode("r1", "router", ("r2",), ("r2",)),
    ExpectedNode("r2", "router", ("r1",), ("r1",)),
    ExpectedNode("b1", "broker"),
)
TOPOLOGY = """\
mesh: m
routers:
  r1: {connect: [r2]}
  r2: {connect: [r3]}
  r3: {}
  e1: {mode: edge, connect: [r2]}
brokers:
  b1: {data: b1, routers: [r3]}
  b2: {url: "amqp://localhost:9", routers: [r3]}
"""


def test_the_topology_says_what_is_expected_of_its_nodes() -> None:
    topology = parse_topology(TOPOLOGY)
    assert expected_nodes(topology) == (
        ExpectedNode("r1", "router", ("r2",), ("r2", "r3")),
        ExpectedNode("r2", "router", ("r1", "r3"), ("r1", "r3")),
        ExpectedNode("r3", "router", ("r2",), ("r1", "r2")),
        ExpectedNode("e1", "edge"),
        ExpectedNode("b1", "broker"),
    )
    assert [each.name for each in expected_nodes(topology, {"b1", "r3"})] == ["r3", "b1"]


def test_an_observer_that_reads_the_rings_is_alive_whatever_becomes_of_nodes() -> None:
    host = small_mesh()
    host.runs["r1"].end("lost")
    assert livez(host.model, NOW_S + 0.5) == (True, ["the observer read the rings 0.5 s ago"])


def test_an_observer_that_stands_still_is_not_alive() -> None:
    health = livez(small_mesh().model, NOW_S + 7.2)
    assert health == (False, ["the observer has not read the rings for 7.2 s, expected less than 3 s"])
    assert livez(small_mesh().model, NOW_S + 7.2, "r1") == health


@pytest.mark.parametrize(
    ("state", "is_well", "sentence"),
    [
        ("running", True, "router r1 runs; it wrote its clock 0.4 s ago, expected less than 3 s"),
        ("silent", False, "router r1 is silent; it wrote its clock 0.4 s ago, expected less than 3 s"),
        ("ended", False, "router r1 has ended in order"),
        ("lost", False, "router r1 is lost: its process failed, or is gone without a record of its end"),
    ],
)
def test_a_node_is_alive_while_it_runs(state: str, is_well: bool, sentence: str) -> None:
    host = small_mesh()
    host.model.nodes["r1"].state, host.model.nodes["r1"].age_s = state, 0.4
    assert livez(host.model, NOW_S, "r1") == (is_well, [sentence])


def test_a_node_that_was_never_seen_is_not_alive() -> None:
    assert livez(small_mesh().model, NOW_S, "r7") == (
        False,
        ["the observer has never seen node 'r7'; nodes on this host: b1, r1, r2"],
    )
    assert not livez(SampleHost({}).model, NOW_S, "r7").is_well


def test_a_host_is_ready_when_its_nodes_run_and_hear_their_neighbors() -> None:
    host = small_mesh()
    assert readyz(host.model, EXPECTED) == (True, ["3 nodes on this host run and hear all neighbors"])
    assert healthz_mesh(host.model, EXPECTED).is_well


def test_a_host_is_not_ready_without_a_node_or_a_neighbor() -> None:
    host = small_mesh()
    host.runs["b1"].end("lost")
    add(host.runs["r1"], closed(RecordKind.NEIGHBOR, neighbor="r2"))
    health = readyz(host.model, (*EXPECTED, ExpectedNode("r9", "router", ("r1",))))
    assert health == (
        False,
        [
            "router r1 does not hear its neighbor r2",
            "broker b1 is lost: its process failed, or is gone without a record of its end",
            "node r9 is unknown: the observer has never seen its ring",
        ],
    )


def test_a_mesh_without_a_path_is_not_well_though_its_nodes_are_ready() -> None:
    host = small_mesh()
    add(host.runs["r1"], closed(RecordKind.PATH, egress="r2"))
    assert readyz(host.model, EXPECTED).is_well
    assert healthz_mesh(host.model, EXPECTED) == (False, ["router r1 has no path to router r2"])
