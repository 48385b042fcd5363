"""The broker's end of a link route: attach a link at the broker, and answer the client with the broker's terms.

... circuit ~~near~~ egress --far-- broker
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from addressing.address import Address
from addressing.book import AddressPolicy
from addressing.kinds import QUEUE_CAPABILITY, TOPIC_CAPABILITY
from recording.records import Recorder
from router.circuits.circuits import in_and_out, route_patience
from router.circuits.spec import PATH_LOST, CircuitSpec, path_lost
from router.connections.broker_connection import BrokerConnection
from router.connections.brokers import Brokers
from router.connections.route_connections import RouteClaim
from router.connections.route_sessions import session_of_route
from router.connections.unstitched import UnstitchedOwner
from router.events import BrokerLinkRefused
from router.forwarding.relay import Relay
from router.timers import RetryDelay
from wire.errors import AmqpError, ConnectionFault, FrameTooSmall, LinkError
from wire.link import SEND_SETTLED, SEND_UNSETTLED, IncomingLink, Link, OutgoingLink, Session
from wire.log import Emit
from wire.routed_name import USER, apart, is_of_connection

OnLink = Callable[[Link | None, AmqpError | None], None]
"""Called with a link to the broker that is not opened yet. Or with None and the reason for a refusal, for which a retry
would not help; None and None if a retry may help.
"""
_NO_LOCAL = ("apache.org:no-local-filter:list", 0x0000468C00000003)
"""Descriptors of the no-local filter, whose name in the filter map is the client's choice."""
_KIND_CAPABILITIES = {QUEUE_CAPABILITY, TOPIC_CAPABILITY}


@dataclass(frozen=True, slots=True)
class BrokerTerminus:
    """The address of a link route at the broker, and the capabilities that mark the address as a queue or topic.

    If the client's attach itself says queue or topic by a capability, only the client's capabilities are used.
    """

    address: str
    kind_capabilities: tuple[str, ...]

    def name(self, far: Link, near: Link) -> None:
        """Set the address at the broker, and the capabilities, in the attach of ``far``, the link to the broker.

        ``near`` is the link towards the client, whose capabilities are passed on.
        """
        is_sender = isinstance(far, OutgoingLink)
        given = (near.remote_target if is_sender else near.remote_source).capabilities
        capabilities = given if _KIND_CAPABILITIES & set(given) else (*given, *self.kind_capabilities)
        if is_sender:
            far.set_target_address(self.address)
            far.set_target_capabilities(capabilities)
        else:
            far.set_source_address(self.address)
            far.set_source_capabilities(capabilities)


class BrokerSide:
    """Makes the links of link routes at the brokers connected to this router."""

    def __init__(self, brokers: Brokers, patience: RetryDelay, emit: Emit, recorder: Recorder) -> None:
        self.patience = patience
        self.recorder = recorder
        self._brokers = brokers
        self._emit = emit

    def attach(
        self,
        claim: RouteClaim,
        near: Link,
        broker: str,
        client: str,
        name: str,
        user: str,
        terminus: BrokerTerminus | None,
        priority: int,
        ready: OnLink,
    ) -> None:
        """Call ``ready`` with a new link at the broker with the terms of ``near``, the link towards the client.

        The link is not opened yet. Without a link, ``ready`` gets None and the error for the client, or None twice if a
        retry may help. ``ready`` is not called once ``claim`` is released. ``user`` is the client's user, "" for an
        operator; ``priority`` is that of the address.
        """
        is_embedded = self._brokers.is_embedded(broker)
        said_user = user if is_embedded else ""
        is_apart = False
        if not is_embedded and self._brokers.shares_connections(broker):
            if _is_no_local(near):
                ready(None, _no_local_refused(broker))
                return
            # Another client may have a link of the same name, which the broker would end, with all of its connection.
            is_apart = not is_of_connection(name, client)

        def on_connection(connection: BrokerConnection | None, error: AmqpError | None) -> None:
            if connection is None:
                ready(None, error)
                return
            sessions = connection.sessions
            try:
                # An existing broker may end a whole session because of one link, so it gets a session for each link.
                session = session_of_route(sessions, near, priority) if is_embedded else sessions.own()
                far = self._link(session, near, apart(name, client) if is_embedded else name, said_user, terminus)
            except ConnectionFault:
                # The broker accepts no more sessions: the route may try again if a session is about to end, else the
                # client's link is refused.
                ready(None, None if connection.endpoint.has_ending_sessions else _too_many_links(connection, broker))
                return
            except FrameTooSmall as error:
                ready(None, error)
                return
            ready(far, None)

        self._brokers.claim(claim, broker, client, on_connection, is_apart=is_apart)

    def terminus(self, policy: AddressPolicy, broker: str, address: str | None) -> BrokerTerminus | None:
        """Return the terminus at ``broker`` for a client that asked for ``address``; None for no address.

        A client that names no address resumes or ends a subscription by its link name.
        """
        if address is None:
            return None
        return BrokerTerminus(policy.at_broker(broker), self._brokers.kind_capabilities(broker, policy.kind))

    @staticmethod
    def _link(session: Session, near: Link, name: str, user: str, terminus: BrokerTerminus | None) -> Link:
        far: Link = session.sender(name) if isinstance(near, IncomingLink) else session.receiver(name)
        far.copy_source(near)
        far.copy_target(near)
        if terminus is not None:
            terminus.name(far, near)
        if user:
            far.set_property(USER, user)
        far.set_settle_modes(*near.remote_settle_modes)
        far.set_max_message_bytes(near.remote_max_message_bytes)
        far.check_fits()
        return far

    def note_refused(self, broker: str, client: str, address: Address | None, error: AmqpError | None) -> None:
        """Log that a client's link at ``broker`` was refused with ``error``; do nothing without an error.

        A lost path is not logged as a refusal: the ingress looks for another path.
        """
        if error is not None and error.condition != PATH_LOST:
            text = None if address is None else address.text
            self._emit(BrokerLinkRefused(broker, client, text, error.condition, error.description))


