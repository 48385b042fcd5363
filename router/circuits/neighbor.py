"""A connection to another router: that router's id, a control link in each direction, and sessions for circuits.

Both send OPEN --> both attach a control link --> routing exchanges HELLO --> circuits may be attached
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from router.circuits.announced_specs import ANNOUNCED, AnnouncedCircuits
from router.circuits.spec import BY_CONTROL, CIRCUIT
from router.connections.peers import ROLE, ROUTER_ROLE, RouterConnection, SessionPool
from router.connections.unstitched import UnstitchedOwner
from router.routing.fields import ControlMessageError
from wire import delivery as deliveries
from wire.endpoint import Endpoint
from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink
from wire.message import MalformedMessage, Message, decode, encode
from wire.terminus import source, target

CONTROL = "amqpmesh.control"
INTERIOR = "inter-router"
EDGE = "edge"
UPLINK = "uplink"
_CONTROL_CREDIT = 1000
# The last control message up to this size is cached, in both directions, to be coded only once if it repeats: HELLO
# repeats every second, and takes 0.2 ms to encode and 0.2 ms to decode.
_REPEATED_BYTES = 256
MAX_CONTROL_BYTES = 64 * 1024 * 1024
"""Most bytes of a control message, enough for half a million addresses; a larger message closes its connection."""


class ControlPlane(Protocol):
    """The methods of the router node that its connections to other routers call."""

    def on_control_up(self, connection: NeighborConnection) -> None: ...

    def on_control(self, connection: NeighborConnection, opcode: str, body: Mapping[str, Any]) -> None: ...

    def on_circuit(self, connection: NeighborConnection, link: Link, circuit: str) -> None: ...


class NeighborConnection(RouterConnection):
    """A connection to another router.

    ``kind``: `INTERIOR` between interior routers, `EDGE` from an edge router, `UPLINK` from this edge router.
    """

    def __init__(self, endpoint: Endpoint, number: int, plane: ControlPlane, kind: str = INTERIOR) -> None:
        super().__init__(endpoint, number)
        self.kind = kind
        self.router_id = ""
        self.sessions = SessionPool(endpoint)
        self._plane = plane
        self._out: ControlSender | None = None
        self._in: ControlReceiver | None = None
        self._is_up = False
        self._announced = AnnouncedCircuits(lambda link, circuit: plane.on_circuit(self, link, circuit))
        self._said: tuple[str, Mapping[str, Any], bytes] = ("", {}, b"")
        self._heard_bytes = 0

    def has_news(self) -> bool:
        """True if bytes arrived on the connection since the last call.

        The node gets an input of a connection also when only a timer of the engine ran.
        """
        heard, self._heard_bytes = self._heard_bytes, self.endpoint.bytes_in
        return self._heard_bytes > heard

    def on_opened(self) -> None:
        remote = self.endpoint.remote
        assert remote is not None
        self.router_id = remote.container_id
        if self.kind == UPLINK and remote.properties.get(ROLE) != ROUTER_ROLE:
            raise AmqpError(
                "amqp:not-allowed",
                f"the uplink {self.router_id} of this edge router is not an interior router",
            )
        self._out = ControlSender(self.sessions.own().sender(CONTROL), self._on_control_link)
        self._out.attach()

    def on_attached(self, link: Link) -> None:
        if (circuit := link.remote_property(CIRCUIT)) is not None:
            if circuit == BY_CONTROL:
                self._announced.on_attached(link)
            else:
                self._plane.on_circuit(self, link, circuit)
        elif CONTROL not in link.remote_target.capabilities:
            link.refuse(AmqpError("amqp:not-allowed", "expected the attach of a circuit or of the control link"))
        elif isinstance(link, IncomingLink) and self._in is None:
            self._in = ControlReceiver(link, self._on_control)
            self._in.accept()
            self._on_control_link()
        else:
            link.refuse(
                AmqpError(
                    "amqp:not-allowed", "the neighbor attached a second control link in one direction, expected one"
                )
            )

    def _on_control_link(self) -> None:
        if not self._is_up and self._in is not None and self._out is not None and self._out.is_up:
            self._is_up = True
            self._plane.on_control_up(self)

    def _on_control(self, opcode: str, body: Mapping[str, Any]) -> None:
        if opcode == ANNOUNCED:
            try:
                self._announced.on_told(body)
            except ControlMessageError as error:
                self.endpoint.close(error)
        else:
            self._plane.on_control(self, opcode, body)

    def send_circuit(self, link: str, circuit: str) -> None:
        """Send the neighbor a control message with a circuit's spec, for which the attach of ``link`` has no room.

        The attach may arrive there before or after the message.
        """
        self.send_control(ANNOUNCED, {"link": link, "circuit": circuit})

    def send_control(self, opcode: str, body: Mapping[str, Any]) -> None:
        if self._out is None:
            return
        self._out.send(self._encode(opcode, body))

    def _encode(self, opcode: str, body: Mapping[str, Any]) -> bytes:
        if self._said[:2] == (opcode, body):
            return self._said[2]
        encoded = encode(Message(body=dict(body), properties={"opcode": opcode}))
        if len(encoded) <= _REPEATED_BYTES:
            self._said = opcode, body, encoded
        return encoded


class ControlSender(UnstitchedOwner):
    """Owner of this router's control link to a neighbor: sends control messages, which wait while there is no credit.

    The messages are pre-settled.
    """

    def __init__(self, link: OutgoingLink, on_up: Callable[[], None]) -> None:
        self._link = link
        self._queue: deque[bytes] = deque()
        self._on_up = on_up
        self.is_up = False

    def attach(self) -> None:
        """Become the owner of the control link, whose events come here from now on, and attach the link."""
        link = self._link
        link.owner = self
        link.set_source(source(None))
        link.set_target(target(None, capabilities=(CONTROL,)))
        link.open()

    def send(self, message: bytes) -> None:
        self._queue.append(message)
        self.on_flow(self._link)

    def on_flow(self, link: Link) -> None:
        while self._queue and self._link.credit > 0 and not self._link.is_gone:
            delivery = self._link.start(b"c")
            self._link.send(self._queue.popleft())
            deliveries.settle(delivery)

    def on_established(self, link: Link) -> None:
        self.is_up = True
        self._on_up()

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        self.is_up = False


class ControlReceiver(UnstitchedOwner):
    """Owner of a neighbor's control link to this router: decodes control messages, and grants the link new credit."""

    def __init__(self, link: IncomingLink, on_control: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._link = link
        self._on_control = on_control
        self._parts: list[bytes] = []
        self._part_bytes = 0
        self._heard = b"", Message()

    def accept(self) -> None:
        """Become the owner of the control link, to get its deliveries; answer its attach, and grant credit."""
        self._link.owner = self
        self._link.accept_as_proposed()
        self._link.grant(_CONTROL_CREDIT)

    def on_delivery(self, link: Link, delivery: Pointer) -> None:
        link = self._link
        while (current := link.current) is not None:
            # The bytes of a control message are read as they arrive: a message with all addresses may be larger than
            # the session's window, and if its bytes stayed unread, no more would come.
            if size := deliveries.pending(current):
                self._parts.append(link.recv(size))
                self._part_bytes += size
            if self._part_bytes > MAX_CONTROL_BYTES:
                self._refuse_endless_message()
                return
            if deliveries.is_partial(current):
                return
            data = b"".join(self._parts)
            self._forget_parts()
            link.advance()
            deliveries.settle(current)
            if link.credit < _CONTROL_CREDIT // 2:
                link.set_credit(_CONTROL_CREDIT)
            self._read(data)
            if link.is_gone:
                return

    def _refuse_endless_message(self) -> None:
        self._forget_parts()
        sentence = f"a control message is too large: expected at most {MAX_CONTROL_BYTES:,} bytes"
        self._link.endpoint.close(AmqpError("amqp:link:message-size-exceeded", sentence))

    def _forget_parts(self) -> None:
        self._parts.clear()
        self._part_bytes = 0

    def _read(self, data: bytes) -> None:
        if data == self._heard[0]:
            self._tell(self._heard[1])
            return
        try:
            message = decode(data)
        except MalformedMessage as error:
            self._link.endpoint.close(AmqpError("amqp:decode-error", f"control message: {error}"))
            return
        if len(data) <= _REPEATED_BYTES:
            self._heard = data, message
        self._tell(message)

    def _tell(self, message: Message) -> None:
        body = message.body if isinstance(message.body, dict) else {}
        self._on_control(str(message.properties.get("opcode", "")), body)
