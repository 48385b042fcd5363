"""Answer the attaches of a client: with a place in an address's group, with a link route to a broker, or a refusal.

A producer without a target address becomes an anonymous producer, whose messages name their addresses.

A group has the producers and consumers of one address at this router.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from addressing.address import Address, dynamic_address, normalize, router_of
from addressing.book import AddressPolicy, SpaceBooks
from addressing.management import REQUESTS_ADDRESS, managed_node
from addressing.names import ANONYMOUS
from addressing.pattern import is_pattern
from addressing.permissions import Permissions
from addressing.wildcards import why_refused, why_uncovered
from recording.records import Recorder
from router.addresses import RouterAddresses
from router.clients.connection_limits import ConnectionLimits
from router.clients.events import AttachDecided
from router.clients.filter_sets import check_control, has_set, is_control
from router.clients.management import ManagementRequests
from router.clients.multicast_sets import MulticastSets
from router.clients.pattern_addresses import PatternAddresses, SenderIdentity
from router.clients.sole_connections import ESTABLISHMENT_FAILED, SoleConnections
from router.connections.peers import RouterConnection
from router.events import AttachRefused, LinkEnded
from router.forwarding.address import AddressGroup
from router.forwarding.anonymous import AnonymousProducer
from router.forwarding.ends import Inlet, Taker
from router.forwarding.guard import Guard
from router.in_effect import ChangesInEffect
from router.routes.link_routes import IngressRoute, RoutePaths, RouteRequest
from router.settings import ListenerSettings
from router.timers import RetryDelay, Timers
from wire import routed_name
from wire.endpoint import Endpoint
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink
from wire.log import Emit
from wire.terminus import DistributionMode, Terminus, TerminusType, source, target

ANONYMOUS_CREDIT = 250
"""Maximum credit of an anonymous producer, whose target has no address: its messages are read, and wait in memory, in
order for each address, until takers have credit.
"""


@dataclass(frozen=True, slots=True)
class ClientServices:
    """The parts of a router that a client connection uses.

    ``new_token`` returns an unguessable string, for the name of a dynamic address.
    """

    router_id: str
    instance: int
    books: SpaceBooks
    permissions: Permissions
    addresses: RouterAddresses
    in_effect: ChangesInEffect
    ways: RoutePaths
    timers: Timers
    subscription_broker: str | None
    """The broker that gets attaches without a source address, to find a durable subscription by the link's name."""
    new_token: Callable[[], str]
    connection_limits: ConnectionLimits
    sole_connections: SoleConnections
    management: ManagementRequests
    pattern_addresses: PatternAddresses
    recorder: Recorder
    emit: Emit


