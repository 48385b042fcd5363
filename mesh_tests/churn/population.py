"""The clients of the churn: a population of constant size, each member of which is soon replaced by another one.

The number of connections and links stays the same, so what a node holds for each of them stays the same, too; whatever
grows was left behind by members that are gone.
"""

from __future__ import annotations

import random
import select
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mesh_tests.churn.client import CREDIT, ChurnClient
from wire.link import IncomingLink, Link, OutgoingLink
from wire.message import Message, encode
from wire.terminus import Durability, Expiry

TOPOLOGY = """
mesh: churn
routers:
  r1: {connect: [r2]}
  r2: {connect: [r3]}
  r3:
brokers:
  b1: {routers: [r3]}
addresses:
  job.#: anycast
  news.#: multicast
  dev.#: topic
  box.#: {type: queue, queue_expiry_s: 20}
"""
"""The rings of link logs have their full size, so half an hour fills no ring: written pages must not stay resident."""

DECLARED = frozenset({"job", "news", "dev", "box"})
"""The first tokens of all addresses of the topology."""
TURN_S = 0.05
TICK_S = 0.5
STANDING_A_ROUTER = 2
VISITORS_A_ROUTER = 8
PAIRS = 48
SUBSCRIBERS = 10
PUBLISHERS = 6
PUBLISHED_A_TURN = 14
FRESH_SHARE = 0.75
"""The share of messages and links whose address nobody has used before; the others repeat one."""
TTL_S = 10.0
"""What nobody takes from a queue goes by itself, and then the queue."""
CLOSING_S = 5.0
AWAY_S = 1.0


