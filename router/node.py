"""A router as a node: owns all state of the router, takes inputs and the time, does no I/O.

The driver (`wire.driver`) calls the node with inputs. The node lists endpoints with bytes to send in ``dirty``, and
other work for the driver, such as opening a connection, in ``commands``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from addressing.address import normalize
from addressing.book import AddressPolicy, SpaceBooks
from addressing.operator_rights import OperatorRights
from addressing.permissions import Permissions
from addressing.routing_keys import broker_key, edge_key
from addressing.topology.queries import MAX_COST
from recording.records import Recorder
from router.addresses import RouterAddresses
from router.circuit_placement import CircuitPlacement
from router.circuits.circuits import Circuits
from router.circuits.neighbor import EDGE, INTERIOR, UPLINK, NeighborConnection
from router.circuits.spec import CircuitSpec, path_lost
from router.clients.clients import ClientConnection, ClientServices
from router.clients.connection_limits import ConnectionLimits
from router.clients.detach_waits import DetachWaits
from router.clients.management import ManagementRequests
from router.clients.pattern_addresses import PatternAddresses
from router.clients.sole_connections import SoleConnections
from router.connections.broker_connection import BrokerConnection
from router.connections.brokers import Brokers, is_broker_connector
from router.connections.peers import EDGE_ROLE, ROLE, ROUTER_ROLE, ArrivingConnection, RouterConnection
from router.distribution.edge_reach import EdgeReach
from router.distribution.reach import AddressReach
from router.events import CostChanged
from router.forced_ends import ForcedEnds
from router.forwarding.copies import Copies
from router.forwarding.ends import Inlet
from router.in_effect import ChangesInEffect
from router.link_log import RouterLinkLog
from router.path_changes import PathChanges
from router.routes.link_routes import RoutePaths
from router.routing import actions, events
from router.routing.core import Routing
from router.routing.edges import EdgeRouters
from router.routing.plane import Plane
from router.routing.uplinks import Uplinks
from router.settings import ListenerSettings, RouterSettings
from router.snapshot import RouterNodeSnapshot, connection_snapshot, router_views
from router.timers import RetryDelay, Timers
from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, Peer
from wire.engine import Pointer
from wire.errors import AmqpError
from wire.events import LinkDetached
from wire.forced_end import ForcedEnd
from wire.link import IncomingLink, Link
from wire.log import Emit, LogEvent
from wire.lost_links import TURN_S, LostLinks
from wire.node import Abort, Command

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress

_MOST_READ = 256
"""The most decisions of an answer."""


class RouterNode:
    """A router as a node: a ``wire.node.Node`` for the driver, and a ``wire.events.Sink`` for its endpoints."""

    def __init__(
        self,
        settings: RouterSettings,
        books: SpaceBooks,
        permissions: Permissions,
        rights: OperatorRights,
        emit: Emit,
        new_token: Callable[[], str],
        recorder: Recorder,
    ) -> None:
        self.dirty = DirtyEndpoints()
        self._settings = settings
        self._books = books
        self._emit = emit
        self._recorder = recorder
        self._timers = Timers()
        self._lost = LostLinks(self._want_turn)
        self._connections: dict[int, RouterConnection] = {}
        self._next_number = 1
        self._routing: Plane = self._make_plane(settings)
        self._link_log = RouterLinkLog(recorder, books, self._routing.snapshot, self._want_live_rows, emit)
        self._path_changes = PathChanges(self._routing.snapshot, emit)
        self._forced_ends = ForcedEnds(settings.router_id, self._connections, self._link_log, emit)
        self._edges = EdgeRouters(settings.router_id, settings.instance, settings.routing)
        self._routing_deadline = self._find_routing_deadline()
        self._costs = dict(settings.costs)
        copies = Copies(settings.forwarding.copies_bytes)
        self._circuits = Circuits(
            settings.router_id,
            settings.instance,
            self._neighbor,
            RetryDelay(self._timers, settings.forwarding.path_wait_s),
            copies,
            recorder,
        )
        self._brokers = Brokers(settings.router_id, settings.brokers, self._timers, self._on_broker_changed, emit)
        self.commands: list[Command] = self._brokers.commands
        self._addresses = RouterAddresses(
            self._make_reach(),
            books,
            self._edges,
            self._circuits,
            self._brokers,
            self._timers,
            settings.forwarding,
            copies,
            recorder,
            self._advertise,
            self._advertise_keys,
            emit,
        )
        self._in_effect = ChangesInEffect(
            self._routing,
            self._edges,
            lambda: self._addresses.is_settled,
            self._act,
            self._timers,
            settings.forwarding.path_wait_s,
        )
        self._leaving = DetachWaits(self._timers, settings.forwarding.path_wait_s, self._obey)
        self._ways = RoutePaths(settings.router_id, self._routing, self._brokers, self._circuits, emit)
        self._placing = CircuitPlacement(settings.router_id, books, self._addresses, self._circuits, self._ways)
        self._services = ClientServices(
            router_id=settings.router_id,
            instance=settings.instance,
            books=books,
            permissions=permissions,
            addresses=self._addresses,
            in_effect=self._in_effect,
            ways=self._ways,
            timers=self._timers,
            subscription_broker=settings.subscription_broker,
            new_token=new_token,
            connection_limits=ConnectionLimits(permissions.max_connections),
            sole_connections=SoleConnections(),
            management=ManagementRequests(settings.router_id, rights, self._timers),
            pattern_addresses=PatternAddresses(self._timers),
            recorder=recorder,
            emit=emit,
        )

    @staticmethod
    def _make_plane(settings: RouterSettings) -> Plane:
        if settings.is_edge:
            return Uplinks(settings.router_id, settings.instance, settings.routing, settings.costs)
        return Routing(settings.router_id, settings.instance, settings.routing)

    def _make_reach(self) -> AddressReach:
        settings, routing = self._settings, self._routing
        if isinstance(routing, Uplinks):
            return EdgeReach(settings.router_id, routing, self._brokers, self._ask)
        return AddressReach(settings.router_id, routing, self._brokers, self._edges, settings.edges)

    # Methods by which the driver passes inputs to the node
    def _look_at_clock(self, now: float) -> None:
        self._timers.now = now
        self._recorder.set_now(now)

    def on_accepted(self, listener: str, peer: Peer, now: float) -> Endpoint:
        self._look_at_clock(now)
        known = self._settings.listeners.get(listener)
        if known is None:
            endpoint = Endpoint(self._settings.node_endpoint, peer, self.dirty)
            self._adopt(ArrivingConnection(endpoint, self._take_number(), self._on_arrived))
            return endpoint
        endpoint = Endpoint(known.endpoint, peer, self.dirty)
        endpoint.may_answer_close = self._leaving.may_close
        self._adopt(ClientConnection(endpoint, self._take_number(), self._services, known))
        return endpoint

    def on_connected(self, connector: str, peer: Peer, now: float) -> Endpoint:
        self._look_at_clock(now)
        if is_broker_connector(connector):
            connection = self._brokers.on_connected(connector, peer, self._take_number(), self.dirty)
            self._adopt(connection)
            return connection.endpoint
        settings = replace(self._settings.node_endpoint, hostname=self._settings.connectors[connector])
        endpoint = Endpoint(settings, peer, self.dirty)
        kind = UPLINK if self._settings.is_edge else INTERIOR
        self._adopt(NeighborConnection(endpoint, self._take_number(), self, kind))
        endpoint.open()
        return endpoint

    def on_connect_failed(self, connector: str, reason: str, now: float) -> None:
        self._look_at_clock(now)
        if is_broker_connector(connector):
            self._brokers.on_connect_failed(connector, reason)
            self._settle()

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        self._timers.now = now
        self._recorder.set_now(now)
        connection: RouterConnection = endpoint.owner
        if isinstance(connection, NeighborConnection) and connection.has_news():
            self._plane_of(connection).on_heard(connection.number, now)
        for event in endpoint.drain(self):
            if not self._leaving.keeps(event):
                endpoint.owner.on_event(event)
        if endpoint.has_waiters and endpoint.has_room:
            endpoint.wake_waiters()
        if self._leaving.leavers:
            self._leaving.look()
        self._settle()

    def on_writable(self, endpoint: Endpoint, now: float) -> None:
        self._look_at_clock(now)
        endpoint.wake_waiters()
        self._leaving.look()
        self._settle()

    def on_disconnected(self, endpoint: Endpoint, reason: str, now: float) -> None:
        self._look_at_clock(now)
        connection: RouterConnection = endpoint.owner
        self._connections.pop(connection.number, None)
        # All inlets of the connection are marked as lost first: handling the loss of one link may start deliveries of
        # the connection's other links.
        for inlet in [link.owner for link in endpoint.links if isinstance(link.owner, Inlet)]:
            inlet.is_lost = True
        if isinstance(connection, NeighborConnection):
            # The routing core is told before the owners of links: deliveries of lost links look at once for another
            # path, which must not lead over this connection.
            if connection.kind == EDGE:
                self._act(self._edges.on_connection_lost(connection.number))
            else:
                self._act(self._routing.on_connection_lost(connection.number, now))
        elif isinstance(connection, BrokerConnection):
            # A connection to a broker is told of its loss before the owners of its links: else a link route that learns
            # of the loss would attach again over the connection that is being lost.
            connection.on_lost(reason)
        error = path_lost(f"connection to {connection.describe()} lost: {reason}")

        def tell(link: Link) -> None:
            if link.owner is not None and not link.is_gone:
                link.owner.on_left(False, error)

        if isinstance(connection, BrokerConnection):
            self._link_log.on_losing(connection, reason)
            self._lost.on_lost(endpoint, tell, partial(self._link_log.on_disconnected, connection, reason))
        else:
            for link in endpoint.links:
                tell(link)
            connection.on_lost(reason)
            self._link_log.on_disconnected(connection, reason)
        self._leaving.look()
        self._settle()

    def _want_turn(self) -> None:
        self._timers.after(TURN_S, self._lost.take_turn)

    def _want_live_rows(self, delay_s: float) -> None:
        self._timers.after(delay_s, self._link_log.live_rows.take_turn)

    def _settle(self) -> None:
        """Carry out the groups' actions and bring changed addresses up to date; called at the end of each input."""
        if news := self._addresses.settle():
            self._act(news)
        if self._in_effect.is_waiting:
            self._in_effect.look()
            # A consumer whose wait is over has joined its group.
            if news := self._addresses.settle():
                self._act(news)
        self._link_log.settle()

    def on_time(self, now: float) -> None:
        self._recorder.set_now(now)
        self._timers.run(now)
        self._act(self._routing.on_time(now))
        self._act(self._edges.on_time(now))
        self._leaving.look()
        self._settle()

    def on_second(self, now: float) -> None:
        """Write the state records of the last second to the link log; called once a second."""
        self._link_log.on_second(now)

    def recorded_counts(self) -> tuple[int, int]:
        """Return the numbers of connections and links in the link log that have not ended."""
        return self._link_log.counts()

    def list_live(self, now: float) -> int:
        """Begin to write the live rows of all connections, links, neighbors and paths into the ring of the link log.

        Return the number of the slot from which on the rows follow. Raises ValueError if the router has no ring.
        """
        self._look_at_clock(now)
        return self._link_log.live_rows.request()

    def next_deadline(self) -> float | None:
        timers, routing = self._timers.next_deadline(), self._routing_deadline
        if timers is None or routing is None:
            return routing if timers is None else timers
        return min(timers, routing)

    def _find_routing_deadline(self) -> float | None:
        routing, edges = self._routing.next_deadline(), self._edges.next_deadline()
        if routing is None or edges is None:
            return edges if routing is None else routing
        return min(routing, edges)

    # Properties and methods for operators and simulations
    @property
    def router_id(self) -> str:
        return self._settings.router_id

    @property
    def epoch(self) -> int:
        """A counter, raised whenever a path may have changed; always 0 at an edge router."""
        return self._routing.epoch if isinstance(self._routing, Routing) else 0

    def edges(self) -> dict[tuple[str, str], int]:
        """Return the connections between routers in reach, as this router knows them: two router ids in order -> cost.

        Return an empty dict at an edge router, which knows no connections between other routers.
        """
        return self._routing.edges() if isinstance(self._routing, Routing) else {}

    def set_cost(self, neighbor: str, cost: object, now: float) -> int:
        """Set this router's cost of the connection to ``neighbor``; of both ends' costs the larger counts.

        Return this router's cost before. Raises ValueError if the topology has no such connection, the connection is
        one of an edge router, or ``cost`` is not a valid cost.
        """
        if self._settings.is_edge or neighbor in self._settings.edges:
            edge = self._settings.router_id if self._settings.is_edge else neighbor
            raise ValueError(
                f"cost: expected interior routers, but {edge} is an edge router: the topology fixes its costs"
            )
        if neighbor not in self._costs:
            known = ", ".join(sorted(self._costs)) or "nobody"
            raise ValueError(f"the topology connects {self._settings.router_id} to {known}, not to {neighbor!r}")
        if not isinstance(cost, int) or isinstance(cost, bool) or not 1 <= cost <= MAX_COST:
            raise ValueError(f"cost: expected a whole number from 1 to {MAX_COST}, got {cost!r}")
        self._look_at_clock(now)
        before, self._costs[neighbor] = self._costs[neighbor], cost
        if cost != before:
            self._emit(CostChanged(neighbor, cost, before))
        for connection in list(self._connections.values()):
            if isinstance(connection, NeighborConnection) and connection.router_id == neighbor:
                self._act(self._routing.on_cost_changed(connection.number, cost, now))
        self._settle()
        return before

    def record_decisions(self, address: str, seconds: object, now: float) -> dict[str, Any]:
        """Note each decision about deliveries of ``address`` in the decision record, for ``seconds``.

        Return `seconds`, more than asked for if somebody else has asked for more, and `after`, the number of the newest
        decision before. Raises ValueError if the topology makes no such address available, or the time is out of
        bounds.
        """
        self._look_at_clock(now)
        return self._addresses.recordings.begin(self._recorded_policy(address), seconds)

    def decisions(self, address: str, after: int, now: float) -> dict[str, Any]:
        """Return the next decisions about ``address`` behind the number ``after``, and what the links in them lead to.

        Raises ValueError if the address is not recorded.
        """
        self._look_at_clock(now)
        groups, policy = self._addresses.recorded_groups(), self._recorded_policy(address)
        found = self._addresses.recordings.read(policy.address, after, _MOST_READ, groups, self._link_log.describe)
        for row in found["decisions"]:
            row["at"] = self._recorder.wall_s(row.pop("at_us"))
        return found

    def _recorded_policy(self, address: str) -> AddressPolicy:
        policy = self._books.of("").resolve(normalize(address))
        if policy is None or policy.kind.is_refused:
            raise ValueError(f"the topology makes no address {address!r:.300} available")
        return policy

    def check_added(self, added: Mapping[str, DeclaredAddress]) -> None:
        """Raise ValueError if consumers use a filter here to which ``added``, further declarations, give a new meaning.

        `addressing.additions.conflicts` has to find no conflict in the declarations themselves.
        """
        filter_ = self._addresses.filter_conflict(self._books.extended(added))
        if filter_ is not None:
            raise ValueError(f"consumers use the filter {filter_}, which would match other types of addresses")

    def add_addresses(self, added: Mapping[str, DeclaredAddress], now: float) -> None:
        """Serve the addresses that ``added``, further declarations of the topology, declare."""
        self._look_at_clock(now)
        self._books.adopt(self._books.extended(added))
        self._addresses.on_addresses_added()
        self._settle()

    def endpoint_of(self, number: int) -> Endpoint:
        """Return the endpoint of the open connection with this number. Raises ValueError if there is none."""
        return self._forced_ends.connection(number).endpoint

    def close_connection(self, number: int, forced: ForcedEnd, now: float) -> None:
        """Close the connection with this number by an operator's request; to its peer's links, it is lost at once.

        Raises ValueError if there is no such connection.
        """
        self._look_at_clock(now)
        self._forced_ends.close_connection(number, forced)
        self._settle()

    def close_link(self, connection: int, number: int, forced: ForcedEnd, now: float) -> None:
        """Close a client's link, by its number in the records, by an operator's request.

        Raises ValueError if there is no such link, or it is not a client's.
        """
        self._look_at_clock(now)
        self._forced_ends.close_link(connection, number, forced)
        self._settle()

    # Methods that pass events of deliveries and credit on, at once and one by one, to the owner of the link
    def on_delivery(self, link: IncomingLink, delivery: Pointer) -> None:
        if link.owner is not None:
            link.owner.on_delivery(link, delivery)

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        if link.owner is not None:
            link.owner.on_disposition(link, delivery)

    def on_flow(self, link: Link) -> None:
        if link.owner is not None:
            link.owner.on_flow(link)

    # Connections
    def _take_number(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number

    def _adopt(self, connection: RouterConnection) -> None:
        connection.endpoint.owner = connection
        self._connections[connection.number] = connection
        self._link_log.on_connection(connection)

    def _on_arrived(self, arriving: ArrivingConnection) -> None:
        """Treat the peer of a connection to the node port as a router or as an operator, now that its OPEN arrived.

        The peer is a router if the OPEN's properties say so. Raises AmqpError if the router's certificate has another
        name than the router, or if this router is an edge router, to which no router may connect.
        """
        endpoint, number = arriving.endpoint, arriving.number
        remote = endpoint.remote
        assert remote is not None
        role = remote.properties.get(ROLE)
        if role not in (ROUTER_ROLE, EDGE_ROLE):
            operators = ListenerSettings(self._settings.node_endpoint, self._settings.forwarding.link_capacity)
            self._adopt(ClientConnection(endpoint, number, self._services, operators))
        else:
            who = endpoint.peer.mesh_name
            if who is not None and who != remote.container_id:
                raise AmqpError(
                    "amqp:unauthorized-access",
                    f"a peer says that it is router {remote.container_id!r}, and its certificate is for {who!r}",
                )
            if self._settings.is_edge:
                raise AmqpError(
                    "amqp:not-allowed",
                    f"{self._settings.router_id} is an edge router, to which no router may connect",
                )
            self._adopt(NeighborConnection(endpoint, number, self, EDGE if role == EDGE_ROLE else INTERIOR))
            endpoint.open()
        endpoint.owner.on_opened()

    def _plane_of(self, connection: NeighborConnection) -> Plane | EdgeRouters:
        return self._edges if connection.kind == EDGE else self._routing

    def _neighbor(self, router: str) -> NeighborConnection | None:
        number = self._routing.neighbors.get(router) or self._edges.connection(router)
        connection = self._connections.get(number) if number is not None else None
        return connection if isinstance(connection, NeighborConnection) else None

    # Methods that the connections to neighbors call
    def on_control_up(self, connection: NeighborConnection) -> None:
        cost = self._costs.get(connection.router_id, 1)
        self._act(self._plane_of(connection).on_connected(connection.number, cost, self._timers.now))

    def on_control(self, connection: NeighborConnection, opcode: str, body: Mapping[str, Any]) -> None:
        self._act(self._plane_of(connection).on_message(connection.number, body, opcode, self._timers.now))

    def on_circuit(self, connection: NeighborConnection, link: Link, circuit: str) -> None:
        try:
            spec = CircuitSpec.from_text(circuit)
            if connection.kind == EDGE:
                self._placing.of_edge(link, spec, connection.number)
            else:
                self._placing.of_router(link, spec)
        except AmqpError as error:
            link.refuse(error)

    # Routing
    def _ask(self, key: str, is_wanted: bool) -> None:
        assert isinstance(self._routing, Uplinks)
        added, removed = ([key], []) if is_wanted else ([], [key])
        self._act(self._routing.ask(added, removed, self._timers.now))

    def _on_edge_changed(self, change: actions.EdgeChanged) -> None:
        if change.is_active is not None:
            self._emit(events.EdgeUp(change.edge) if change.is_active else events.EdgeDown(change.edge))
            self._advertise(edge_key(change.edge), change.is_active, at_once=True)
        self._addresses.on_edge_changed(change.edge, change.keys, has_moved=change.is_active is not None)

    def _advertise(self, key: str, is_there: bool, *, at_once: bool = False) -> None:
        added, removed = ([key], []) if is_there else ([], [key])
        self._act(self._routing.advertise(added, removed, self._timers.now, at_once=at_once))

    def _advertise_keys(self, added: list[str], removed: list[str]) -> None:
        self._act(self._routing.advertise(added, removed, self._timers.now))

    def _on_broker_changed(self, broker: str) -> None:
        # An announcement that fallback queues at the broker may hold messages leaves first: another router that learns
        # of the broker then knows of the messages already.
        self._addresses.on_broker_changed(broker)
        self._ways.waits.on_paths_changed()
        self._advertise(broker_key(broker), self._brokers.is_up(broker))

    def _act(self, todo: Iterable[actions.Action]) -> None:
        for action in todo:
            self._link_log.on_routing(action)
            match action:
                case actions.SendControl(number, opcode, body):
                    connection = self._connections.get(number)
                    if isinstance(connection, NeighborConnection):
                        connection.send_control(opcode, body)
                case actions.CloseConnection(number, condition, description):
                    if number in self._connections:
                        self._connections[number].endpoint.close(AmqpError(condition, description))
                case actions.DropConnection(number, condition, description):
                    self._drop(number, AmqpError(condition, description))
                case actions.TopologyChanged(unreachable, reachable):
                    if unreachable or reachable:
                        self._emit(events.PathsChanged(sorted(reachable), sorted(unreachable)))
                    if events.PathChosen.is_wanted:
                        self._path_changes.tell()
                    self._addresses.on_paths_changed()
                    self._ways.waits.on_paths_changed()
                case actions.AddressesChanged(_, added, removed):
                    self._addresses.on_keys_changed(added | removed)
                    self._ways.waits.on_paths_changed()
                case actions.EdgeChanged():
                    self._on_edge_changed(action)
                case actions.ConfirmationRequest():
                    self._in_effect.on_asked(action)
                case LogEvent():
                    self._emit(action)

        # The deadline is cached, because the driver asks for it after every input. Bytes from a neighbor move the
        # deadline, too, but only to a later time, so a call at the cached deadline may come too early and do nothing.
        self._routing_deadline = self._find_routing_deadline()

    def _drop(self, number: int, error: AmqpError) -> None:
        """Close the connection with ``error`` and abort the connection, without waiting for the peer's answer.

        A peer that was only suspended finds the CLOSE, with its error, when the peer runs again.
        """
        if (connection := self._connections.get(number)) is not None:
            connection.endpoint.close(error)
            self.commands.append(Abort(connection.endpoint, error.description))

    @staticmethod
    def _obey(event: LinkDetached) -> None:
        event.link.endpoint.owner.on_event(event)

    # Methods that return snapshots for people and tests.
    def snapshot(self) -> RouterNodeSnapshot:
        return RouterNodeSnapshot(
            router_id=self._settings.router_id,
            mesh=self._settings.mesh,
            connections=tuple(connection_snapshot(connection) for connection in self._connections.values()),
            addresses=self._addresses.snapshot(),
            brokers=self._brokers.snapshot(),
            transit_circuits=self._circuits.transit_count,
            routers=tuple(router_views(self._routing.snapshot())),
            mode=EDGE if self._settings.is_edge else "interior",
            active_uplink=self._routing.active if isinstance(self._routing, Uplinks) else None,
            edges=tuple(sorted(self._edges.neighbors)),
        )
