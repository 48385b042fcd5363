import pytest

from mesh_tests.unit.router.routing.virtual_mesh import VirtualMesh, mesh_of
from router.routing.actions import (
    Action,
    AddressesChanged,
    CloseConnection,
    RouterForgotten,
    SendControl,
    TopologyChanged,
)
from router.routing.core import Routing
from router.routing.events import ControlMessageRefused, DuplicateRouterId, NeighborDown, NeighborUp, RouterRestarted
from router.routing.messages import Hello, Lsr, Lsu, Lsus, Mar, MauAll, MauChanges, Message, Versions, parse
from router.routing.settings import RoutingSettings

LINE = [("r1", "r2"), ("r2", "r3")]
RING = [("r1", "r2"), ("r2", "r3"), ("r3", "r4"), ("r1", "r4")]


def _tell(core: Routing, message: Message, connection: int = 1, now: float = 0.0) -> list[Action]:
    return core.on_message(connection, message.to_map(), message.opcode, now)


def _with_neighbor(*connections: int) -> Routing:
    """r1, whose neighbor r2 is up and has been told all; its link state is known."""
    core = Routing("r1", 10, RoutingSettings())
    for connection in connections or (1,):
        core.on_connected(connection, 1, 0.0)
        _tell(core, Hello("r2", 20, ("r1",), 1), connection)
        _tell(core, Lsr("r2", {}), connection)
    _tell(core, Lsu("r2", 20, 1, {"r1": 1}))
    return core


def _sent(actions: list[Action], opcode: str) -> list[SendControl]:
    return [action for action in actions if isinstance(action, SendControl) and action.opcode == opcode]


# Neighbors


def test_a_new_neighbor_is_asked_for_what_it_has_newer() -> None:
    core = Routing("r1", 10, RoutingSettings())
    core.on_connected(1, 1, 0.0)
    actions = _tell(core, Hello("r2", 20, ("r1",), 1))
    assert NeighborUp("r2") in actions
    (lsr,) = _sent(actions, "LSR")
    assert Lsr.from_map(lsr.body).have == {"r1": Versions(10, 0, 0)}
    assert core.neighbors == {"r2": 1}


def test_nothing_is_flooded_to_a_neighbor_before_it_has_asked() -> None:
    core = Routing("r1", 10, RoutingSettings())
    core.on_connected(1, 1, 0.0)
    assert not _sent(_tell(core, Hello("r2", 20, ("r1",), 1)), "LSU")
    assert not _sent(core.advertise(["M0a"], [], 0.0), "MAU")
    answer = _tell(core, Lsr("r2", {}))
    assert [action.opcode for action in answer if isinstance(action, SendControl)] == ["LSU", "MAU"]
    assert _sent(core.advertise(["M0b"], [], 1.0), "MAU")


def test_a_lost_connection_makes_routers_unreachable_at_once() -> None:
    core = _with_neighbor()
    actions = core.on_connection_lost(1, 5.0)
    assert NeighborDown("r2", "connection lost") in actions
    assert TopologyChanged(frozenset({"r2"}), frozenset()) in actions
    assert core.path("r2") is None
    assert core.on_connection_lost(1, 5.0) == []


def test_a_second_connection_takes_over_without_the_neighbor_going_down() -> None:
    core = _with_neighbor(1, 2)
    assert core.neighbors == {"r2": 1}
    actions = core.on_connection_lost(1, 1.0)
    assert core.neighbors == {"r2": 2}
    # What was under way on the lost connection has to be made good in both directions.
    assert [(a.connection, a.opcode) for a in actions if isinstance(a, SendControl)] == [(2, "LSR"), (2, "RA")]
    assert not any(isinstance(action, NeighborDown | TopologyChanged) for action in actions)


def test_what_was_under_way_on_a_lost_parallel_connection_is_made_good() -> None:
    mesh = VirtualMesh()
    for router in ("r1", "r2", "r3"):
        mesh.start(router)
    first = mesh.connect("r1", "r2", delay_s=0.1)
    mesh.connect("r1", "r2", delay_s=0.1)
    mesh.connect("r2", "r3")
    mesh.run(2.0)
    mesh.cut(first)
    mesh.run(0.15)  # r1 has noticed, r2 has not
    mesh.advertise("r3", ["M0late"])
    mesh.run(1.0)
    mesh.assert_converged()


