"""Which uplink is active, and what do an edge router and that uplink say to each other?"""

from __future__ import annotations

from collections.abc import Iterable

from router.routing.actions import (
    Action,
    AddressesChanged,
    CloseConnection,
    DropConnection,
    EdgeChanged,
    SendControl,
    TopologyChanged,
)
from router.routing.edges import EdgeRouters
from router.routing.messages import Ask, Hello, MauAll, Reach, ReachLevel
from router.routing.settings import RoutingSettings
from router.routing.uplinks import Uplinks

SETTINGS = RoutingSettings()


class Pair:
    """An edge with connections to r1 (number 1) and r2 (number 2), whose other ends are number 7 there."""

    def __init__(self) -> None:
        self.now = 100.0
        self.edge = Uplinks("e1", 5, SETTINGS, {"r1": 1, "r2": 3})
        self.interior = {number: EdgeRouters(f"r{number}", 1, SETTINGS) for number in (1, 2)}
        self.told: list[Action] = []
        """What both ends want to be known, but for what they say to each other."""

    def connect(self, *numbers: int) -> None:
        for number in numbers:
            self.up(number, self.edge.on_connected(number, number, self.now))
            self.down(number, self.interior[number].on_connected(7, 1, self.now))

    def up(self, number: int, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, SendControl):
                core = self.interior[action.connection]
                self.down(action.connection, core.on_message(7, action.body, action.opcode, self.now))
            else:
                self.told.append(action)

    def down(self, number: int, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, SendControl):
                self.up(number, self.edge.on_message(number, action.body, action.opcode, self.now))
            else:
                self.told.append(action)

    def wait(self, seconds: float, *, silent: int = 0) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 0.1
            for action in self.edge.on_time(self.now):
                self.up(0, [action])
            for number, core in self.interior.items():
                if number != silent:
                    self.down(number, core.on_time(self.now))

    def lose(self, number: int) -> None:
        self.up(0, self.edge.on_connection_lost(number, self.now))


def test_the_cheapest_uplink_that_is_up_is_active():
    pair = Pair()
    pair.connect(2, 1)
    assert pair.edge.active == "r1"
    assert pair.edge.neighbors == {"r1": 1}
    assert (pair.interior[1].neighbors, pair.interior[2].neighbors) == ({"e1": 7}, {})


def test_an_edge_that_starts_waits_a_moment_for_its_first_choice():
    pair = Pair()
    pair.connect(2)
    assert pair.edge.active is None
    pair.wait(SETTINGS.start_wait_s + 0.1)
    assert pair.edge.active == "r2"


def test_an_edge_whose_only_uplink_goes_while_it_waits_for_a_better_one_has_nothing_to_do() -> None:
    pair = Pair()
    pair.connect(2)
    pair.edge.on_connection_lost(2, pair.now)
    pair.wait(SETTINGS.start_wait_s + 1)
    deadline = pair.edge.next_deadline()
    assert deadline is None or deadline > pair.now


def test_the_next_is_active_at_once_and_is_told_everything():
    pair = Pair()
    pair.connect(1, 2)
    pair.up(0, pair.edge.advertise(["M0a"], [], pair.now))
    pair.up(0, pair.edge.ask(["M0b"], [], pair.now))
    pair.told.clear()
    pair.lose(1)
    assert pair.edge.active == "r2"
    assert pair.interior[2].taking("M0a") == pair.interior[2].asking("M0b") == {"e1"}
    assert TopologyChanged(frozenset({"r1"}), frozenset({"r2"})) in pair.told


def test_a_silent_uplink_is_dropped_and_the_next_is_active():
    pair = Pair()
    pair.connect(1, 2)
    pair.wait(SETTINGS.hello_max_age_s + 0.2, silent=1)
    assert any(isinstance(action, DropConnection) and action.connection == 1 for action in pair.told)
    assert pair.edge.active == "r2"


def test_an_uplink_that_is_back_is_not_active_until_it_is_needed():
    pair = Pair()
    pair.connect(1, 2)
    pair.lose(1)
    pair.down(1, pair.interior[1].on_connection_lost(7))
    pair.connect(1)
    assert pair.edge.active == "r2"
    pair.lose(2)
    assert pair.edge.active == "r1"


def test_what_the_interior_says_is_known_until_it_says_otherwise():
    pair = Pair()
    pair.connect(1)
    pair.up(0, pair.edge.ask(["M0a"], [], pair.now))
    assert pair.edge.level("M0a") is None
    for level, routers in ((ReachLevel.TAKEN, {"r1"}), (ReachLevel.ANNOUNCED, set()), (ReachLevel.NONE, set())):
        pair.interior[1].note("e1", "M0a", level)
        pair.down(1, pair.interior[1].take_news())
        assert pair.edge.level("M0a") is level
        assert pair.edge.routers_with("M0a") == routers
    assert pair.told.count(AddressesChanged("r1", frozenset({"M0a"}), frozenset())) == 3


