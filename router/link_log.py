"""Write state records to the link log: connections, links, neighbors and paths of this router, and their changes.

Records of deliveries are written where the deliveries are settled (`recording.records`) and name links by number. The
state record of a link, with its number, is written here at the end of the input that attached the link. The columns
of a record are explained in `recording.columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from addressing.address import Address
from addressing.book import SpaceBooks
from recording.columns import RecordEvent, RecordKind
from recording.records import Recorder
from recording.state_records import AT_ONCE, StateRecorder
from router.circuits.spec import CIRCUIT, CircuitSpec
from router.connections.peers import RouterConnection
from router.forwarding.ends import Inlet, Taker
from router.routing import actions
from router.routing.events import NeighborDown, NeighborExpired
from router.routing.snapshot import RoutingSnapshot
from wire import end_reasons
from wire.link import Link

_ROLES = {"inter-router": "router", "edge": "edge", "uplink": "router", "broker": "broker", "client": "client"}
_CLIENT, _BROKER = "client", "broker"
_BETWEEN_ROUTERS = ("inter-router", "edge", "uplink")


class RouterLinkLog:
    """Writes the state records of one router. ``routing`` returns a snapshot of its neighbors and paths."""

    def __init__(self, recorder: Recorder, books: SpaceBooks, routing: Callable[[], RoutingSnapshot]) -> None:
        self._recorder = recorder
        self._teller = StateRecorder(recorder)
        self._tell = self._teller.tell
        self._books = books
        self._arriving: dict[int, RouterConnection] = {}
        self._links: dict[int, dict[int, None]] = {}
        """For each connection with a state record, the numbers of its links with a state record."""
        self._reasons: dict[int, str] = {}
        """For each connection that is gone and has links left to record, the reason."""
        self._neighbors: dict[str, int] = {}
        self._is_topology_new = False
        self._routing = routing
        self._paths: dict[str, tuple[str, int]] = {}

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
        links = self._links.pop(connection.number, None)
        if links is not None:
            self._teller.tell_lost(connection.number, links, reason)

    def _meet(self) -> None:
        for number, connection in list(self._arriving.items()):
            if connection.endpoint.remote is None or connection.kind not in _ROLES:
                continue
            del self._arriving[number]
            self._links[number] = {}
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
        link = end.link
        connection = link.endpoint.owner
        known = self._links.get(connection.number)
        if link.is_gone or known is None:
            return
        known[end.number] = None
        spec = _spec_of(link) if connection.kind in _BETWEEN_ROUTERS else None
        address = _address_of(end, spec)
        policy = self._books.resolve(address) if address is not None else None
        if policy is not None and policy.link_log is not None:
            end.record_at(self._recorder.level_of(policy.link_log))
        self._tell(
            RecordKind.LINK,
            RecordEvent.OPENED,
            link=end.number,
            connection=connection.number,
            role=_role_of(end, connection.kind),
            direction="incoming" if isinstance(end, Inlet) else "outgoing",
            address=address.text if address is not None else None,
            treatment=policy.treatment if policy is not None else None,
            name=link.name,
            ingress=spec.ingress if spec else None,
            egress=spec.egress if spec and spec.path else None,
            path=">".join(spec.path) if spec else None,
        )

    def _on_link_left(self, end: Inlet | Taker, cause: str | None) -> None:
        number = end.link.endpoint.owner.number
        known = self._links.get(number)
        if known is not None and end.number in known:
            if isinstance(end, Inlet):
                self._teller.tell_credit(end.number, end, _cause_of(end.group))
            else:
                self._tell_taker(end)
            del known[end.number]
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
        return end.number in self._links.get(end.link.endpoint.owner.number, ())

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
    return Address(connection.space, name) if connection.kind == _CLIENT else Address.parse(name)


def _cause_of(group: Any) -> str:
    """Return the reason for which the senders of ``group`` have no credit.

    "no_taker": the group has no taker; "takers": the takers of the group, or of its relay, grant no credit.
    """
    return "takers" if getattr(group, "has_taker", True) else "no_taker"


def _role_of(end: Inlet | Taker, kind: str) -> str:
    if kind == _CLIENT:
        return "producer" if isinstance(end, Inlet) else "consumer"
    return "broker" if kind == _BROKER else "circuit"
