"""Circuits: opening them hop by hop along a path that the ingress computed, and passing on those of others.

A circuit at a transit router is a relay between two links. Its attach is answered when the one behind it is, so an
ingress hears of a broken hop as a refusal that names it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from router.forwarding.copies import Copies
from router.forwarding.relay import Relay
from router.neighbor import NeighborConnection
from router.spec import BY_CONTROL, CIRCUIT, CircuitKind, CircuitSpec, path_lost
from router.timers import Patience
from wire.errors import AmqpError
from wire.link import RECEIVE_SECOND, SEND_MIXED, IncomingLink, Link, OutgoingLink, Session
from wire.terminus import DistributionMode, source, target

_SHARED = (CircuitKind.ANYCAST, CircuitKind.MULTICAST)


class Circuits:
    """``neighbor`` gives the connection to use to a neighboring router, or None; the rest is as in `Relay`."""

    def __init__(
        self,
        router_id: str,
        instance: int,
        neighbor: Callable[[str], NeighborConnection | None],
        patience: Patience,
        copies: Copies,
    ) -> None:
        self.patience = patience
        self._copies = copies
        self._router_id = router_id
        self._instance = instance
        self._neighbor = neighbor
        self._counter = itertools.count(1)
        self.transit_count = 0

    def sender(self, spec: CircuitSpec, hop: str) -> OutgoingLink:
        """The first link of a circuit of ours, to be given an owner and then opened."""
        link = self._session(spec, hop).sender(self._name(spec))
        link.set_source(source(spec.address))
        link.set_target(target(spec.address))
        # The last word is the producer's: its router gives it for those that leave it to their receiver.
        link.set_settle_modes(SEND_MIXED, RECEIVE_SECOND)
        self._say(link, spec, hop)
        return link

    def route(self, near: Link, spec: CircuitSpec, hop: str) -> Link:
        """The first link of a link route, asking for exactly what the client at ``near`` asked for."""
        link = self._like(near, spec, hop)
        self._say(link, spec, hop)
        return link

    def _say(self, link: Link, spec: CircuitSpec, hop: str) -> None:
        """Tell ``hop`` of the circuit: in the attach, or ahead of it where the attach would not fit a frame.

        Raises FrameTooSmall when not even the rest fits, which is what a client asks for.
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
        """In the direction of ``near``."""
        session = self._session(spec, hop)
        name = self._name(spec)
        link: Link = session.sender(name) if isinstance(near, IncomingLink) else session.receiver(name)
        link.copy_source(near)
        link.copy_target(near)
        link.set_settle_modes(*near.remote_settle_modes)
        link.set_max_message_bytes(near.remote_max_message_bytes)
        return link

    def pass_on(self, near: Link, spec: CircuitSpec) -> None:
        """Be a transit router. Raises LinkError when the next hop is none of ours now."""
        hop = spec.next_hop(self._router_id)
        onward = self._like(near, spec, hop)
        # Of an edge's link the path was found here.
        self._say(onward, spec, hop)
        is_route = spec.kind is CircuitKind.ROUTE
        patience = route_patience(near, self.patience) if is_route else self.patience
        Transit(near, onward, spec.priority, self._on_transit, patience, None if is_route else self._copies)
        onward.open()

    def _on_transit(self, change: int) -> None:
        self.transit_count += change

    def _session(self, spec: CircuitSpec, hop: str) -> Session:
        connection = self._neighbor(hop)
        if connection is None or not connection.endpoint.is_open:
            raise path_lost(f"{self._router_id} has no connection to {hop}")
        sessions = connection.sessions
        return sessions.shared(spec.priority) if spec.kind in _SHARED else sessions.own()

    def _name(self, spec: CircuitSpec) -> str:
        return f"{spec.kind.value}/{self._router_id}/{self._instance}/{next(self._counter)}"


class Transit:
    """Somebody else's circuit through this router: ``near`` leads to its ingress, ``onward`` to its egress.

    ``copies``: None for a link route.
    """

    def __init__(
        self,
        near: Link,
        onward: Link,
        priority: int,
        count: Callable[[int], None],
        patience: Patience | None,
        copies: Copies | None,
    ) -> None:
        self._near = near
        self._onward = onward
        self._is_answered = False
        self._count = count
        count(1)
        ends = in_and_out(near, onward)
        is_transit = copies is not None
        told = self._on_left, self._on_established
        is_of_queue = not is_transit and isinstance(near, OutgoingLink)
        Relay(
            *ends,
            *told,
            None,
            patience,
            is_transit=is_transit,
            is_of_queue=is_of_queue,
            copies=copies,
            priority=priority,
        )

    def _on_established(self, link: Link) -> None:
        if link is not self._onward or link.is_refused:
            return
        try:
            answer(self._near, self._onward)
        except AmqpError as error:
            # The terminus may be one that was there before: it stays.
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
            other.refuse(error or path_lost("the circuit ended before it was up"))
        elif closed:
            other.close(error)
        else:
            other.detach(error)


def route_patience(near: Link, patience: Patience) -> Patience | None:
    """Of a link route for the client of ``near``: what comes from a queue may go to another of its consumers.

    What a producer sent waits for the broker, for there is nobody else; so does a browser's, which gets each but once.
    """
    is_consumer = isinstance(near, OutgoingLink)
    return patience if is_consumer and near.remote_source.distribution_mode is not DistributionMode.COPY else None


def in_and_out(one: Link, other: Link) -> tuple[IncomingLink, OutgoingLink]:
    if isinstance(one, IncomingLink) and isinstance(other, OutgoingLink):
        return one, other
    assert isinstance(other, IncomingLink)
    assert isinstance(one, OutgoingLink)
    return other, one


def answer(near: Link, onward: Link) -> None:
    """Tell the peer of ``near`` what the peer of ``onward`` answered. Raises FrameTooSmall."""
    near.copy_source(onward)
    near.copy_target(onward)
    # A relay bridges what the peer of ``onward`` does otherwise.
    near.settle_as_asked()
    near.set_max_message_bytes(onward.remote_max_message_bytes)
    near.open()
