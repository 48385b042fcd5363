import pytest

from router.routing.actions import (
    Action,
    CloseConnection,
    DropConnection,
    SendControl,
)
from router.routing.events import DuplicateRouterId, NeighborDown, NeighborExpired, NeighborUp
from router.routing.messages import Hello
from router.routing.neighbors import Neighbors
from router.routing.settings import RoutingSettings

SETTINGS = RoutingSettings(hello_interval_s=1.0, hello_max_age_s=3.0)


def _neighbors() -> Neighbors:
    return Neighbors("me", 5, SETTINGS)


def _hello(router: str = "r2", instance: int = 7, hears_me: bool = True, cost: int = 1) -> Hello:
    return Hello(router, instance, ("me",) if hears_me else (), cost)


def _up(neighbors: Neighbors, connection: int, router: str = "r2", now: float = 0.0, cost: int = 1) -> None:
    neighbors.on_connected(connection, cost, now)
    neighbors.on_hello(connection, _hello(router), now)


def _said(action: Action) -> Hello:
    assert isinstance(action, SendControl)
    return Hello.from_map(action.body)


def test_hello_goes_out_as_soon_as_a_connection_is_there() -> None:
    (action,) = _neighbors().on_connected(1, 4, 0.0)
    assert _said(action) == Hello("me", 5, (), 4)


def test_the_first_hello_is_answered_at_once_and_is_not_enough() -> None:
    neighbors = _neighbors()
    neighbors.on_connected(1, 1, 0.0)
    (answer,) = neighbors.on_hello(1, _hello(hears_me=False), 0.1)
    assert _said(answer).seen == ("r2",)
    assert neighbors.connections == {}


def test_a_neighbor_is_up_when_both_sides_hear_each_other() -> None:
    neighbors = _neighbors()
    neighbors.on_connected(1, 1, 0.0)
    neighbors.on_hello(1, _hello(hears_me=False), 0.1)
    assert neighbors.router_on(1) is None
    assert neighbors.on_hello(1, _hello(), 0.2) == [NeighborUp("r2")]
    assert neighbors.router_on(1) == "r2"
    assert neighbors.router_on(2) is None
    assert neighbors.connections == {"r2": 1}
    assert neighbors.on_hello(1, _hello(), 1.2) == []


def test_hello_is_repeated_on_every_connection() -> None:
    neighbors = _neighbors()
    _up(neighbors, 1, "r2")
    _up(neighbors, 2, "r3")
    assert neighbors.next_deadline() == 1.0
    assert [(action.connection, _said(action).seen) for action in neighbors.on_time(1.0)] == [  # type: ignore[union-attr]
        (1, ("r2",)),
        (2, ("r3",)),
    ]
    assert neighbors.next_deadline() == 2.0


def test_no_hello_is_sent_before_it_is_due() -> None:
    neighbors = _neighbors()
    neighbors.on_connected(1, 1, 0.0)
    assert neighbors.next_deadline() == 1.0
    assert neighbors.on_time(0.9) == []
    assert neighbors.next_deadline() == 1.0
    assert len(neighbors.on_time(1.0)) == 1


def test_a_neighbor_expires_after_hello_max_age_and_its_connection_is_closed() -> None:
    neighbors = _neighbors()
    _up(neighbors, 1)
    assert not [action for action in neighbors.on_time(2.9) if not isinstance(action, SendControl)]
    said = "silent for 3 s (hello_max_age 3 s)"
    assert neighbors.on_time(3.0) == [
        NeighborExpired("r2", 3.0),
        DropConnection(1, "amqp:connection:forced", said),
        NeighborDown("r2", said),
    ]
    assert not neighbors.knows(1)
    assert neighbors.on_connection_lost(1, "late") == []


def test_any_byte_counts_as_hearing_once_a_neighbor_is_up() -> None:
    neighbors = _neighbors()
    _up(neighbors, 1)
    neighbors.on_heard(1, 2.5)
    assert all(isinstance(action, SendControl) for action in neighbors.on_time(5.4))
    assert any(isinstance(action, NeighborDown) for action in neighbors.on_time(5.5))


def test_a_connection_that_never_says_hello_both_ways_is_closed() -> None:
    neighbors = _neighbors()
    neighbors.on_connected(1, 1, 0.0)
    neighbors.on_hello(1, _hello(hears_me=False), 1.0)
    neighbors.on_heard(1, 2.0)
    actions = neighbors.on_time(3.0)
    assert NeighborExpired("r2", 3.0) in actions
    assert not any(isinstance(action, NeighborDown) for action in actions)


