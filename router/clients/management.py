"""Requests of clients to `$management`: a router gives the requests to the observer of its host, which answers.

A router serves no view of itself. It says which user a request is from, in a message around the request, so that no
client can name another user; and it lets pass only requests whose answer goes to a dynamic address, since the observer
may send to every address and the client may not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from addressing.address import is_dynamic
from addressing.management import NODE_PROPERTY, OWNER_PROPERTY, REQUESTS_ADDRESS, USER_PROPERTY
from addressing.operator_rights import OperatorRights
from router.connections.unstitched import UnstitchedOwner
from router.timers import Timer, Timers
from wire import delivery as deliveries
from wire.delivery import Outcome, rejected
from wire.endpoint import Peer
from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink
from wire.message import Message, encode
from wire.request_link import LaterOutcome, RequestLink
from wire.sections import Incomplete, scan

REQUEST_BYTES = 65536
CREDIT = 16
"""Requests that one client may have under way over a link."""
BURST = 100
"""Requests of all clients that are passed on at once; one more each REQUEST_S."""
REQUEST_S = 0.05
"""A request takes 0.2 to 0.5 ms of the router: a client that asks without a pause takes a hundredth of its time."""
MAX_PACED = 64
"""The most requests that wait for their turn; a further one is rejected."""
OBSERVER_S = 4.0
"""For how long a client waits for an observer, such as one that starts just now, before its link is refused. qdstat
itself gives up after 5 s."""
_NO_OBSERVER = (
    "no observer reads this node, so nobody can answer: start one with `amqpmesh watch` on the node's host, or remove "
    "`watch: off` and `link_logs: off` from the topology"
)


class ManagementRequests:
    """The requests to `$management` that arrive at router ``router_id``, and the observers that are attached to it.

    Always: requests wait in ``_paced`` only while ``_turn`` is pending.
    """

    def __init__(self, router_id: str, rights: OperatorRights, timers: Timers) -> None:
        self._router_id = router_id
        self._rights = rights
        self._timers = timers
        self._observers: list[_Observer] = []
        self._expecting: dict[_ExpectantOwner, None] = {}
        """The links of clients that wait for an observer, oldest first."""
        self._left, self._counted_at = float(BURST), timers.now
        self._paced: deque[tuple[bytes, LaterOutcome]] = deque()
        self._turn: Timer | None = None

    def attach_client(self, link: IncomingLink, node: str, fail: Callable[[IncomingLink, AmqpError], None]) -> None:
        """Attach a client that sends requests about ``node``; ``fail`` ends the link with an error.

        The link is answered once there is an observer, and refused if there is none after OBSERVER_S. Raises AmqpError
        if the client has no right to see anything of the mesh.
        """
        peer = link.endpoint.peer
        if not peer.is_mesh and not self._rights.sees_mesh(peer.user):
            who = f"user {peer.user!r}" if peer.user else "an anonymous client"
            raise AmqpError(
                "amqp:unauthorized-access",
                f"{who} may not manage the mesh: expected a user with `view`, `browse` or `manage` in the topology",
            )
        requests = RequestLink(link, lambda encoded: self._on_request(peer, node, encoded), REQUEST_BYTES, CREDIT, fail)
        requests.prepare()
        link.copy_target(link)
        link.check_fits()
        if any(observer.is_ready for observer in self._observers):
            _open(link, requests)
            return
        expectant = _ExpectantOwner(link, requests, self._forget)
        self._expecting[expectant] = None
        expectant.timer = self._timers.after(OBSERVER_S, lambda: self._refuse(expectant, fail))
        link.owner = expectant

    def attach_observer(self, link: OutgoingLink) -> None:
        """Attach an observer, which receives the requests of clients.

        Raises AmqpError for a peer that is neither an operator nor a node: it could read the requests of others.
        """
        peer = link.endpoint.peer
        if not peer.is_mesh:
            raise AmqpError("amqp:unauthorized-access", f"only an observer may receive from {REQUESTS_ADDRESS!r}")
        link.accept_as_proposed()
        observer = link.owner = _Observer(link, self._begin_expecting, self._observers.remove)
        self._observers.append(observer)
        # A flow that came together with the attach was handled before.
        observer.on_flow(link)

    def _begin_expecting(self) -> None:
        expecting, self._expecting = self._expecting, {}
        for each in expecting:
            each.begin()

    def _forget(self, expectant: _ExpectantOwner) -> None:
        self._expecting.pop(expectant, None)

    def _refuse(self, expectant: _ExpectantOwner, fail: Callable[[IncomingLink, AmqpError], None]) -> None:
        del self._expecting[expectant]
        fail(expectant.link, AmqpError("amqp:not-found", _NO_OBSERVER))

    def _on_request(self, peer: Peer, node: str, encoded: bytes) -> Outcome | LaterOutcome:
        try:
            reply_to = scan(encoded).reply_to
        except (AmqpError, Incomplete) as error:
            return rejected("amqp:decode-error", f"the request cannot be read: {error or 'it is cut'}")
        if not isinstance(reply_to, str) or not is_dynamic(reply_to):
            found = "none" if reply_to is None else repr(reply_to)
            return rejected(
                "amqp:invalid-field",
                f"reply-to of the request is {found}, expected the address of a dynamic source of this mesh",
            )
        if not self._observers:
            return rejected("amqp:not-found", _NO_OBSERVER)
        properties: dict[str, str | bool] = {NODE_PROPERTY: node, OWNER_PROPERTY: peer.is_mesh}
        if peer.user is not None and not peer.is_mesh:
            properties[USER_PROPERTY] = peer.user
        return self._pace(encode(Message(encoded, reply_to=reply_to, properties=properties)))

    # Pace
    def _pace(self, message: bytes) -> Outcome | LaterOutcome:
        """Give ``message`` to an observer, now or in its turn."""
        self._count_time()
        if self._turn is None and self._left >= 1:
            self._left -= 1
            return self._give(message)
        if len(self._paced) >= MAX_PACED:
            return rejected(
                "amqp:resource-limit-exceeded",
                f"{MAX_PACED} requests wait at router {self._router_id}, which takes {1 / REQUEST_S:g} a second: ask "
                "again, and for more entities by one QUERY",
            )
        later = LaterOutcome()
        self._paced.append((message, later))
        if self._turn is None:
            self._turn = self._timers.after(REQUEST_S, self._on_turn)
        return later

    def _count_time(self) -> None:
        now = self._timers.now
        self._left = min(BURST, self._left + (now - self._counted_at) / REQUEST_S)
        self._counted_at = now

    def _on_turn(self) -> None:
        self._count_time()
        self._left = max(0.0, self._left - 1)
        message, later = self._paced.popleft()
        self._turn = self._timers.after(REQUEST_S, self._on_turn) if self._paced else None
        outcome = self._give(message)
        if isinstance(outcome, LaterOutcome):
            outcome.settle_by(later.tell)
        else:
            later.tell(outcome)

    def _give(self, message: bytes) -> Outcome | LaterOutcome:
        if not self._observers:
            return rejected("amqp:not-found", _NO_OBSERVER)
        for observer in reversed(self._observers):
            if observer.has_room:
                return observer.give(message)
        return rejected(
            "amqp:resource-limit-exceeded",
            f"the observer has as many requests of router {self._router_id} as it takes at a time: ask again",
        )


def _open(link: IncomingLink, requests: RequestLink) -> None:
    requests.open()
    link.owner = _ClientOwner(requests)


class _ExpectantOwner(UnstitchedOwner):
    """Owner of a client's link whose attach is not answered yet, since no observer is there."""

    def __init__(self, link: IncomingLink, requests: RequestLink, on_over: Callable[[_ExpectantOwner], None]) -> None:
        self.link = link
        self.timer: Timer | None = None
        self._requests = requests
        self._on_over = on_over

    def begin(self) -> None:
        """Answer the attach: there is an observer now."""
        self._stop()
        _open(self.link, self._requests)

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        self._stop()
        self._on_over(self)

    def _stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class _ClientOwner(UnstitchedOwner):
    """Owner of a client's link for requests: hands on what arrives."""

    def __init__(self, requests: RequestLink) -> None:
        self._requests = requests

    def on_delivery(self, link: Link, delivery: Pointer) -> None:
        self._requests.on_delivery()


