"""When is a mesh ready? What must be up, and which ways the probes go."""

from typing import Any

from addressing.topology.loader import parse_topology
from mesh.deploy.node_kinds import ROUTER
from mesh.deploy.probe import probes_of
from mesh.deploy.trip import Trip

LINE = parse_topology(
    "mesh: m\nrouters: {r1: {connect: [r2]}, r2: {connect: [r3]}, r3: {}, lonely: {}}\n"
    "brokers: {b1: {data: d, routers: [r3]}, old: {url: 'amqp://h', routers: [r1]}}\n"
)


def snapshot(neighbors: set[str], reachable: set[str], **brokers: str | None) -> dict[str, Any]:
    """``brokers``: name -> why it is down, None when it is up."""
    return {
        "routers": [
            {"router": name, "is_neighbor": name in neighbors, "path": [name] if name in reachable else None}
            for name in sorted(neighbors | reachable)
        ],
        "brokers": [
            {"broker": name, "is_up": reason is None, "down_reason": reason} for name, reason in brokers.items()
        ],
    }


def whole() -> dict[str, Any]:
    return {
        "r1": snapshot({"r2"}, {"r2", "r3"}, old=None),
        "r2": snapshot({"r1", "r3"}, {"r1", "r3"}),
        "r3": snapshot({"r2"}, {"r1", "r2"}, b1=None),
        "lonely": snapshot(set(), set()),
    }


def test_a_mesh_whose_connections_are_all_up_misses_nothing() -> None:
    assert list(ROUTER.missing_links(LINE, whole())) == []


def test_what_is_missing_is_named() -> None:
    found = whole() | {
        "r1": snapshot(set(), set(), old="connection refused"),
        "r2": None,
        "r3": snapshot({"r2"}, {"r2"}),
    }
    assert list(ROUTER.missing_links(LINE, found)) == [
        "r1 does not hear r2",
        "r1 has no path to r2",
        "r1 has no path to r3",
        "r1 has no connection to broker old (connection refused)",
        "r2 does not answer",
        "r3 has no path to r1",
        "r3 has no connection to broker b1",
    ]


def test_probes_pass_every_router_that_has_another_to_talk_to_and_every_embedded_broker() -> None:
    found = probes_of(LINE, "x")
    routers = [trip for trip in found if "/probe/" in trip.address]
    assert [(trip.sender, trip.receiver) for trip in routers] == [
        ("r1", "r2"),
        ("r2", "r3"),
        ("r3", "r1"),
        ("lonely", "lonely"),
    ]
    assert len({trip.address for trip in found}) == len(found)


def test_a_broker_is_probed_through_routers_that_it_is_not_attached_to() -> None:
    assert [trip for trip in probes_of(LINE, "x") if "/broker/" in trip.address] == [
        Trip("r1", "r2", "_amqpmesh/broker/b1/probe-x")
    ]
    everywhere = parse_topology("mesh: m\nrouters: {r1: {connect: [r2]}, r2: {}}\nbrokers: {b1: {data: d}}\n")
    assert probes_of(everywhere, "x")[-1] == Trip("r1", "r2", "_amqpmesh/broker/b1/probe-x")


EDGES = parse_topology(
    "mesh: m\nrouters: {r1: {connect: [r2]}, r2: , e1: {mode: edge, connect: [{to: r1, cost: 2}, r2]}}\n"
    "brokers: {b1: {data: d}}\n"
)


def of_edge(neighbors: set[str], active: str | None) -> dict[str, Any]:
    return {**snapshot(neighbors, neighbors), "active_uplink": active}


def test_an_edge_has_to_hear_all_its_uplinks_and_to_use_one() -> None:
    interior = {"r1": snapshot({"r2"}, {"r2"}, b1=None), "r2": snapshot({"r1"}, {"r1"}, b1=None)}
    assert list(ROUTER.missing_links(EDGES, interior | {"e1": of_edge({"r1", "r2"}, "r2")})) == []
    assert list(ROUTER.missing_links(EDGES, interior | {"e1": of_edge({"r2"}, "r2")})) == ["e1 does not hear r1"]
    assert list(ROUTER.missing_links(EDGES, interior | {"e1": of_edge(set(), None)})) == [
        "e1 does not hear r2",
        "e1 does not hear r1",
        "e1 has no active uplink",
    ]


def test_probes_pass_edges_too() -> None:
    assert {trip.sender for trip in probes_of(EDGES, "x")} == {"r1", "r2", "e1"}
