"""The journal of test traffic on one address: each message's due time, send time, outcome, and arrivals at consumers.

Sans-IO. Times are in seconds of one clock. Always: messages sent = accepted + rejected + released + modified + unknown,
where unknown includes messages without an outcome yet.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

UNKNOWN = "unknown"
OUTCOMES = ("accepted", "rejected", "released", "modified", UNKNOWN)
CODES = {name: code for code, name in enumerate(OUTCOMES, 1)}
UNANSWERED = 0


@dataclass(frozen=True, slots=True)
class Arrival:
    """One delivery of a message to a consumer; a duplicate is an arrival of its own."""

    message: int
    """The position of the message in the journal."""
    consumer: int
    at: float


@dataclass(frozen=True, slots=True)
class Stall:
    """A time span in which a producer had no credit; ``at`` is the beginning."""

    at: float
    seconds: float


class Journal:
    """Every message sent to one address and received from the address, from which losses and duplicates are counted.

    ``consumers`` is the number of consumers; ``is_competing`` says that a message is for one of them, not for each.
    """

    def __init__(self, consumers: int, is_competing: bool) -> None:
        self.consumers = consumers
        self.is_competing = is_competing
        self.due = array("d")
        self.sent = array("d")
        self._outcome = array("b")
        self._sender = array("i")
        self._number = array("i")
        self._by_sender: list[list[int]] = []
        self.arrivals: list[Arrival] = []
        self.stalls: list[Stall] = []
        self.reconnects: list[float] = []
        """The times at which a producer or a consumer lost its connection."""
        self.foreign = 0
        """The number of arrivals of messages that no sender of this journal sent; these arrivals are only counted."""

    def add_sender(self) -> int:
        self._by_sender.append([])
        return len(self._by_sender) - 1

    def on_sent(self, sender: int, due: float, now: float) -> tuple[int, int]:
        """Record a sent message; return the message's position in the journal, and the number, from 0, that the message
        has at its sender.
        """
        message = len(self.due)
        number = len(self._by_sender[sender])
        self.due.append(due)
        self.sent.append(now)
        self._outcome.append(UNANSWERED)
        self._sender.append(sender)
        self._number.append(number)
        self._by_sender[sender].append(message)
        return message, number

    def on_outcome(self, message: int, outcome: str) -> None:
        self._outcome[message] = CODES[outcome]

    def on_arrival(self, consumer: int, sender: int, number: int, now: float) -> None:
        if sender >= len(self._by_sender) or number >= len(self._by_sender[sender]):
            self.foreign += 1
            return
        self.arrivals.append(Arrival(self._by_sender[sender][number], consumer, now))

    def outcome(self, message: int) -> str:
        code = self._outcome[message]
        return OUTCOMES[code - 1] if code != UNANSWERED else UNKNOWN

    def unanswered(self) -> int:
        """Return the number of messages without a recorded outcome; a recorded ``unknown`` counts as an outcome."""
        return self._outcome.count(UNANSWERED)

    def name(self, message: int) -> str:
        """Return the message-id on the wire: ``sender/number``, both counted from 0."""
        return f"{self._sender[message]}/{self._number[message]}"

    def is_complete(self) -> bool:
        """Tell whether every message has an outcome, and every accepted message has reached each consumer or, where
        consumers compete, one of them.
        """
        return not self.unanswered() and not any(True for _ in self.lost())

    def reaches_all(self) -> bool:
        """Tell whether every consumer has received at least one message; where consumers compete, whether any consumer
        has.
        """
        if self.is_competing:
            return bool(self.arrivals)
        return len({arrival.consumer for arrival in self.arrivals}) == self.consumers

    def due_between(self, start: float, end: float) -> list[int]:
        return [message for message, due in enumerate(self.due) if start <= due < end]

    def received(self) -> dict[int, set[int]]:
        """Return for each message that arrived, by its position, the set of consumers that received the message."""
        found: dict[int, set[int]] = {}
        for arrival in self.arrivals:
            found.setdefault(arrival.message, set()).add(arrival.consumer)
        return found

    def lost(self) -> Iterator[int]:
        """Yield the position of each accepted message once for every consumer that did not receive the message; where
        consumers compete, once if no consumer received the message.
        """
        received = self.received()
        for message, code in enumerate(self._outcome):
            if code == CODES["accepted"]:
                has = received.get(message, set())
                missing = 0 if self.is_competing and has else 1 if self.is_competing else self.consumers - len(has)
                yield from repeat(message, missing)

    def firsts(self) -> Iterator[Arrival]:
        """Yield in order of time the first arrival of each message, at each consumer unless consumers compete."""
        again = {id(arrival) for arrival in self.duplicated()}
        return (arrival for arrival in self.arrivals if id(arrival) not in again)

    def duplicated(self) -> Iterator[Arrival]:
        """Yield each repeated arrival of a message: each after the first at the same consumer or, where consumers
        compete, at any consumer.
        """
        seen: set[tuple[int, int]] = set()
        for arrival in self.arrivals:
            key = (arrival.message, 0 if self.is_competing else arrival.consumer)
            if key in seen:
                yield arrival
            seen.add(key)

    def reordered(self) -> Iterator[Arrival]:
        """Yield a message's first arrival at a consumer if a message that the same sender sent later had arrived at
        this consumer before.
        """
        latest: dict[tuple[int, int], int] = {}
        seen: set[tuple[int, int]] = set()
        for arrival in self.arrivals:
            if (arrival.message, arrival.consumer) in seen:
                continue
            seen.add((arrival.message, arrival.consumer))
            key = (arrival.consumer, self._sender[arrival.message])
            if self._number[arrival.message] < latest.get(key, -1):
                yield arrival
            else:
                latest[key] = self._number[arrival.message]

    def arrival_times(self) -> list[Sequence[float]]:
        """Return the arrival times of each consumer, or of all consumers together where consumers compete."""
        if self.is_competing:
            return [[arrival.at for arrival in self.arrivals]]
        times: list[list[float]] = [[] for _ in range(self.consumers)]
        for arrival in self.arrivals:
            times[arrival.consumer].append(arrival.at)
        return list(times)
