"""Clients of a simulated mesh, which record received messages, unanswered deliveries, and outcomes of sent messages."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wire import delivery as deliveries
from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, EndpointSettings
from wire.events import Closed, LinkAttached, LinkDetached, LinkEstablished, Opened
from wire.link import RECEIVE_FIRST, RECEIVE_SECOND, SEND_MIXED
from wire.terminus import Terminus, TerminusType, source, target

if TYPE_CHECKING:
    from mesh.simulation.world import World


@dataclass(eq=False)
class SimReceiver:
    """A simulated client's incoming link, which accepts every delivery or, if ``accepts`` is False, holds it."""

    link: Any
    address: str | None
    """The address as the client requested it."""
    messages: list[bytes] = field(default_factory=list)
    """All messages received, in order."""
    came_settled: list[bool] = field(default_factory=list)
    """For each of ``messages``: whether the sender had settled the delivery."""
    taken: list[bytes] = field(default_factory=list)
    """Messages taken for good: accepted, rejected, or sent pre-settled."""
    answers: list[tuple[bytes, deliveries.Outcome]] = field(default_factory=list)
    """The outcome of each message that the receiver answered, in order."""
    held: list[tuple[Any, bytes]] = field(default_factory=list)
    accepts: bool = True
    tops_up: bool = True
    reads: bool = True
    """False: the client leaves arriving bytes unread in the engine, so that the session's incoming window fills."""
    confirms: bool = False
    """Receive-settle-mode second: the receiver gives an outcome, and settles once the sender has settled. [2.7.2]"""
    unconfirmed: dict[Any, bytes] = field(default_factory=dict)
    confirmed: list[bytes] = field(default_factory=list)
    doubtful: list[bytes] = field(default_factory=list)
    """Messages the client took, but whose sender may not have got the outcome: each may be redelivered."""
    states: list[int] = field(default_factory=list)
    """The delivery states that senders gave for deliveries they had not settled."""
    aborted: int = 0
    partial: bytearray = field(default_factory=bytearray)
    error: Any = None

    def settle(self, outcome: deliveries.Outcome = deliveries.ACCEPTED) -> None:
        """Give ``outcome`` for all held deliveries, and settle them; with ``confirms``, the sender settles first."""
        held, self.held = self.held, []
        for delivery, message in held:
            self.answer(delivery, message, outcome)

    def answer(self, delivery: Any, message: bytes, outcome: deliveries.Outcome) -> None:
        deliveries.set_outcome(delivery, outcome)
        self.answers.append((message, outcome))
        if outcome.kind in (deliveries.OutcomeCode.ACCEPTED, deliveries.OutcomeCode.REJECTED):
            self.taken.append(message)
        if self.confirms:
            self.unconfirmed[delivery] = message
        else:
            deliveries.settle(delivery)


@dataclass(eq=False)
class SimSender:
    """A simulated client's outgoing link, with the outcomes of the messages sent."""

    link: Any
    outcomes: dict[int, Any] = field(default_factory=dict)
    open: dict[Any, int] = field(default_factory=dict)
    """The message's number for each delivery that is not settled at both ends yet."""
    answers: bool = True
    """Whether the sender settles each delivery with an outcome, as settlement in two steps requires. [2.6.12]"""
    was_drained: bool = False
    error: Any = None
    count: int = 0

    def begin(self) -> Any:
        """Start a delivery and return it; the caller sends its bytes piece by piece over ``link``."""
        self.count += 1
        delivery = self.link.start(b"%d" % self.count)
        self.open[delivery] = self.count
        return delivery

    def abort(self, delivery: Any) -> None:
        del self.open[delivery]
        self.link.abort(delivery)

    def settle(self, number: int) -> None:
        """Settle message ``number`` at this end without waiting for an outcome."""
        delivery = next(delivery for delivery, each in self.open.items() if each == number)
        del self.open[delivery]
        deliveries.settle(delivery)

    def send(self, body: bytes, *, settled: bool = False) -> int:
        """Send a message even if there is no credit. Return the message's number, the key of ``outcomes``."""
        self.count += 1
        delivery = self.link.start(b"%d" % self.count)
        self.link.send(body)
        self.link.finish()
        if settled:
            deliveries.settle(delivery)
        else:
            self.open[delivery] = self.count
        return self.count


