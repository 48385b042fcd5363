"""Many routing cores, joined by delayed channels in virtual time: no sockets, no clock, one seed one trace."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import networkx

from router.routing import spf
from router.routing.actions import (
    Action,
    CloseConnection,
    DropConnection,
    RouterForgotten,
    SendControl,
    TopologyChanged,
)
from router.routing.core import Routing
from router.routing.settings import RoutingSettings
from wire.log_event import LogEvent

REDIAL_S = 0.2


@dataclass(eq=False)
class Cable:
    """One connection. What one end sends arrives at the other in order after ``delay_s``, or never."""

    ends: tuple[str, str]
    costs: tuple[int, int]
    delay_s: float
    is_wanted: bool = True  # dialed again when lost
    number: int = 0  # of the present connection; 0 when there is none
    is_silent: bool = False
    closed_ends: set[str] = field(default_factory=set)

    def other(self, router: str) -> str:
        return self.ends[1] if router == self.ends[0] else self.ends[0]


class VirtualMesh:
    def __init__(self, settings: RoutingSettings | None = None) -> None:
        self.settings = settings or RoutingSettings()
        self.now = 0.0
        self.routers: dict[str, Routing] = {}
        self.addresses: dict[str, set[str]] = {}
        self.cables: list[Cable] = []
        self.sent: Counter[str] = Counter()
        self.events: list[tuple[float, str, LogEvent | RouterForgotten]] = []
        self.closed: list[tuple[str, CloseConnection | DropConnection]] = []
        self.actions: list[tuple[str, Action]] = []  # but SendControl
        self._by_number: dict[int, Cable] = {}
        self._numbers = itertools.count(1)
        self._order = itertools.count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._wakes: dict[str, float] = {}

    # What a test does

    def start(self, router: str, instance: int = 1) -> None:
        self.routers[router] = Routing(router, instance, self.settings)
        self.addresses[router] = set()
        self._wakes.pop(router, None)
        for cable in self.cables:
            self._dial(cable)

    def crash(self, router: str) -> None:
        del self.routers[router], self.addresses[router]
        for cable in self.cables:
            if router in cable.ends:
                self._close(cable, cable.other(router))

    def connect(self, a: str, b: str, *costs: int, delay_s: float = 0.01) -> Cable:
        ends = costs if len(costs) == 2 else (costs[0], costs[0]) if costs else (1, 1)
        cable = Cable((a, b), (ends[0], ends[1]), delay_s)
        self.cables.append(cable)
        self._dial(cable)
        return cable

    def cut(self, cable: Cable) -> None:
        """One end notices after the delay, the other later; what is under way is lost."""
        cable.is_wanted = False
        self._close(cable, *cable.ends)

    def mend(self, cable: Cable) -> None:
        cable.is_wanted, cable.is_silent = True, False
        self._dial(cable)

    def advertise(self, router: str, added: Iterable[str] = (), removed: Iterable[str] = ()) -> None:
        self.addresses[router] = (self.addresses[router] | set(added)) - set(removed)
        self._do(router, self.routers[router].advertise(set(added), set(removed), self.now))

    def change_cost(self, cable: Cable, end: int, cost: int) -> None:
        router = cable.ends[end]
        cable.costs = (cost, cable.costs[1]) if end == 0 else (cable.costs[0], cost)
        if cable.number and router in self.routers:
            self._do(router, self.routers[router].on_cost_changed(cable.number, cost, self.now))

    def run(self, duration_s: float) -> None:
        until = self.now + duration_s
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, act = heapq.heappop(self._agenda)
            act()
        self.now = until

    def run_until(self, condition: Callable[[], bool], limit_s: float) -> float:
        """Return how long it took."""
        start = self.now
        while not condition():
            assert self.now - start < limit_s, f"not within {limit_s} s"
            self.run(0.005)
        return self.now - start

    # What holds once all is quiet

    def true_graph(self) -> spf.Graph:
        graph = networkx.Graph()
        graph.add_nodes_from(self.routers)
        for cable in self.cables:
            a, b = cable.ends
            if cable.number and not cable.is_silent and not cable.closed_ends:
                cost = min(max(cable.costs), graph.edges[a, b]["cost"] if graph.has_edge(a, b) else 1 << 30)
                graph.add_edge(a, b, cost=cost)
        return graph

    def is_converged(self) -> bool:
        try:
            self.assert_converged()
        except AssertionError:
            return False
        return True

    def assert_converged(self) -> None:
        graph = self.true_graph()
        for component in networkx.connected_components(graph):
            paths = {router: spf.shortest_paths(graph, router).paths for router in component}
            edges = {(min(a, b), max(a, b)): cost for a, b, cost in graph.edges(component, data="cost")}
            for router in component:
                self._assert_knows(router, edges, paths[router])

    def _assert_knows(self, router: str, edges: Mapping[tuple[str, str], int], paths: Mapping[str, spf.Path]) -> None:
        seen = self.routers[router].snapshot()
        reached = {name: known for name, known in seen.routers.items() if known.path is not None}
        assert {name: known.path for name, known in reached.items()} == paths, (self.now, router)
        assert {ends: cost for ends, cost in seen.edges.items() if ends[0] in reached} == edges, (self.now, router)
        assert {name: known.addresses for name, known in reached.items()} == {
            name: self.addresses[name] for name in paths
        }, (self.now, router)

    # How the world carries it out

    def _later(self, delay_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now + delay_s, next(self._order), act))

    def _dial(self, cable: Cable) -> None:
        if not cable.is_wanted or cable.number or not all(end in self.routers for end in cable.ends):
            return
        cable.number, cable.closed_ends, cable.is_silent = next(self._numbers), set(), False
        self._by_number[cable.number] = cable
        for end, cost in zip(cable.ends, cable.costs, strict=True):
            self._do(end, self.routers[end].on_connected(cable.number, cost, self.now))

    def _close(self, cable: Cable, *noticed_by: str) -> None:
        number, cable.number = cable.number, 0
        if number:
            for times, router in enumerate(noticed_by, 1):
                self._later(cable.delay_s * times, partial(self._lose, router, number))
            self._later(cable.delay_s * 2 + REDIAL_S, lambda: self._dial(cable))

    def _lose(self, router: str, number: int) -> None:
        if router in self.routers:
            self._do(router, self.routers[router].on_connection_lost(number, self.now))

    def _close_end(self, router: str, number: int) -> None:
        """One end closes: the other gets what was sent before, then the close, unless nothing gets through."""
        cable = self._by_number[number]
        if cable.number != number:
            return
        cable.closed_ends.add(router)
        other = cable.other(router)
        if other in cable.closed_ends:
            self._close(cable)
        elif not cable.is_silent:
            self._later(cable.delay_s, lambda: self._end_closed(cable, other, number))

    def _end_closed(self, cable: Cable, router: str, number: int) -> None:
        if cable.number == number:
            self._lose(router, number)
            self._close(cable)

    def _arrive(self, router: str, message: SendControl) -> None:
        cable = self._by_number[message.connection]
        if cable.number == message.connection and not cable.is_silent and router not in cable.closed_ends:
            core = self.routers[router]
            self._do(router, core.on_message(message.connection, message.body, message.opcode, self.now))

    def _do(self, router: str, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case SendControl(connection, opcode, _):
                    self.sent[opcode] += 1
                    cable = self._by_number[connection]
                    other = cable.other(router)
                    self._later(cable.delay_s, partial(self._arrive, other, action))
                    continue
                case CloseConnection(connection, _, _) | DropConnection(connection, _, _):
                    self.closed.append((router, action))
                    self._close_end(router, connection)
                case LogEvent() | RouterForgotten():
                    self.events.append((self.now, router, action))
            self.actions.append((router, action))
        self._sleep(router)

    def _sleep(self, router: str) -> None:
        deadline = self.routers[router].next_deadline()
        if deadline is not None and deadline < self._wakes.get(router, float("inf")):
            self._wakes[router] = deadline
            core = self.routers[router]
            self._later(max(0.0, deadline - self.now), lambda: self._wake(router, core))

    def _wake(self, router: str, core: Routing) -> None:
        if self.routers.get(router) is not core:
            return
        self._wakes.pop(router, None)
        deadline = core.next_deadline()
        if deadline is not None and deadline <= self.now:
            actions = core.on_time(self.now)
            after = core.next_deadline()
            assert after is None or after > self.now, f"{router} wants to wake again at once"
            self._do(router, actions)
        else:
            self._sleep(router)

    def topology_changes(self, router: str) -> list[TopologyChanged]:
        return [a for name, a in self.actions if name == router and isinstance(a, TopologyChanged)]


def mesh_of(edges: Mapping[tuple[str, str], Any] | Iterable[tuple[str, str]], **options: Any) -> VirtualMesh:
    """A mesh of these edges, costs 1 or as given, that has converged."""
    mesh = VirtualMesh(options.get("settings"))
    costs = edges if isinstance(edges, Mapping) else dict.fromkeys(edges, 1)
    for router in sorted({end for edge in costs for end in edge}):
        mesh.start(router)
    for (a, b), cost in costs.items():
        mesh.connect(a, b, *(cost if isinstance(cost, tuple) else (cost,)))
    mesh.run(1.0)
    mesh.assert_converged()
    return mesh
