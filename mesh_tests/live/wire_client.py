"""How does a test watch AMQP frame by frame? A connection driven by hand, which shows credit, windows and dispositions.

It is the endpoint that routers use, on a blocking socket; what the ordinary clients of others see is tested with those.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast

from mesh_tests.outcomes import set_transactional
from mesh_tests.ports import connect_from_new_host, local_name
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, Outcome
from wire.endpoint import Endpoint, EndpointSettings
from wire.events import Closed, Event, LinkAttached, LinkDetached, LinkEstablished, SessionEnded
from wire.link import RECEIVE_FIRST, SEND_MIXED, IncomingLink, Link, OutgoingLink, Session
from wire.message import Message, decode, encode
from wire.terminus import Terminus, TerminusType, source, target

WAIT_S = 30.0
CHUNK_BYTES = 65536


@dataclass(eq=False)
class Arrived:
    """A complete delivery. ``is_settled``: it came so."""

    link: IncomingLink
    data: bytes
    pointer: Any
    is_settled: bool
    is_over: bool = False
    """Settled here: the engine may have given its pointer to another."""

    @property
    def body(self) -> Any:
        return decode(self.data).body

    def settle(self, outcome: Outcome) -> None:
        if self.is_over:
            return
        self.is_over = True
        deliveries.set_outcome(self.pointer, outcome)
        deliveries.settle(self.pointer)

    def propose(self, outcome: Outcome) -> None:
        """Give the outcome, and wait for the sender to settle."""
        deliveries.set_outcome(self.pointer, outcome)


class WireClient:
    """Open from the constructor on, unless ``is_awaited`` is false. Nothing moves but inside ``wait`` and ``step``."""

    def __init__(
        self,
        port: int,
        *,
        host: str | None = None,
        container_id: str = "by-hand",
        is_awaited: bool = True,
        **settings: Any,
    ) -> None:
        """``host``: another than this one."""
        self.socket = (
            socket.create_connection((host, port), WAIT_S) if host is not None else connect_from_new_host(port, WAIT_S)
        )
        # It writes often and little: else what comes second waits 40 ms for an acknowledgment of the first.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.endpoint = Endpoint(EndpointSettings(container_id, **settings))
        self.events: list[Event] = []
        self.arrived: list[Arrived] = []
        self.outcomes: dict[int, Outcome | None] = {}
        """Of what the peer settled; of what it did not, those that ``answers`` settled or would have."""
        self.answers = True
        """Settles what it has an outcome for, as the sender of a settlement in two steps must. [2.6.12]"""
        self.reads = True
        """False: what comes stays in the session, and its window fills."""
        self.aborted = 0
        self.confirmed: list[Arrived] = []
        """Those with an outcome of ours that the peer settled after it."""
        self.has_ended = False
        self._parts: dict[IncomingLink, list[bytes]] = {}
        self._tag = 0
        self._numbers: dict[Any, tuple[int, OutgoingLink]] = {}
        self._pointers: dict[int, Any] = {}
        self.endpoint.open()
        if is_awaited:
            self.wait(lambda: self.endpoint.remote is not None, "the peer's open")

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self.has_ended:
            self.endpoint.close()
            self.wait(lambda: self.has_ended, "the end of the connection")
        self.kill()

    @property
    def local_name(self) -> str:
        return local_name(self.socket)

    def kill(self) -> None:
        """Drop the socket without a word."""
        self.socket.close()
        self.endpoint.free()

    # Links
    def begin(self) -> Session:
        return self.endpoint.begin()

    def sender(
        self,
        address: str | None,
        *,
        name: str | None = None,
        session: Session | None = None,
        is_awaited: bool = True,
        modes: tuple[int, int] = (SEND_MIXED, RECEIVE_FIRST),
        **terminus: Any,
    ) -> OutgoingLink:
        """``modes``: how it sends, and how it asks the router to settle."""
        link = (session or self.begin()).sender(name or f"to {address} {len(self.endpoint.links)}")
        link.set_source(source(None))
        link.set_target(target(address, **terminus))
        link.set_settle_modes(*modes)
        return self._opened(link, is_awaited)

    def coordinator(self) -> OutgoingLink:
        """A sender to whoever coordinates transactions. [4.5.1]"""
        link = self.begin().sender("to a coordinator")
        link.set_source(source(None))
        link.set_target(Terminus(type=TerminusType.COORDINATOR))
        return cast(OutgoingLink, self._opened(link, is_awaited=True))

    def receiver(
        self,
        address: str | None,
        credit: int = 0,
        *,
        name: str | None = None,
        session: Session | None = None,
        is_awaited: bool = True,
        send_mode: int = SEND_MIXED,
        receive_mode: int = RECEIVE_FIRST,
        max_message_bytes: int = 0,
        **terminus: Any,
    ) -> IncomingLink:
        link = (session or self.begin()).receiver(name or f"from {address} {len(self.endpoint.links)}")
        link.set_source(source(address, **terminus))
        link.set_target(target(None))
        link.set_settle_modes(send_mode, receive_mode)
        link.set_max_message_bytes(max_message_bytes)
        if credit:
            link.grant(credit)
        return self._opened(link, is_awaited)

    def _opened(self, link: Any, is_awaited: bool) -> Any:
        link.open()
        if is_awaited:
            self.wait(lambda: self.is_established(link), f"an answer to the attach of {link.name!r}")
        return link

    def is_established(self, link: Link) -> bool:
        return any(isinstance(event, LinkEstablished) and event.link is link for event in self.events)

    def detached(self, link: Link) -> LinkDetached | None:
        return next((event for event in self.events if isinstance(event, LinkDetached) and event.link is link), None)

    def wait_detached(self, link: Link, timeout_s: float = WAIT_S) -> LinkDetached:
        self.wait(lambda: self.detached(link), f"a detach of {link.name!r}", timeout_s, outlasts_detach=True)
        detached = self.detached(link)
        assert detached is not None
        return detached

    def wait_closed(self, timeout_s: float = WAIT_S) -> Closed:
        """The peer's close, or what our engine made of its end."""
        holds = lambda: any(isinstance(event, Closed) for event in self.events)  # noqa: E731
        self.wait(holds, "the peer's close", timeout_s, outlasts_detach=True)
        return next(event for event in self.events if isinstance(event, Closed))

    # Messages
    def send(self, link: OutgoingLink, body: Any, *, is_settled: bool = False, to: str | None = None) -> int:
        """Hand a message to the engine, whether or not there is credit; a number for ``outcomes``."""
        return self.send_bytes(link, encode(Message(body=body, to=to)), is_settled=is_settled)

    def send_when_due(self, link: OutgoingLink, body: Any = "x", **more: Any) -> int:
        """As soon as there is credit, and at once; a number for ``outcomes``."""
        self.wait(lambda: link.credit > 0, "credit")
        number = self.send(link, body, **more)
        self.step()
        return number

    def settle_all(self, outcome: Outcome = ACCEPTED) -> list[Arrived]:
        """What arrived, and is now settled and forgotten."""
        arrived, self.arrived = self.arrived, []
        for each in arrived:
            each.settle(outcome)
        self.step()
        return arrived

    def send_bytes(self, link: OutgoingLink, data: bytes, *, is_settled: bool = False, is_complete: bool = True) -> int:
        number = self.begin_delivery(link)
        link.send(data)
        if is_settled:
            deliveries.settle(self._pointers[number])
        elif is_complete:
            link.finish()
        return number

    def send_in_transaction(self, link: OutgoingLink, body: Any, *, to: str | None = None) -> int:
        """As part of one that no coordinator ever declared. [4.5.8]"""
        number = self.begin_delivery(link)
        set_transactional(self._pointers[number])
        link.send(encode(Message(body=body, to=to)))
        link.finish()
        return number

    def begin_delivery(self, link: OutgoingLink) -> int:
        """A number for ``outcomes``."""
        self._tag += 1
        pointer = link.start(self._tag.to_bytes(4, "big"))
        self._numbers[pointer] = self._tag, link
        self._pointers[self._tag] = pointer
        return self._tag

    def abort(self, number: int) -> None:
        """Of a delivery that was begun and not finished."""
        pointer = self._pointers.pop(number)
        link = self._numbers.pop(pointer)[1]
        link.abort(pointer)

    def settle(self, number: int) -> None:
        """Without waiting for the peer."""
        pointer = self._pointers.pop(number)
        del self._numbers[pointer]
        deliveries.settle(pointer)

    def is_unsettled(self, number: int) -> bool:
        """By us: also what has an outcome, if nobody settled it."""
        return number in self._pointers

    def wait_outcome(self, number: int, timeout_s: float = WAIT_S) -> Outcome | None:
        self.wait(lambda: number in self.outcomes, f"the outcome of delivery {number}", timeout_s)
        return self.outcomes[number]

    def wait_arrived(self, count: int, timeout_s: float = WAIT_S) -> list[Arrived]:
        self.wait(lambda: len(self.arrived) >= count, f"{count} deliveries", timeout_s)
        return self.arrived

    # Movement
    def wait(
        self, holds: Callable[[], Any], what: str, timeout_s: float = WAIT_S, *, outlasts_detach: bool = False
    ) -> None:
        """Fails when the peer detaches any link meanwhile, unless that is what is awaited."""
        wait_with([self], holds, what, timeout_s, outlasts_detach=outlasts_detach)

    def step(self, timeout_s: float = 0.0) -> None:
        """Write what there is, heartbeats too; read what is there or comes within ``timeout_s``."""
        self._answer_detaches()
        self.endpoint.tick(time.monotonic())
        self._write()
        # `select` takes no file number above 1023.
        ready = select.poll()
        ready.register(self.socket, select.POLLIN)
        if ready.poll(1000 * timeout_s):
            self._read()
        self.events += self.endpoint.drain(self)
        for event in self.events:
            assert not isinstance(event, LinkAttached | SessionEnded), f"not expected here: {event}"
        self._write()

    def _answer_detaches(self) -> None:
        """Not in the step that brought them: what a wait asks of a link needs it once more, and an answer frees it."""
        for event in self.events:
            if isinstance(event, LinkDetached) and not event.link.has_left:
                event.link.close()

    def _write(self) -> None:
        while not self.has_ended and (data := self.endpoint.output()):
            try:
                self.socket.sendall(data)
            except OSError:
                self.has_ended = True

    def _read(self) -> None:
        try:
            data = self.socket.recv(CHUNK_BYTES)
        except OSError:
            data = b""
        if data:
            self.endpoint.receive(data)
        elif not self.has_ended:
            self.has_ended = True
            self.endpoint.receive_eof()

    # The sink of the endpoint
    def on_delivery(self, link: IncomingLink, delivery: Any) -> None:
        while self.reads and (current := link.current) is not None:
            parts = self._parts.setdefault(link, [])
            while size := deliveries.pending(current):
                parts.append(link.recv(size))
            if deliveries.is_aborted(current):
                parts.clear()
                self.aborted += 1
                link.advance()
                deliveries.settle(current)
                continue
            if deliveries.is_partial(current):
                return
            is_settled = bool(deliveries.is_settled(current))
            self.arrived.append(Arrived(link, b"".join(parts), current, is_settled))
            parts.clear()
            link.advance()
            if is_settled:
                deliveries.settle(current)

    def partial_bytes(self, link: IncomingLink) -> int:
        """What came of a delivery that is not complete."""
        return sum(map(len, self._parts.get(link, [])))

    def resume(self, link: IncomingLink) -> None:
        """Read what came while it did not."""
        self.reads = True
        self.on_delivery(link, None)

    def on_disposition(self, link: Link, delivery: Any) -> None:
        if isinstance(link, IncomingLink):
            self._on_settled_by_sender(delivery)
            return
        outcome, is_settled = deliveries.remote_outcome(delivery), deliveries.is_settled(delivery)
        if delivery in self._numbers and (is_settled or outcome is not None):
            number = self._numbers[delivery][0]
            self.outcomes[number] = outcome
            if is_settled or self.answers:
                self.settle(number)

    def _on_settled_by_sender(self, delivery: Any) -> None:
        for each in reversed(self.arrived):
            if each.pointer == delivery and not (each.is_settled or each.is_over) and deliveries.is_settled(delivery):
                self.confirmed.append(each)
                each.is_over = True
                deliveries.settle(delivery)
                return

    def on_flow(self, link: IncomingLink | OutgoingLink) -> None:
        """Credit is looked at by those who wait for it."""


def wait_with(
    clients: Sequence[WireClient],
    holds: Callable[[], Any],
    what: str,
    timeout_s: float = WAIT_S,
    *,
    outlasts_detach: bool = False,
) -> None:
    """Move all of ``clients`` in turn until ``holds``: they wait for each other."""
    deadline = time.monotonic() + timeout_s
    before = {client: len(client.events) for client in clients}
    while not holds():
        for client in clients:
            so_far = client.events[before[client] :]
            assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}; so far {so_far}"
            assert not client.has_ended, f"the connection ended before {what}; so far {so_far}"
            is_detached = any(isinstance(event, LinkDetached) for event in so_far)
            assert outlasts_detach or not is_detached, f"detached before {what}: {so_far}"
        for client in clients:
            client.step(0.05 if len(clients) == 1 else 0.01 / len(clients))