class Names:
    """Numbers for addresses: most are new, some were used before."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.count = 0

    def next(self) -> int:
        if self.count and self._chance.random() > FRESH_SHARE:
            return self._chance.randrange(self.count)
        self.count += 1
        return self.count - 1


@dataclass
class Pair:
    """A consumer, and a sender at another router that sends to it: what is done with an address for a while."""

    ends_at: float
    consumer: ChurnClient
    producer: ChurnClient
    consumer_link: Link
    producer_link: OutgoingLink | None = None
    to_send: int = 3
    to: str | None = None
    """For a producer without an address: the address of the consumer."""
    subscription: str | None = None
    """The name of a durable subscription: the consumer detaches, comes back to the subscription, and ends it."""
    is_away: bool = False
    """The consumer has detached, and not come back yet."""
    has_come_back: bool = False


@dataclass
class Visitor:
    """A connection with a sender and a receiver of its own."""

    ends_at: float
    client: ChurnClient
    port: int
    link: OutgoingLink | None = None
    has_sent: bool = False


@dataclass
class Population:
    """``ports`` are of the client listeners of the routers, by the routers' names."""

    ports: Mapping[str, int]
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    delayed_s: float = 0.0
    """The time by which turns came late, in all: the clients' process, or the machine, has too much to do."""

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self.names = Names(self._chance)
        self._made = 0
        self._closing: list[tuple[float, ChurnClient]] = []
        self.come()

    def come(self) -> None:
        """Let everybody connect, at the start and after each time that everybody left."""
        self._ticked_at = self._turned_at = time.monotonic()
        self._standing = [self._connect(port) for port in self.ports.values() for _ in range(STANDING_A_ROUTER)]
        self._visitors = [self._visit(port) for port in self.ports.values() for _ in range(VISITORS_A_ROUTER)]
        for number in range(SUBSCRIBERS):
            self._standing[number % len(self._standing)].receiver(f"dev.{number}.*", CREDIT, is_awaited=False)
        self._publishers = [(client, client.sender(None, is_awaited=False)) for client in self._standing[:PUBLISHERS]]
        self._pairs = [self._pair() for _ in range(PAIRS)]

    # Life
    def live(self, seconds: float) -> None:
        """Let the population live for ``seconds``."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            self._turn(now)
            due = self._turned_at + TURN_S
            while (left := due - time.monotonic()) > 0:
                self._move(left)
            self.delayed_s += max(0.0, time.monotonic() - due - TURN_S)
            self._turned_at = max(due, time.monotonic() - TURN_S)

    def leave(self) -> None:
        """Let everybody close its connection in order, and wait for the routers' answers.

        Durable subscriptions are ended before: the broker would rightly keep their queues, some more at each rest.
        """
        self._end_subscriptions()
        self._closing += [(time.monotonic() + CLOSING_S, client) for client in self._clients()]
        for _, client in self._closing:
            client.leave()
            client.work()
        self._standing, self._visitors, self._pairs, self._publishers = [], [], [], []
        while self._closing:
            self._move(TURN_S)
            self._bury(time.monotonic())

    def _end_subscriptions(self) -> None:
        durable = [pair for pair in self._pairs if pair.subscription is not None]
        for pair in durable:
            if pair.is_away:
                self._come_back(pair)
        ends_at = time.monotonic() + CLOSING_S
        while not all(_is_attached(pair.consumer_link) for pair in durable) and time.monotonic() < ends_at:
            for client in self._standing:
                if client.has_output:
                    client.work()
            self._move(TURN_S)
        for pair in durable:
            pair.consumer.end(pair.consumer_link)

    def _clients(self) -> Iterator[ChurnClient]:
        yield from self._standing
        yield from (visitor.client for visitor in self._visitors)

    def _all(self) -> Iterator[ChurnClient]:
        yield from self._clients()
        yield from (client for _, client in self._closing)

    def _move(self, timeout_s: float) -> None:
        sockets = {client.socket: client for client in self._all() if not client.has_ended}
        readable, _, _ = select.select(sockets, [], [], timeout_s)
        for each in readable:
            sockets[each].work()

    def _turn(self, now: float) -> None:
        for client in self._standing:
            if client.has_ended:
                raise AssertionError(f"a router ended a connection that was to stay: {dict(self.counts)}")
        self._publish()
        self._visitors = [self._go_on_visiting(visitor, now) for visitor in self._visitors]
        self._pairs = [self._go_on(pair, now) for pair in self._pairs]
        self._bury(now)
        is_tick = now - self._ticked_at > TICK_S
        self._ticked_at = now if is_tick else self._ticked_at
        for client in self._all():
            if not client.has_ended and (is_tick or client.has_output):
                client.work()

    def _bury(self, now: float) -> None:
        left = []
        for ends_at, client in self._closing:
            if client.has_ended or now > ends_at:
                self.counts["closed in order" if client.has_ended else "not closed in time"] += 1
                client.drop()
            else:
                left.append((ends_at, client))
        self._closing = left

    # Connections
    def _connect(self, port: int) -> ChurnClient:
        self._made += 1
        self.counts["connections"] += 1
        return ChurnClient(port, f"churn-{self._made}", self.counts)

    def _visit(self, port: int) -> Visitor:
        chance, client = self._chance, self._connect(port)
        stays_s = chance.expovariate(1.0) if chance.random() < 0.8 else chance.uniform(0.0, 40.0)
        visitor = Visitor(time.monotonic() + stays_s, client, port)
        number = self.names.next()
        self._receive(client, f"news.{number}")
        if chance.random() < 0.5:
            self._receive(client, f"job.{number}")
        visitor.link = self._send_to(client, f"news.{number}")
        return visitor

    def _go_on_visiting(self, visitor: Visitor, now: float) -> Visitor:
        client = visitor.client
        if not visitor.has_sent and visitor.link is not None:
            visitor.has_sent = client.send_if_possible(visitor.link, encode(Message(body="x")))
        if now < visitor.ends_at and not client.has_ended:
            return visitor
        if client.has_ended or self._chance.random() < 0.2:
            self.counts["dropped without a close"] += 1
            client.drop()
        else:
            client.leave()
            self._closing.append((now + CLOSING_S, client))
        return self._visit(visitor.port)

    # Links
    def _send_to(self, client: ChurnClient, address: str | None) -> OutgoingLink:
        self.counts["links"] += 1
        return client.sender(address, name=self._link_name(), is_awaited=False)

    def _receive(self, client: ChurnClient, address: str | None, name: str | None = None, **more: Any) -> IncomingLink:
        self.counts["links"] += 1
        return client.receiver(address, CREDIT, name=name or self._link_name(), is_awaited=False, **more)

    def _link_name(self) -> str:
        self._made += 1
        return f"link-{self._made}"

    def _pair(self) -> Pair:
        chance = self._chance
        consumer, producer = chance.sample(self._standing, 2)
        stays_s = 1.0 + (chance.expovariate(1 / 3.0) if chance.random() < 0.7 else chance.uniform(0.0, 60.0))
        ends_at, number = time.monotonic() + stays_s, self.names.next()
        kind = chance.choice(("job", "job", "news", "box", "dev", "wildcard", "durable", "dynamic"))
        self.counts[f"pairs of {kind}"] += 1
        if kind in ("job", "news", "box"):
            return self._pair_of(ends_at, consumer, producer, f"{kind}.{number}")
        topic = f"dev.{number % SUBSCRIBERS}.{number}"
        if kind == "dev":
            return self._pair_of(ends_at, consumer, producer, topic)
        if kind == "wildcard":
            link = self._receive(consumer, f"dev.{number % SUBSCRIBERS}.{number}.#")
            return Pair(ends_at, consumer, producer, link, self._send_to(producer, f"{topic}.x"))
        if kind == "durable":
            name = self._link_name()
            link = self._subscribe(consumer, topic, name)
            return Pair(ends_at, consumer, producer, link, self._send_to(producer, topic), subscription=name, to=topic)
        return self._dynamic_pair(ends_at, consumer, producer)

    def _pair_of(self, ends_at: float, consumer: ChurnClient, producer: ChurnClient, address: str) -> Pair:
        return Pair(ends_at, consumer, producer, self._receive(consumer, address), self._send_to(producer, address))

    def _dynamic_pair(self, ends_at: float, consumer: ChurnClient, producer: ChurnClient) -> Pair:
        link = self._receive(consumer, None, is_dynamic=True)
        pair = Pair(ends_at, consumer, producer, link)

        def on_established() -> None:
            address = link.remote_source.address
            if self._chance.random() < 0.5:
                pair.producer_link = self._send_to(producer, address)
            else:
                pair.producer_link, pair.to = self._send_to(producer, None), address

        consumer.call_when_established(link, on_established)
        return pair

    def _subscribe(self, client: ChurnClient, topic: str, name: str) -> IncomingLink:
        return self._receive(client, topic, name, durability=Durability.UNSETTLED_STATE, expiry=Expiry.NEVER)

    def _go_on(self, pair: Pair, now: float) -> Pair:
        link = pair.producer_link
        if pair.to_send and link is not None:
            data = encode(Message(body="x", ttl_s=TTL_S, to=pair.to))
            pair.to_send -= pair.producer.send_if_possible(link, data)
        if now < pair.ends_at:
            return pair
        if pair.subscription is not None and not pair.has_come_back:
            pair.ends_at = now + AWAY_S
            if pair.is_away:
                self._come_back(pair)
            else:
                pair.consumer.end(pair.consumer_link, keeps_terminus=True)
                pair.is_away = True
            return pair
        pair.consumer.end(pair.consumer_link)
        if link is not None:
            pair.producer.end(link)
        return self._pair()

    def _come_back(self, pair: Pair) -> None:
        if pair.to is not None and pair.subscription is not None:
            pair.consumer_link = self._subscribe(pair.consumer, pair.to, pair.subscription)
            pair.is_away, pair.has_come_back = False, True

    # Messages
    def _publish(self) -> None:
        for _ in range(PUBLISHED_A_TURN):
            client, link = self._chance.choice(self._publishers)
            number, draw = self.names.next(), self._chance.random()
            if draw < 0.75:
                address = f"dev.{number % SUBSCRIBERS}.{number}"
            else:
                # Nobody receives from most of these.
                address = f"job.{number}" if draw < 0.85 else f"news.{number}"
            if not client.send_if_possible(link, encode(Message(body="x", to=address))):
                self.counts["publications without credit"] += 1


def _is_attached(link: Link) -> bool:
    return link.is_gone or link.is_peer_attached
