"""Collects the routes of messages, as steps over links, into the tables of a `LogPlan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy

from linklogs.generating.plan import NO_LINK, NO_QUEUE, PARTS, MessageSteps, PlannedRates, Routes
from mesh.sample_logs.registry import RegistryEntry
from recording.columns import DeliveryPart

WHOLE, MANY, COPY = (PARTS.index(part) for part in (DeliveryPart.WHOLE, DeliveryPart.MANY, DeliveryPart.COPY))


@dataclass(frozen=True, slots=True)
class RouteStep:
    """The record of a message at one router: the incoming and the outgoing link.

    ``gone_us``, ``ahead_us``: one-way times in us from the first router, and to the last.
    """

    run: int
    incoming: RegistryEntry
    outgoing: RegistryEntry | None
    part: int
    gone_us: float
    ahead_us: float
    pace: float = 1.0


@dataclass(frozen=True, slots=True)
class Route:
    address: int
    ends_us: int
    is_cut: bool
    is_settled: bool
    steps: Sequence[RouteStep]
    source: int = NO_QUEUE
    into: Sequence[int] = ()


@dataclass(slots=True)
class RouteTable:
    """Collects routes, each under a key so that an equal route is found again, and their rates in spans of time."""

    routes: list[Route] = field(default_factory=list)
    places: dict[object, int] = field(default_factory=dict)
    pieces: list[tuple[int, int, int, float]] = field(default_factory=list)

    def add(self, key: object, route: Route) -> int:
        self.places[key] = len(self.routes)
        self.routes.append(route)
        return self.places[key]

    def use(self, place: int, from_us: int, to_us: int, rate_per_s: float) -> None:
        self.pieces.append((place, from_us, to_us, rate_per_s))

    def to_routes(self) -> Routes:
        routes = self.routes
        return Routes(
            address=numpy.array([each.address for each in routes], numpy.int64),
            ends_us=numpy.array([each.ends_us for each in routes], numpy.int64),
            is_cut=numpy.array([each.is_cut for each in routes], bool),
            is_settled=numpy.array([each.is_settled for each in routes], bool),
            source=numpy.array([each.source for each in routes], numpy.int64),
            first=_bounds([len(each.steps) for each in routes]),
            into_first=_bounds([len(each.into) for each in routes]),
            into=numpy.array([queue for each in routes for queue in each.into], numpy.int64),
            steps=_steps([step for each in routes for step in each.steps]),
        )

    def to_pieces(self) -> PlannedRates:
        columns = list(zip(*self.pieces, strict=True)) or [(), (), (), ()]
        route, from_us, to_us = (numpy.array(column, numpy.int64) for column in columns[:3])
        return PlannedRates(route, from_us, to_us, numpy.array(columns[3], numpy.float64))


def _bounds(counts: Sequence[int]) -> numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]:
    return numpy.concatenate([[0], numpy.cumsum(numpy.array(counts, numpy.int64))]).astype(numpy.int64)


def _steps(steps: Sequence[RouteStep]) -> MessageSteps:
    return MessageSteps(
        life=numpy.array([step.run for step in steps], numpy.int64),
        incoming=numpy.array([step.incoming.place for step in steps], numpy.int64),
        outgoing=numpy.array(
            [NO_LINK if step.outgoing is None else step.outgoing.place for step in steps], numpy.int64
        ),
        part=numpy.array([step.part for step in steps], numpy.int8),
        gone_us=numpy.array([step.gone_us for step in steps], numpy.float64),
        ahead_us=numpy.array([step.ahead_us for step in steps], numpy.float64),
        pace=numpy.array([step.pace for step in steps], numpy.float64),
    )