# Malformed, unknown, out of turn


def test_a_malformed_message_closes_its_connection_and_says_why() -> None:
    core = _with_neighbor()
    actions = core.on_message(1, {"id": "r2"}, "LSU", 0.0)
    said = "LSU: field 'ls' of a neighbor router's control message: expected a map, got None"
    assert actions[:2] == [ControlMessageRefused(said), CloseConnection(1, "amqp:invalid-field", said)]
    assert NeighborDown("r2", said) in actions
    assert core.neighbors == {}


def test_link_state_before_hello_is_refused() -> None:
    core = Routing("r1", 10, RoutingSettings())
    core.on_connected(1, 1, 0.0)
    said = "unexpected LSU before HELLO was heard in both directions"
    assert ControlMessageRefused(said) in _tell(core, Lsu("r2", 20, 1, {}))


def test_what_a_newer_router_says_is_ignored_and_told_once() -> None:
    core = _with_neighbor()
    assert core.on_message(1, {"id": "r2"}, "NEW", 0.0) == [ControlMessageRefused("unknown opcode 'NEW'")]
    assert core.on_message(1, {"id": "r2", "pv": 2}, "RA", 0.0) == []
    assert core.neighbors == {"r2": 1}


def test_what_comes_from_a_closed_connection_is_dropped() -> None:
    core = _with_neighbor()
    core.on_connection_lost(1, 0.0)
    assert _tell(core, Lsu("r2", 20, 9, {"r1": 1})) == []


def test_an_instance_below_one_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="bug in the program: router id 'r1', instance 0, expected"):
        Routing("r1", 0, RoutingSettings())


# Link state


def test_a_new_lsu_is_passed_on_once_and_not_back() -> None:
    core = _with_neighbor()
    core.on_connected(2, 1, 0.0)
    _tell(core, Hello("r3", 30, ("r1",), 1), 2)
    _tell(core, Lsr("r3", {}), 2)
    news = Lsu("r9", 90, 4, {"r2": 1})
    assert _tell(core, news, 1, now=1.0) == [SendControl(2, "LSU", news.to_map())]
    assert _tell(core, news, 2, now=1.0) == []
    assert _tell(core, Lsu("r9", 90, 3, {}), 2, now=1.0) == []


def _between() -> Routing:
    """r1 between r2 and r3, which have been told all; something went out at 1.0."""
    core = _with_neighbor()
    core.on_connected(2, 1, 0.0)
    _tell(core, Hello("r3", 30, ("r1",), 1), 2)
    _tell(core, Lsr("r3", {}), 2)
    assert _sent(_tell(core, Lsu("r9", 90, 4, {"r2": 1, "r8": 1}), 1, now=1.0), "LSU")
    return core


def test_news_on_top_of_news_go_out_together_each_in_its_newest_version() -> None:
    core = _between()
    assert _tell(core, Lsu("r7", 70, 1, {"r2": 1}), 1, now=1.002) == []
    assert _tell(core, Lsu("r8", 80, 1, {"r2": 1}), 1, now=1.003) == []
    assert _tell(core, Lsu("r7", 70, 2, {"r2": 1, "r8": 1}), 1, now=1.004) == []
    assert not _sent(core.on_time(1.009), "LSU")
    (lsu,) = _sent(core.on_time(1.01), "LSU")
    newest = (Lsu("r7", 70, 2, {"r2": 1, "r8": 1}), Lsu("r8", 80, 1, {"r2": 1}))
    assert (lsu.connection, Lsus.from_map(lsu.body)) == (2, Lsus("r1", newest))


def test_a_loss_waits_for_nothing_and_takes_along_what_waits() -> None:
    core = _between()
    _tell(core, Lsu("r7", 70, 1, {"r2": 1}), 1, now=1.002)
    for seq, peers in ((5, {"r2": 1}), (6, {"r2": 9})):
        (lsu,) = _sent(_tell(core, Lsu("r9", 90, seq, peers), 1, now=1.003), "LSU")
        told = parse("LSU", lsu.body)
        assert {each.id for each in told.several} == {"r7", "r9"} if isinstance(told, Lsus) else seq == 6
    assert not _sent(core.on_time(1.02), "LSU")