def test_what_is_said_twice_is_no_news():
    pair = Pair()
    pair.connect(1)
    pair.up(0, pair.edge.ask(["M0a"], [], pair.now))
    assert pair.interior[1].note("e1", "M0a", ReachLevel.TAKEN) is None
    assert list(pair.interior[1].take_news())
    assert pair.interior[1].note("e1", "M0a", ReachLevel.TAKEN) is ReachLevel.TAKEN
    assert not list(pair.interior[1].take_news())


def test_who_stops_asking_and_asks_again_at_once_keeps_the_answer():
    pair = Pair()
    pair.connect(1)
    pair.up(0, pair.edge.ask(["M0a"], [], pair.now))
    pair.interior[1].note("e1", "M0a", ReachLevel.TAKEN)
    pair.down(1, pair.interior[1].take_news())
    pair.up(0, pair.edge.ask([], ["M0a"], pair.now))
    pair.up(0, pair.edge.ask(["M0a"], [], pair.now))
    pair.wait(0.2)
    assert pair.edge.level("M0a") is ReachLevel.TAKEN


def test_only_the_active_uplink_is_believed():
    pair = Pair()
    pair.connect(1, 2)
    reach = Reach("r2", {"M0a": ReachLevel.TAKEN})
    pair.up(0, pair.edge.on_message(2, reach.to_map(), Reach.opcode, pair.now))
    assert pair.edge.level("M0a") is None


def test_what_is_not_taken_any_more_is_told_together():
    pair = Pair()
    pair.connect(1)
    pair.up(0, pair.edge.advertise(["M0a", "M0b"], [], pair.now))
    pair.wait(0.2)
    pair.told.clear()
    pair.up(0, pair.edge.advertise([], ["M0a"], pair.now))
    pair.up(0, pair.edge.advertise([], ["M0b"], pair.now))
    pair.wait(0.2)
    assert not pair.interior[1].taking("M0a")
    assert not pair.interior[1].taking("M0b")


def test_an_edge_that_is_lost_takes_and_asks_for_nothing():
    pair = Pair()
    pair.connect(1)
    pair.up(0, pair.edge.advertise(["M0a"], [], pair.now))
    pair.up(0, pair.edge.ask(["M0b"], [], pair.now))
    (changed,) = [action for action in pair.interior[1].on_connection_lost(7) if isinstance(action, EdgeChanged)]
    assert changed == EdgeChanged("e1", False, frozenset({"M0a", "M0b"}))
    assert not pair.interior[1].taking("M0a")
    assert not pair.interior[1].asking("M0b")


def test_an_edge_that_comes_over_another_connection_has_lost_the_one_before():
    edges = EdgeRouters("r1", 1, SETTINGS)
    for connection in (7, 8):
        edges.on_connected(connection, 1, 100.0)
        edges.on_message(connection, Hello("e1", 5, ("r1",), 1).to_map(), Hello.opcode, 100.0)
    mau = MauAll("e1", 5, 1, ("M0a",)).to_map()
    edges.on_message(7, mau, MauAll.opcode, 100.0)
    actions = edges.on_message(8, mau, MauAll.opcode, 100.0)
    assert [action.connection for action in actions if isinstance(action, DropConnection)] == [7]
    assert edges.neighbors == {"e1": 8}
    assert edges.taking("M0a") == {"e1"}


def test_who_asks_before_it_says_what_it_takes_is_refused():
    edges = EdgeRouters("r1", 1, SETTINGS)
    edges.on_connected(7, 1, 100.0)
    edges.on_message(7, Hello("e1", 5, ("r1",), 1).to_map(), Hello.opcode, 100.0)
    actions = edges.on_message(7, Ask("e1", ("M0a",), ()).to_map(), Ask.opcode, 100.0)
    assert any(isinstance(action, CloseConnection) for action in actions)


def test_to_ask_for_all_is_to_ask_for_nothing_else():
    pair = Pair()
    pair.connect(1)
    pair.up(0, pair.edge.ask(["M0a"], [], pair.now))
    ask = Ask("e1", ("M0b",), (), is_all=True)
    pair.down(1, pair.interior[1].on_message(7, ask.to_map(), Ask.opcode, pair.now))
    assert (pair.interior[1].asking("M0a"), pair.interior[1].asking("M0b")) == (frozenset(), {"e1"})