class EgressRoute(UnstitchedOwner):
    """The end of a link route whose client is at another router: ties the arriving circuit to a link at the broker."""

    def __init__(self, near: Link, spec: CircuitSpec, address: str | None, side: BrokerSide) -> None:
        self._near = near
        self._spec = spec
        self._client_address = address
        self._side = side
        self._far: Link | None = None
        self._is_answered = False
        self._claim = RouteClaim()

    def attach(self, policy: AddressPolicy | None) -> None:
        """Become the owner of the circuit's link, and attach a link at the broker, to the terminus of ``policy``.

        ``policy`` is None for a client that named no address, but the name of a subscription.
        """
        near, spec, side = self._near, self._spec, self._side
        near.owner = self
        terminus = None if policy is None else side.terminus(policy, spec.broker, self._client_address)
        side.attach(
            self._claim,
            near,
            spec.broker,
            spec.client,
            spec.link_name,
            spec.user,
            terminus,
            spec.priority,
            self._on_ready,
        )

    def _on_ready(self, far: Link | None, error: AmqpError | None) -> None:
        if far is None:
            self._claim.release()
            self._note_refused(error)
            self._near.refuse(error or path_lost(f"broker {self._spec.broker} cannot be reached"))
            return
        self._far = far
        relay = Relay(
            self._on_left,
            self._on_established,
            self._side.recorder,
            route_patience(self._near, self._side.patience),
            is_of_queue=isinstance(self._near, OutgoingLink),
            priority=self._spec.priority,
        )
        relay.stitch(*in_and_out(self._near, far))
        far.open()

    def _note_refused(self, error: AmqpError | None) -> None:
        spec = self._spec
        address = None if self._client_address is None else Address(spec.address.space, self._client_address)
        self._side.note_refused(spec.broker, spec.client, address, error)

    def _on_established(self, link: Link) -> None:
        if link is not self._far or link.is_refused:
            return
        fault = settle_fault(self._near, link, self._spec.broker)
        if fault is not None:
            self._on_left(link, True, fault)
            return
        try:
            answer_as(self._near, link, self._client_address)
        except AmqpError as error:
            # The link at the broker is detached and not closed: its terminus may have existed before this attach, and a
            # close would delete the terminus.
            self._on_left(link, False, error)
        else:
            self._is_answered = True

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        """Give up the attach at the broker; called when the circuit ended before the link at the broker existed."""
        self._claim.release()
        self._near.close()

    def _on_left(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        self._claim.release()
        link.close() if closed else link.detach()
        if link is self._far and not self._is_answered:
            self._note_refused(error)
        other = self._far if link is self._near else self._near
        if other is None or other.is_gone or other.has_left:
            return
        if other is self._near:
            if not self._is_answered:
                other.refuse(error or path_lost("the broker ended the link"))
            elif closed:
                other.close(error)
            else:
                other.detach(error)
        elif error is not None and error.condition == PATH_LOST and self._spec.outlives_link:
            other.detach()
        elif closed or (error is not None and error.condition == PATH_LOST):
            other.close()
        else:
            other.detach()


def _is_no_local(near: Link) -> bool:
    """Whether the client of ``near`` asks for a no-local filter, which existing brokers apply to whole connections."""
    return any(getattr(value, "descriptor", None) in _NO_LOCAL for value in near.remote_source.filter.values())


def _no_local_refused(broker: str) -> AmqpError:
    return AmqpError(
        "amqp:not-implemented",
        f"no no-local filter at broker {broker}: with share_connections, messages of other clients would be left out",
    )


def _too_many_links(connection: BrokerConnection, broker: str) -> AmqpError:
    most = connection.endpoint.session_limit
    return LinkError(
        "amqp:resource-limit-exceeded",
        f"a client connection may have at most {most} links to queues and topics of broker {broker}, "
        "and all are in use",
    )


def settle_fault(near: Link, far: Link, broker: str) -> AmqpError | None:
    """Return an error if a consumer asked for unsettled deliveries, but the broker sends all settled; else None.

    [2.8.2] ``near``: the link towards the client; ``far``: the link to the broker. A relay bridges all other settle
    modes: it settles deliveries for a client that asked for settled ones, and passes the outcome from a broker that
    settles first on to a client that asked for rcv-settle-mode second.
    """
    is_in_doubt = near.remote_settle_modes[0] == SEND_UNSETTLED and far.remote_settle_modes[0] == SEND_SETTLED
    if isinstance(near, IncomingLink) or not is_in_doubt:
        return None
    return AmqpError(
        "amqp:not-implemented",
        f"expected snd-settle-mode unsettled, but broker {broker} sends everything settled",
    )


def answer_as(near: Link, far: Link, address: str | None, max_message_bytes: int = 0) -> None:
    """Answer the client's attach of ``near`` with the terms of the broker's answer on ``far``.

    The answer has the ``address`` that the client used; None: the broker's address. The largest message is the smaller
    of the broker's limit and ``max_message_bytes``, 0 for no limit. Raises FrameTooSmall if the answer does not fit a
    frame.
    """
    near.copy_source(far)
    near.copy_target(far)
    if address is not None:
        if isinstance(near, IncomingLink):
            near.set_target_address(address)
        else:
            near.set_source_address(address)
    near.settle_as_asked()
    limits = [limit for limit in (far.remote_max_message_bytes, max_message_bytes) if limit]
    near.set_max_message_bytes(min(limits, default=0))
    near.open()