def test_what_a_neighbor_sent_itself_meanwhile_is_not_sent_to_it() -> None:
    core = _between()
    news = Lsu("r7", 70, 1, {"r2": 1})
    _tell(core, news, 1, now=1.002)
    assert _tell(core, news, 2, now=1.003) == []
    assert _sent(core.on_time(1.01), "LSU") == []


def test_addresses_do_not_overtake_the_link_state_of_their_router() -> None:
    core = _between()
    _tell(core, Lsu("r7", 70, 1, {"r2": 1}), 1, now=1.002)
    told = _tell(core, MauChanges("r7", 70, 0, 1, ("M0a",), ()), 1, now=1.003)
    assert [(each.connection, each.opcode) for each in told if isinstance(each, SendControl)] == [
        (2, "LSU"),
        (2, "MAU"),
    ]


def test_who_asks_is_told_of_all_link_states_in_one_message() -> None:
    core = _between()
    told = _tell(core, Lsr("r3", {"r2": Versions(20, 1, 0)}), 2, now=2.0)
    assert [each.opcode for each in told if isinstance(each, SendControl)] == ["LSU"]
    (lsu,) = _sent(told, "LSU")
    assert {each.id for each in Lsus.from_map(lsu.body).several} == {"r1", "r9"}


def test_a_restarted_router_replaces_its_state_though_its_numbers_start_again() -> None:
    core = _with_neighbor()
    _tell(core, MauChanges("r2", 20, 0, 1, ("M0a",), ()))
    _tell(core, Lsu("r2", 20, 50, {"r1": 1}))
    actions = _tell(core, Lsu("r2", 21, 1, {"r1": 3}))
    assert RouterRestarted("r2", 21) in actions
    assert AddressesChanged("r2", frozenset(), frozenset({"M0a"})) in actions
    assert core.cost_to("r2") == 3
    assert _tell(core, Lsu("r2", 20, 51, {})) == []


def test_unequal_costs_count_by_the_larger_and_may_change() -> None:
    mesh = mesh_of({("r1", "r2"): (2, 5), ("r2", "r3"): 1})
    assert mesh.routers["r1"].cost_to("r3") == mesh.routers["r3"].cost_to("r1") == 6
    mesh.change_cost(mesh.cables[0], 0, 9)
    mesh.run(0.1)
    assert mesh.routers["r1"].cost_to("r3") == mesh.routers["r3"].cost_to("r1") == 10


def test_a_partition_that_heals_converges_without_sending_what_both_sides_know() -> None:
    mesh = mesh_of(LINE)
    mesh.advertise("r3", ["M0a"])
    mesh.run(1.0)
    mesh.cut(mesh.cables[1])
    mesh.run(5.0)
    assert mesh.routers["r1"].routers_with("M0a") == frozenset()
    mesh.sent.clear()
    mesh.mend(mesh.cables[1])
    mesh.run(1.0)
    mesh.assert_converged()
    assert mesh.routers["r1"].routers_with("M0a") == {"r3"}
    assert mesh.sent["MAU"] == 0


def test_a_router_out_of_reach_for_too_long_is_forgotten_and_may_come_back() -> None:
    mesh = mesh_of(LINE)
    mesh.advertise("r3", ["M0a"])
    mesh.run(1.0)
    mesh.crash("r3")
    mesh.run(59.0)
    assert "r3" in mesh.routers["r1"].snapshot().routers
    mesh.run(2.0)
    assert "r3" not in mesh.routers["r1"].snapshot().routers
    assert {router for _, router, event in mesh.events if event == RouterForgotten("r3")} == {"r1", "r2"}
    mesh.start("r3", instance=2)
    mesh.run(1.0)
    mesh.assert_converged()


def test_forgotten_routers_are_not_revived_by_newcomers() -> None:
    mesh = mesh_of(LINE)
    mesh.crash("r3")
    mesh.run(50.0)
    mesh.start("r4")
    mesh.connect("r4", "r1")
    mesh.run(12.0)
    assert all("r3" not in core.snapshot().routers for core in mesh.routers.values())


