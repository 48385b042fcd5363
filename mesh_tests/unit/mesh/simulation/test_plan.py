"""Which mesh is simulated, and which of its addresses get traffic?"""

from __future__ import annotations

import networkx
import pytest

from addressing.topology.model import Topology
from mesh.simulation.plan import plan_traffic, random_topology


def graph_of(topology: Topology) -> networkx.Graph:
    return networkx.Graph([(edge.dialer, edge.to) for edge in topology.edges()])


@pytest.mark.parametrize(("routers", "degree"), [(2, 1), (5, 4), (50, 4), (300, 3)])
def test_a_random_mesh_is_connected_and_of_one_degree(routers: int, degree: int) -> None:
    graph = graph_of(random_topology(routers, degree, 7))
    assert networkx.is_connected(graph)
    assert {count for _, count in graph.degree} == {degree}
    assert len(graph) == routers


def test_a_seed_is_a_mesh() -> None:
    edges = [set(graph_of(random_topology(50, 4, seed)).edges) for seed in (1, 1, 2)]
    assert edges[0] == edges[1] != edges[2]


@pytest.mark.parametrize(("routers", "degree", "said"), [(4, 4, "cannot have 4"), (5, 3, "to be even")])
def test_a_mesh_that_cannot_be_is_refused_with_a_sentence(routers: int, degree: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        random_topology(routers, degree, 1)


def topology(**fields: object) -> Topology:
    base = {"mesh": "m", "routers": {"r1": {}}, "brokers": {"b1": {"data": "b1"}, "old": {"url": "amqp://h"}}}
    return Topology.model_validate({**base, "default_broker": "b1", **fields})


def test_every_pattern_gets_traffic_before_any_gets_more() -> None:
    addresses = {"a.*": "anycast", "m.#": "multicast", "q": "queue"}
    plans, left_out = plan_traffic(topology(addresses=addresses), 4, 1)
    assert {plan.kind for plan in plans[:3]} == {"anycast", "multicast", "queue"}
    assert len(plans) == 4
    assert left_out == []


def test_what_is_at_an_existing_broker_or_forbidden_to_all_is_left_out() -> None:
    addresses = {"far": {"type": "queue", "broker": "old"}, "closed": "unavailable", "a": "anycast", "b": "anycast"}
    users = {"u": {"send": "a", "receive": ["a", "b"]}}
    plans, left_out = plan_traffic(topology(addresses=addresses, users=users), 8, 1)
    assert [(plan.address, plan.sender, plan.receiver) for plan in plans] == [("a", "u", "u")]
    assert left_out == ["far", "closed", "b"]
