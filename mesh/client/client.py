"""An AMQP client connection for asyncio, built on the endpoint and driver that routers and brokers use.

All code runs in the thread of the event loop. The driver delivers the peer's input. A call of the library's user
changes the endpoint at once, and the driver sends the endpoint's output at the next turn of the loop.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from mesh.client.bodies import BodySink, HeldBody
from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh.client.links import LinkRefusedError, Receiver, Sender
from mesh.client.server import CONNECTOR
from wire import terminus
from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, EndpointSettings, Peer
from wire.engine import Pointer
from wire.events import Closed, Event, LinkDetached, LinkEstablished, Opened
from wire.link import RECEIVE_FIRST, SEND_SETTLED, SEND_UNSETTLED, IncomingLink, Link, OutgoingLink, Session
from wire.message import selector_filter
from wire.node import Command, DropConnector
from wire.terminus import DistributionMode, Durability, Expiry, Terminus

Ends = Sender | Receiver
ATTACH_TIMEOUT_S = 10.0


class Client:
    """One client connection: makes senders and receivers for the library's user; to the driver, a node."""

    def __init__(self, container_id: str | None = None, hostname: str | None = None) -> None:
        self.settings = EndpointSettings(container_id or f"amqpmesh-{secrets.token_hex(6)}", hostname)
        self.dirty = DirtyEndpoints()
        self.commands: list[Command] = []
        self.flush: Callable[[], None] = lambda: None
        """Sends the output of the endpoints in ``dirty``; ``connected`` sets this function to the driver's ``wake``."""
        self.error: MeshError | None = None
        self._endpoint: Endpoint | None = None
        self._session: Session | None = None
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._is_wake_scheduled = False
        self._is_open = False
        self._established: set[Link] = set()

    # For the user
    async def wait_open(self) -> None:
        await self.wait_for(lambda: self._is_open or self.error is not None)
        if self.error is not None:
            raise self.error

    async def sender(
        self,
        address: str | None,
        *,
        is_presettled: bool = False,
        is_apart: bool = False,
        timeout_s: float = ATTACH_TIMEOUT_S,
    ) -> Sender:
        """Attach a sender; address None means the anonymous terminus.

        ``is_apart``: in a session of its own, which ends with the link, so that deliveries of other links need not wait
        for room in the session's window [2.5.6]. Raises LinkRefusedError, TimedOut, or the error that ended the
        connection.
        """
        session = self._ready_session() if not is_apart else self._own_session()
        link = session.sender(self._link_name())
        link.set_source(terminus.source(None))
        link.set_target(terminus.target(address))
        link.set_settle_modes(SEND_SETTLED if is_presettled else SEND_UNSETTLED, RECEIVE_FIRST)
        sender = link.owner = Sender(self, link, address, is_presettled)
        link.open()
        await self._wait_established(link, timeout_s)
        return sender

    async def receiver(
        self,
        address: str | None,
        *,
        credit: int = 100,
        is_browsing: bool = False,
        selector: str | None = None,
        subscription: str | None = None,
        keep_body: Callable[[], BodySink] = HeldBody,
        timeout_s: float = ATTACH_TIMEOUT_S,
    ) -> Receiver:
        """Attach a receiver; address None asks the peer for a dynamic address.

        ``subscription`` is the link name that, with this client's container-id, names a durable subscription of a
        topic; the subscription stays when the receiver is closed. Raises LinkRefusedError, TimedOut, or the error that
        ended the connection.
        """
        source = source_of(address, is_browsing, selector, is_durable=subscription is not None)
        link = self._ready_session().receiver(subscription or self._link_name())
        receiver = Receiver(self, link, address, credit, keep_body, is_kept=subscription is not None)
        await self._attach(link, receiver, source, timeout_s)
        return receiver

    async def recall(self, subscription: str, address: str, *, timeout_s: float = ATTACH_TIMEOUT_S) -> Receiver:
        """Attach to an existing durable subscription of a topic by name, to inspect or end the subscription. [2.6.3]

        The attach has a null source, so the peer answers with the subscription's own source. ``address`` is the topic
        that the caller expects there; the topic is not checked. Raises LinkRefusedError, as for a subscription that
        does not exist, TimedOut, or the error that ended the connection.
        """
        link = self._ready_session().receiver(subscription)
        receiver = Receiver(self, link, address, credit=0, is_kept=True)
        receiver.purpose = f"cannot end the subscription {subscription}"
        await self._attach(link, receiver, terminus.NULL_TERMINUS, timeout_s)
        return receiver

    async def _attach(self, link: IncomingLink, receiver: Receiver, source: Terminus, timeout_s: float) -> None:
        link.owner = receiver
        link.set_source(source)
        link.set_target(terminus.target(None))
        link.set_settle_modes(SEND_UNSETTLED, RECEIVE_FIRST)
        link.open()
        await self._wait_established(link, timeout_s)

    # For links
    async def wait_for(self, holds: Callable[[], bool]) -> None:
        if holds():
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiting] = holds
        try:
            await waiting
        finally:
            self._waiting.pop(waiting, None)

    def wake(self) -> None:
        """Have the endpoint's output sent at the next turn of the event loop, so that a burst of sends is one write;
        then wake the callers of `wait_for` whose conditions hold.
        """
        if not self._is_wake_scheduled:
            self._is_wake_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_wake_scheduled = False
        self.flush()
        self._notify()

    def _notify(self) -> None:
        for waiting, holds in list(self._waiting.items()):
            if not waiting.done() and holds():
                waiting.set_result(None)

    def _ready_session(self) -> Session:
        endpoint = self._ready_endpoint()
        self._session = self._session or endpoint.begin()
        return self._session

    def _ready_endpoint(self) -> Endpoint:
        if self.error is not None:
            raise self.error
        assert self._endpoint is not None, "expected wait_open to be called first"
        return self._endpoint

    def _own_session(self) -> Session:
        session = self._ready_endpoint().begin()
        session.ends_with_its_links = True
        return session

    @staticmethod
    def _link_name() -> str:
        return f"amqpmesh-{secrets.token_hex(6)}"

    async def _wait_established(self, link: Link, timeout_s: float) -> None:
        self.wake()
        ends: Ends = link.owner
        try:
            async with asyncio.timeout(timeout_s):
                await self.wait_for(lambda: link in self._established or ends.error is not None)
        except (TimeoutError, asyncio.CancelledError) as error:
            # Close the link: were the peer to answer the attach later, the link would stay open and unused.
            link.close()
            self.wake()
            if not isinstance(error, TimeoutError):
                raise
            raise TimedOut(f"{ends.purpose}: no answer to the attach within {timeout_s:g} s") from None
        self._established.discard(link)
        if ends.error is not None:
            raise ends.error

    # The methods of a node, which the driver calls.
    def on_connected(self, connector: str, peer: Peer, now: float) -> Endpoint:
        self._endpoint = Endpoint(self.settings, peer, self.dirty)
        self._endpoint.open()
        return self._endpoint

    def on_accepted(self, listener: str, peer: Peer, now: float) -> Endpoint:
        raise NotImplementedError("bug in this program: the driver accepted a connection for a client")

    def on_connect_failed(self, connector: str, reason: str, now: float) -> None:
        self._fail(Unreachable(reason))

    def on_disconnected(self, endpoint: Endpoint, reason: str, now: float) -> None:
        self._fail(Unreachable(f"connection lost: {reason}"))

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        for event in endpoint.drain(self):
            self._on_event(event)
        self._notify()

    def on_writable(self, endpoint: Endpoint, now: float) -> None:
        self._notify()

    def on_time(self, now: float) -> None:
        """Do nothing, as a client has no timers; the interface of a node requires this method."""

    def next_deadline(self) -> float | None:
        return None

    def _on_event(self, event: Event) -> None:
        match event:
            case Opened():
                self._is_open = True
            case Closed(error):
                self._fail(Unreachable(f"the peer closed the connection: {error or 'without a reason'}"))
            case LinkEstablished(link):
                self._on_established(link)
            case LinkDetached(link, _, error):
                link.owner.fail(LinkRefusedError(error, link.owner.purpose))
                link.close()

    def _on_established(self, link: Link) -> None:
        # A null terminus in the peer's attach announces a refusal: wait for the detach, which has the reason. [2.6.3]
        # proton shows the anonymous terminus as null, too: any answer establishes a link without an address, and a
        # refusal of the link comes later, as a detach.
        answered = link.remote_target if isinstance(link, OutgoingLink) else link.remote_source
        if not answered.is_null or link.owner.address is None:
            self._established.add(link)

    def _fail(self, error: MeshError) -> None:
        if self.error is None:
            self.error = error
            # With this command, the driver closes the connection and does not dial again; the user of the client gets
            # the error.
            self.commands.append(DropConnector(CONNECTOR))
        for link in self._endpoint.links if self._endpoint is not None else []:
            link.owner.fail(self.error)
        self._notify()

    # The methods by which the endpoint hands deliveries, dispositions and flows to its sink.
    def on_delivery(self, link: IncomingLink, delivery: Pointer) -> None:
        link.owner.on_delivery(delivery)

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        if isinstance(link, OutgoingLink):
            link.owner.on_disposition(delivery)

    def on_flow(self, link: IncomingLink | OutgoingLink) -> None:
        """Do nothing about a flow: after each input, ``_notify`` wakes the senders that now have credit."""


def source_of(address: str | None, is_browsing: bool, selector: str | None, *, is_durable: bool = False) -> Terminus:
    lasting = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "capabilities": ("topic",)}
    return terminus.source(
        address,
        **(lasting if is_durable else {}),
        is_dynamic=address is None,
        distribution_mode=DistributionMode.COPY if is_browsing else DistributionMode.UNSPECIFIED,
        filter=selector_filter(selector) if selector else {},
    )
