"""Who publishes to many addresses, and who subscribes to them with wildcards? Crowds of links, and a book of each copy.

Address ``dev.<k>.<n>`` is of subscriber ``k`` alone, so a message has one copy. Each message says in its body who sent
it, to which address, and the how-manieth to this address it is.
"""

from __future__ import annotations

import random
import select
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesh_tests.live.wire_client import WireClient
from wire.delivery import ACCEPTED, Outcome, OutcomeCode
from wire.events import LinkDetached
from wire.link import IncomingLink, OutgoingLink
from wire.message import decode
from wire.terminus import Durability, Expiry

LINKS_A_CONNECTION = 20
CREDIT = 200
WINDOW = 100
"""Most messages of a sender without an outcome."""
IDLE_WAIT_S = 0.02


@dataclass(frozen=True)
class Scale:
    """``rounds`` messages go to each address: two by each of its senders, the last by one if that is odd."""

    senders: int
    addresses: int
    rounds: int
    subscribers: int

    @property
    def messages(self) -> int:
        return self.addresses * self.rounds

    def address(self, number: int) -> str:
        return f"dev.{number % self.subscribers}.{number}"

    def sender_of(self, number: int, turn: int) -> int:
        return (number + turn // 2) % self.senders


@dataclass
class Book:
    """What became of each message, by its number: address times rounds, and its turn."""

    scale: Scale
    copies: bytearray = field(init=False)
    accepted: bytearray = field(init=False)
    doubtful: set[int] = field(default_factory=set)
    """Sent again after an outcome, or none, that leaves open whether the broker has the message."""
    again: set[int] = field(default_factory=set)
    """Sent more than once."""
    early: set[int] = field(default_factory=set)
    """The last copies of each subscriber before the death of a node, and those that came before the node was back: what
    the subscriber said of these may be lost, and then they come again."""
    recent: dict[int, deque[int]] = field(default_factory=dict)
    """By subscriber."""
    latest: dict[tuple[int, int], int] = field(default_factory=dict)
    """By address and sender: the turn of the latest first copy, of what was sent once."""
    wrong: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    arrived: int = 0
    """Messages with a copy at least."""
    is_hurt: bool = False
    """A node was killed, and is not known to be back: no message sent since was accepted."""

    def __post_init__(self) -> None:
        self.copies, self.accepted = bytearray(self.scale.messages), bytearray(self.scale.messages)

    def on_copy(self, subscriber: int, data: bytes) -> None:
        message = decode(data)
        sender, number, turn, address = message.body.split("|")
        key = int(number) * self.scale.rounds + int(turn)
        told = message.delivery_annotations.get("x-opt-to")
        if (
            told != address
            or address != self.scale.address(int(number))
            or int(number) % self.scale.subscribers != subscriber
        ):
            self.wrong.append(f"subscriber {subscriber} got {message.body} with x-opt-to {told}")
        self.copies[key] = min(255, self.copies[key] + 1)
        self.recent.setdefault(subscriber, deque(maxlen=2 * CREDIT)).append(key)
        if self.is_hurt:
            self.early.add(key)
        if self.copies[key] > 1:
            if key not in self.doubtful and key not in self.early:
                self.wrong.append(f"{message.body} came {self.copies[key]} times")
            return
        self.arrived += 1
        if key in self.again:
            return
        flow = int(number), int(sender)
        if self.latest.get(flow, -1) > int(turn):
            self.wrong.append(f"{message.body} came after turn {self.latest[flow]}")
        self.latest[flow] = int(turn)

    def on_killed(self) -> None:
        self.is_hurt = True
        self.early.update(key for keys in self.recent.values() for key in keys)

    def lost(self) -> list[int]:
        return [key for key, is_accepted in enumerate(self.accepted) if is_accepted and not self.copies[key]]


class Crowd(WireClient):
    """A connection of a crowd: ``do`` is its turn to work, after what came was read."""

    def __init__(self, port: int, container_id: str) -> None:
        super().__init__(port, container_id=container_id)
        self._seen = 0

    def lost_links(self) -> Iterator[Any]:
        events = self.events[self._seen :]
        self._seen = len(self.events)
        return iter([event.link for event in events if isinstance(event, LinkDetached)])

    def do(self) -> None:
        """Work."""


class Subscribers(Crowd):
    """Durable subscriptions ``numbers``, which come back on links of the same names when their links are lost."""

    def __init__(self, port: int, book: Book, numbers: Sequence[int]) -> None:
        super().__init__(port, f"subscribers {numbers[0]}")
        self._book = book
        self._numbers: dict[IncomingLink, int] = {}
        for number in numbers:
            self._attach(number, is_awaited=True)

    def _attach(self, number: int, *, is_awaited: bool = False) -> None:
        link = self.receiver(
            f"dev.{number}.*",
            CREDIT,
            name=f"subscription {number}",
            is_awaited=is_awaited,
            durability=Durability.UNSETTLED_STATE,
            expiry=Expiry.NEVER,
        )
        self._numbers[link] = number

    def on_delivery(self, link: IncomingLink, delivery: Any) -> None:
        super().on_delivery(link, delivery)
        number = self._numbers.get(link)
        arrived, self.arrived = self.arrived, []
        for each in arrived:
            assert number is not None
            self._book.on_copy(number, each.data)
            each.settle(ACCEPTED)
        if number is not None and link.credit <= CREDIT // 2:
            link.grant(CREDIT - link.credit)

    def do(self) -> None:
        for link in self.lost_links():
            if (number := self._numbers.pop(link, None)) is not None:
                self._attach(number)


@dataclass
class Sender:
    """One link without an address, what it has to send, and what it waits for."""

    number: int
    to_send: deque[int]
    link: OutgoingLink | None = None
    open: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """Key: number of a delivery. Value: number of its message, and whether it was sent while a node was away."""


class Senders(Crowd):
    """Sends messages until each was accepted: again whatever was not."""

    def __init__(self, port: int, book: Book, to_send: dict[int, deque[int]]) -> None:
        super().__init__(port, f"senders {min(to_send)}")
        self._book = book
        self._senders = [Sender(number, keys) for number, keys in to_send.items()]
        for sender in self._senders:
            sender.link = self.sender(None, name=f"sender {sender.number}")

    @property
    def is_done(self) -> bool:
        return not any(sender.to_send or sender.open for sender in self._senders)

    def do(self) -> None:
        lost = {*self.lost_links()}
        for sender in self._senders:
            if sender.link in lost:
                self._on_lost(sender)
            self._take_outcomes(sender)
            self._send(sender)

    def _take_outcomes(self, sender: Sender) -> None:
        for delivery in [each for each in sender.open if each in self.outcomes]:
            key, is_late = sender.open.pop(delivery)
            outcome = self.outcomes.pop(delivery)
            self._on_outcome(sender, key, outcome)
            if is_late and outcome == ACCEPTED:
                self._book.is_hurt = False

    def _on_outcome(self, sender: Sender, key: int, outcome: Outcome | None) -> None:
        book = self._book
        book.outcomes["none" if outcome is None else outcome.kind.name.lower()] += 1
        if outcome is not None and outcome.kind is OutcomeCode.ACCEPTED:
            book.accepted[key] = 1
            return
        if outcome is not None and outcome.kind not in (OutcomeCode.RELEASED, OutcomeCode.MODIFIED):
            book.wrong.append(f"message {key} got {outcome}")
            return
        book.again.add(key)
        if outcome is None or outcome.kind is OutcomeCode.MODIFIED:
            book.doubtful.add(key)
        sender.to_send.append(key)

    def _on_lost(self, sender: Sender) -> None:
        self._take_outcomes(sender)
        for key, _ in sender.open.values():
            self._on_outcome(sender, key, None)
        sender.open.clear()
        sender.link = self.sender(None, name=f"sender {sender.number}", is_awaited=False)

    def _send(self, sender: Sender) -> None:
        link = sender.link
        assert link is not None
        while sender.to_send and link.credit > 0 and len(sender.open) < WINDOW:
            key = sender.to_send.popleft()
            number, turn = divmod(key, self._book.scale.rounds)
            address = self._book.scale.address(number)
            data = encoded(address, f"{sender.number}|{number}|{turn}|{address}")
            sender.open[self.send_bytes(link, data)] = key, self._book.is_hurt


def encoded(to: str, body: str) -> bytes:
    """A message with the property `to` and a text, faster than a library encodes it. [3.2.4]"""
    address, text = to.encode(), body.encode()
    fields = b"\x40\x40\xa1" + struct.pack("B", len(address)) + address
    properties = b"\x00\x53\x73\xc0" + struct.pack("BB", len(fields) + 1, 3) + fields
    return properties + b"\x00\x53\x77\xa1" + struct.pack("B", len(text)) + text


def work_of(scale: Scale, chance: random.Random) -> dict[int, deque[int]]:
    """What each sender has to send: its addresses in random order, the turns of each address in theirs."""
    by_sender: dict[int, list[tuple[int, list[int]]]] = {number: [] for number in range(scale.senders)}
    for number in range(scale.addresses):
        turns: dict[int, list[int]] = {}
        for turn in range(scale.rounds):
            turns.setdefault(scale.sender_of(number, turn), []).append(number * scale.rounds + turn)
        for sender, keys in turns.items():
            by_sender[sender].append((number, keys))
    found = {}
    for sender, flows in by_sender.items():
        # The same address again only after all others: its messages are as far apart as they can be.
        chance.shuffle(flows)
        most = max((len(keys) for _, keys in flows), default=0)
        found[sender] = deque(keys[turn] for turn in range(most) for _, keys in flows if turn < len(keys))
    return found


def work_until(crowds: Sequence[Crowd], holds: Callable[[], bool], timeout_s: float, what: Callable[[], str]) -> None:
    """Let all work until ``holds``."""
    deadline = time.monotonic() + timeout_s
    sockets = [crowd.socket for crowd in crowds]
    while not holds():
        assert time.monotonic() < deadline, f"waited {timeout_s} s; {what()}"
        select.select(sockets, [], [], IDLE_WAIT_S)
        for crowd in crowds:
            crowd.step()
            assert not crowd.has_ended, f"a connection ended: {crowd.events[-3:]}"
            crowd.do()