class ClientConnection(RouterConnection):
    """A connection from a client, or from an operator, who may also use internal addresses.

    The listener decides the space of the connection, once: every address that the client names is an address of this
    space, found in the book of the space.
    """

    def __init__(self, endpoint: Endpoint, number: int, services: ClientServices, listener: ListenerSettings) -> None:
        super().__init__(endpoint, number)
        if endpoint.peer.is_mesh:
            self.kind = "operator"
        self._services = services
        self.space = listener.space
        self._book = services.books.of(listener.space)
        self._link_capacity = listener.link_capacity
        self._max_message_bytes = listener.max_message_bytes
        self._patience = RetryDelay(services.timers, listener.sender_stall_timeout_s)
        self._routes: set[IngressRoute] = set()
        self._sets = MulticastSets(services.addresses.sets, services.in_effect)
        self._dynamic: set[Address] = set()
        self._is_counted = False

    def on_opened(self) -> None:
        peer = self.endpoint.peer
        if not peer.is_mesh:
            self._services.connection_limits.enter(peer.user)
            self._is_counted = True
            self._enter_as_sole()
        self.endpoint.open()

    def _enter_as_sole(self) -> None:
        try:
            self._services.sole_connections.enter(self.endpoint, self.space)
        except AmqpError:
            # The property `ESTABLISHMENT_FAILED` of the OPEN announces that a CLOSE with an error follows: clients then
            # treat the connection as never established.
            self.endpoint.open({ESTABLISHMENT_FAILED: True})
            raise

    def on_lost(self, reason: str) -> None:
        if self._is_counted:
            self._services.connection_limits.leave(self.endpoint.peer.user)
            self._services.sole_connections.leave(self.endpoint, self.space)

    def on_attached(self, link: Link) -> None:
        try:
            if isinstance(link, IncomingLink):
                self._on_producer(link)
            elif isinstance(link, OutgoingLink):
                self._on_consumer(link)
        except AmqpError as error:
            self._refuse(link, error)
        else:
            if AttachDecided.is_wanted:
                self._tell_decided(link)

    def _tell_decided(self, link: Link) -> None:
        is_incoming, name = isinstance(link, IncomingLink), link.wanted.address or link.said_address
        resolve = self._book.resolve if is_incoming else self._book.resolve_filter
        policy = resolve(name) if name else None
        self._services.emit(
            AttachDecided(
                client=self.describe(),
                user=self.endpoint.peer.user,
                link=link.name,
                direction="incoming" if is_incoming else "outgoing",
                address=Address(self.space, name).text if name else None,
                pattern=policy.pattern or None if policy is not None else None,
                treatment=policy.treatment if policy is not None else None,
                broker=policy.brokers[0] if policy is not None and policy.is_link_routed else None,
            )
        )

    def _refuse(self, link: Link, error: AmqpError) -> None:
        self._tell(AttachRefused, link, error)
        link.refuse(error)

    def on_over_limit(self, link: Link, error: AmqpError) -> None:
        self._tell(AttachRefused, link, error)

    def on_link_faulted(self, link: Link, error: AmqpError) -> None:
        self._tell(LinkEnded, link, error)

    def close_link(self, link: Link, error: AmqpError) -> None:
        """End a client's link with ``error``, as if the client had been lost; the link's owner must be set.

        A terminus that is to outlive the link stays: its link is detached, not closed. [2.6.4]
        """
        owner, closed = link.owner, not link.may_outlive
        if closed:
            link.close(error)
        else:
            link.detach(error)
        owner.on_left(closed, error)
        link.owner = None

    def _tell(self, kind: type[AttachRefused | LinkEnded], link: Link, error: AmqpError) -> None:
        wanted = link.wanted
        self._services.emit(
            kind(
                client=self.describe(),
                user=self.endpoint.peer.user,
                link=link.name,
                address=None if wanted.address is None else Address(self.space, wanted.address).text,
                condition=error.condition,
                description=error.description,
            )
        )

    # Producers
    def _on_producer(self, link: IncomingLink) -> None:
        wanted = link.wanted
        if wanted.type is TerminusType.COORDINATOR:
            raise AmqpError(
                "amqp:not-implemented", "the target is a transaction coordinator, and the mesh supports no transactions"
            )
        if wanted.is_dynamic:
            self._on_dynamic_target(link, link.remote_target)
            return
        node = managed_node(wanted.address, self._services.router_id) if wanted.address else None
        if node is not None:
            self._services.management.attach_client(link, node, self._end)
            return
        link.set_max_message_bytes(self._max_message_bytes)
        if is_control(link):
            policy = self._resolve(wanted.address or "", sends=False)
            check_control(self._book, policy)
            if policy.kind.is_copied_by_routers:
                self._sets.attach_control(link)
                return
            self._route(link, policy, wanted.address, ends_with_path=True)
            return
        if not wanted.address:
            link.accept_as_proposed()
            credit = min(self._link_capacity, ANONYMOUS_CREDIT)
            guard, recorder, peer = self._guard(link), self._services.recorder, self.endpoint.peer
            known = self._services.pattern_addresses.of(SenderIdentity(self.space, peer.user, peer.is_mesh))
            pattern_of = partial(self._pattern_of, {})
            sharing = self._services.addresses.sharing(self.space)
            AnonymousProducer(link, credit, self._find_group, pattern_of, known, sharing, guard, recorder).top_up()
            return
        policy = self._resolve(wanted.address, sends=True)
        if policy.is_link_routed:
            self._route(link, policy, wanted.address)
            return
        group = self._noted(self._services.addresses.group(policy), policy)
        self._check_alive(policy)
        link.accept_as_proposed()
        group.add_inlet(Inlet(link, group, self._link_capacity, guard=self._guard(link)))

    def _end(self, link: IncomingLink, error: AmqpError) -> None:
        self._tell(LinkEnded, link, error)
        link.close(error)

    def _guard(self, link: IncomingLink) -> Guard:
        return Guard(link, self._max_message_bytes, lambda error: self._tell(LinkEnded, link, error), self._patience)

    def _on_dynamic_target(self, link: IncomingLink, wanted: Terminus) -> None:
        """Make a dynamic address at this router for a client's producer that asks for one, and attach the producer.

        JMS clients ask for a dynamic address to have a temporary destination. Consumers, at any router, attach to the
        address by name.
        """
        policy, address = self._new_address(wanted, is_open=True)
        link.copy_source(link)
        link.set_target(target(address, is_dynamic=True, capabilities=wanted.capabilities))
        link.settle_as_asked()
        link.open()
        group = self._services.addresses.group(policy)
        group.add_inlet(Inlet(link, group, self._link_capacity, guard=self._guard(link)))

    def _new_address(self, wanted: Terminus, *, is_open: bool = False) -> tuple[AddressPolicy, str]:
        services = self._services
        is_topic = "temporary-topic" in wanted.capabilities
        address = dynamic_address(services.router_id, services.new_token(), is_topic=is_topic, is_open=is_open)
        policy = self._book.resolve(address)
        assert policy is not None
        self._dynamic.add(policy.address)
        return policy, address

    def _find_group(self, to: str, is_apart: bool = False) -> AddressGroup:
        """Return the group for a message to address ``to`` of a link without an address.

        The group is that of the address's pattern, if the addresses of the pattern share links and ``is_apart`` is
        False; for an anycast address, that of the circuit which the address shares with others, if it shares one.
        """
        services = self._services
        pattern = None if is_apart else self._pattern_of({}, normalize(to))
        if pattern is None:
            policy = self._resolve(to, sends=True)
            if policy.shares_circuits:
                return services.addresses.anonymous_group(policy, is_apart=is_apart)
            return self._noted(services.addresses.group(policy), policy)
        shared = services.books.resolve(pattern)
        assert shared is not None
        return services.addresses.group(shared, user=self._user)

    def _pattern_of(self, covered: dict[Address, bool | None], name: str) -> Address | None:
        """Return the pattern whose group takes the messages to the address ``name``, in normal form.

        None if the address has a group of its own, if its group depends on its egress, or if this client may not send
        to the address. ``covered`` keeps whether the client may send to all addresses of a pattern: then no permission
        of an address need be looked up. It keeps None for a pattern whose addresses share circuits only.
        """
        pattern = self._book.shared_pattern(name)
        if pattern is None:
            return None
        services, peer = self._services, self.endpoint.peer
        permissions = services.permissions
        if pattern not in covered:
            policy = services.books.resolve(pattern)
            has_group = policy is not None and not policy.shares_circuits
            may_send_all = permissions.may_send(peer.user, pattern.name, is_mesh=peer.is_mesh)
            covered[pattern] = may_send_all if has_group else None
        is_covered = covered[pattern]
        if is_covered is None:
            return None
        return pattern if is_covered or permissions.may_send(peer.user, name, is_mesh=peer.is_mesh) else None

    def _noted(self, group: AddressGroup, policy: AddressPolicy) -> AddressGroup:
        """Return ``group``, after noting this client's user as the maker of its queue if no maker is noted yet.

        The group of an address without a queue gets no maker. A broker that creates the queue learns from the maker who
        owns the queue.
        """
        if policy.kind.is_stored and group.maker is None:
            group.maker = self._user
        return group

    def _check_alive(self, policy: AddressPolicy) -> None:
        services = self._services
        if router_of(policy.address.name) == services.router_id and not services.addresses.has_taker(policy):
            raise AmqpError(
                "amqp:not-found",
                f"dynamic address {policy.address.name!r} has no receiver, so no sender can attach to it",
            )

    # Consumers
    def _on_consumer(self, link: OutgoingLink) -> None:
        wanted = link.wanted
        if wanted.is_dynamic:
            self._on_dynamic(link, link.remote_source)
            return
        if not wanted.address:
            self._on_nameless(link)
            return
        if wanted.address == REQUESTS_ADDRESS:
            self._services.management.attach_observer(link)
            return
        policy = self._resolve(wanted.address, sends=False)
        if policy.is_link_routed:
            ends_with_path = has_set(self._book, policy, link)
            self._route(link, policy, wanted.address, ends_with_path=ends_with_path)
            return
        if policy.has_wildcards and policy.kind.is_copied_by_routers and self._sets.attach(link, policy):
            return
        if policy.is_sharded:
            _check_shardable(policy, link.remote_source)
        # The answer leaves the client's filter out, and so says that the filter is not in force: a router reads no
        # messages. [3.5.3]
        link.accept_plain_source()
        self._services.addresses.add_consumer(policy, link, self._user)

    def _on_dynamic(self, link: OutgoingLink, wanted: Terminus) -> None:
        policy, address = self._new_address(wanted)
        link.set_source(source(address, is_dynamic=True, capabilities=wanted.capabilities, outcomes=wanted.outcomes))
        link.copy_target(link)
        link.settle_as_asked()
        link.open()
        group = self._services.addresses.group(policy)
        group.add_taker(Taker(link, group))

    def _on_nameless(self, link: OutgoingLink) -> None:
        """Route an attach without a source address, which resumes or ends a durable subscription by its link name.

        The subscription's address is known when the broker has answered. An embedded broker first checks that the user
        owns the subscription; `_why_not_found` then checks that the user may receive from the address. Raises AmqpError
        if the user may not receive at all, or the topology does not say which broker has the subscription.
        """
        peer = self.endpoint.peer
        if not self._services.permissions.may_receive_any(peer.user, is_mesh=peer.is_mesh):
            raise self._not_permitted("receive from", "the topic of any subscription")
        broker = self._services.subscription_broker
        if broker is None:
            raise AmqpError(
                "amqp:not-found",
                "the source has no address: the subscription of the link's name is at the default broker or the only "
                "broker with topics, and the topology has neither",
            )
        self._route(link, self._book.subscription_policy(broker), None)

    # Producers and consumers
    def _resolve(self, address: str, *, sends: bool) -> AddressPolicy:
        services, peer = self._services, self.endpoint.peer
        allows = services.permissions.may_send if sends else services.permissions.may_receive
        policy = self._book.resolve(address) if sends else self._book.resolve_filter(address)
        # A connection may always use the dynamic addresses that it made. Any other connection needs a permission: by
        # receiving from a dynamic address, it would read somebody else's replies.
        is_own = policy is not None and policy.address in self._dynamic
        if not is_own and not allows(peer.user, address, is_mesh=peer.is_mesh):
            raise self._not_permitted("send to" if sends else "receive from", address)
        if policy is None:
            raise self._not_declared(normalize(address), sends=sends)
        if policy.kind.is_refused:
            raise AmqpError("amqp:not-found", f"the topology says that address {policy.address.name!r} is unavailable")
        sentence = why_refused(policy, sends=sends)
        if sentence is not None:
            raise AmqpError("amqp:not-allowed", sentence)
        return policy

    def _not_declared(self, name: str, *, sends: bool) -> AmqpError:
        overlaps = self._book.overlaps(name) if is_pattern(name) else {}
        if sentence := why_uncovered(name, overlaps, sends=sends):
            return AmqpError("amqp:not-allowed", sentence)
        return AmqpError("amqp:not-found", f"the topology declares no address {name!r}")

    def _route(
        self,
        link: IncomingLink | OutgoingLink,
        policy: AddressPolicy,
        address: str | None,
        *,
        ends_with_path: bool = False,
    ) -> None:
        request = RouteRequest(
            policy=policy,
            broker=policy.brokers[0],
            client=self._unique_id,
            link_name=self._name_at_broker(link, policy, address),
            user=self._user or "",
            address=address,
            name_in_mesh=partial(self._book.name_in_mesh, policy.brokers[0]),
            why_not=partial(self._why_not_found, link),
            max_message_bytes=self._max_message_bytes if isinstance(link, IncomingLink) else 0,
            guard=self._guard(link) if isinstance(link, IncomingLink) else None,
            ends_with_path=ends_with_path,
        )
        route = IngressRoute(link, request, self._services.ways, self._services.timers, self._routes.discard)
        self._routes.add(route)
        route.begin()

    @property
    def _user(self) -> str | None:
        """The user of this connection, who owns the queues that are made for the connection's links.

        `ANONYMOUS` for a client without a user name; None for an operator, who may use all queues.
        """
        peer = self.endpoint.peer
        return None if peer.is_mesh else peer.user or ANONYMOUS

    def _why_not_found(self, link: Link, address: str) -> AmqpError | None:
        """Return an error unless the client may receive from ``address``, which the broker found for a link name.

        The error is logged as `AttachRefused`, too. Return None if the client may.
        """
        peer = self.endpoint.peer
        if self._services.permissions.may_receive(peer.user, address, is_mesh=peer.is_mesh):
            return None
        error = self._not_permitted("receive from", address)
        self._tell(AttachRefused, link, error)
        return error

    def _not_permitted(self, what: str, address: str) -> AmqpError:
        user = self.endpoint.peer.user
        who = f"user {user!r}" if user else "an anonymous client"
        return AmqpError("amqp:unauthorized-access", f"{who} may not {what} {address!r}")

    @property
    def _unique_id(self) -> str:
        return f"{self._services.router_id}/{self._services.instance}/{self.number}"

    def _name_at_broker(self, link: Link, policy: AddressPolicy, address: str | None) -> str:
        """Return the name of the client's link at the broker.

        The name of a link whose terminus outlives its connection, or that has no address, consists of the container-id
        and the client's link name, so that the client may resume the link at any router. The name of any other link,
        and of a link to a shared subscription, has this connection's id, too. Where the broker's subscriptions are by
        user, the user stands in the name.
        """
        remote = self.endpoint.remote
        container_id = remote.container_id if remote else ""
        wanted = link.remote_source
        user = self._user if self._book.names_users(policy.brokers[0]) else None
        if policy.kind.has_subscriptions and isinstance(link, OutgoingLink) and "shared" in wanted.capabilities:
            is_global = "global" in wanted.capabilities
            return routed_name.sharing(
                container_id, link.name, self._unique_id, is_global=is_global, user=user, space=self.space
            )
        if address is None or wanted.outlives_link or link.remote_target.outlives_link:
            return routed_name.lasting(container_id, link.name, user, self.space)
        return routed_name.passing(container_id, link.name, self._unique_id, user, self.space)


def _check_shardable(policy: AddressPolicy, wanted: Terminus) -> None:
    """Raise AmqpError if a consumer of a queue on several brokers asks for a filter, browsing or a durable source.

    Only for a queue on one broker can the broker grant such a request.
    """
    what = None
    if wanted.filter:
        what = "a filter"
    elif wanted.distribution_mode is DistributionMode.COPY:
        what = "browsing (distribution mode copy)"
    elif wanted.outlives_link:
        what = "a durable source"
    if what is not None:
        brokers = ", ".join(policy.brokers)
        raise AmqpError(
            "amqp:not-implemented",
            f"the consumer asked for {what}, not supported on queue {policy.address.name!r} over brokers {brokers}",
        )
