"""Link routes: a client's own link, tied to one link at a broker, which may be connected to any router.

    client --near-- ingress ~~~~ circuit ~~~~ egress --far-- broker

When the path is lost, the ingress keeps the client's link and attaches again at the broker, over another path or once
the broker came back. If there is no good news of the broker for ``REATTACH_S``, the client's link is detached: neither
a new path nor an answer to the attach of another link. Even with good news, a link waits at most ``MOST_REATTACH_S``.
Both limit the first attach, too. With thousands of links, each gets its turn. Only links of filter sets are closed at
once, so that the client sends its whole set again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from addressing.address import Address
from addressing.book import AddressPolicy
from addressing.routing_keys import broker_key
from router.circuits.circuits import Circuits, in_and_out, route_patience
from router.circuits.spec import PATH_LOST, CircuitKind, CircuitSpec
from router.connections.brokers import Brokers
from router.connections.route_connections import RouteClaim
from router.connections.unstitched import UnstitchedOwner
from router.events import RouteReattached
from router.forwarding.guard import Guard
from router.forwarding.relay import Relay
from router.routes.attach_turns import AttachTurns
from router.routes.broker_waits import BrokerWaits
from router.routes.egress_route import BrokerSide, answer_as, settle_fault
from router.routes.events import RouteEstablished, RoutePathLost, RouteWaiting
from router.routing.plane import Plane
from router.routing.spf import Path
from router.timers import Timer, Timers
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink
from wire.log import Emit

OnWay = Callable[[Link | None, Path, AmqpError | None], None]
"""Called with the link towards the broker, not opened, and the path. Or with None and the error of a refusal, for which
a retry would not help; without an error a retry may help.
"""
REATTACH_S = 10.0
MOST_REATTACH_S = 120.0


def _anything_goes(address: str) -> AmqpError | None:
    return None


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """The terms of a link route: the address, user and limits of the client's link, and its name at the broker."""

    policy: AddressPolicy
    broker: str
    client: str
    link_name: str
    user: str
    """The client's user; "" for an operator."""
    address: str | None
    """The address as the client wrote it; None for a client that resumes or ends a subscription by link name alone."""
    name_in_mesh: Callable[[str], str] = str
    """Translates the broker's address in the answer to the name of the address in the client's space."""
    why_not: Callable[[str], AmqpError | None] = _anything_goes
    """Given the address that the broker found for a client that named none: the error if the client may not have it."""
    max_message_bytes: int = 0
    """The largest message the client may send; the broker may allow less. 0: any size."""
    guard: Guard | None = None
    """For a client that sends: checks its credit, message size and pace. None for a consumer."""
    ends_with_path: bool = False
    """Whether the client's link ends when its path is lost: true of links of filter sets, whose changes only the client
    knows."""


