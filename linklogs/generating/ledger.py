"""Counts the generated traffic by route and outcome, from which the totals by link, node, address and user are
derived.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy

from linklogs.generating.drawing import Messages
from linklogs.generating.latency import Group, Latencies
from linklogs.generating.missed_copies import MissedCopies
from linklogs.generating.plan import NO_QUEUE, OUTCOMES, Array, LogPlan
from linklogs.generating.queues import EVENTS, Moves
from linklogs.generating.records import GeneratedRecords


class Ledger:
    """Counts the generated messages, including messages whose records were lost.

    A file of latencies lies in ``directory`` until the ledger is closed.

    ``messages``, ``size_bytes``: totals of each route by outcome.

    ``moved``, ``moved_bytes``: messages and bytes of each queue by event (enqueued, dequeued, expired, dead-lettered).

    ``missed``: for each link, the copies not sent because the consumer had no credit.

    ``most_in_queue``: the greatest depth of each queue in messages, among the samples.
    """

    def __init__(self, plan: LogPlan, directory: Path) -> None:
        routes, queues = len(plan.routes.address), len(plan.queues.number)
        self._plan = plan
        self.messages = numpy.zeros((routes, len(OUTCOMES)), numpy.int64)
        self.size_bytes = numpy.zeros((routes, len(OUTCOMES)), numpy.int64)
        self.moved = numpy.zeros((queues, len(EVENTS)), numpy.int64)
        self.moved_bytes = numpy.zeros((queues, len(EVENTS)), numpy.int64)
        self.missed = numpy.zeros(len(plan.links.number), numpy.int64)
        self.most_in_queue = numpy.zeros(queues, numpy.int64)
        self._prevented: list[tuple[Array, Array, Array]] = []
        self._latencies = Latencies(2 * len(plan.traffic.address), directory)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._latencies.__exit__(kind, error, at)

    def count(self, messages: Messages, made: GeneratedRecords) -> None:
        numpy.add.at(self.messages, (messages.route, messages.outcome), 1)
        numpy.add.at(self.size_bytes, (messages.route, messages.outcome), messages.size_bytes)
        lost = made.prevented_message
        if len(lost):
            self._prevented.append((made.prevented_step, messages.outcome[lost], messages.size_bytes[lost]))
        self._count_latencies(messages, made)

    def _count_latencies(self, messages: Messages, made: GeneratedRecords) -> None:
        """Add each message's latency as recorded at the router where the message entered, which is its first record."""
        routes = self._plan.routes
        entered = numpy.flatnonzero(made.step == routes.first[messages.route[made.message]])
        route = messages.route[made.message[entered]]
        self._latencies.add(
            2 * routes.address[route] + (routes.source[route] != NO_QUEUE), made.records.took_us[entered]
        )

    def count_missed(self, missed: MissedCopies) -> None:
        numpy.add.at(self.missed, missed.link, 1)

    def count_moves(self, moves: Moves) -> None:
        numpy.add.at(self.moved, (moves.queue, moves.event), 1)
        numpy.add.at(self.moved_bytes, (moves.queue, moves.event), moves.size_bytes)

    def count_depths(self, depths: Array) -> None:
        """Raise the greatest known depth of each queue to the greatest of ``depths`` (a row per queue, a column per
        time).
        """
        if depths.size:
            self.most_in_queue = numpy.maximum(self.most_in_queue, depths.max(axis=1))

    def latencies(self) -> list[dict[str, dict[str, int]]]:
        """Return the percentiles of latency of each address, for messages sent by producers, messages fetched from
        queues, and both.
        """
        groups: list[Group] = [
            group
            for i in range(len(self._plan.traffic.address))
            for group in ((2 * i,), (2 * i + 1,), (2 * i, 2 * i + 1))
        ]
        found = self._latencies.of(groups)
        return [dict(zip(("sent", "fetched", "all"), found[i : i + 3], strict=True)) for i in range(0, len(found), 3)]

    def by_step(self) -> tuple[Array, Array]:
        """Return the records and the bytes of each step of each route, by outcome.

        Records are left out that do not exist because a node was gone, a route was cut, or a consumer had no credit.
        """
        routes = self._plan.routes
        route = numpy.repeat(numpy.arange(len(routes.address)), numpy.diff(routes.first))
        count, size_bytes = self.messages[route], self.size_bytes[route]
        for step, outcome, size in self._prevented:
            numpy.add.at(count, (step, outcome), -1)
            numpy.add.at(size_bytes, (step, outcome), -size)
        return count, size_bytes
