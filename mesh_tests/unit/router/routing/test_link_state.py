import random

import networkx
import pytest

from router.routing.actions import TopologyChanged
from router.routing.link_state import LinkState, LinkStateRecord


def _record(*peers: str, seq: int = 1, **costs: int) -> LinkStateRecord:
    return LinkStateRecord(1, seq, dict.fromkeys(peers, 1) | costs)


def _line() -> LinkState:
    """me - a - b"""
    state = LinkState("me", 1, max_age_s=60.0)
    state.update({"me": _record("a")}, 0.0)
    state.update({"a": _record("me", "b")}, 0.0)
    state.update({"b": _record("a")}, 0.0)
    return state


def test_an_edge_counts_only_if_both_ends_report_it() -> None:
    state = LinkState("me", 1, max_age_s=60.0)
    assert state.update({"me": _record("a")}, 0.0) is None
    assert state.update({"a": _record("b")}, 0.0) is None
    assert state.update({"a": _record("b", "me")}, 0.0) == TopologyChanged(frozenset(), frozenset({"a"}))
    assert state.reachable == {"me", "a"}


def test_an_edge_costs_the_larger_of_both_reports() -> None:
    state = LinkState("me", 1, max_age_s=60.0)
    state.update({"me": _record(a=3)}, 0.0)
    state.update({"a": _record(me=2)}, 0.0)
    assert state.graph.edges["a", "me"]["cost"] == 3
    assert state.update({"a": _record(me=7)}, 0.0) == TopologyChanged(frozenset(), frozenset())
    assert state.graph.edges["a", "me"]["cost"] == 7


def test_a_path_costs_the_sum_of_its_edges_as_long_as_all_are_there() -> None:
    state = _line()
    state.update({"b": _record(a=4, seq=2)}, 1.0)
    assert state.cost_along(("me", "a", "b")) == 5
    assert state.cost_along(("me", "b")) is None
    state.update({"b": _record(seq=3)}, 2.0)
    assert state.cost_along(("me", "a", "b")) is None


def test_a_whole_part_comes_into_reach_with_the_edge_that_joins_it() -> None:
    state = LinkState("me", 1, max_age_s=60.0)
    state.update({"a": _record("b", "me")}, 0.0)
    state.update({"b": _record("a")}, 0.0)
    assert state.reachable == {"me"}
    assert state.update({"me": _record("a")}, 0.0) == TopologyChanged(frozenset(), frozenset({"a", "b"}))


def test_a_whole_part_goes_out_of_reach_with_the_edge_that_held_it() -> None:
    state = _line()
    assert state.update({"me": _record()}, 1.0) == TopologyChanged(frozenset({"a", "b"}), frozenset())
    assert state.reachable == {"me"}


def test_an_update_that_changes_no_edge_changes_no_topology() -> None:
    state = _line()
    epoch = state.epoch
    assert state.update({"b": _record("a", "stranger", seq=2)}, 1.0) is None
    assert state.epoch == epoch


def test_routers_out_of_reach_are_forgotten_after_their_time() -> None:
    state = _line()
    assert state.next_deadline() is None
    state.update({"a": _record("me")}, 10.0)
    assert state.next_deadline() == 70.0
    assert state.forget(69.9) == []
    assert state.forget(70.0) == ["b"]
    assert "b" not in state.graph
    assert state.next_deadline() is None


def test_a_router_that_comes_back_in_time_is_kept() -> None:
    state = _line()
    state.update({"a": _record("me")}, 10.0)
    state.update({"a": _record("me", "b")}, 40.0)
    assert state.forget(1000.0) == []


def test_neighbors_are_not_told_of_what_has_long_been_out_of_reach() -> None:
    state = _line()
    state.update({"a": _record("me")}, 10.0)
    assert state.is_worth_telling("b", 39.9)
    assert not state.is_worth_telling("b", 40.0)
    assert state.is_worth_telling("a", 1000.0)


@pytest.mark.parametrize("seed", range(30))
def test_reach_and_edges_are_right_after_any_walk_of_updates(seed: int) -> None:
    chance = random.Random(seed)
    names = ["me", *"abcdefg"]
    state = LinkState("me", 1, max_age_s=5.0)
    for step in range(200):
        router = chance.choice(names)
        peers = {peer: chance.randint(1, 3) for peer in names if chance.random() < 0.4}
        before = set(state.reachable)
        change = state.update({router: LinkStateRecord(1, step, peers)}, float(step))
        state.forget(float(step))

        expected = networkx.Graph()
        expected.add_nodes_from(state.records)
        for a, there in state.records.items():
            for b, cost in there.peers.items():
                if b in state.records and a in state.records[b].peers and a != b:
                    expected.add_edge(a, b, cost=max(cost, state.records[b].peers[a]))
        assert networkx.utils.graphs_equal(state.graph, expected)
        assert state.reachable == networkx.node_connected_component(expected, "me")
        if change:
            assert (before - change.unreachable) | change.reachable == state.reachable
        else:
            assert before == state.reachable