class SimClient:
    """A simulated client with a single connection; `World` steps the client as a node."""

    def __init__(self, world: World, container_id: str, **settings: Any) -> None:
        self.world = world
        self.dirty = DirtyEndpoints()
        self.endpoint = Endpoint(EndpointSettings(container_id, **settings), dirty=self.dirty)
        self.endpoint.open()
        self.pipe: Any = None
        self.closed: Any = None
        self.receivers: list[SimReceiver] = []
        self.senders: list[SimSender] = []
        self._names = itertools.count(1)
        self._session: Any = None

    def next_deadline(self) -> float | None:
        return None

    def on_time(self, now: float) -> None: ...

    def on_writable(self, endpoint: Endpoint, now: float) -> None: ...

    def on_disconnected(self, endpoint: Endpoint, reason: str, now: float) -> None:
        self.closed = self.closed or reason

    def _settle(self) -> None:
        self.world.touch(self)
        self.world.settle()

    def begin(self) -> Any:
        """Return the session that all links of the client use; begin it at the first call."""
        self._session = self._session or self.endpoint.begin()
        return self._session

    def receiver(
        self,
        address: str | None,
        credit: int = 10,
        *,
        dynamic: bool = False,
        name: str | None = None,
        modes: tuple[int, int] = (SEND_MIXED, RECEIVE_FIRST),
        max_message_bytes: int = 0,
        link_property: tuple[str, str] | None = None,
        **terminus: Any,
    ) -> SimReceiver:
        """Attach a receiver from ``address``, and grant ``credit``.

        ``modes``: the requested send-settle-mode, and the client's own receive-settle-mode.
        """
        link = self.begin().receiver(name or f"r{next(self._names)}")
        if link_property is not None:
            link.set_property(*link_property)
        link.set_source(source(address, is_dynamic=dynamic, **terminus))
        link.set_target(target(None))
        link.set_settle_modes(*modes)
        link.set_max_message_bytes(max_message_bytes)
        receiver = link.owner = SimReceiver(link, address, confirms=modes[1] == RECEIVE_SECOND)
        self.receivers.append(receiver)
        link.open()
        link.grant(credit)
        self._settle()
        return receiver

    def sender(
        self,
        address: str | None,
        *,
        name: str | None = None,
        modes: tuple[int, int] = (SEND_MIXED, RECEIVE_FIRST),
        **terminus: Any,
    ) -> SimSender:
        """Attach a sender. ``modes``: the client's own send-settle-mode, and the requested receive-settle-mode."""
        return self._opened_sender(name or f"s{next(self._names)}", target(address, **terminus), modes)

    def _opened_sender(
        self, name: str, goal: Terminus, modes: tuple[int, int] = (SEND_MIXED, RECEIVE_FIRST)
    ) -> SimSender:
        link = self.begin().sender(name)
        link.set_source(source(None))
        link.set_target(goal)
        link.set_settle_modes(*modes)
        sender = link.owner = SimSender(link)
        self.senders.append(sender)
        link.open()
        self._settle()
        return sender

    def coordinator(self) -> SimSender:
        """Attach a sender to the transaction coordinator. [4.5.1]"""
        return self._opened_sender(f"s{next(self._names)}", Terminus(type=TerminusType.COORDINATOR))

    def resume(self, receiver: SimReceiver) -> None:
        """Set ``receiver.reads`` to True, and read the deliveries that arrived while it was False."""
        receiver.reads, before = True, None
        while (delivery := receiver.link.current) not in (None, before):
            self.on_delivery(receiver.link, delivery)
            before = delivery
        self._settle()

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        for event in endpoint.drain(self):
            match event:
                case Closed(error):
                    self.closed = error or "closed"
                case LinkDetached(link, _, error):
                    link.owner.error = error or "detached"
                    link.close()
                case LinkAttached() | LinkEstablished() | Opened():
                    pass

    def on_delivery(self, link: Any, delivery: Any) -> None:
        receiver: SimReceiver = link.owner
        if link.has_left or link.session.has_left or not receiver.reads:
            return  # Nothing is read: `reads` is False, or the client has ended the link, whose bytes Proton drops.
        if link.current != delivery:
            return  # The delivery was read before, and has no more bytes: its sender has given a state, or settled.
        while size := deliveries.pending(delivery):
            receiver.partial += link.recv(size)
        if deliveries.is_aborted(delivery):
            receiver.partial.clear()
            receiver.aborted += 1
            link.advance()
            deliveries.settle(delivery)
            return
        if deliveries.is_partial(delivery):
            return
        message = bytes(receiver.partial)
        receiver.messages.append(message)
        receiver.came_settled.append(deliveries.is_settled(delivery))
        receiver.partial.clear()
        link.advance()
        if deliveries.is_settled(delivery):
            deliveries.settle(delivery)
            receiver.taken.append(message)
        elif receiver.accepts:
            receiver.answer(delivery, message, deliveries.ACCEPTED)
            if receiver.tops_up and not link.is_drain_pending:
                link.grant(1)
        else:
            receiver.held.append((delivery, message))

    def on_disposition(self, link: Any, delivery: Any) -> None:
        if isinstance(link.owner, SimReceiver):
            _on_settled_by_sender(link.owner, delivery, has_left=link.has_left or bool(self.closed))
        else:
            _on_outcome(link.owner, delivery)

    def on_flow(self, link: Any) -> None:
        if not isinstance(link.owner, SimReceiver) and link.is_draining and link.credit:
            link.owner.was_drained = True
            link.drained()


