"""The edge routers that use this interior router as their active uplink, and the keys each edge takes or asks for.

Sans-IO. This is the interior router's half of the protocol, and `router.routing.uplinks` the edge router's half. An
edge router is **active** here from its first MAU, which lists all keys the edge router takes, until its connection is
lost; other connections of edge routers are only kept alive. Link state contains no edge routers: the node advertises
the keys that its edge routers take exactly as the keys of its own clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from router.routing.actions import (
    Action,
    CloseConnection,
    ConfirmationRequest,
    DropConnection,
    EdgeChanged,
    SendControl,
)
from router.routing.events import ControlMessageRefused
from router.routing.fields import ControlMessageError
from router.routing.messages import (
    Ask,
    Hello,
    MauAll,
    MauChanges,
    Reach,
    ReachLevel,
    UnknownMessage,
    VersionCheck,
    VersionConfirmation,
    parse,
)
from router.routing.neighbors import Neighbors
from router.routing.settings import RoutingSettings

_NOBODY: frozenset[str] = frozenset()


@dataclass(slots=True)
class EdgeRouter:
    """An edge router whose active uplink is this router.

    ``takes``: the routing keys for which the edge router has consumers. ``asks``: routing key that the edge router asks
    for -> the answer last noted (`EdgeRouters.note`), None before the first. ``news``: noted answers that are not sent
    to the edge router yet. ``checked`` and ``confirmed``:
    the numbers of the last question sent to the edge router, and of the last one that it answered, whether all answers
    sent before are in effect there.
    """

    connection: int
    takes: frozenset[str] = frozenset()
    asks: dict[str, ReachLevel | None] = field(default_factory=dict)
    news: dict[str, ReachLevel] = field(default_factory=dict)
    checked: int = 0
    confirmed: int = 0


class EdgeRouters:
    def __init__(self, router_id: str, instance: int, settings: RoutingSettings) -> None:
        self._router_id = router_id
        self._neighbors = Neighbors(router_id, instance, settings)
        self._active: dict[str, EdgeRouter] = {}
        self._taking: dict[str, set[str]] = {}
        self._asking: dict[str, set[str]] = {}
        self._ignoring: set[int] = set()

    # Inputs
    def on_connected(self, connection: int, cost: int, now: float) -> list[Action]:
        return self._neighbors.on_connected(connection, cost, now)

    def on_heard(self, connection: int, now: float) -> None:
        self._neighbors.on_heard(connection, now)

    def on_connection_lost(self, connection: int) -> list[Action]:
        return self._lose(connection, "connection lost")

    def on_time(self, now: float) -> list[Action]:
        return self._with_losses(self._neighbors.on_time(now))

    def _with_losses(self, todo: list[Action]) -> list[Action]:
        """Return the actions ``todo``; where one drops or closes a connection, forget the active edge router there."""
        actions: list[Action] = []
        for action in todo:
            actions.append(action)
            if isinstance(action, DropConnection | CloseConnection):
                actions += self._forget(action.connection)
        return actions

    def next_deadline(self) -> float | None:
        return self._neighbors.next_deadline()

    def on_message(self, connection: int, body: Mapping[str, Any], opcode: str, now: float) -> list[Action]:
        if not self._neighbors.knows(connection):
            return []  # The connection was closed by this router: messages that were on the way are ignored.
        self._neighbors.on_heard(connection, now)
        try:
            return self._on_parsed(connection, opcode, body, now)
        except UnknownMessage as unknown:
            return self._ignore(connection, str(unknown))
        except ControlMessageError as error:
            close = CloseConnection(connection, error.condition, error.description)
            refused = ControlMessageRefused(error.description)
            return [refused, close, *self._lose(connection, error.description)]

    def _on_parsed(self, connection: int, opcode: str, body: Mapping[str, Any], now: float) -> list[Action]:
        message = parse(opcode, body)
        if isinstance(message, Hello):
            return self._with_losses(self._neighbors.on_hello(connection, message, now))
        edge = self._neighbors.router_on(connection)
        if edge is None:
            raise ControlMessageError(f"unexpected {opcode} before HELLO was heard in both directions")
        match message:
            case MauAll(addresses=addresses):
                return self._activate(edge, connection) + self._take(edge, frozenset(addresses))
            case MauChanges(added=added, removed=removed):
                known = self._known(edge, connection, opcode)
                return self._take(edge, known.takes.union(added).difference(removed))
            case Ask():
                return self._ask(edge, self._known(edge, connection, opcode), message)
            case VersionCheck(mobile_seq=seq):
                self._known(edge, connection, opcode)
                return [ConfirmationRequest(edge, (0, seq), is_edge=True)]
            case VersionConfirmation(seen_seq=seq):
                known = self._known(edge, connection, opcode)
                known.confirmed = max(known.confirmed, seq)
                return []
            case _:
                return self._ignore(connection, f"unexpected {opcode} from an edge router")

    def _known(self, edge: str, connection: int, opcode: str) -> EdgeRouter:
        known = self._active.get(edge)
        if known is None or known.connection != connection:
            raise ControlMessageError(
                f"unexpected {opcode}: edge router {edge} has not yet sent the MAU with all keys it takes"
            )
        return known

    def _ignore(self, connection: int, reason: str) -> list[Action]:
        if connection in self._ignoring:
            return []
        self._ignoring.add(connection)
        return [ControlMessageRefused(reason)]

    # Active edges
    def _activate(self, edge: str, connection: int) -> list[Action]:
        known = self._active.get(edge)
        if known is not None and known.connection == connection:
            return []
        actions: list[Action] = []
        if known is not None:
            # The edge router has lost its other connection, and this router has not noticed yet: the other connection
            # is dropped.
            said = f"edge router {edge} has chosen another connection"
            actions += [DropConnection(known.connection, "amqp:connection:forced", said)]
            actions += self._lose(known.connection, said)
        self._active[edge] = EdgeRouter(connection)
        return [*actions, EdgeChanged(edge, True, frozenset())]

    def _lose(self, connection: int, reason: str) -> list[Action]:
        return self._neighbors.on_connection_lost(connection, reason) + self._forget(connection)

    def _forget(self, connection: int) -> list[Action]:
        self._ignoring.discard(connection)
        edge = next((name for name, each in self._active.items() if each.connection == connection), None)
        if edge is None:
            return []
        known = self._active.pop(edge)
        for key in known.takes:
            _leave(self._taking, key, edge)
        for key in known.asks:
            _leave(self._asking, key, edge)
        return [EdgeChanged(edge, False, known.takes.union(known.asks))]

    # Methods about the routing keys that active edge routers take and ask for.
    def _take(self, edge: str, takes: frozenset[str]) -> list[Action]:
        known = self._active[edge]
        changed, known.takes = known.takes ^ takes, takes
        for key in changed:
            if key in takes:
                self._taking.setdefault(key, set()).add(edge)
            else:
                _leave(self._taking, key, edge)
        return [EdgeChanged(edge, None, changed)] if changed else []

    def _ask(self, edge: str, known: EdgeRouter, ask: Ask) -> list[Action]:
        removed = set(known.asks).difference(ask.added) if ask.is_all else set(ask.removed)
        for key in removed:
            known.asks.pop(key, None)
            _leave(self._asking, key, edge)
        for key in ask.added:
            known.asks[key] = None
            self._asking.setdefault(key, set()).add(edge)
        return [EdgeChanged(edge, None, frozenset(removed.union(ask.added)))]

    def note(self, edge: str, key: str, level: ReachLevel) -> ReachLevel | None:
        """Note ``level`` as the answer to edge router ``edge``, which asks for ``key``; return the answer noted before.

        If the answer changed, the next call of `take_news` yields a message with it.
        """
        known = self._active[edge]
        before = known.asks.get(key)
        if before is not level:
            known.asks[key] = known.news[key] = level
        return before

    def take_news(self) -> Iterable[Action]:
        """Yield a REACH message to each edge router of which `note` has changed answers since the last call."""
        for known in self._active.values():
            if known.news:
                news, known.news = known.news, {}
                yield SendControl(known.connection, Reach.opcode, Reach(self._router_id, news).to_map())

    # Methods about confirmations
    def check(self, number: int) -> list[Action]:
        """Ask the active edge routers whether all answers sent to them are in effect there; ``number`` goes up."""
        actions: list[Action] = []
        for edge, known in self._active.items():
            known.checked = number
            check = VersionCheck(self._router_id, 0, number, (edge,))
            actions.append(SendControl(known.connection, VersionCheck.opcode, check.to_map()))
        return actions

    def is_confirmed(self, number: int) -> bool:
        """Say whether all edge routers that were asked by ``check(number)``, and are active, have answered."""
        return all(known.confirmed >= number for known in self._active.values() if known.checked >= number)

    def confirm(self, edge: str, seq: int) -> list[Action]:
        """Tell edge router ``edge`` that the keys it takes, as its MAU ``seq`` said, are in effect in the mesh."""
        known = self._active.get(edge)
        if known is None:
            return []
        seen = VersionConfirmation(self._router_id, 0, edge, 0, seq)
        return [SendControl(known.connection, VersionConfirmation.opcode, seen.to_map())]

    # Queries
    @property
    def neighbors(self) -> dict[str, int]:
        """A map from each active edge router to the number of its connection."""
        return {edge: known.connection for edge, known in self._active.items()}

    def keys(self) -> dict[str, frozenset[str]]:
        """Return for each edge router whose active uplink is this router the keys that it takes or asks for."""
        return {edge: known.takes.union(known.asks) for edge, known in self._active.items()}

    def connection(self, edge: str) -> int | None:
        known = self._active.get(edge)
        return known.connection if known is not None else None

    def taking(self, key: str) -> frozenset[str]:
        edges = self._taking.get(key)
        return frozenset(edges) if edges else _NOBODY

    def asking(self, key: str) -> frozenset[str]:
        edges = self._asking.get(key)
        return frozenset(edges) if edges else _NOBODY


def _leave(edges_by_key: dict[str, set[str]], key: str, edge: str) -> None:
    edges = edges_by_key.get(key)
    if edges is not None:
        edges.discard(edge)
        if not edges:
            del edges_by_key[key]
