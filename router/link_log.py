"""Write state records to the link log: connections, links, neighbors and paths of this router, and their changes.

Records of deliveries are written where the deliveries are settled (`recording.records`) and name links by number. The
state record of a link, with its number, is written here at the end of the input that attached the link. The columns
of a record are explained in `recording.columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from addressing.address import Address
from addressing.book import AddressPolicy, SpaceBooks
from recording.columns import RecordEvent, RecordKind
from recording.live_rows import LiveRows, RowMaker
from recording.pending_records import Row
from recording.records import Recorder
from recording.state_records import AT_ONCE, StateRecorder, row_of
from router.circuits.spec import CIRCUIT, CircuitSpec
from router.connections.peers import RouterConnection
from router.forwarding.ends import Inlet, Taker
from router.routing import actions
from router.routing.events import NeighborDown, NeighborExpired
from router.routing.snapshot import RoutingSnapshot
from wire import end_reasons
from wire.link import Link
from wire.log import Emit

_ROLES = {"inter-router": "router", "edge": "edge", "uplink": "router"} | {
    kind: kind for kind in ("broker", "client", "operator")
}
_CLIENTS, _BROKER = ("client", "operator"), "broker"
_BETWEEN_ROUTERS = ("inter-router", "edge", "uplink")


@dataclass(frozen=True, slots=True)
class _RecordedConnection:
    """A connection with a state record, and those of its links that have a state record, by number."""

    connection: RouterConnection
    links: dict[int, Inlet | Taker] = field(default_factory=dict)


class RouterLinkLog:
    """Writes the state records of one router. ``routing`` returns a snapshot of its neighbors and paths.

    ``want_turn(delay_s)`` is called when ``live_rows.take_turn`` is to be called after this delay, in seconds.
    """

    def __init__(
        self,
        recorder: Recorder,
        books: SpaceBooks,
        routing: Callable[[], RoutingSnapshot],
        want_turn: Callable[[float], None],
        log: Emit,
    ) -> None:
        self._recorder = recorder
        self._teller = StateRecorder(recorder, log)
        self._tell = self._teller.tell
        self._books = books
        self._arriving: dict[int, RouterConnection] = {}
        self._recorded: dict[int, _RecordedConnection] = {}
        self._link_count = 0
        self._reasons: dict[int, str] = {}
        """For each connection that is gone and has links left to record, the reason."""
        self._neighbors: dict[str, int] = {}
        self._is_topology_new = False
        self._routing = routing
        self._paths: dict[str, tuple[str, int]] = {}
        self.live_rows = LiveRows(self._teller, self._things, want_turn)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of connections and links that have a state record, and have not ended."""
        return len(self._recorded), self._link_count

    # Connections
    def on_connection(self, connection: RouterConnection) -> None:
        """Note a new connection, to write its state record once the peer's OPEN has told what the peer is."""
        if self._teller.is_on:
            self._arriving[connection.number] = connection

    def on_losing(self, connection: RouterConnection, reason: str) -> None:
        """Note that ``connection`` is gone for ``reason``: its links, which may end later, get this reason."""
        self._reasons[connection.number] = reason

    def on_disconnected(self, connection: RouterConnection, reason: str) -> None:
        """Record that ``connection`` is gone for ``reason``, and all of its links."""
        # The links of this connection get the connection's ``reason``: the error noted at each link is the error that
        # was passed on to peers on other connections.
        self.on_losing(connection, reason)
        self.settle()
        del self._reasons[connection.number]
        self._arriving.pop(connection.number, None)
        recorded = self._recorded.pop(connection.number, None)
        if recorded is not None:
            self._link_count -= len(recorded.links)
            self._teller.tell_lost(connection.number, recorded.links, reason)

    def end_of(self, connection: int, number: int) -> Inlet | Taker | None:
        """Return the end of a recorded connection's link by its number in the records; None if there is none."""
        recorded = self._recorded.get(connection)
        return None if recorded is None else recorded.links.get(number)

    def numbers_of(self, connection: int) -> list[int]:
        """Return the numbers of the links of a connection that have a state record, and have not ended."""
        recorded = self._recorded.get(connection)
        return [] if recorded is None else list(recorded.links)

    @staticmethod
    def describe(end: Inlet | Taker) -> dict[str, Any]:
        """Return role, name, container-id, and for a circuit ingress, egress and path of an end, as people know it."""
        connection: RouterConnection = end.link.endpoint.owner
        spec = _spec_of(end.link) if connection.kind in _BETWEEN_ROUTERS else None
        remote = connection.endpoint.remote
        found = {
            "role": _role_of(end, connection.kind),
            "name": end.link.name,
            "container": remote.container_id if remote is not None else None,
            "ingress": spec.ingress if spec else None,
            "egress": spec.egress if spec and spec.path else None,
            "path": ">".join(spec.path) if spec else None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _meet(self) -> None:
        for number, connection in list(self._arriving.items()):
            if connection.endpoint.remote is None or connection.kind not in _ROLES:
                continue
            del self._arriving[number]
            self._recorded[number] = _RecordedConnection(connection)
            self._teller.tell_opened(number, _ROLES[connection.kind], connection.endpoint)

    # Links
    def settle(self) -> None:
        """Record all connections and links that came or went since the last call."""
        if self._arriving:
            self._meet()
        if self._recorder.has_changes:
            for end, is_there, error in self._recorder.take_changes():
                if is_there:
                    self._on_link(end)
                elif (reason := self._reasons.get(end.link.endpoint.owner.number)) is not None:
                    self._on_link_left(end, end_reasons.without_words(reason))
                else:
                    self._on_link_left(end, end_reasons.told(error))

    def _on_link(self, end: Inlet | Taker) -> None:
        connection: RouterConnection = end.link.endpoint.owner
        recorded = self._recorded.get(connection.number)
        if end.link.is_gone or recorded is None:
            return
        recorded.links[end.number] = end
        self._link_count += 1
        spec = _spec_of(end.link) if connection.kind in _BETWEEN_ROUTERS else None
        address = _address_of(end, spec)
        policy = self._books.resolve(address) if address is not None else None
        if policy is not None and policy.link_log is not None:
            end.record_at(self._recorder.level_of(policy.link_log))
        self._tell(RecordKind.LINK, RecordEvent.OPENED, **_link_columns(end, connection, spec, address, policy))

    def _on_link_left(self, end: Inlet | Taker, cause: str | None) -> None:
        number = end.link.endpoint.owner.number
        recorded = self._recorded.get(number)
        if recorded is not None and end.number in recorded.links:
            if isinstance(end, Inlet):
                self._teller.tell_credit(end.number, end, _cause_of(end.group))
            else:
                self._tell_taker(end)
            del recorded.links[end.number]
            self._link_count -= 1
            self._teller.tell_detached(end.number, number, cause)

    def on_second(self, now: float) -> None:
        """Record the values that change all the time: credit, time without credit, drains, missed copies, paths.

        The node calls this once a second.
        """
        self._recorder.set_now(now)
        self.settle()
        self._teller.end_second()
        for end in self._recorder.take_moved(AT_ONCE):
            self._note(end)
        for end in self._recorder.take_restless():
            if isinstance(end, Taker):
                self._tell_taker(end)
            else:
                self._teller.is_starving(end.number, end)
        self._teller.tell_starving(self._cause_of)
        self._teller.tell_standing(now)
        if self._is_topology_new:
            self._is_topology_new = False
            self._compare()

    def _tell_taker(self, taker: Taker) -> None:
        missed, drains = taker.take_missed(), taker.take_drains()
        if not self._is_known(taker):
            return
        if missed:
            self._tell(RecordKind.DROP, None, link=taker.number, count=missed, cause="stalled")
        if drains:
            self._tell(
                RecordKind.CREDIT, RecordEvent.DRAIN, link=taker.number, count=drains, credit=max(0, taker.credit)
            )

    def _note(self, end: Inlet | Taker) -> None:
        end.rest()
        if end.record_level and self._is_known(end):
            self._teller.is_moving(end.number, end)

    def _is_known(self, end: Inlet | Taker) -> bool:
        """True if the link of ``end`` has a state record, and has not ended."""
        recorded = self._recorded.get(end.link.endpoint.owner.number)
        return recorded is not None and end.number in recorded.links

    def _cause_of(self, number: int, inlet: Inlet) -> str | None:
        return _cause_of(inlet.group) if self._is_known(inlet) else None

    # Neighbors and paths
    def on_routing(self, action: actions.Action) -> None:
        """Record a lost neighbor at once; note other changes of neighbors and paths for the next call of `on_second`.

        When a mesh starts, many changes come together, and one record for each neighbor and path is enough.
        """
        match action:
            case NeighborDown(router, reason):
                self._lose(router, reason)
            case NeighborExpired(router, silent_s) if router is not None:
                self._lose(router, f"silent for {silent_s:.1f} s")
            case actions.TopologyChanged():
                self._is_topology_new = self._teller.is_on
            case _:
                pass

    def _lose(self, router: str, cause: str) -> None:
        cost = self._neighbors.pop(router, None)
        if cost is not None:
            self._tell(RecordKind.NEIGHBOR, RecordEvent.CLOSED, neighbor=router, cost=cost, cause=cause)

    def _compare(self) -> None:
        """Record what changed since the last comparison: neighbors, and the cheapest path to each router."""
        known = self._routing()
        self._compare_neighbors({name: each.cost for name, each in known.neighbors.items()})
        paths = {name: (">".join(each.path), each.cost or 0) for name, each in known.routers.items() if each.path}
        self._compare_paths({name: path for name, path in paths.items() if name != known.router_id})

    def _compare_neighbors(self, found: dict[str, int]) -> None:
        for router, cost in found.items():
            if self._neighbors.get(router) != cost:
                self._tell(RecordKind.NEIGHBOR, _came(router, self._neighbors), neighbor=router, cost=cost)
        for router in self._neighbors.keys() - found.keys():
            self._tell(RecordKind.NEIGHBOR, RecordEvent.CLOSED, neighbor=router, cost=self._neighbors[router])
        self._neighbors = found

    def _compare_paths(self, found: dict[str, tuple[str, int]]) -> None:
        for router, (path, cost) in found.items():
            if self._paths.get(router) != (path, cost):
                self._tell(RecordKind.PATH, _came(router, self._paths), egress=router, path=path, cost=cost)
        for router in self._paths.keys() - found.keys():
            self._tell(RecordKind.PATH, RecordEvent.CLOSED, egress=router)
        self._paths = found

    # Live rows
    def _things(self) -> Iterator[RowMaker]:
        for number in list(self._recorded):
            if (recorded := self._recorded.get(number)) is not None:
                yield partial(self._live_connection, number)
                for link in list(recorded.links):
                    yield partial(self._live_link, number, link)
                    yield partial(self._live_credit, number, link)
        for router in list(self._neighbors):
            yield partial(self._live_neighbor, router)
        for router in list(self._paths):
            yield partial(self._live_path, router)

    def _live_connection(self, number: int) -> Row | None:
        recorded = self._recorded.get(number)
        if recorded is None:
            return None
        connection = recorded.connection
        return self._teller.live_connection(number, _ROLES[connection.kind], connection.endpoint)

    def _live_link(self, number: int, link: int) -> Row | None:
        end = self._recorded[number].links.get(link) if number in self._recorded else None
        if end is None or end.link.is_gone:
            return None
        connection = self._recorded[number].connection
        spec = _spec_of(end.link) if connection.kind in _BETWEEN_ROUTERS else None
        address = _address_of(end, spec)
        policy = self._books.resolve(address) if address is not None else None
        return row_of(RecordKind.LINK, RecordEvent.LIVE, **_link_columns(end, connection, spec, address, policy))

    def _live_credit(self, number: int, link: int) -> Row | None:
        is_there = number in self._recorded and link in self._recorded[number].links
        return self._teller.live_credit(link) if is_there else None

    def _live_neighbor(self, router: str) -> Row | None:
        cost = self._neighbors.get(router)
        return None if cost is None else row_of(RecordKind.NEIGHBOR, RecordEvent.LIVE, neighbor=router, cost=cost)

    def _live_path(self, router: str) -> Row | None:
        if router not in self._paths:
            return None
        path, cost = self._paths[router]
        return row_of(RecordKind.PATH, RecordEvent.LIVE, egress=router, path=path, cost=cost)


def _link_columns(
    end: Inlet | Taker,
    connection: RouterConnection,
    spec: CircuitSpec | None,
    address: Address | None,
    policy: AddressPolicy | None,
) -> Row:
    send, receive = end.link.settle_modes
    return {
        "link": end.number,
        "connection": connection.number,
        "role": _role_of(end, connection.kind),
        "direction": "incoming" if isinstance(end, Inlet) else "outgoing",
        "address": address.text if address is not None else None,
        "treatment": policy.treatment if policy is not None else None,
        "name": end.link.name,
        "ingress": spec.ingress if spec else None,
        "egress": spec.egress if spec and spec.path else None,
        "path": ">".join(spec.path) if spec else None,
        "sender_settle_mode": send,
        "receiver_settle_mode": receive,
    }


def _came(router: str, before: Mapping[str, object]) -> RecordEvent:
    return RecordEvent.CHANGED if router in before else RecordEvent.OPENED


def _spec_of(link: Link) -> CircuitSpec | None:
    """Return the circuit spec in the attach of a link between routers; None if the attach has none."""
    text = link.own_property(CIRCUIT) or link.remote_property(CIRCUIT)
    return CircuitSpec.from_text(text) if text is not None else None


def _address_of(end: Inlet | Taker, spec: CircuitSpec | None) -> Address | None:
    """Return the address of the end's group or circuit, or else the address in the attach; None if there is none.

    A client names an address within the space of its connection; a router names an address to a broker by its text.
    """
    found: Address | None = getattr(end.group, "address", None)
    if found is None and spec is not None and spec.address.name:
        found = spec.address
    if found is not None or spec is not None:
        return found
    link = end.link
    name = link.wanted.address or link.said_address
    if not name:
        return None
    connection: RouterConnection = link.endpoint.owner
    return Address(connection.space, name) if connection.kind in _CLIENTS else Address.parse(name)


def _cause_of(group: Any) -> str:
    """Return the reason for which the senders of ``group`` have no credit.

    "no_taker": the group has no taker; "takers": the takers of the group, or of its relay, grant no credit.
    """
    return "takers" if getattr(group, "has_taker", True) else "no_taker"


def _role_of(end: Inlet | Taker, kind: str) -> str:
    if kind in _CLIENTS:
        return "producer" if isinstance(end, Inlet) else "consumer"
    return "broker" if kind == _BROKER else "circuit"
