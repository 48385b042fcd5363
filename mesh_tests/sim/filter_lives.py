"""Random lives of a mesh in which consumers of exact addresses and of filters come and go, and routers are killed.

Each message has an address and a number of its producer. A life notes all copies of each consumer, to be judged.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proton import Message

from addressing.pattern import PatternSet, is_pattern
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh

NAMES = ("prices.tea", "prices.oil", "prices.oil.eu", "prices.gas.eu", "prices")
FILTERS = ("prices.#", "prices.*", "prices.*.eu", "prices.#.eu", "#.eu", "#", "*.*")
ADDRESSES: dict[str, Any] = {"prices.#": "multicast", "#.eu": "multicast", "rpc": "anycast"}
NEWS_S = 0.2
"""Time in which every router hears of a consumer: a router that never had producers of an address hears late."""


def told(receiver: SimReceiver) -> list[str]:
    """The addresses of the deliveries, as an ordinary client reads them."""
    return [str(_decoded(data).instructions["x-opt-to"]) for data in receiver.messages]


def _decoded(data: bytes) -> Message:
    message = Message()
    message.decode(data)
    return message


def mesh_of(link_capacity: int = 20) -> SimMesh:
    """A ring r1 to r4 with the edge routers e1, at r1 or r2, and e3, at r3 or r4."""
    listener = [{"link_capacity": link_capacity}]
    routers: dict[str, Any] = {
        "r1": {"connect": ["r2", "r4"]},
        "r2": {"connect": ["r3"]},
        "r3": {"connect": ["r4"]},
        "r4": {},
        "e1": {"mode": "edge", "connect": ["r1", "r2"]},
        "e3": {"mode": "edge", "connect": ["r3", "r4"]},
    }
    routers = {name: {**model, "listeners": listener} for name, model in routers.items()}
    mesh = SimMesh({"mesh": "filters", "node_tls": False, "routers": routers, "addresses": ADDRESSES})
    mesh.converge()
    return mesh


@dataclass(eq=False)
class Consumer:
    """``since``: how many messages were sent before all routers knew of the consumer; None until then."""

    router: str
    source: str
    client: SimClient
    receiver: SimReceiver
    answered_s: float | None = None
    since: dict[tuple[int, str], int] | None = None
    calm_from: int = 0
    """How many messages the consumer had when consumers and routers ceased to be lost."""

    def wants(self, address: str) -> bool:
        return address in PatternSet([self.source])

    @property
    def copies(self) -> list[tuple[int, str, int]]:
        """The producer, address and number of each message, in order of arrival."""
        found = []
        for data in self.receiver.messages:
            message = _decoded(data)
            producer, address, number = message.body
            if is_pattern(self.source):
                assert message.instructions["x-opt-to"] == address
            else:
                assert not message.instructions
                assert address == self.source
            found.append((producer, address, number))
        return found


@dataclass(eq=False)
class Producer:
    number: int
    router: str
    target: str | None
    client: SimClient
    sender: SimSender


@dataclass(eq=False)
class Life:
    """``sent``: (producer, address) -> how many messages were sent."""

    mesh: SimMesh
    source: random.Random
    consumers: list[Consumer] = field(default_factory=list)
    left: list[Consumer] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)
    sent: dict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))
    made: int = 0

    def run(self, steps: int, *, with_losses: bool) -> None:
        """Let clients come, and producers send and stop; ``with_losses`` consumers leave and routers are killed, too.

        In the end a hundred calm steps follow, for which no loss is an excuse.
        """
        acts = [self.attach_consumer, self.attach_producer, *[self.send] * 12, self.stop]
        for _ in range(3):
            self.attach_consumer()
            self.attach_producer()
        if with_losses:
            self._act([*acts, self.leave, self.kill], steps)
            self._calm_down()
            steps = 100
        self._act(acts, steps)
        self.mesh.run(15)
        for consumer in self.consumers:
            consumer.receiver.link.grant(200)
        self.mesh.run(5)

    def _act(self, acts: list[Callable[[], None]], steps: int) -> None:
        for _ in range(steps):
            self.source.choice(acts)()
            self.mesh.run(self.source.choice([0, 0.0005, 0.003, 0.05]))
            self.look()

    def _calm_down(self) -> None:
        self.mesh.run(15)
        self.mesh.converge()
        for consumer in self.consumers:
            consumer.calm_from, consumer.since = len(consumer.receiver.messages), dict(self.sent)

    def routers(self) -> list[str]:
        return sorted(self.mesh.routers)

    def look(self) -> None:
        """Note the messages sent before each consumer whose attach was answered NEWS_S ago or more."""
        now = self.mesh.now
        for consumer in self.consumers:
            if consumer.answered_s is None and consumer.receiver.link.is_open:
                consumer.answered_s = now
            if consumer.since is None and consumer.answered_s is not None and now >= consumer.answered_s + NEWS_S:
                consumer.since = dict(self.sent)

    def attach_consumer(self) -> None:
        if len(self.consumers) >= 8:
            return
        router = self.source.choice(self.routers())
        name = self.source.choice((*FILTERS, *NAMES[:3]))
        client = self.mesh.client(router)
        receiver = client.receiver(name, credit=self.source.choice([3, 30]))
        self.consumers.append(Consumer(router, name, client, receiver))

    def attach_producer(self) -> None:
        if len(self.producers) >= 6:
            return
        self.made += 1
        router, target = self.source.choice(self.routers()), self.source.choice((None, None, *NAMES))
        client = self.mesh.client(router)
        self.producers.append(Producer(self.made, router, target, client, client.sender(target)))

    def send(self) -> None:
        able = [each for each in self.producers if each.sender.link.is_open and each.sender.link.credit > 0]
        if not able:
            return
        producer = self.source.choice(able)
        for _ in range(self.source.randint(1, min(8, producer.sender.link.credit))):
            address = producer.target or self.source.choice(NAMES)
            number = self.sent[producer.number, address]
            self.sent[producer.number, address] += 1
            # Messages of more than 64 KiB would take other circuits; they have tests of their own.
            to = None if producer.target else address
            body = [producer.number, address, number]
            producer.sender.send(Message(address=to, body=body, subject="x" * self.source.choice([0, 5000])).encode())

    def leave(self) -> None:
        if len(self.consumers) > 2:
            consumer = self.consumers.pop(self.source.randrange(len(self.consumers)))
            self.left.append(consumer)
            if self.source.random() < 0.5:
                consumer.receiver.link.close()
            else:
                self.mesh.cut(consumer.client.pipe)

    def stop(self) -> None:
        if len(self.producers) > 2:
            producer = self.producers.pop(self.source.randrange(len(self.producers)))
            producer.sender.link.close()

    def kill(self) -> None:
        """Kill a router and start it again, without its clients."""
        router = self.source.choice(self.routers())
        for consumer in list(self.consumers):
            if consumer.router == router:
                self.consumers.remove(consumer)
                self.left.append(consumer)
        self.producers = [each for each in self.producers if each.router != router]
        edges = self.mesh.edges_of(router)
        self.mesh.kill(router)
        for edge in edges:
            self.mesh.trunks.pop(frozenset({edge.dialer, edge.to}), None)
        self.mesh.run(self.source.choice([0.01, 0.5]))
        self.mesh.start(router)
        for edge in edges:
            if edge.dialer in self.mesh.routers and edge.to in self.mesh.routers:
                self.mesh.link(edge.dialer, edge.to)

    def judge(self) -> int:
        """Check all copies of all consumers; return how many copies filters got.

        Each copy comes once, and of an address that the consumer named. In calm times, the copies of each producer and
        address come in order, and all that were sent after the consumer was known: at a loss, a message that reached
        some consumers is not sent again to others, and one that came back may come late.
        """
        count = 0
        for consumer in [*self.consumers, *self.left]:
            copies = consumer.copies
            assert len(copies) == len(set(copies)), "a copy came twice"
            assert all(consumer.wants(address) for _, address, _ in copies)
            count += len(copies) if is_pattern(consumer.source) else 0
        for consumer in self.consumers:
            assert consumer.receiver.error is None
            self._find_gaps(consumer, consumer.copies[consumer.calm_from :])
        return count

    def _find_gaps(self, consumer: Consumer, copies: list[tuple[int, str, int]]) -> None:
        got: dict[tuple[int, str], list[int]] = defaultdict(list)
        for producer, address, number in copies:
            got[producer, address].append(number)
        for (producer, address), total in self.sent.items():
            numbers, where = got[producer, address], (consumer.router, consumer.source, producer, address)
            assert numbers == sorted(numbers), where
            if consumer.since is not None and consumer.wants(address):
                since = consumer.since.get((producer, address), 0)
                assert [number for number in numbers if number >= since] == list(range(since, total)), where
