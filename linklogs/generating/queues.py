"""Simulates queues at brokers: messages that wait, their arrival, and the consumer that fetches each message."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy
from numpy.random import Generator

from linklogs.generating.drawing import ACCEPTED, MODIFIED, NONE, RELEASED, Messages, on_routes, ways_us
from linklogs.generating.plan import NO_QUEUE, Array, LogPlan
from recording.columns import RecordEvent

EVENTS = (RecordEvent.ENQUEUED, RecordEvent.DEQUEUED, RecordEvent.EXPIRED, RecordEvent.DEAD_LETTERED)
ENQUEUED, DEQUEUED, EXPIRED, DEAD_LETTERED = range(4)
_TRIES = 4
"""Attempts to draw a consumer that exists when a message is due; after the last, the message waits for the next
slice.
"""
_AGAIN_US = 50_000
"""Delay in us until a message returned by one consumer goes to the next."""


@dataclass(frozen=True, slots=True)
class WaitingMessages:
    """Messages in queues.

    ``due_us``: the time at which the message leaves; with fate DEQUEUED, only if there is a consumer then.

    ``fate``: EXPIRED or DEAD_LETTERED for a message that leaves without a consumer, DEQUEUED for all others.
    """

    queue: Array
    enqueued_us: Array
    size_bytes: Array
    due_us: Array
    fate: Array

    def __len__(self) -> int:
        return len(self.queue)

    def take(self, places: Array) -> WaitingMessages:
        return WaitingMessages(*(getattr(self, name)[places] for name in self.__slots__))

    def with_more(self, other: WaitingMessages) -> WaitingMessages:
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return WaitingMessages(*(numpy.concatenate(pair) for pair in pairs))


@dataclass(frozen=True, slots=True)
class Moves:
    """Messages that entered or left a queue: place of the queue, index in ``EVENTS``, time, time in the queue, and
    size.
    """

    queue: Array
    event: Array
    at_us: Array
    took_us: Array
    size_bytes: Array

    def with_more(self, other: Moves) -> Moves:
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return Moves(*(numpy.concatenate(pair) for pair in pairs))


def nobody() -> WaitingMessages:
    none = numpy.zeros(0, numpy.int64)
    return WaitingMessages(none, none, none, none, none.astype(numpy.int8))


class SimulatedQueues:
    """All queues of a plan, simulated slice by slice in time.

    Invariant: a message that has entered a queue is in ``waiting`` or has left. ``left`` keeps the messages whose time
    of leaving is not past yet, because depths until then still count them.
    """

    def __init__(self, plan: LogPlan) -> None:
        self._plan = plan
        self.waiting = nobody()
        self.left = nobody()

    def put(self, random: Generator, sent: Messages) -> Moves:
        """Enqueue those messages of ``sent`` whose route ends in a queue, and return the events `enqueued`.

        Only accepted and pre-settled messages count, and none of a broken route.
        """
        routes = self._plan.routes
        kept = ((sent.outcome == ACCEPTED) | (sent.outcome == NONE)) & (sent.cut_us == 0)
        counts = (routes.into_first[sent.route + 1] - routes.into_first[sent.route]) * kept
        message = numpy.repeat(numpy.arange(len(sent)), counts)
        ends = numpy.cumsum(counts)
        within = numpy.arange(len(message)) - numpy.repeat(ends - counts, counts)
        queue = routes.into[routes.into_first[sent.route[message]] + within]
        there_us = sent.start_us + ways_us(self._plan, sent) // 2 + sent.served_us // 2
        return self._come(random, queue, there_us[message], sent.size_bytes[message])

    def end(self, random: Generator, to_us: int) -> Moves:
        """Remove messages that expire or are dead-lettered before ``to_us``; put dead letters in their own queue, if
        any.
        """
        waiting, grave = self.waiting, self._plan.queues.grave
        is_over = (waiting.fate != DEQUEUED) & (waiting.due_us < to_us)
        gone = waiting.take(is_over)
        self._leave(gone, gone.due_us)
        self.waiting = waiting.take(~is_over)
        dead = gone.take((gone.fate == DEAD_LETTERED) & (grave[gone.queue] != NO_QUEUE))
        came = self._come(random, grave[dead.queue], dead.due_us, dead.size_bytes)
        return _moves(gone, gone.fate, gone.due_us).with_more(came)

    def _come(self, random: Generator, queue: Array, at_us: Array, size_bytes: Array) -> Moves:
        queues, count = self._plan.queues, len(queue)
        wait = queues.wait_log[queue] + queues.wait_spread[queue] * random.standard_normal(count)
        due_us = queues.when_there(queue, at_us + numpy.exp(wait).astype(numpy.int64) + 1)
        drawn, expired = random.random(count), queues.expired[queue]
        is_dead = (drawn >= expired) & (drawn < expired + queues.dead_lettered[queue])
        fate = numpy.where(drawn < expired, EXPIRED, numpy.where(is_dead, DEAD_LETTERED, DEQUEUED)).astype(numpy.int8)
        self.waiting = self.waiting.with_more(WaitingMessages(queue, at_us, size_bytes, due_us, fate))
        return Moves(queue, _event(ENQUEUED, count), at_us, numpy.zeros(count, numpy.int64), size_bytes)

    def fetch(self, random: Generator, from_us: int, to_us: int) -> tuple[Messages, Moves]:
        """Deliver messages due before ``to_us`` to consumers; return the deliveries, and the events of messages that
        left.

        A released or modified message stays for another consumer; a message without a consumer waits for the next
        slice.
        """
        is_due = (self.waiting.due_us < to_us) & (self.waiting.fate == DEQUEUED)
        due, rest = self.waiting.take(is_due), self.waiting.take(~is_due)
        route, at_us = self._consumers(random, due, from_us, to_us)
        found = numpy.flatnonzero(route >= 0)
        missed = due.take(numpy.flatnonzero(route < 0))
        fetched = due.take(found)
        sent = on_routes(self._plan, random, route[found], at_us[found], fetched.size_bytes)
        settled_us = numpy.where(
            sent.cut_us > 0, sent.cut_us, sent.start_us + sent.served_us + ways_us(self._plan, sent)
        )
        stays = (sent.outcome == RELEASED) | (sent.outcome == MODIFIED)
        back = fetched.take(stays)
        back = WaitingMessages(back.queue, back.enqueued_us, back.size_bytes, settled_us[stays] + _AGAIN_US, back.fate)
        late = WaitingMessages(
            missed.queue, missed.enqueued_us, missed.size_bytes, numpy.maximum(missed.due_us, to_us), missed.fate
        )
        self.waiting = rest.with_more(back).with_more(late)
        gone, gone_us = fetched.take(~stays), settled_us[~stays]
        self._leave(gone, gone_us)
        return sent, _moves(gone, gone.fate, gone_us)

    def depths(self, at_us: Array) -> tuple[Array, Array, Array]:
        """Return messages, bytes and age of the oldest message (us) for each queue (row) at each time (column),
        ascending.
        """
        here = self.waiting.with_more(self.left)
        is_left = numpy.arange(len(here)) >= len(self.waiting)
        gone_us = numpy.where(is_left, here.due_us, numpy.iinfo(numpy.int64).max)
        found = [_depths(here.take(each), gone_us[each], at_us) for each in self._places(here)]
        columns = zip(*found, strict=True) if found else ((), (), ())
        count, size, oldest = (numpy.array(column, numpy.int64).reshape(-1, len(at_us)) for column in columns)
        return count, size, oldest

    def forget(self, before_us: int) -> None:
        """Forget the messages that left before ``before_us``, because no later sample of depth counts them."""
        self.left = self.left.take(self.left.due_us >= before_us)

    def _places(self, here: WaitingMessages) -> list[Array]:
        order = numpy.argsort(here.queue, kind="stable")
        bounds = numpy.searchsorted(here.queue[order], numpy.arange(len(self._plan.queues.number) + 1))
        return [order[begin:end] for begin, end in pairwise(bounds)]

    def _leave(self, gone: WaitingMessages, at_us: Array) -> None:
        self.left = self.left.with_more(
            WaitingMessages(gone.queue, gone.enqueued_us, gone.size_bytes, at_us, gone.fate)
        )

    def _consumers(self, random: Generator, due: WaitingMessages, from_us: int, to_us: int) -> tuple[Array, Array]:
        """Return for each due message the place of a route to a consumer, -1 for none, and the time of leaving.

        The consumer is drawn by the weights of the routes; after _TRIES draws without a route at that time, -1 remains.
        """
        route = numpy.full(len(due), -1, numpy.int64)
        at_us = numpy.maximum(due.due_us, from_us)
        pieces, source = self._plan.pieces, self._plan.routes.source
        active = numpy.flatnonzero((pieces.from_us < to_us) & (pieces.to_us > from_us))
        active = active[source[pieces.route[active]] != NO_QUEUE]
        active = active[numpy.argsort(source[pieces.route[active]], kind="stable")]
        queue_of = source[pieces.route[active]]
        for queue in numpy.unique(due.queue):
            begin, end = numpy.searchsorted(queue_of, [queue, queue + 1])
            if begin < end:
                messages = numpy.flatnonzero(due.queue == queue)
                self._choose(random, active[begin:end], messages, route, at_us)
        return route, at_us

    def _choose(self, random: Generator, active: Array, messages: Array, route: Array, at_us: Array) -> None:
        pieces = self._plan.pieces
        shares = numpy.cumsum(pieces.rate_per_s[active])
        for _ in range(_TRIES):
            drawn = numpy.searchsorted(shares, random.random(len(messages)) * shares[-1], side="right")
            piece = active[numpy.minimum(drawn, len(active) - 1)]
            fits = (pieces.from_us[piece] <= at_us[messages]) & (at_us[messages] < pieces.to_us[piece])
            route[messages[fits]] = pieces.route[piece[fits]]
            messages = messages[~fits]


def _depths(here: WaitingMessages, gone_us: Array, at_us: Array) -> tuple[Array, Array, Array]:
    order = numpy.argsort(here.enqueued_us, kind="stable")
    came_us, size, gone_us = here.enqueued_us[order], here.size_bytes[order], gone_us[order]
    # A message counts in the samples from index `first` up to, but not including, index `last`.
    first, last = numpy.searchsorted(at_us, came_us), numpy.searchsorted(at_us, gone_us)
    count = _running(first, None, len(at_us)) - _running(last, None, len(at_us))
    total = _running(first, size, len(at_us)) - _running(last, size, len(at_us))
    longest = numpy.maximum.accumulate(last)
    oldest = numpy.searchsorted(longest, numpy.arange(len(at_us)), side="right")
    age_us = numpy.zeros(len(at_us), numpy.int64)
    age_us[count > 0] = (at_us - came_us[numpy.minimum(oldest, len(came_us) - 1)])[count > 0] if len(came_us) else 0
    return count, total, age_us


def _running(places: Array, weights: Array | None, count: int) -> Array:
    added = numpy.bincount(places, weights, minlength=count + 1)[:count]
    running: Array = numpy.cumsum(added).astype(numpy.int64)
    return running


def _moves(gone: WaitingMessages, event: Array, at_us: Array) -> Moves:
    return Moves(gone.queue, event, at_us, at_us - gone.enqueued_us, gone.size_bytes)


def _event(event: int, count: int) -> Array:
    return numpy.full(count, event, numpy.int8)