class IngressRoute(UnstitchedOwner):
    """A link route at the client's router: keeps the client's link ``near`` when the path to the broker changes.

    ``done(route)`` is called when the route has ended, with the client's link.
    """

    def __init__(
        self,
        near: IncomingLink | OutgoingLink,
        request: RouteRequest,
        ways: RoutePaths,
        timers: Timers,
        done: Callable[[IngressRoute], None],
    ) -> None:
        self.near = near
        self.request = request
        self.path: Path = ()
        self._ways = ways
        self._timers = timers
        self._done = done
        self._far: Link | None = None
        self._claim = RouteClaim()
        """The claim on the client's connection to the broker; made only if the broker is connected to this router."""
        self._relay: Relay | None = None
        self._is_answered = False
        self.is_ended = False
        self._give_up: Timer | None = None
        self._give_up_by = 0.0
        self._outlives = near.may_outlive

    # Attaching
    def begin(self) -> None:
        """Become the owner of the client's link, and attach at the broker for the first time."""
        self.near.owner = self
        self._start_clock()
        self.attach()

    def attach(self) -> None:
        """Attach at the broker over the cheapest path; if that fails, wait for the broker (`BrokerWaits`).

        Do nothing if the route has ended, or has a link towards the broker.
        """
        if self.is_ended or self._far is not None:
            return
        self._release()
        self._ways.attach(self, self._claim, self._outlives, self._on_ready)

    def _release(self) -> None:
        claim, self._claim = self._claim, RouteClaim()
        claim.release()

    def _on_ready(self, far: Link | None, path: Path, error: AmqpError | None) -> None:
        self.path = path
        if far is None:
            self._release()
            if error is None:
                self._wait()
            else:
                self._ways.note_refused(self, error)
                self._end_near(False, error)
            return
        self._far = far
        if self._relay is None:
            self._relay = Relay(
                self._on_left,
                self._on_established,
                self._ways.recorder,
                route_patience(self.near, self._ways.patience),
                is_of_queue=isinstance(self.near, OutgoingLink),
                priority=self.request.policy.priority,
            )
            self._relay.stitch(*in_and_out(self.near, far), self.request.guard)
        else:
            assert isinstance(far, IncomingLink | OutgoingLink)
            self._relay.replace(far)
        far.open()

    def _start_clock(self) -> None:
        if self._give_up is None:
            self._give_up_by = self._timers.now + MOST_REATTACH_S
            self._give_up = self._timers.after(REATTACH_S, self._on_too_late)

    def _wait(self) -> None:
        if not self.is_ended:
            if RouteWaiting.is_wanted:
                self._ways.note_waiting(self)
            self._ways.waits.add(self.request.broker, self)

    def _on_too_late(self) -> None:
        self._give_up = None
        broker, now = self.request.broker, self._timers.now
        wait_s = min(self._give_up_by, self._ways.waits.heard_at(broker) + REATTACH_S) - now
        if wait_s > 0:
            self._give_up = self._timers.after(wait_s, self._on_too_late)
            return
        self._end_near(
            False, AmqpError("amqp:link:detach-forced", f"broker {broker} could not be reached within {REATTACH_S:g} s")
        )

    def _on_established(self, link: Link) -> None:
        if link is not self._far or link.is_refused:
            return
        fault = settle_fault(self.near, link, self.request.broker)
        if fault is not None:
            self._on_left(link, True, fault)
            return
        if self._give_up is not None:
            self._give_up.cancel()
            self._give_up = None
        self._ways.waits.on_answered(self.request.broker)
        address = self._address_of(link)
        if self._is_answered:
            self._ways.note_reattached(self)
        elif self.request.address is None and (error := self.request.why_not(address or "")) is not None:
            self._give_up_found(link, error)
        else:
            self._answer(link, address)

    def _answer(self, far: Link, address: str | None) -> None:
        try:
            answer_as(self.near, far, address, self.request.max_message_bytes)
        except AmqpError as error:
            self._give_up_found(far, error)
        else:
            self._is_answered = True
            if RouteEstablished.is_wanted:
                self._ways.note_established(self)

    def _give_up_found(self, far: Link, error: AmqpError) -> None:
        """End the route with ``error``; detach the link ``far``, without a close, which would delete its terminus.

        Used if the client may not have the terminus that the broker found, or the answer does not fit a frame.
        """
        self._far = None
        far.detach()
        self._end_near(True, error)

    def _address_of(self, far: Link) -> str | None:
        request, found = self.request, far.remote_source.address
        if request.address is not None or found is None:
            return request.address
        return request.name_in_mesh(found)

    # Leaving
    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        """End the route; called when the client's link ended before a path to the broker was found."""
        self._end()
        self.near.close() if closed else self.near.detach()

    def _on_left(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        if link is self.near:
            self._on_client_left(closed, error)
        elif link is self._far:
            link.close()
            self._far = None
            self._release()
            if self._give_up is not None:  # The broker has not answered the attach: the link's end is a refusal.
                self._ways.note_refused(self, error)
            self._on_far_lost(closed, error)

    def _on_client_left(self, closed: bool, error: AmqpError | None) -> None:
        is_lost = error is not None and error.condition == PATH_LOST
        far, self._far = self._far, None
        if far is not None and not far.is_gone:
            # After the loss of the client's connection, close the link at the broker, unless the client asked for a
            # terminus that outlives the link. [2.6.4]
            if closed or (is_lost and not self._outlives):
                far.close(None if is_lost else error)
            else:
                far.detach(None if is_lost else error)
        self.near.close() if closed else self.near.detach()
        self._end()

    def _on_far_lost(self, closed: bool, error: AmqpError | None) -> None:
        if error is None or error.condition != PATH_LOST:
            self._end_near(closed, error)
            return
        if self.request.ends_with_path and self._is_answered:
            what = f"the path to broker {self.request.broker} was lost: attach again, with the whole filter set"
            self._end_near(True, AmqpError("amqp:link:detach-forced", what))
            return
        if RoutePathLost.is_wanted:
            self._ways.note_path_lost(self, error)
        near = self.near
        if isinstance(near, IncomingLink):
            near.set_credit(0)
            if self._relay is not None:
                self._relay.inlet.hear_credit()
        elif self._give_up is None and near.is_draining and near.credit > 0:
            # The path is lost: the client's drain is answered, though deliveries may have been on their way. A drain
            # that the client asks for while the route looks for a path is not answered, and waits for the broker.
            near.drained()
        was_refused = self._give_up is not None
        self._start_clock()
        if was_refused and self._ways.path_to(self.request.broker) == self.path:
            self._wait()
        else:
            self._ways.turns.take(self)

    def _end_near(self, closed: bool, error: AmqpError | None) -> None:
        self._end()
        near = self.near
        if near.is_gone or near.has_left:
            return
        if self._relay is not None:
            (self._relay.inlet if isinstance(near, IncomingLink) else self._relay.taker).abandon()
        if not self._is_answered:
            near.refuse(error or AmqpError("amqp:internal-error", "the broker ended the attach without a reason"))
        elif closed:
            near.close(error)
        else:
            near.detach(error)

    def _end(self) -> None:
        if self.is_ended:
            return
        self.is_ended = True
        self._release()
        self._ways.turns.leave(self)
        self._ways.waits.discard(self.request.broker, self)
        if self._give_up is not None:
            self._give_up.cancel()
        self._done(self)


class RoutePaths:
    """Attaches link routes over the cheapest path: at a broker connected here, or over a router that has the broker."""

    def __init__(self, router_id: str, routing: Plane, brokers: Brokers, circuits: Circuits, emit: Emit) -> None:
        self._router_id = router_id
        self._routing = routing
        self._brokers = brokers
        self._circuits = circuits
        self._emit = emit
        self.patience = circuits.patience
        self.recorder = circuits.recorder
        self.turns = AttachTurns(circuits.patience.timers)
        self.waits = BrokerWaits(circuits.patience.timers, self.turns, self.path_to)
        self.side = BrokerSide(brokers, circuits.patience, emit, circuits.recorder)

    def attach(self, route: IngressRoute, claim: RouteClaim, outlives: bool, ready: OnWay) -> None:
        request, near = route.request, route.near
        path = self.path_to(request.broker)
        if path is None:
            ready(None, (), None)
            return
        if path == (self._router_id,):
            self.side.attach(
                claim,
                near,
                request.broker,
                request.client,
                request.link_name,
                request.user,
                self.side.terminus(request.policy, request.broker, request.address),
                request.policy.priority,
                lambda far, error: ready(far, path, error),
            )
            return
        spec = CircuitSpec(
            CircuitKind.ROUTE,
            request.policy.address,
            self._router_id,
            path=path,
            broker=request.broker,
            client=request.client,
            link_name=request.link_name,
            user=request.user,
            outlives_link=outlives,
            priority=request.policy.priority,
        )
        try:
            far = self._circuits.route(near, spec, path[1])
        except AmqpError as error:
            ready(None, (), None if error.condition == PATH_LOST else error)
            return
        ready(far, path, None)

    def path_to(self, broker: str) -> Path | None:
        """Return the cheapest path now to a router connected to ``broker``; None if no such router is in reach.

        The path is this router alone if the broker is connected here.
        """
        if self._brokers.is_up(broker):
            return (self._router_id,)
        found = [
            (cost, router)
            for router in self._routing.routers_with(broker_key(broker))
            if router != self._router_id and (cost := self._routing.cost_to(router)) is not None
        ]
        return self._routing.path(min(found)[1]) if found else None

    def note_refused(self, route: IngressRoute, error: AmqpError | None) -> None:
        """Log that the broker refused the client's link, if that broker is connected here; else the egress logs it.

        A lost path is not logged.
        """
        if route.path == (self._router_id,):
            request = route.request
            space = request.policy.address.space
            address = None if request.address is None else Address(space, request.address)
            self.side.note_refused(request.broker, request.client, address, error)

    def note_waiting(self, route: IngressRoute) -> None:
        request, path = route.request, self.path_to(route.request.broker)
        named = None if path is None else list(path)
        self._emit(RouteWaiting(request.link_name, request.policy.address.text, request.broker, named))

    def note_path_lost(self, route: IngressRoute, error: AmqpError) -> None:
        request = route.request
        self._emit(RoutePathLost(request.link_name, request.policy.address.text, request.broker, error.description))

    def note_established(self, route: IngressRoute) -> None:
        request = route.request
        self._emit(RouteEstablished(request.link_name, request.policy.address.text, request.broker, list(route.path)))

    def note_reattached(self, route: IngressRoute) -> None:
        request = route.request
        self._emit(RouteReattached(request.link_name, request.policy.address.text, request.broker, list(route.path)))
