"""Requests of clients to `$management`: a router gives them to the observer of its host, which answers them.

A router serves no view of itself. It says which user a request is from, in a message around the request, so that no
client can name another user; and it lets pass only requests whose answer goes to a dynamic address, since the observer
may send to every address and the client may not.
"""

from __future__ import annotations

from collections.abc import Callable

from addressing.address import is_dynamic
from addressing.management import NODE_PROPERTY, OWNER_PROPERTY, REQUESTS_ADDRESS, USER_PROPERTY
from addressing.operator_rights import OperatorRights
from router.connections.unstitched import UnstitchedOwner
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
_NO_OBSERVER = (
    "no observer reads this node, so nobody can answer: start one with `amqpmesh watch` on the node's host, or remove "
    "`watch: off` and `link_logs: off` from the topology"
)


class ManagementRequests:
    """The requests to `$management` that arrive at router ``router_id``, and the observers that are attached to it."""

    def __init__(self, router_id: str, rights: OperatorRights) -> None:
        self._router_id = router_id
        self._rights = rights
        self._observers: list[_Observer] = []

    def attach_client(self, link: IncomingLink, node: str, fail: Callable[[IncomingLink, AmqpError], None]) -> None:
        """Attach a client that sends requests about ``node``; ``fail`` ends the link with an error.

        Raises AmqpError if the client has no right to see anything of the mesh, and if there is no observer.
        """
        peer = link.endpoint.peer
        if not peer.is_mesh and not self._rights.sees_mesh(peer.user):
            who = f"user {peer.user!r}" if peer.user else "an anonymous client"
            raise AmqpError(
                "amqp:unauthorized-access",
                f"{who} may not manage the mesh: expected a user with `view`, `browse` or `manage` in the topology",
            )
        if not self._observers:
            raise AmqpError("amqp:not-found", _NO_OBSERVER)
        requests = RequestLink(link, lambda encoded: self._on_request(peer, node, encoded), REQUEST_BYTES, CREDIT, fail)
        requests.prepare()
        link.copy_target(link)
        link.check_fits()
        requests.open()
        link.owner = _ClientOwner(requests)

    def attach_observer(self, link: OutgoingLink) -> None:
        """Attach an observer, which receives the requests of clients.

        Raises AmqpError for a peer that is neither an operator nor a node: it could read the requests of others.
        """
        peer = link.endpoint.peer
        if not peer.is_mesh:
            raise AmqpError("amqp:unauthorized-access", f"only an observer may receive from {REQUESTS_ADDRESS!r}")
        link.accept_as_proposed()
        observer = link.owner = _Observer(link, self._observers.remove)
        self._observers.append(observer)

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
        for observer in reversed(self._observers):
            if observer.has_room:
                return observer.give(encode(Message(encoded, properties=properties)))
        return rejected(
            "amqp:resource-limit-exceeded",
            f"the observer has as many requests of router {self._router_id} as it takes at a time: ask again",
        )


class _ClientOwner(UnstitchedOwner):
    """Owner of a client's link for requests: hands on what arrives."""

    def __init__(self, requests: RequestLink) -> None:
        self._requests = requests

    def on_delivery(self, link: Link, delivery: Pointer) -> None:
        self._requests.on_delivery()


class _Observer(UnstitchedOwner):
    """Owner of the link over which an observer receives requests; their outcomes are those that the observer gives."""

    def __init__(self, link: OutgoingLink, on_over: Callable[[_Observer], None]) -> None:
        self._link = link
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

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        self._on_over(self)
        waiting, self._waiting = self._waiting, {}
        for later in waiting.values():
            later.tell(rejected("amqp:not-found", f"the observer has ended: {_NO_OBSERVER}"))