def test_a_silent_connection_is_noticed_within_hello_max_age() -> None:
    mesh = mesh_of(RING)
    mesh.cables[0].is_wanted, mesh.cables[0].is_silent = False, True
    took = mesh.run_until(lambda: mesh.routers["r1"].path("r2") == ("r1", "r4", "r3", "r2"), limit_s=3.1)
    assert took > 1.9
    assert {router for router, _ in mesh.closed} == {"r1", "r2"}


def test_a_cut_is_routed_around_within_a_round_trip() -> None:
    mesh = mesh_of(RING)
    mesh.cut(mesh.cables[0])
    assert mesh.run_until(mesh.is_converged, limit_s=0.1) < 0.05


# Addresses


def test_takers_are_found_only_at_other_routers_in_reach() -> None:
    mesh = mesh_of(LINE)
    for router in ("r1", "r3"):
        mesh.advertise(router, ["M0a"])
    mesh.run(0.1)
    assert mesh.routers["r1"].routers_with("M0a") == {"r3"}
    assert mesh.routers["r2"].routers_with("M0a") == {"r1", "r3"}
    mesh.advertise("r3", removed=["M0a"])
    mesh.run(0.1)
    assert mesh.routers["r2"].routers_with("M0a") == {"r1"}


def test_ten_thousand_changes_in_a_second_are_about_fifty_messages() -> None:
    mesh = mesh_of([("r1", "r2")])
    mesh.sent.clear()
    for number in range(10_000):
        mesh.advertise("r1", [f"M0a{number}"])
        mesh.run(0.0001)
    mesh.run(0.1)
    mesh.assert_converged()
    assert mesh.sent["MAU"] <= 52


def test_a_gap_is_asked_for_once_and_filled_by_the_neighbor() -> None:
    core = _with_neighbor()
    _tell(core, MauChanges("r2", 20, 0, 1, ("M0a",), ()))
    (mar,) = _tell(core, MauChanges("r2", 20, 2, 3, ("M0c",), ()))
    assert mar == SendControl(1, "MAR", Mar("r1", "r2", 20, 1).to_map())
    assert _tell(core, MauChanges("r2", 20, 3, 4, ("M0d",), ())) == []
    assert core.routers_with("M0c") == frozenset()
    assert _tell(core, MauAll("r2", 20, 4, ("M0c", "M0d"))) == [
        AddressesChanged("r2", frozenset({"M0c", "M0d"}), frozenset({"M0a"}))
    ]
    assert _tell(core, MauChanges("r2", 20, 4, 5, (), ("M0c",)))
    assert core.routers_with("M0d") == {"r2"}
    # The next gap is asked for again.
    assert _sent(_tell(core, MauChanges("r2", 20, 9, 10, (), ())), "MAR")


def test_a_gap_is_asked_for_again_when_the_connection_that_was_asked_is_lost() -> None:
    core = _with_neighbor(1, 2)
    _tell(core, MauChanges("r2", 20, 2, 3, (), ()), 1)
    core.on_connection_lost(1, 0.0)
    assert _sent(_tell(core, MauChanges("r2", 20, 3, 4, (), ()), 2), "MAR")


def test_a_neighbor_answers_for_the_addresses_of_others() -> None:
    core = _with_neighbor()
    core.on_connected(2, 1, 0.0)
    _tell(core, Hello("r3", 30, ("r1",), 1), 2)
    _tell(core, MauChanges("r2", 20, 0, 1, ("M0b", "M0a"), ()), 1)
    answer = SendControl(2, "MAU", MauAll("r2", 20, 1, ("M0a", "M0b")).to_map())
    assert _tell(core, Mar("r3", "r2", 20, 0), 2) == [answer]
    assert _tell(core, Mar("r3", "r2", 20, 1), 2) == []


def test_a_full_list_is_passed_on_as_the_difference() -> None:
    core = _with_neighbor()
    core.on_connected(2, 1, 0.0)
    _tell(core, Hello("r3", 30, ("r1",), 1), 2)
    _tell(core, Lsr("r3", {}), 2)
    _tell(core, MauChanges("r2", 20, 0, 1, ("M0a",), ()), 1)
    passed_on, _ = _tell(core, MauAll("r2", 20, 5, ("M0a", "M0b")), 1)
    assert passed_on == SendControl(2, "MAU", MauChanges("r2", 20, 1, 5, ("M0b",), ()).to_map())


