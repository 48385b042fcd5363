"""One router's forwarding by itself: groups between real endpoints that are joined in memory, in virtual time.

Every producer and consumer has a connection of its own; what a node does around the groups is done here by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from addressing.address import Address
from recording.records import Recorder
from router.forwarding.actions import GroupActions
from router.forwarding.anycast import Anycast
from router.forwarding.copies import Copies
from router.forwarding.ends import Inlet, Taker
from router.forwarding.fallback import AnycastWithFallback
from router.forwarding.filter_group import FilterGroup, MatchedMulticast
from router.forwarding.guard import Guard
from router.forwarding.multicast import Multicast
from router.forwarding.settings import ForwardingSettings
from router.timers import Timers
from wire import delivery as deliveries
from wire.address_cache import AddressCache
from wire.delivery import ACCEPTED, Outcome
from wire.endpoint import Endpoint, EndpointSettings
from wire.events import Event, LinkAttached, LinkDetached, LinkEstablished
from wire.terminus import source, target


class NoSharing:
    """What an anonymous sender asks about addresses that share circuits: here none does."""

    def __init__(self) -> None:
        self.groups = AddressCache(lambda: None)
        self.producers: dict[Any, None] = {}

    def egress_of(self, name: str) -> str | None:
        return None


@dataclass(eq=False)
class Connection:
    """``client`` and ``router`` are its two ends."""

    client: Endpoint = field(default_factory=lambda: Endpoint(EndpointSettings("client")))
    router: Endpoint = field(default_factory=lambda: Endpoint(EndpointSettings("router")))
    attached: list[Any] = field(default_factory=list)
    is_stalled: bool = False
    """The client's end reads nothing more: bytes stay in the router's engine."""
    is_cut: bool = False
    writes: int = 0
    """How often the router's end had bytes to write."""


@dataclass(eq=False)
class Producer:
    """A client that sends. ``inlet`` is what the router has of it."""

    link: Any
    connection: Connection
    inlet: Any = None
    outcomes: list[tuple[bytes, Outcome | None]] = field(default_factory=list)
    """What it sent, in the order in which it was settled, with what the router said of it."""
    open: dict[Any, bytes] = field(default_factory=dict)
    error: Any = None
    _count: int = 0

    def begin(self, message: bytes) -> Any:
        self._count += 1
        delivery = self.link.start(b"%d" % self._count)
        self.open[delivery] = message
        self.link.send(message)
        return delivery

    def send(self, *messages: bytes, settled: bool = False) -> None:
        for message in messages:
            delivery = self.begin(message)
            self.link.finish()
            if settled:
                deliveries.settle(delivery)
                del self.open[delivery]

    def on_disposition(self, delivery: Any) -> None:
        if delivery in self.open and deliveries.is_settled(delivery):
            self.outcomes.append((self.open.pop(delivery), deliveries.remote_outcome(delivery)))
            deliveries.settle(delivery)


@dataclass(eq=False)
class Consumer:
    """A client that takes. ``taker`` is what the router has of it."""

    link: Any
    connection: Connection
    taker: Any = None
    messages: list[bytes] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)
    partial: bytes = b""
    aborted: int = 0
    error: Any = None

    def answer(self, outcome: Outcome = ACCEPTED, count: int = 1_000_000) -> None:
        """Settle what it holds, oldest first."""
        now, self.held = self.held[:count], self.held[count:]
        for delivery in now:
            deliveries.set_outcome(delivery, outcome)
            deliveries.settle(delivery)

    def answer_last(self, outcome: Outcome = ACCEPTED) -> None:
        """Settle the newest only."""
        *older, newest = self.held
        self.held = [newest]
        self.answer(outcome)
        self.held = older

    def on_delivery(self, delivery: Any) -> None:
        if self.link.current != delivery:
            return
        self.partial += self.link.recv(1 << 20)
        if deliveries.is_aborted(delivery):
            self.aborted += 1
        elif deliveries.is_partial(delivery):
            return
        else:
            self.messages.append(self.partial)
        self.partial = b""
        self.link.advance()
        if deliveries.is_aborted(delivery) or deliveries.is_settled(delivery):
            deliveries.settle(delivery)
        else:
            self.held.append(delivery)


