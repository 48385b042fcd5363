"""Batches that a broker might write, by seed, and what a store must hold after each of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields, replace

from broker.store.batch import QueueKind, QueueRow, WriteBatch
from broker.store.cause import Cause, Reason
from wire.message import Message, encode

FIRST_QUEUES = 3
LARGE_BYTES = 70_000
MOST_SMALL_BYTES = 20_000
EXPIRES_AT_MS = 1_900_000_000_000


@dataclass
class State:
    """Of a store: delivery-counts, causes and annotations by queue and message, seen marks by queue and priority."""

    entries: dict[tuple[int, int], int] = field(default_factory=dict)
    marks: dict[tuple[int, int], int] = field(default_factory=dict)
    causes: dict[tuple[int, int], Cause] = field(default_factory=dict)
    queues: dict[int, QueueRow] = field(default_factory=dict)
    annotations: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def copy(self) -> State:
        return replace(self, **{each.name: dict(getattr(self, each.name)) for each in fields(self)})

    def reopened(self) -> State:
        entries = {(queue, message): count for queue, message, count in self.loaded()}
        return replace(self.copy(), entries=entries, marks={})

    def loaded(self) -> set[tuple[int, int, int]]:
        """What a store that was not closed says when it is opened: what may have been seen counts as that."""
        return {
            (queue, message, count + (message <= self.marks.get((queue, priority_of(message)), 0)))
            for (queue, message), count in self.entries.items()
        }

    def shown(self) -> Shown:
        return Shown(
            frozenset(self.loaded()),
            frozenset(self.causes.items()),
            frozenset(self.queues.values()),
            frozenset(self.annotations.items()),
        )


@dataclass(frozen=True)
class Shown:
    """What can be seen of a store that is opened."""

    entries: frozenset[tuple[int, int, int]]
    causes: frozenset[tuple[tuple[int, int], Cause]]
    queues: frozenset[QueueRow]
    annotations: frozenset[tuple[tuple[int, int], bytes]]


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
        self.expires_at_ms: dict[int, int | None] = {}
        self.states = [State()]
        self.batches: list[WriteBatch] = []
        self._uploads: dict[int, bytes] = {}
        """What is still to be written of large bodies that were begun."""
        self._next_id = 1
        self._next_queue_id = 1
        for number in range(count):
            self._add(number)

    def _add(self, number: int) -> None:
        batch, before = WriteBatch(), self.states[-1]
        state = before.copy()
        if number == self.reopened_before:
            # Uploads do not outlive the connections that they came over.
            state = before.reopened()
            self._uploads.clear()
        for _ in range(FIRST_QUEUES if number == 0 else self._random.random() < 0.3):
            self._make_queue(batch, state)
        self._use_queue(batch, state)
        had = {message_id for _, message_id in state.entries}
        self._settle(batch, state)
        self._move(batch, state)
        self._annotate(batch, state)
        self._drop_queue(batch, state)
        self._drop_messages(batch, state, had)
        self._go_on_with_uploads(batch, state)
        for _ in range(self._random.choice((0, 1, 3, 30))):
            self._put(batch, state, self._make(self._random.randrange(self._random.choice((100, MOST_SMALL_BYTES)))))
        if self._random.random() < 0.3:
            self._uploads[message_id] = self.bodies[message_id := self._make(LARGE_BYTES)]
            self.large.add(message_id)
        if self._random.random() < 0.2:
            mark = self._random.choice(list(state.queues)), self._random.choice((0, 4, 9))
            batch.marks[mark] = state.marks[mark] = self._next_id + 5
        self.batches.append(batch)
        self.states.append(state)

    def _make_queue(self, batch: WriteBatch, state: State) -> None:
        """Queues and durable subscriptions; no id is used again."""
        queue_id, self._next_queue_id = self._next_queue_id, self._next_queue_id + 1
        if self._random.random() < 0.5:
            row = QueueRow(queue_id, QueueKind.QUEUE, f"queue{queue_id}", used_at_s=1_700_000_000)
        else:
            row = QueueRow(queue_id, QueueKind.SUBSCRIPTION, "news.#", "reader", f"link{queue_id}", owner="alice")
        batch.queues.append(row)
        state.queues[queue_id] = row

    def _use_queue(self, batch: WriteBatch, state: State) -> None:
        """The row of a queue is written again."""
        if self._random.random() < 0.1:
            row = self._random.choice(list(state.queues.values()))
            row = replace(row, used_at_s=row.used_at_s + 600)
            batch.queues = [*(other for other in batch.queues if other.queue_id != row.queue_id), row]
            state.queues[row.queue_id] = row

    def _drop_queue(self, batch: WriteBatch, state: State) -> None:
        """With all that it has. Two stay, so that there is where to put messages."""
        made_now = {row.queue_id for row in batch.queues}
        old = [queue_id for queue_id in state.queues if queue_id not in made_now]
        if len(state.queues) <= 2 or not old or self._random.random() > 0.3:
            return
        queue_id = self._random.choice(old)
        batch.dropped_queues.append(queue_id)
        del state.queues[queue_id]
        for rows in (state.entries, state.marks, state.causes, state.annotations):
            for key in [key for key in rows if key[0] == queue_id]:
                del rows[key]
        # What this batch was to write of it goes with it.
        batch.counts = {key: count for key, count in batch.counts.items() if key[0] != queue_id}
        batch.entries = [entry for entry in batch.entries if entry[0] != queue_id]
        batch.causes = [cause for cause in batch.causes if cause[0] != queue_id]

    def _move(self, batch: WriteBatch, state: State) -> None:
        """Messages that leave one queue for another, with a cause, in one commit."""
        made_now = {row.queue_id for row in batch.queues}
        chance = self._random.choice((0.0, 0.0, 0.05, 0.5))
        for queue_id, message_id in list(state.entries):
            targets = [
                target
                for target in state.queues
                if target not in made_now
                and (target, message_id) not in state.entries
                and message_id not in batch.archived.get(target, ())
            ]
            if self._random.random() >= chance or not targets or (queue_id, message_id) in batch.counts:
                continue
            target = self._random.choice(targets)
            count, section = state.entries.pop((queue_id, message_id)), state.annotations.get((queue_id, message_id))
            self._archive(batch, state, queue_id, message_id)
            cause = Cause(self._random.choice(list(Reason)), f"queue{queue_id}", count, 1_700_000_000_000 + message_id)
            batch.entries.append((target, message_id, 0))
            batch.causes.append((target, message_id, cause))
            if section is not None:
                batch.annotations[target, message_id] = state.annotations[target, message_id] = section
            state.entries[target, message_id] = 0
            state.causes[target, message_id] = cause

    def _annotate(self, batch: WriteBatch, state: State) -> None:
        """Consumers give messages back, and say something of them."""
        for key in state.entries:
            if self._random.random() < 0.05:
                section = self._random.randbytes(self._random.choice((10, 5000)))
                batch.annotations[key] = state.annotations[key] = section

    def _archive(self, batch: WriteBatch, state: State, queue_id: int, message_id: int) -> None:
        batch.archived.setdefault(queue_id, []).append(message_id)
        if state.causes.pop((queue_id, message_id), None) is not None:
            batch.forgotten_causes.setdefault(queue_id, []).append(message_id)
        if state.annotations.pop((queue_id, message_id), None) is not None:
            batch.annotations[queue_id, message_id] = None

    def _drop_messages(self, batch: WriteBatch, state: State, had: set[int]) -> None:
        """Those that no queue has any more."""
        gone = had - {message_id for _, message_id in state.entries}
        batch.dropped_messages = sorted(gone)
        batch.unlinked += sorted(gone & self.large)

    def _make(self, size: int) -> int:
        message_id, self._next_id = self._next_id, self._next_id + 1
        self.bodies[message_id] = body_of(message_id, size)
        self.expires_at_ms[message_id] = EXPIRES_AT_MS + message_id if self._random.random() < 0.3 else None
        return message_id

    def _put(self, batch: WriteBatch, state: State, message_id: int) -> None:
        body = self.bodies[message_id]
        kept = None if message_id in self.large else body
        batch.messages.append((message_id, len(body), priority_of(message_id), self.expires_at_ms[message_id], kept))
        queues = list(state.queues)
        for queue in self._random.sample(queues, min(len(queues), self._random.choice((1, 1, 2, 3)))):
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
                self._archive(batch, state, queue, message_id)
            elif self._random.random() < 0.02:
                state.entries[queue, message_id] += 1
                batch.counts[queue, message_id] = state.entries[queue, message_id]
