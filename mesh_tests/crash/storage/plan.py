"""Batches that a broker might write, by seed, and what a store must hold after each of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from broker.store.batch import QueueKind, QueueRow, WriteBatch
from wire.message import Message, encode

QUEUES = 3
LARGE_BYTES = 70_000
MOST_SMALL_BYTES = 20_000


@dataclass
class State:
    """Of a store: delivery-counts by queue and message, seen marks by queue and priority."""

    entries: dict[tuple[int, int], int] = field(default_factory=dict)
    marks: dict[tuple[int, int], int] = field(default_factory=dict)

    def copy(self) -> State:
        return State(dict(self.entries), dict(self.marks))

    def reopened(self) -> State:
        return State({(queue, message): count for queue, message, count in self.loaded()})

    def loaded(self) -> set[tuple[int, int, int]]:
        """What a store that was not closed says when it is opened: what may have been seen counts as that."""
        return {
            (queue, message, count + (message <= self.marks.get((queue, priority_of(message)), 0)))
            for (queue, message), count in self.entries.items()
        }


def priority_of(message_id: int) -> int:
    return (0, 4, 9, 4)[message_id % 4]


def body_of(message_id: int, size: int) -> bytes:
    return encode(Message(body=random.Random(message_id).randbytes(size), message_id=message_id))


class Plan:
    """``batches[n]`` leads from ``states[n]`` to ``states[n + 1]``. Before ``reopened_before`` it is opened anew."""

    def __init__(self, seed: int, count: int) -> None:
        self.reopened_before = count // 2
        self._random = random.Random(seed)
        self.bodies: dict[int, bytes] = {}
        self.large: set[int] = set()
        self.states = [State()]
        self.batches: list[WriteBatch] = []
        self._uploads: dict[int, bytes] = {}
        """What is still to be written of large bodies that were begun."""
        self._next_id = 1
        for number in range(count):
            self._add(number)

    def _add(self, number: int) -> None:
        batch, before = WriteBatch(), self.states[-1]
        state = before.copy()
        if number == self.reopened_before:
            # Uploads do not outlive the connections that they came over.
            state = before.reopened()
            self._uploads.clear()
        if number == 0:
            batch.queues = [QueueRow(queue, QueueKind.QUEUE, f"queue{queue}") for queue in range(1, QUEUES + 1)]
        self._settle(batch, state)
        self._go_on_with_uploads(batch, state)
        for _ in range(self._random.choice((0, 1, 3, 30))):
            self._put(batch, state, self._make(self._random.randrange(self._random.choice((100, MOST_SMALL_BYTES)))))
        if self._random.random() < 0.3:
            self._uploads[message_id] = self.bodies[message_id := self._make(LARGE_BYTES)]
            self.large.add(message_id)
        if self._random.random() < 0.2:
            queue = self._random.randint(1, QUEUES)
            mark = queue, self._random.choice((0, 4, 9))
            batch.marks[mark] = state.marks[mark] = self._next_id + 5
        self.batches.append(batch)
        self.states.append(state)

    def _make(self, size: int) -> int:
        message_id, self._next_id = self._next_id, self._next_id + 1
        self.bodies[message_id] = body_of(message_id, size)
        return message_id

    def _put(self, batch: WriteBatch, state: State, message_id: int) -> None:
        body = self.bodies[message_id]
        batch.messages.append(
            (message_id, len(body), priority_of(message_id), None, None if message_id in self.large else body)
        )
        for queue in self._random.sample(range(1, QUEUES + 1), self._random.choice((1, 1, 2, 3))):
            batch.entries.append((queue, message_id, 0))
            state.entries[queue, message_id] = 0

    def _go_on_with_uploads(self, batch: WriteBatch, state: State) -> None:
        for message_id, rest in list(self._uploads.items()):
            cut = self._random.choice((len(rest), len(rest) // 2))
            batch.pieces.append((message_id, rest[:cut]))
            self._uploads[message_id] = rest[cut:]
            if cut == len(rest):
                del self._uploads[message_id]
                batch.sealed.append(message_id)
                self._put(batch, state, message_id)
            elif self._random.random() < 0.2:
                del self._uploads[message_id]
                batch.unlinked.append(message_id)

    def _settle(self, batch: WriteBatch, state: State) -> None:
        chance = self._random.choice((0.0, 0.1, 0.9))
        for queue, message_id in list(state.entries):
            if self._random.random() < chance:
                del state.entries[queue, message_id]
                batch.archived.setdefault(queue, []).append(message_id)
            elif self._random.random() < 0.02:
                state.entries[queue, message_id] += 1
                batch.counts[queue, message_id] = state.entries[queue, message_id]
        left = {message_id for _, message_id in state.entries}
        gone = {message_id for settled in batch.archived.values() for message_id in settled} - left
        batch.dropped_messages = sorted(gone)
        batch.unlinked += sorted(gone & self.large)