def test_addresses_of_a_router_without_link_state_are_not_kept() -> None:
    core = _with_neighbor()
    assert _tell(core, MauAll("r9", 1, 1, ("M0a",))) == []


def test_a_checksum_that_differs_is_answered_by_a_request() -> None:
    mesh = mesh_of(LINE)
    mesh.sent.clear()
    mesh.run(61.0)
    assert mesh.sent["RA"] == 8
    assert mesh.sent["LSR"] == 0
    lost = mesh.routers["r3"].advertise(["M0lost"], [], mesh.now)
    assert _sent(lost, "MAU")  # never carried out
    mesh.addresses["r3"].add("M0lost")
    mesh.run(31.0)
    mesh.assert_converged()


# One id, two routers


def test_neighbors_with_one_id_refuse_each_other_on_both_sides() -> None:
    ours, theirs = Routing("r1", 10), Routing("r1", 11)
    (hello_of_ours,) = ours.on_connected(1, 1, 0.0)
    (hello_of_theirs,) = theirs.on_connected(1, 1, 0.0)
    for core, hello in ((ours, hello_of_theirs), (theirs, hello_of_ours)):
        assert isinstance(hello, SendControl)
        event, close = core.on_message(1, hello.body, hello.opcode, 0.0)
        assert isinstance(event, DuplicateRouterId)
        assert isinstance(close, CloseConnection)


def test_what_is_left_of_an_earlier_life_is_overtaken_quietly() -> None:
    core = _with_neighbor()
    core.advertise(["M0a"], [], 0.0)
    actions = _tell(core, Lsu("r1", 12, 40, {"r2": 1}))
    (lsu,), (mau,) = _sent(actions, "LSU"), _sent(actions, "MAU")
    assert Lsu.from_map(lsu.body).instance == 13
    assert MauAll.from_map(mau.body) == MauAll("r1", 13, 2, ("M0a",))
    assert not any(isinstance(action, DuplicateRouterId) for action in actions)


def test_a_second_router_of_our_id_far_away_is_told_and_not_fought_in_a_storm() -> None:
    core = _with_neighbor()
    _tell(core, Lsu("r1", 12, 1, {}), now=1.0)
    answer = _tell(core, Lsu("r1", 14, 1, {}), now=1.1)
    assert answer == [DuplicateRouterId("r1", 13, 14)]
    assert _tell(core, Lsu("r1", 14, 2, {}), now=1.2) == []
    core.on_heard(1, 30.9)
    (lsu,) = _sent(core.on_time(31.0), "LSU")
    assert Lsu.from_map(lsu.body).instance == 15


# Queries and snapshot


def test_paths_and_trees_are_those_of_the_graph() -> None:
    core = mesh_of(RING).routers["r1"]
    assert core.path("r3") == ("r1", "r2", "r3")
    assert core.path("r1") == ("r1",)
    assert core.cost_to("r3") == 2
    tree = core.tree(["r3", "r4"])
    assert tree.keys() == {"r2", "r4"}
    assert not tree["r2"].deliver
    assert tree["r2"].children["r3"].deliver


def test_a_snapshot_shows_neighbors_routers_and_edges() -> None:
    mesh = mesh_of(LINE)
    mesh.advertise("r3", ["M0a"])
    mesh.run(0.1)
    seen = mesh.routers["r1"].snapshot()
    assert (seen.router_id, seen.instance) == ("r1", 1)
    assert {router: known.cost for router, known in seen.neighbors.items()} == {"r2": 1}
    assert seen.edges == {("r1", "r2"): 1, ("r2", "r3"): 1}
    assert (seen.routers["r3"].path, seen.routers["r3"].cost) == (("r1", "r2", "r3"), 2)
    assert seen.routers["r3"].addresses == {"M0a"}


@pytest.mark.parametrize(
    "wrong", [{"hello_interval_s": 0.0}, {"hello_interval_s": 3.0}, {"ra_interval_s": -1.0}, {"hello_max_age_s": 1.0}]
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected more than"):
        RoutingSettings(**wrong)


def test_a_router_without_connections_needs_no_timer() -> None:
    core = Routing("r1", 1)
    assert core.next_deadline() is None
