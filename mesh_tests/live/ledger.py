"""What was promised, and what came of it: numbered messages from one client to another, whatever lies between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from mesh_tests.live.wire_client import WireClient
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED, OutcomeCode
from wire.link import IncomingLink, OutgoingLink


class Ledger:
    """A producer and a consumer in one thread; what comes back is sent again under its number."""

    def __init__(
        self, producer: WireClient, sender: OutgoingLink, consumer: WireClient, receiver: IncomingLink
    ) -> None:
        self._producer, self._sender = producer, sender
        self._consumer, self._receiver = consumer, receiver
        self._credit = max(receiver.credit, 1)
        self._under_way: dict[int, int] = {}
        self._again: list[int] = []
        self._next = 1
        self.accepted: set[int] = set()
        self.received: Counter[int] = Counter()
        self.outcomes: Counter[OutcomeCode] = Counter()

    def run(self, is_done: Callable[[Ledger], bool], timeout_s: float, *, is_sending: bool = True) -> None:
        """Send and receive until ``is_done``; nobody may lose a link or a connection meanwhile."""

        def move() -> bool:
            while is_sending and self._sender.credit > 0 and self._sender.is_writable and len(self._under_way) < 100:
                self._send()
            self._producer.step()
            self._consumer.step()
            self._settle_arrived()
            self._read_outcomes()
            for client, link in ((self._producer, self._sender), (self._consumer, self._receiver)):
                assert not client.has_ended, f"{link.name}: connection lost, {client.events}"
                assert client.detached(link) is None, f"{link.name}: {client.detached(link)}"
            return is_done(self)

        wait_until(move, timeout_s, f"more than {len(self.accepted)} accepted and {len(self.received)} received")

    @property
    def missing(self) -> set[int]:
        """Accepted, but not received."""
        return self.accepted - set(self.received)

    def _send(self) -> None:
        number = self._again.pop() if self._again else self._next
        self._next = max(self._next, number + 1)
        self._under_way[self._producer.send(self._sender, number)] = number

    def _read_outcomes(self) -> None:
        for delivery in [delivery for delivery in self._under_way if delivery in self._producer.outcomes]:
            number, outcome = self._under_way.pop(delivery), self._producer.outcomes.pop(delivery)
            assert outcome is not None
            self.outcomes[outcome.kind] += 1
            if outcome == ACCEPTED:
                self.accepted.add(number)
            else:
                self._again.append(number)

    def _settle_arrived(self) -> None:
        arrived, self._consumer.arrived = self._consumer.arrived, []
        for each in arrived:
            self.received[each.body] += 1
            each.settle(ACCEPTED)
        if self._receiver.credit < self._credit // 2:
            self._receiver.set_credit(self._credit)