class _Observer(UnstitchedOwner):
    """Owner of the link over which an observer receives requests; their outcomes are those that the observer gives."""

    def __init__(self, link: OutgoingLink, on_ready: Callable[[], None], on_over: Callable[[_Observer], None]) -> None:
        self.is_ready = False
        """Whether the observer has granted credit since it attached."""
        self._link = link
        self._on_ready = on_ready
        self._on_over = on_over
        self._count = 0
        self._waiting: dict[Pointer, LaterOutcome] = {}

    @property
    def has_room(self) -> bool:
        return not self._link.is_gone and self._link.credit > 0

    def give(self, message: bytes) -> LaterOutcome:
        self._count += 1
        delivery = self._link.start(self._count.to_bytes(8, "big"))
        self._link.send(message)
        self._link.finish()
        later = self._waiting[delivery] = LaterOutcome()
        return later

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        if not deliveries.has_outcome(delivery) and not deliveries.is_settled(delivery):
            return
        outcome = deliveries.remote_outcome(delivery)
        deliveries.settle(delivery)
        link.endpoint.mark_dirty()
        later = self._waiting.pop(delivery, None)
        if later is not None:
            later.tell(outcome or deliveries.RELEASED)

    def on_flow(self, link: Link) -> None:
        if self._link.is_draining:
            self._link.drained()
        elif not self.is_ready and self._link.credit > 0:
            self.is_ready = True
            self._on_ready()

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        self._on_over(self)
        waiting, self._waiting = self._waiting, {}
        for later in waiting.values():
            later.tell(rejected("amqp:not-found", f"the observer has ended: {_NO_OBSERVER}"))