def test_fast_timers_leave_time_to_meet() -> None:
    """Both may be busy starting; once up, the timers hold."""
    neighbors = Neighbors("me", 5, RoutingSettings(hello_interval_s=0.1, hello_max_age_s=0.3))
    neighbors.on_connected(1, 1, 0.0)
    assert all(isinstance(action, SendControl) for action in neighbors.on_time(2.9))
    neighbors.on_hello(1, _hello(), 2.9)
    assert neighbors.router_on(1) == "r2"
    assert not any(isinstance(action, NeighborDown) for action in neighbors.on_time(3.15))
    assert any(isinstance(action, NeighborDown) for action in neighbors.on_time(3.2))
    neighbors.on_connected(2, 1, 4.0)
    assert not any(isinstance(action, DropConnection) for action in neighbors.on_time(6.9))
    assert any(isinstance(action, DropConnection) for action in neighbors.on_time(7.0))


def test_a_connection_made_while_no_other_is_there_expires_too() -> None:
    neighbors = _neighbors()
    _up(neighbors, 1)
    neighbors.on_connection_lost(1, "lost")
    neighbors.on_time(10.0)
    neighbors.on_connected(2, 1, 10.5)
    assert any(isinstance(action, DropConnection) for action in neighbors.on_time(13.5))


def test_a_lost_connection_takes_the_neighbor_down_at_once() -> None:
    neighbors = _neighbors()
    _up(neighbors, 1)
    assert neighbors.on_connection_lost(1, "connection lost") == [NeighborDown("r2", "connection lost")]
    assert neighbors.costs == {}


def test_the_larger_of_both_costs_counts() -> None:
    neighbors = _neighbors()
    neighbors.on_connected(1, 2, 0.0)
    neighbors.on_hello(1, _hello(cost=5), 0.0)
    assert neighbors.costs == {"r2": 5}
    neighbors.on_cost_changed(1, 9)
    assert neighbors.costs == {"r2": 9}
    neighbors.on_hello(1, _hello(cost=11), 0.0)
    assert neighbors.costs == {"r2": 11}


def test_of_parallel_connections_the_cheapest_is_used_then_the_oldest() -> None:
    neighbors = _neighbors()
    _up(neighbors, 1, cost=3)
    _up(neighbors, 2, cost=2)
    _up(neighbors, 3, cost=2)
    assert (neighbors.connections, neighbors.costs) == ({"r2": 2}, {"r2": 2})
    assert neighbors.on_connection_lost(2, "lost") == []
    assert neighbors.connections == {"r2": 3}
    assert neighbors.on_connection_lost(3, "lost") == []
    assert (neighbors.connections, neighbors.costs) == ({"r2": 1}, {"r2": 3})


def test_a_cheaper_connection_that_is_not_up_yet_is_not_used() -> None:
    neighbors = _neighbors()
    neighbors.on_connected(1, 1, 0.0)
    neighbors.on_hello(1, _hello(hears_me=False), 0.1)
    _up(neighbors, 2, now=0.2, cost=7)
    assert neighbors.connections == {"r2": 2}
    neighbors.on_hello(1, _hello(), 0.3)
    assert neighbors.connections == {"r2": 1}


def test_a_neighbor_that_uses_our_id_is_refused() -> None:
    neighbors = _neighbors()
    neighbors.on_connected(1, 1, 0.0)
    assert neighbors.on_hello(1, _hello("me", 6), 0.0) == [
        DuplicateRouterId("me", 6, 5),
        CloseConnection(
            1, "amqp:not-allowed", "router id 'me' (instance 6) is already in use by this router (instance 5)"
        ),
    ]
    assert not neighbors.knows(1)


def test_a_second_instance_of_a_neighbor_is_refused_while_the_first_is_up() -> None:
    neighbors = _neighbors()
    _up(neighbors, 1)
    neighbors.on_connected(2, 1, 0.0)
    event, close = neighbors.on_hello(2, _hello(instance=8), 0.0)
    assert event == DuplicateRouterId("r2", 8, 7)
    assert isinstance(close, CloseConnection)
    assert neighbors.connections == {"r2": 1}
    neighbors.on_connection_lost(1, "lost")
    neighbors.on_connected(3, 1, 0.0)
    assert NeighborUp("r2") in neighbors.on_hello(3, _hello(instance=8), 0.0)


def test_a_connection_keeps_the_router_that_it_began_with() -> None:
    neighbors = _neighbors()
    _up(neighbors, 1)
    close, down = neighbors.on_hello(1, _hello("r3"), 1.0)
    assert close == CloseConnection(1, "amqp:not-allowed", "HELLO from 'r3' on the connection of 'r2'")
    assert down == NeighborDown("r2", "refused")


def test_a_cost_below_one_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="bug in the program: connection 1 has cost 0, expected at least 1"):
        _neighbors().on_connected(1, 0, 0.0)
