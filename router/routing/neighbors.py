"""The neighbors: routers one connection away, heard both ways.

Sans-IO. HELLO goes out on every connection: at once when the connection comes up and when the peer is first heard,
then every ``hello_interval_s``. A connection is up when the peer lists this router in ``seen``; once up, any byte
counts as hearing. A connection silent for ``hello_max_age_s`` is dropped, and later input from it is ignored; a
connection not yet up has ``meeting_max_age_s`` if that is longer.

Always: all connections to one router that are up are to one instance of the router, since a router restarts as a new
instance; the connection of a second instance is closed while the first is up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from router.routing.actions import (
    Action,
    CloseConnection,
    DropConnection,
    SendControl,
)
from router.routing.events import DuplicateRouterId, NeighborDown, NeighborExpired, NeighborUp
from router.routing.messages import Hello
from router.routing.settings import RoutingSettings


@dataclass(slots=True)
class Adjacency:
    own_cost: int
    heard_at: float
    remote_cost: int = 1
    router: str | None = None
    instance: int = 0
    is_up: bool = False

    @property
    def cost(self) -> int:
        return max(self.own_cost, self.remote_cost)


class Neighbors:
    def __init__(self, router_id: str, instance: int, settings: RoutingSettings) -> None:
        self._router_id = router_id
        self._instance = instance
        self._settings = settings
        self._meeting_s = max(settings.hello_max_age_s, settings.meeting_max_age_s)
        self._connections: dict[int, Adjacency] = {}  # oldest first
        self._next_hello: float | None = None
        # No connection expires before the time ``_next_expiry``. A connection heard meanwhile expires later: then
        # `_expire`, called at this time, drops nothing and computes the next time.
        self._next_expiry: float | None = None
        self.connections: Mapping[str, int] = {}
        self.costs: Mapping[str, int] = {}

    def router_on(self, connection: int) -> str | None:
        """Return the id of the neighbor on ``connection``; None until HELLO was heard in both directions."""
        known = self._connections.get(connection)
        return known.router if known is not None and known.is_up else None

    def knows(self, connection: int) -> bool:
        return connection in self._connections

    def on_connected(self, connection: int, cost: int, now: float) -> list[Action]:
        if cost < 1:
            raise ValueError(f"bug in the program: connection {connection} has cost {cost}, expected at least 1")
        self._connections[connection] = Adjacency(cost, now)
        if self._next_hello is None:
            self._next_hello = now + self._settings.hello_interval_s
        self._expect(now + self._meeting_s)
        return [self._hello(connection)]

    def on_cost_changed(self, connection: int, cost: int) -> list[Action]:
        if (known := self._connections.get(connection)) is None:
            return []
        known.own_cost = cost
        self._choose()
        return [self._hello(connection)]

    def on_connection_lost(self, connection: int, reason: str) -> list[Action]:
        lost = self._connections.pop(connection, None)
        if lost is None or not lost.is_up or lost.router is None:
            return []
        self._choose()
        return [] if lost.router in self.connections else [NeighborDown(lost.router, reason)]

    def on_heard(self, connection: int, now: float) -> None:
        known = self._connections.get(connection)
        if known is not None and known.is_up:
            known.heard_at = now

    def on_hello(self, connection: int, hello: Hello, now: float) -> list[Action]:
        known = self._connections[connection]
        if refusal := self._refusal(connection, hello):
            return refusal + self.on_connection_lost(connection, "refused")
        is_first = known.router is None
        has_new_cost = known.remote_cost != hello.cost
        known.router, known.instance, known.remote_cost = hello.id, hello.instance, hello.cost
        actions: list[Action] = [self._hello(connection)] if is_first else []
        if self._router_id in hello.seen:
            known.heard_at = now
            if not known.is_up:
                return actions + self._come_up(connection, known)
        if has_new_cost:
            self._choose()
        return actions

    def _come_up(self, connection: int, known: Adjacency) -> list[Action]:
        assert known.router is not None
        known.is_up = True
        self._expect(known.heard_at + self._settings.hello_max_age_s)
        is_new = known.router not in self.connections
        self._choose()
        return [NeighborUp(known.router)] if is_new else []

    def _refusal(self, connection: int, hello: Hello) -> list[Action]:
        known = self._connections[connection]
        if known.router not in (None, hello.id):
            said = f"HELLO from {hello.id!r} on the connection of {known.router!r}"
            return [CloseConnection(connection, "amqp:not-allowed", said)]
        other = self._instance if hello.id == self._router_id else self._instance_up(hello.id)
        if other is None or (other == hello.instance and hello.id != self._router_id):
            return []
        whose = "this router" if hello.id == self._router_id else "a neighbor of " + self._router_id
        said = f"router id {hello.id!r} (instance {hello.instance}) is already in use by {whose} (instance {other})"
        return [
            DuplicateRouterId(hello.id, hello.instance, other),
            CloseConnection(connection, "amqp:not-allowed", said),
        ]

    def _instance_up(self, router: str) -> int | None:
        connection = self.connections.get(router)
        return None if connection is None else self._connections[connection].instance

    def on_time(self, now: float) -> list[Action]:
        actions = self._expire(now)
        if self._next_hello is not None and now >= self._next_hello:
            self._next_hello = now + self._settings.hello_interval_s if self._connections else None
            actions += [self._hello(connection) for connection in self._connections]
        return actions

    def _expect(self, expiry: float) -> None:
        self._next_expiry = expiry if self._next_expiry is None else min(expiry, self._next_expiry)

    def _expire(self, now: float) -> list[Action]:
        if self._next_expiry is None or now < self._next_expiry:
            return []
        actions: list[Action] = []
        for connection, known in list(self._connections.items()):
            if now >= known.heard_at + self._max_age_s(known):
                actions += self._close_silent(connection, known, now - known.heard_at)
        expiries = [known.heard_at + self._max_age_s(known) for known in self._connections.values()]
        self._next_expiry = min(expiries, default=None)
        return actions

    def _max_age_s(self, known: Adjacency) -> float:
        return self._settings.hello_max_age_s if known.is_up else self._meeting_s

    def _close_silent(self, connection: int, known: Adjacency, silent_s: float) -> list[Action]:
        said = f"silent for {silent_s:.2g} s (hello_max_age {self._max_age_s(known):g} s)"
        return [
            NeighborExpired(known.router, round(silent_s, 3)),
            DropConnection(connection, "amqp:connection:forced", said),
            *self.on_connection_lost(connection, said),
        ]

    def next_deadline(self) -> float | None:
        if self._next_hello is None:
            return self._next_expiry
        if self._next_expiry is None:
            return self._next_hello
        return min(self._next_hello, self._next_expiry)

    def _hello(self, connection: int) -> SendControl:
        known = self._connections[connection]
        seen = () if known.router is None else (known.router,)
        hello = Hello(self._router_id, self._instance, seen, known.own_cost)
        return SendControl(connection, Hello.opcode, hello.to_map())

    def _choose(self) -> None:
        """Choose anew which connection to use for each neighbor: the cheapest that is up, of equal costs the oldest.

        The cost of a connection is the larger of the two ends' costs.
        """
        best: dict[str, int] = {}
        for connection, known in self._connections.items():
            if known.is_up and known.router is not None:
                used = best.get(known.router)
                if used is None or known.cost < self._connections[used].cost:
                    best[known.router] = connection
        self.connections = best
        self.costs = {router: self._connections[connection].cost for router, connection in best.items()}
