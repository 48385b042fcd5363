"""Load on a broker over one connection, with everything written down that the broker answered."""

import random
import selectors
import socket
import time
from collections.abc import Callable, Iterator

from mesh_tests.crash.ledger import Ledger
from wire import delivery as deliveries
from wire import terminus
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeCode, rejected
from wire.endpoint import Endpoint, EndpointSettings
from wire.engine import Pointer
from wire.errors import AmqpError
from wire.events import Closed, LinkDetached
from wire.link import RECEIVE_SECOND, SEND_UNSETTLED, IncomingLink, Link, OutgoingLink
from wire.message import Message, decode, encode
from wire.terminus import Durability, Expiry

IN_FLIGHT = 200
TTLS_S = (0.05, 0.5, 2.0, 3600.0)
CONSUMER_CREDIT = 50
LARGE_BYTES = 200_000
QUIET_S = 2.0
REJECTED = rejected("amqp:decode-error", "not wanted")


class Traffic:
    """A producer and a consumer of the queue, a publisher and a durable subscriber of the topic."""

    def __init__(self, port: int, chance: random.Random, queue: Ledger, topic: Ledger, numbers: Iterator[int]) -> None:
        self._began_at = time.time()
        self._chance = chance
        self._ledgers = {"orders": queue, "news.sport": topic, "news.#": topic}
        self._ways_out = {"dead": queue.dead, "late": queue.late}
        self._numbers = numbers
        self._sent: dict[Pointer, tuple[Ledger, int]] = {}
        self._awaiting: dict[Pointer, int] = {}
        self._partial: dict[IncomingLink, bytes] = {}
        self.is_emptying = False
        self.closed_for: AmqpError | None = None
        self.last_seen_at = time.monotonic()
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self.endpoint = Endpoint(EndpointSettings("crash-test", idle_timeout_s=0))
        self.endpoint.open()
        self._session = self.endpoint.begin()
        self._producers = [self._producer("orders"), self._producer("news.sport")]
        self._consumers = [self._consumer("orders"), self._consumer("news.#")]

    def run(self, until: Callable[[], bool]) -> None:
        """Until ``until`` says so, or the broker is gone."""
        unsent = b""
        while not until():
            self._produce()
            unsent += self._output()
            try:
                if unsent:
                    unsent = unsent[self._socket.send(unsent) :]
                chunk = self._socket.recv(1 << 20) if self._selector.select(0.01) else b"-"
            except BlockingIOError:
                continue
            except OSError:
                return
            if not chunk:
                return
            if chunk != b"-":
                self.endpoint.receive(chunk)
                self._on_input()

    def empty(self) -> None:
        """Take all that is left."""
        self.is_emptying = True
        self.run(until=lambda: all(link.is_open for link in self._consumers))
        self.last_seen_at = time.monotonic()
        self.run(until=lambda: time.monotonic() - self.last_seen_at > QUIET_S)
        self.close()

    def empty_ways_out(self) -> None:
        """Count what was moved to the queues for dead letters and for what expired."""
        self._consumers = [self._consumer("dead"), self._consumer("late")]
        self.empty()

    def close(self) -> None:
        self._selector.close()
        self._socket.close()
        self.endpoint.free()

    # wire.events.Sink

    def on_delivery(self, link: IncomingLink, delivery: Pointer) -> None:
        while (current := link.current) is not None:
            while piece := link.recv(65536):
                self._partial[link] = self._partial.get(link, b"") + piece
            if deliveries.is_partial(current):
                return
            link.advance()
            self._on_message(link, current, decode(self._partial.pop(link, b"")))

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        if not deliveries.is_settled(delivery):
            return
        if delivery in self._sent:
            ledger, number = self._sent.pop(delivery)
            outcome = deliveries.remote_outcome(delivery)
            assert outcome == ACCEPTED
            ledger.accepted.add(number)
            deliveries.settle(delivery)
        elif delivery in self._awaiting:
            self._ledger(link).confirmed.add(self._awaiting.pop(delivery))
            deliveries.settle(delivery)
            link.endpoint.mark_dirty()

    def on_flow(self, link: IncomingLink | OutgoingLink) -> None:
        pass

    # Within

    def _producer(self, address: str) -> OutgoingLink:
        link = self._session.sender(f"to {address}")
        link.set_source(terminus.source("crash-test"))
        link.set_target(terminus.target(address))
        link.owner = address
        link.open()
        return link

    def _consumer(self, address: str) -> IncomingLink:
        link = self._session.receiver(f"from {address}")
        durable = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER} if "#" in address else {}
        link.set_source(terminus.source(address, **durable))
        link.set_target(terminus.target("crash-test"))
        link.set_settle_modes(SEND_UNSETTLED, RECEIVE_SECOND)
        link.owner = address
        link.open()
        link.grant(CONSUMER_CREDIT)
        return link

    def _ledger(self, link: Link) -> Ledger:
        return self._ledgers[link.owner]

    def _produce(self) -> None:
        if self.is_emptying or not self._consumers[1].is_open:
            return
        for link in self._producers:
            in_flight = sum(ledger is self._ledger(link) for ledger, _ in self._sent.values())
            for _ in range(in_flight, IN_FLIGHT):
                if link.credit > 0 and link.is_writable:
                    self._send(link)

    def _send(self, link: OutgoingLink) -> None:
        number, ttl_s = next(self._numbers), 0.0
        if self._chance.random() < 0.1:
            ttl_s = self._chance.choice(TTLS_S)
            self._ledger(link).dies_at[number] = time.time() + ttl_s
        size = LARGE_BYTES if self._chance.random() < 0.01 else self._chance.randrange(2000)
        delivery = link.start(number.to_bytes(8, "big"))
        # A queue keeps what it accepted, whether the message asks for that or not.
        fields = {"message_id": number, "durable": number % 2 == 0, "ttl_s": ttl_s, "priority": number % 3 + 3}
        link.send(encode(Message(body=bytes(size), **fields)))
        link.finish()
        self._sent[delivery] = (self._ledger(link), number)

    def _on_message(self, link: IncomingLink, delivery: Pointer, message: Message) -> None:
        self.last_seen_at = time.monotonic()
        number = message.message_id
        if link.owner in self._ways_out:
            self._ways_out[link.owner][number] += 1
            assert message.annotations["x-opt-dead-letter-origin"] == "orders"
            deliveries.set_outcome(delivery, ACCEPTED)
            deliveries.settle(delivery)
            link.grant(1)
            return
        ledger = self._ledger(link)
        ledger.on_seen(number, message.delivery_count, self._began_at)
        if self.is_emptying:
            ledger.seen_at_end.add(number)
        outcome = ACCEPTED if self.is_emptying else self._choose()
        if outcome is not None:
            self._settle(ledger, delivery, number, outcome)
        link.grant(1)

    def _choose(self) -> Outcome | None:
        """Mostly accepted, now and then another outcome, or none ever."""
        return self._chance.choices([ACCEPTED, REJECTED, RELEASED, MODIFIED_FAILED, None], [90, 2, 3, 3, 2])[0]

    def _settle(self, ledger: Ledger, delivery: Pointer, number: int, outcome: Outcome) -> None:
        deliveries.set_outcome(delivery, outcome)
        if outcome.kind in (OutcomeCode.ACCEPTED, OutcomeCode.REJECTED):
            ledger.settled.add(number)
            # What counts is the verdict that is confirmed: one before it may have been lost in a crash.
            (ledger.rejected.add if outcome.kind is OutcomeCode.REJECTED else ledger.rejected.discard)(number)
            self._awaiting[delivery] = number
        else:
            if outcome.kind is OutcomeCode.RELEASED:
                ledger.released.add(number)
            deliveries.settle(delivery)

    def _output(self) -> bytes:
        return b"".join(iter(self.endpoint.output, b""))

    def _on_input(self) -> None:
        for event in self.endpoint.drain(self):
            match event:
                case LinkDetached(link, _, error):
                    raise error or AmqpError("amqp:internal-error", f"{link!r} was detached")
                case Closed(error):
                    self.closed_for = error
