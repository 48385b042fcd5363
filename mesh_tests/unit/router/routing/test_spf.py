import random
from collections.abc import Mapping

import networkx
import pytest

from router.routing import spf
from router.routing.spf import Branch, Graph, Path

RING = {("A", "B"): 1, ("B", "C"): 1, ("C", "D"): 1, ("D", "A"): 1}
DETOUR = {("A", "B"): 1, ("B", "C"): 2, ("A", "C"): 10, ("C", "E"): 1}


def _graph(edges: Mapping[tuple[str, str], int]) -> Graph:
    graph = networkx.Graph()
    for (a, b), cost in edges.items():
        graph.add_edge(a, b, cost=cost)
    return graph


def _next_hops(edges: Mapping[tuple[str, str], int], source: str) -> dict[str, str]:
    paths = spf.shortest_paths(_graph(edges), source).paths
    return {target: path[1] for target, path in paths.items() if target != source}


@pytest.mark.parametrize(
    ("source", "next_hops"),
    [
        ("A", {"B": "B", "D": "D", "C": "B"}),
        ("B", {"A": "A", "D": "A", "C": "C"}),
        ("C", {"A": "B", "B": "B", "D": "D"}),
        ("D", {"A": "A", "B": "A", "C": "C"}),
    ],
)
def test_a_ring_breaks_ties_by_the_lower_router_id(source: str, next_hops: dict[str, str]) -> None:
    assert _next_hops(RING, source) == next_hops


def test_a_ring_of_four_costs_two_to_the_far_side() -> None:
    assert spf.shortest_paths(_graph(RING), "A").costs == {"A": 0, "B": 1, "D": 1, "C": 2}


def test_a_triangle_is_crossed_directly() -> None:
    triangle = {("A", "B"): 1, ("B", "C"): 1, ("A", "C"): 1}
    assert _next_hops(triangle, "A") == {"B": "B", "C": "C"}


def test_an_expensive_direct_edge_is_avoided() -> None:
    assert _next_hops(DETOUR, "A") == {"B": "B", "C": "B", "E": "B"}
    assert _next_hops(DETOUR, "B") == {"A": "A", "C": "C", "E": "C"}
    assert spf.shortest_paths(_graph(DETOUR), "A").costs == {"A": 0, "B": 1, "C": 3, "E": 4}
    assert spf.shortest_paths(_graph(DETOUR), "B").costs == {"B": 0, "A": 1, "C": 2, "E": 3}


def test_of_equal_costs_fewer_hops_win_over_lower_ids() -> None:
    edges = {("s", "a"): 1, ("a", "b"): 1, ("b", "t"): 2, ("s", "z"): 2, ("z", "t"): 2}
    assert spf.path(_graph(edges), "s", "t") == ("s", "z", "t")


def test_ties_compare_ids_from_the_source_on() -> None:
    edges = {("s", "b"): 1, ("b", "c"): 1, ("c", "t"): 1, ("s", "a"): 1, ("a", "z"): 1, ("z", "t"): 1}
    assert spf.path(_graph(edges), "s", "t") == ("s", "a", "z", "t")


def test_there_is_no_path_to_where_nothing_leads() -> None:
    graph = _graph(RING)
    graph.add_node("E")
    assert spf.path(graph, "A", "E") is None
    assert spf.path(graph, "A", "unknown") is None
    assert spf.path(graph, "unknown", "A") is None


def _cheapest(graph: Graph, source: str, target: str) -> Path:
    def rank(path: Path) -> tuple[int, int, Path]:
        return networkx.path_weight(graph, path, "cost"), len(path), path

    return min((tuple(path) for path in networkx.all_simple_paths(graph, source, target)), key=rank)


@pytest.mark.parametrize("seed", range(30))
def test_every_path_is_the_best_of_all_simple_paths_whatever_the_order_of_insertion(seed: int) -> None:
    chance = random.Random(seed)
    edges = [(f"r{a}", f"r{b}", chance.randint(1, 2)) for a in range(7) for b in range(a) if chance.random() < 0.5]
    chance.shuffle(edges)
    graph = _graph({(a, b): cost for a, b, cost in edges})
    for source in graph:
        for target, path in spf.shortest_paths(graph, source).paths.items():
            if target != source:
                assert path == _cheapest(graph, source, target)
                assert path[1:] == spf.path(graph, path[1], target)


def test_a_multicast_tree_shares_the_way_as_long_as_it_can() -> None:
    paths = spf.shortest_paths(_graph(DETOUR), "A").paths
    end = Branch(deliver=True, children={})
    assert spf.tree(paths, ["E", "B"]) == {
        "B": Branch(deliver=True, children={"C": Branch(deliver=False, children={"E": end})})
    }


def test_a_multicast_tree_leaves_out_the_source_and_those_out_of_reach() -> None:
    paths = spf.shortest_paths(_graph(RING), "A").paths
    assert spf.tree(paths, ["A", "nobody"]) == {}
    assert spf.tree(paths, ["D", "B", "nobody"]).keys() == {"B", "D"}
