"""Generates the link logs of a plan and their true totals, slice by slice in bounded memory.

The same plan and seed give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy

from addressing.records import Level
from linklogs.file_names import HOUR_US
from linklogs.generating.batches import DELIVERIES, MOVES, Batches, Columns
from linklogs.generating.day import seconds
from linklogs.generating.drawing import Messages, draw
from linklogs.generating.ledger import Ledger
from linklogs.generating.missed_copies import MissedCopies, by_second
from linklogs.generating.node_files import NodeFileWriter
from linklogs.generating.plan import NO_LIFE, NO_QUEUE, Array, LogPlan, PlannedRun
from linklogs.generating.queues import Moves, SimulatedQueues
from linklogs.generating.records import Records, by_life, records
from linklogs.generating.seconds import SECOND_US, summed
from linklogs.generating.truth import truth

TRUTH_NAME = "_truth.json"
"""File with the true totals; Spark ignores names that begin with an underscore."""
RECORDS_IN_SLICE = 500_000
RECORDS_IN_MEMORY = 4_000_000
RECORDS_IN_GROUP = 131_072
LONGEST_SLICE_US = 300 * SECOND_US
DEPTH_EVERY_US = 10 * SECOND_US


@dataclass(frozen=True, slots=True)
class GenerationProgress:
    """Progress of a generation: ``at_us`` is the time of the plan up to which records are written, ``records`` their
    count.
    """

    at_us: int
    records: int


def generate(
    plan: LogPlan, out: Path, seed: int, level: Level, on_progress: Callable[[GenerationProgress], None]
) -> dict[str, Any]:
    """Write the files of all nodes and the file of true totals below ``out``, and return the totals."""
    out.mkdir(parents=True, exist_ok=True)
    with Ledger(plan, out) as ledger:
        making = LogGeneration(plan, out, seed, level, ledger)
        for from_us, to_us in making.slices():
            making.slice(from_us, to_us)
            on_progress(GenerationProgress(to_us, making.records))
        making.close()
        told = truth(
            plan, ledger, making.shelves, making.lost_by_life(), seed=seed, level=level, records=making.records
        )
    (out / TRUTH_NAME).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return told


def expected_records(plan: LogPlan) -> float:
    """Estimate the number of delivery and message records, as if every message in a queue were fetched."""
    pieces, routes = plan.pieces, plan.routes
    often = pieces.rate_per_s * plan.rate_factor * seconds(plan.day, pieces.from_us, pieces.to_us)
    steps, into = numpy.diff(routes.first)[pieces.route], numpy.diff(routes.into_first)[pieces.route]
    is_fetch = routes.source[pieces.route] != NO_QUEUE
    per_fetch = float(steps[is_fetch].mean()) if is_fetch.any() else 0.0
    return float(numpy.sum((often * (steps + into * (per_fetch + 2)))[~is_fetch]))


class LogGeneration:
    """One generation of link logs, slice by slice.

    ``records`` counts records of deliveries, traffic and messages, written or waiting.
    """

    def __init__(self, plan: LogPlan, out: Path, seed: int, level: Level, ledger: Ledger) -> None:
        self._plan = plan
        self._seed = seed
        self._is_summary = level is Level.SUMMARY
        self._ledger = ledger
        self.shelves = SimulatedQueues(plan)
        group = min(RECORDS_IN_GROUP, RECORDS_IN_MEMORY // max(1, len(plan.lives)))
        batches = Batches(plan, self._is_summary)
        self._files = [NodeFileWriter(plan, i, out, batches, group) for i in range(len(plan.lives))]
        self._made = 0

    @property
    def records(self) -> int:
        return self._made

    def lost_by_life(self) -> list[int]:
        return [each.lost for each in self._files]

    def slices(self) -> Iterator[tuple[int, int]]:
        """Return slices of time with about RECORDS_IN_SLICE records each, or of 300 s if these have fewer.

        No slice crosses the end of an hour by any node's clock.
        """
        plan = self._plan
        length_us = plan.ends_us - plan.begins_us
        share = RECORDS_IN_SLICE / max(1.0, expected_records(plan))
        step_us = _whole(min(LONGEST_SLICE_US, plan.file_us, int(length_us * share)))
        bounds = set(range(plan.begins_us, plan.ends_us, step_us)) | {plan.ends_us}
        for skew_us in {ahead for life in plan.lives for ahead in _ahead_us(life)}:
            first = -(-(plan.begins_us + skew_us) // HOUR_US) * HOUR_US - skew_us
            bounds |= set(range(first, plan.ends_us, HOUR_US))
        ordered = sorted(bounds)
        return pairwise(ordered)

    def slice(self, from_us: int, to_us: int) -> None:
        random = numpy.random.default_rng([self._seed, from_us])
        sent = draw(self._plan, random, from_us, to_us)
        depths = self._depths_at(numpy.array([from_us]))[:, :, 0]
        put = self.shelves.put(random, sent)
        ended = self.shelves.end(random, to_us)
        fetched, dequeued = self.shelves.fetch(random, from_us, to_us)
        deliveries = self._deliveries((sent, fetched))
        moves = self._moves((put, ended, dequeued))
        self._begin(from_us, to_us, {*deliveries, *moves}, depths)
        for found in (deliveries, moves):
            for life, columns in found.items():
                self._files[life].add(columns, depths)
        self._add_depths(from_us, to_us)

    def close(self) -> None:
        for life, files in zip(self._plan.lives, self._files, strict=True):
            files.close(life.ends_us)

    def _begin(self, from_us: int, to_us: int, recording: set[int], depths: Array) -> None:
        for i, (life, files) in enumerate(zip(self._plan.lives, self._files, strict=True)):
            is_alive = life.begins_us < to_us and life.ends_us > from_us
            if i in recording or (is_alive and not files.is_idle(from_us, to_us)):
                files.begin(from_us, depths)

    def _deliveries(self, flows: tuple[Messages, ...]) -> dict[int, Columns]:
        plan, parts = self._plan, []
        for messages in flows:
            made = records(plan, messages)
            self._ledger.count(messages, made)
            self._miss(made.missed)
            parts.append((plan.routes.steps.life[made.step], made.records))
        life = numpy.concatenate([each[0] for each in parts])
        joined = Records(*(numpy.concatenate([getattr(each[1], name) for each in parts]) for name in Records.__slots__))
        return self._by_life(DELIVERIES, life, joined)

    def _miss(self, missed: MissedCopies) -> None:
        """Count copies missed by stalled consumers, and add one record for each link and second to the node's files."""
        self._ledger.count_missed(missed)
        for life in numpy.unique(missed.life):
            self._files[life].add_missed(*by_second(missed.take(missed.life == life), self._plan.lives[life].ends_us))

    def _moves(self, parts: tuple[Moves, ...]) -> dict[int, Columns]:
        for each in parts:
            self._ledger.count_moves(each)
        queue, event, at_us, took_us, size_bytes = (
            numpy.concatenate([getattr(each, name) for each in parts]) for name in Moves.__slots__
        )
        life = self._plan.queues.life_at(queue, at_us)
        none = numpy.zeros(len(queue), numpy.int8)
        told = numpy.flatnonzero(life != NO_LIFE)
        made = Records(queue, event.astype(numpy.int64), at_us, took_us, size_bytes, none, none)
        return self._by_life(MOVES, life[told], made.take(told))

    def _by_life(self, kind: str, life: Array, made: Records) -> dict[int, Columns]:
        found = {}
        for i, own in by_life(life, made, len(self._plan.lives)):
            found[i] = self._columns(kind, own)
            self._made += len(found[i])
        return found

    def _columns(self, kind: str, own: Records) -> Columns:
        if not self._is_summary:
            return Columns(kind, own, numpy.ones(len(own), numpy.int64))
        added = summed(own)
        return Columns(kind, added.records, added.count)

    def _add_depths(self, from_us: int, to_us: int) -> None:
        at_us = numpy.arange(-(-from_us // DEPTH_EVERY_US) * DEPTH_EVERY_US, to_us, DEPTH_EVERY_US)
        if len(at_us):
            depths = self._depths_at(at_us)
            self._ledger.count_depths(depths[0])
            for files in self._files:
                if files.is_open:
                    files.add_depths(at_us, depths)
        self.shelves.forget(to_us)

    def _depths_at(self, at_us: Array) -> Array:
        return numpy.stack(self.shelves.depths(at_us))


def _ahead_us(life: PlannedRun) -> list[int]:
    """Return how far the clock of a run is ahead, in us, at its start and after each setting of the clock."""
    at_us = numpy.array([life.begins_us, *(at_us for at_us, _ in life.steps)], numpy.int64)
    found: list[int] = life.ahead_us(at_us).tolist()
    return found


def _whole(step_us: int) -> int:
    """Return the length of a slice in us, rounded down to whole seconds; a slice below a second has at least 1 ms.

    A second split between two slices would give two records of the same traffic.
    """
    return step_us // SECOND_US * SECOND_US or max(1000, step_us)