class Sink:
    """Where the events of links go that nobody compiled owns."""

    def on_delivery(self, link: Any, delivery: Any) -> None:
        if link.owner is not None:
            link.owner.on_delivery(delivery)

    def on_disposition(self, link: Any, delivery: Any) -> None:
        if isinstance(link.owner, Producer):
            link.owner.on_disposition(delivery)

    def on_flow(self, link: Any) -> None: ...


class Rig:
    """``settings``: those of forwarding. ``lost``: the lost ends of which groups told; ``actions``: their actions."""

    def __init__(self, **settings: Any) -> None:
        self.timers = Timers()
        self.recorder = Recorder()
        self.has_all_brokers = True
        self.settings = ForwardingSettings(**settings)
        self.copies = Copies(self.settings.copies_bytes)
        self.connections: list[Connection] = []
        self.lost: list[tuple[Any, Any]] = []
        self.actions = GroupActions()
        self.offences: list[Any] = []
        self._sink = Sink()
        self._names = 0

    # Groups, and what they tell their owner
    def anycast(self, *, closest: bool = False, spills: bool = False, phase: int = 0) -> Any:
        given = Address("", "orders"), phase, self.timers, self.settings, self, self.actions, self.copies, self.recorder
        return Anycast(*given, closest=closest, spills=spills)

    def multicast(self) -> Any:
        return Multicast(
            Address("", "prices"), 0, self.timers, self.settings, self, self.actions, self.copies, self.recorder
        )

    def matched(self, address: str, *filters: Any, fills_to: bool = False) -> Any:
        """A multicast address, whose deliveries the consumers of ``filters`` get, too."""
        given = Address("", address), 0, self.timers, self.settings, self, self.actions, self.copies, self.recorder
        group = MatchedMulticast(*given, fills_to=fills_to)
        for filter_ in filters:
            group.add_filter(filter_)
        return group

    def filter(self, address: str = "prices.#") -> Any:
        return FilterGroup(
            Address("", address), 0, self.timers, self.settings, self, self.actions, self.copies, self.recorder
        )

    def with_fallback(self) -> Any:
        given = Address("", "orders"), 0, self.timers, self.settings, self, self.actions, self.copies, self.recorder
        return AnycastWithFallback(*given)

    def on_end_lost(self, group: Any, end: Any, error: Any) -> None:
        self.lost.append((end, error))

    def is_complete(self, group: Any, is_circuit: bool) -> bool:
        return self.has_all_brokers

    def open_stream(self, group: Any, circuit: Any, inlet: Any) -> Any:
        return circuit

    def open_branches(self, group: Any) -> None: ...

    def open_streams(self, group: Any, inlet: Any) -> list[Any]:
        return []

    # Ends
    def connect(self, **settings: Any) -> Connection:
        """``settings``: those of the client's endpoint."""
        connection = Connection(client=Endpoint(EndpointSettings("client", **settings)))
        connection.client.open()
        connection.router.open()
        self.connections.append(connection)
        self.run()
        return connection

    def incoming(self, connection: Connection | None = None) -> tuple[Producer, Any]:
        """A producer, and the router's end of its link."""
        connection = connection or self.connect()
        self._names += 1
        link = connection.client.begin().sender(f"link-{self._names}")
        producer = link.owner = Producer(link, connection)
        return producer, self._attach(connection, link)

    def outgoing(
        self,
        connection: Connection | None = None,
        modes: tuple[int, int] | None = None,
        max_message_bytes: int | None = None,
    ) -> tuple[Consumer, Any]:
        connection = connection or self.connect()
        self._names += 1
        link = connection.client.begin().receiver(f"link-{self._names}")
        if modes is not None:
            link.set_settle_modes(*modes)
        if max_message_bytes is not None:
            link.set_max_message_bytes(max_message_bytes)
        consumer = link.owner = Consumer(link, connection)
        return consumer, self._attach(connection, link)

    def _attach(self, connection: Connection, link: Any) -> Any:
        link.set_source(source("here"))
        link.set_target(target("there"))
        link.open()
        self.run()
        attached = connection.attached.pop()
        attached.accept_as_proposed()
        self.run()
        return attached

    def producer(
        self, group: Any, limit: int = 10, *, is_circuit: bool = False, max_message_bytes: int | None = None
    ) -> Producer:
        producer, link = self.incoming()
        guard = None if max_message_bytes is None else Guard(link, max_message_bytes, self.offences.append)
        producer.inlet = Inlet(link, group, limit, is_circuit=is_circuit, guard=guard)
        group.add_inlet(producer.inlet)
        self.run()
        return producer

    def consumer(
        self,
        group: Any,
        credit: int = 10,
        *,
        cost: int = 0,
        upstream: Any = None,
        modes: tuple[int, int] | None = None,
        max_message_bytes: int | None = None,
        **settings: Any,
    ) -> Consumer:
        """``cost``: above 0 it is a circuit. ``settings``: those of the client's endpoint."""
        consumer, link = self.outgoing(self.connect(**settings), modes, max_message_bytes)
        consumer.taker = Taker(link, group, cost, upstream=upstream)
        group.add_taker(consumer.taker)
        consumer.link.grant(credit)
        self.run()
        return consumer

    # Time and bytes
    def run(self) -> None:
        """Move bytes until nobody has more to say."""
        moved = True
        while moved:
            moved = False
            for connection in self.connections:
                moved |= not connection.is_cut and self._step(connection)

    def carry_to_router(self, client: Producer | Consumer) -> None:
        """What this one says comes before all that others say."""
        self._carry(client.connection.client, client.connection.router, client.connection)

    def _step(self, connection: Connection) -> bool:
        client, router = connection.client, connection.router
        moved = self._carry(client, router, connection)
        if not connection.is_stalled:
            moved |= self._carry(router, client, connection)
        if router.has_waiters and router.has_room and not connection.is_stalled:
            router.wake_waiters()
        return moved

    def _carry(self, origin: Endpoint, goal: Endpoint, connection: Connection) -> bool:
        moved = False
        while chunk := origin.output():
            goal.receive(chunk)
            connection.writes += origin is connection.router
            moved = True
        for event in goal.drain(self._sink):
            self._on_event(event, connection, goal is connection.router)
            moved = True
        return moved

    def _on_event(self, event: Event, connection: Connection, is_router: bool) -> None:
        match event:
            case LinkAttached(link):
                connection.attached.append(link)
            case LinkEstablished(link) if is_router:
                link.owner.on_established(link)
            case LinkDetached(link, closed, error) if is_router:
                if link.owner is not None:
                    link.owner.on_left(closed, error)
                if not link.has_left:
                    link.close()
            case LinkDetached(link, _, error):
                link.owner.error = error or "detached"
                link.close()

    def advance(self, seconds: float) -> None:
        """Let time pass: deadlines come in their order, with all that follows from each."""
        self.run()
        end = self.timers.now + seconds
        while (deadline := self.timers.next_deadline()) is not None and deadline <= end:
            self.timers.run(deadline)
            self.run()
        self.timers.run(end)
        self.run()

    def cut(self, connection: Connection) -> None:
        """The connection is lost, and the router hears of it."""
        connection.is_cut = True
        for inlet in [link.owner for link in connection.router.links if isinstance(link.owner, Inlet)]:
            inlet.is_lost = True
        for link in connection.router.links:
            if link.owner is not None:
                link.owner.on_left(False, None)
        connection.router.free()
        self.run()

    def close(self) -> None:
        for connection in self.connections:
            if not connection.is_cut:
                self.cut(connection)


def one_to(rig: Rig, count: int, credit: int = 10) -> tuple[Producer, list[Consumer]]:
    """A producer of a multicast address, and its consumers."""
    group = rig.multicast()
    consumers = [rig.consumer(group, credit) for _ in range(count)]
    return rig.producer(group), consumers