def told(outcome: deliveries.Outcome | None) -> tuple[Any, ...] | None:
    """Return an outcome's contents as a tuple, to compare outcomes: AmqpErrors with equal contents compare unequal."""
    if outcome is None:
        return None
    error = outcome.error and (outcome.error.condition, outcome.error.description)
    annotations = dict(outcome.annotations or {})
    return outcome.kind.name, outcome.delivery_failed, outcome.undeliverable_here, annotations, error


def _on_settled_by_sender(receiver: SimReceiver, delivery: Any, *, has_left: bool) -> None:
    """Record a state or settlement that the sender gave ``delivery``; once settled, an unconfirmed message is
    confirmed, or doubtful.

    ``has_left``: the consumer has detached or closed, so the settlement may come without regard to the outcome.
    """
    is_settled = deliveries.is_settled(delivery)
    if (state := deliveries.remote_state(delivery)) and not is_settled:
        receiver.states.append(state)
    if not is_settled or delivery not in receiver.unconfirmed:
        return
    message = receiver.unconfirmed.pop(delivery)
    is_modified = deliveries.remote_outcome(delivery) == deliveries.MODIFIED_FAILED
    is_doubtful = has_left or (is_modified and message in receiver.taken)
    (receiver.doubtful if is_doubtful else receiver.confirmed).append(message)
    deliveries.settle(delivery)


def _on_outcome(sender: SimSender, delivery: Any) -> None:
    number = sender.open.get(delivery)
    if number is None:
        return
    outcome = deliveries.remote_outcome(delivery)
    if outcome is not None:
        assert told(sender.outcomes.setdefault(number, outcome)) == told(outcome), "a second, other outcome"
    if deliveries.is_settled(delivery) or (outcome is not None and sender.answers):
        del sender.open[delivery]
        deliveries.settle(delivery)
