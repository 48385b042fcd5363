"""Open circuits hop by hop along a path that the ingress computed, and pass on the circuits of other routers.

A transit router ties the incoming and the outgoing link of a circuit together with a relay. The router answers an
attach once the next hop has answered the onward attach, so an ingress learns of a broken hop by a refusal that names
the hop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from recording.records import Recorder
from router.circuits.neighbor import NeighborConnection
from router.circuits.spec import BY_CONTROL, CIRCUIT, CircuitKind, CircuitSpec, path_lost
from router.connections.peers import SessionPool
from router.connections.route_sessions import session_of_route
from router.forwarding.copies import Copies
from router.forwarding.relay import Relay
from router.timers import RetryDelay
from wire.errors import AmqpError
from wire.link import RECEIVE_SECOND, SEND_MIXED, IncomingLink, Link, OutgoingLink, Session
from wire.terminus import source, target

_SHARED = (CircuitKind.ANYCAST, CircuitKind.MULTICAST)


class Circuits:
    """Makes the links of circuits: at an ingress the first link, at a transit router the onward link.

    ``neighbor(router)`` returns the connection in use to a neighbor, None if there is none. The arguments ``patience``,
    ``copies`` and ``recorder`` are as in `Relay`.
    """

    def __init__(
        self,
        router_id: str,
        instance: int,
        neighbor: Callable[[str], NeighborConnection | None],
        patience: RetryDelay,
        copies: Copies,
        recorder: Recorder,
    ) -> None:
        self.patience = patience
        self.recorder = recorder
        self._copies = copies
        self._router_id = router_id
        self._instance = instance
        self._neighbor = neighbor
        self._counter = itertools.count(1)
        self.transit_count = 0

    def sender(self, spec: CircuitSpec, hop: str) -> OutgoingLink:
        """Return the first link of a new circuit, to router ``hop``; the caller sets the owner, then opens the link.

        Raises AmqpError if ``hop`` is not connected, or the attach does not fit a frame.
        """
        link = self._session(spec, hop).sender(self._name(spec))
        link.set_source(source(spec.address.text))
        link.set_target(target(spec.address.text))
        # With rcv-settle-mode second on circuits, the receiver of a delivery settles after its sender, so the producer
        # settles before all routers. If the producer attached with rcv-settle-mode first, the ingress settles in its
        # place.
        link.set_settle_modes(SEND_MIXED, RECEIVE_SECOND)
        self._say(link, spec, hop)
        return link

    def route(self, near: Link, spec: CircuitSpec, hop: str) -> Link:
        """Return the first link of a link route, to router ``hop``, with the terms of the client's attach of ``near``.

        Raises AmqpError if ``hop`` is not connected, or the attach does not fit a frame.
        """
        link = self._like(near, spec, hop)
        self._say(link, spec, hop)
        return link

    def _say(self, link: Link, spec: CircuitSpec, hop: str) -> None:
        """Send ``hop`` the spec of the circuit: in the attach of ``link``, or in a control message if it is too long.

        Raises FrameTooSmall when even the attach without the spec does not fit, because of the client's own terms.
        """
        text = spec.to_text()
        link.set_property(CIRCUIT, text)
        if link.fits():
            return
        link.set_property(CIRCUIT, BY_CONTROL)
        if spec.kind is not CircuitKind.ROUTE:
            link.set_source(source(None))
            link.set_target(target(None))
        link.check_fits()
        connection = self._neighbor(hop)
        assert connection is not None
        connection.send_circuit(link.name, text)

    def _like(self, near: Link, spec: CircuitSpec, hop: str) -> Link:
        """Return a new link to router ``hop`` that continues the link ``near`` in its direction and with its terms.

        The terms are those that the peer of ``near`` asked for: source, target, settle modes and largest message.
        """
        if spec.kind is CircuitKind.ROUTE:
            session = session_of_route(self._sessions(hop), near, spec.priority)
        else:
            session = self._session(spec, hop)
        name = self._name(spec)
        link: Link = session.sender(name) if isinstance(near, IncomingLink) else session.receiver(name)
        link.copy_source(near)
        link.copy_target(near)
        link.set_settle_modes(*near.remote_settle_modes)
        link.set_max_message_bytes(near.remote_max_message_bytes)
        return link

    def pass_on(self, near: Link, spec: CircuitSpec) -> None:
        """Pass the circuit of ``near`` on as a transit router: attach to the next hop, and tie that link to ``near``.

        Raises AmqpError if the path has no next hop, or the next hop is not connected, and FrameTooSmall if the attach
        does not fit a frame.
        """
        hop = spec.next_hop(self._router_id)
        onward = self._like(near, spec, hop)
        # ``spec`` is sent, not the text that arrived: for a link route from an edge router, this router added the path.
        self._say(onward, spec, hop)
        is_route = spec.kind is CircuitKind.ROUTE
        patience = route_patience(near, self.patience) if is_route else self.patience
        copies = None if is_route else self._copies
        Transit(near, onward, self._on_transit).tie(spec.priority, patience, copies, self.recorder)
        onward.open()

    def _on_transit(self, change: int) -> None:
        self.transit_count += change

    def _session(self, spec: CircuitSpec, hop: str) -> Session:
        sessions = self._sessions(hop)
        return sessions.shared(spec.priority) if spec.kind in _SHARED else sessions.own()

    def _sessions(self, hop: str) -> SessionPool:
        connection = self._neighbor(hop)
        if connection is None or not connection.endpoint.is_open:
            raise path_lost(f"router {self._router_id} has no open connection to the next router {hop}")
        return connection.sessions

    def _name(self, spec: CircuitSpec) -> str:
        return f"{spec.kind.value}/{self._router_id}/{self._instance}/{next(self._counter)}"


class Transit:
    """A circuit of another router that passes through this router.

    The link ``near`` leads to the ingress, the link ``onward`` to the egress.
    """

    def __init__(self, near: Link, onward: Link, count: Callable[[int], None]) -> None:
        self._near = near
        self._onward = onward
        self._is_answered = False
        self._count = count

    def tie(self, priority: int, patience: RetryDelay | None, copies: Copies | None, recorder: Recorder) -> None:
        """Pass deliveries and credit between both links from now on, by a relay.

        ``copies``: the memory budget for pre-settled deliveries that wait here for credit; None for a link route.
        """
        self._count(1)
        is_transit = copies is not None
        relay = Relay(
            self._on_left,
            self._on_established,
            recorder,
            patience,
            is_transit=is_transit,
            is_of_queue=not is_transit and isinstance(self._near, OutgoingLink),
            copies=copies,
            priority=priority,
        )
        relay.stitch(*in_and_out(self._near, self._onward))

    def _on_established(self, link: Link) -> None:
        if link is not self._onward or link.is_refused:
            return
        try:
            answer(self._near, self._onward)
        except AmqpError as error:
            # The onward link is detached and not closed: its terminus at the broker may have existed before this
            # attach, and a close would delete the terminus.
            link.detach(error)
            self._on_left(link, False, error)
        else:
            self._is_answered = True

    def _on_left(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        link.close()
        other = self._onward if link is self._near else self._near
        if other.has_left or other.is_gone:
            return
        self._count(-1)
        if other is self._near and not self._is_answered:
            other.refuse(error or path_lost("the circuit ended before its attach was answered"))
        elif closed:
            other.close(error)
        else:
            other.detach(error)


def route_patience(near: Link, patience: RetryDelay) -> RetryDelay | None:
    """Return how long deliveries of a link route may wait for the credit of a consumer at ``near``.

    After that time the relay gives the deliveries back to the queue, for other consumers. Return None, for ever, for a
    producer, whose deliveries can go to the broker only, and for a browser, which gets each delivery only once.
    """
    is_consumer = isinstance(near, OutgoingLink)
    return patience if is_consumer and not near.is_browser else None


def in_and_out(one: Link, other: Link) -> tuple[IncomingLink, OutgoingLink]:
    if isinstance(one, IncomingLink) and isinstance(other, OutgoingLink):
        return one, other
    assert isinstance(other, IncomingLink)
    assert isinstance(one, OutgoingLink)
    return other, one


def answer(near: Link, onward: Link) -> None:
    """Answer the attach of ``near`` with the terms with which the peer of ``onward`` answered this router's attach.

    Raises FrameTooSmall if the answer does not fit a frame.
    """
    near.copy_source(onward)
    near.copy_target(onward)
    # The answer has the settle modes that the peer of ``near`` asked for: a relay translates if the peer of ``onward``
    # uses other modes.
    near.settle_as_asked()
    near.set_max_message_bytes(onward.remote_max_message_bytes)
    near.open()
