"""A sender without an address: every message says where it goes. [ANONYMOUS-RELAY]

It always has credit. Complete messages are read out and wait per `to`, so others overtake them; order holds per `to`.
One that is not complete at 64 KiB streams from the link, and those behind it wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from router.forwarding.ends import CHUNK_BYTES, Inlet, OpenGroup, release
from router.forwarding.guard import Guard
from wire import delivery as deliveries
from wire.delivery import rejected
from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import IncomingLink, Link
from wire.sections import Incomplete, scan

FindGroup = Callable[[str], OpenGroup]
"""The group of an address; raises AmqpError when the user may not send there, or nobody declared it."""


class AnonymousInlet(Inlet):
    """What one anonymous sender has for one address: messages read already, the last perhaps not to its end."""

    __slots__ = ("held", "partial", "producer")

    def __init__(self, producer: AnonymousProducer, group: OpenGroup) -> None:
        super().__init__(producer.link, group, producer.capacity)
        self.producer = producer
        self.held: deque[tuple[Pointer, bytes]] = deque()
        self.partial: Pointer | None = None
        producer.link.owner = producer

    @property
    def head(self) -> Pointer | None:
        return self.held[0][0] if self.held else None

    @property
    def has_prefix(self) -> bool:
        return True

    @property
    def needs_float(self) -> bool:
        return False

    def is_head_partial(self, delivery: Pointer) -> bool:
        return delivery is self.partial

    def take_prefix(self) -> bytes | None:
        return self.held.popleft()[1]

    def pop(self) -> None:
        self.moving = self.partial = None
        self.producer.on_head_done()

    def release_held(self) -> int:
        count = 0
        while self.held and not self.is_head_partial(self.held[0][0]):
            release(self.held.popleft()[0])
            count += 1
        if count:
            self.link.endpoint.mark_dirty()
            self.producer.top_up()
        return count

    def top_up(self, count: int) -> None:
        """Its sender's credit is the producer's affair."""

    def reduce(self, count: int) -> None:
        """As above."""

    def revoke(self) -> None: ...


class AnonymousProducer:
    """Owner of an incoming link whose target is null."""

    def __init__(self, link: IncomingLink, capacity: int, find: FindGroup, guard: Guard) -> None:
        self.link = link
        self._guard = guard
        self.capacity = capacity
        self.inlets: dict[OpenGroup, AnonymousInlet] = {}
        self._find = find
        self._prefix = b""
        self._streaming: AnonymousInlet | None = None
        link.owner = self

    def top_up(self) -> None:
        if not self.link.is_open:
            return
        held = sum(len(inlet.held) + len(inlet.unsettled) for inlet in self.inlets.values())
        room = self.capacity - held - self.link.credit - self.link.queued
        if room * 2 >= self.capacity:
            self.link.grant(room)

    def on_delivery(self, link: Link, delivery: Pointer) -> None:
        if not self._may_go_on():
            return
        if self._streaming is not None:
            self._streaming.group.pump(self._streaming)
        else:
            self._read()

    def on_head_done(self) -> None:
        self._streaming = None
        self.link.advance()
        self._read()

    def _read(self) -> None:
        while self._streaming is None and self._may_go_on() and (delivery := self.link.current) is not None:
            while size := deliveries.pending(delivery):
                self._prefix += self.link.recv(min(size, CHUNK_BYTES))
            is_partial = bool(deliveries.is_partial(delivery)) and not deliveries.is_aborted(delivery)
            if is_partial and len(self._prefix) < CHUNK_BYTES:
                return
            message, self._prefix = self._prefix, b""
            if not is_partial:
                self.link.advance()
            if deliveries.is_aborted(delivery):
                deliveries.settle(delivery)
                continue
            self._pass_on(delivery, message, is_partial)
            if self.link.has_left:
                return
        self.top_up()

    def _may_go_on(self) -> bool:
        error = self._guard.offence()
        if error is None:
            return True
        self.link.close(error)
        self.on_left(True, error)
        self.link.owner = None
        return False

    def _pass_on(self, delivery: Pointer, message: bytes, is_partial: bool) -> None:
        try:
            inlet = self._inlet_for(message)
        except AmqpError as error:
            self._reject(delivery, error, is_partial)
            return
        inlet.held.append((delivery, message))
        if is_partial:
            inlet.partial = delivery
            self._streaming = inlet
        inlet.group.pump(inlet)

    def _inlet_for(self, message: bytes) -> AnonymousInlet:
        try:
            to = scan(message).to
        except Incomplete:
            raise AmqpError("amqp:decode-error", "the message ends before its properties do") from None
        if not to:
            raise AmqpError("amqp:invalid-field", "sent without a target, and its properties name no address in `to`")
        group = self._find(to)
        inlet = self.inlets.get(group)
        if inlet is None:
            inlet = self.inlets[group] = AnonymousInlet(self, group)
            group.add_inlet(inlet)
        return inlet

    def _reject(self, delivery: Pointer, error: AmqpError, is_partial: bool) -> None:
        if is_partial:
            # Its end would have to be read first; a message that large with nowhere to go ends the link.
            self.link.close(error)
            self.on_left(True, error)
            return
        if not deliveries.is_settled(delivery):
            deliveries.set_outcome(delivery, rejected(error.condition, error.description))
        deliveries.settle(delivery)
        self.link.endpoint.mark_dirty()

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        for inlet in self.inlets.values():
            if delivery in inlet.unsettled:
                inlet.unsettled[delivery].on_sender_disposition(delivery)
                return

    def on_flow(self, link: Link) -> None: ...

    def on_established(self, link: Link) -> None: ...

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        inlets, self.inlets = self.inlets, {}
        for group, inlet in inlets.items():
            inlet.abandon()
            inlet.held.clear()
            group.forget_inlet(inlet)
        self._streaming = None
        self.link.close() if closed else self.link.detach()

    def forget(self, group: OpenGroup) -> None:
        """The group is gone (nobody uses its address any more)."""
        self.inlets.pop(group, None)
