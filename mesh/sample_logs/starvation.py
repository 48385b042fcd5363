"""Draws at random, for generated link logs, the spans in which a client's link has no credit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy
from numpy.random import Generator

from linklogs.generating.plan import Starvation
from mesh.sample_logs.population import SampleSession
from mesh.sample_logs.profile import StalledShare, StarvedShare
from mesh.sample_logs.registry import RegistryEntry
from mesh.sample_logs.times import Times


@dataclass(frozen=True, slots=True)
class StarvedSpan:
    """A span in which the link of an invented client's session has no credit, with the cause."""

    session: SampleSession
    from_us: int
    to_us: int
    cause: str


def starve(
    session: SampleSession, starved: StarvedShare | StalledShare, times: Times, random: Generator
) -> list[StarvedSpan]:
    """Draw the spans in which the link of ``session`` has no credit; only a share of the clients (``starved``) has any.

    A span that would outlast the session or the logs is left out.
    """
    found: list[StarvedSpan] = []
    at_us = max(session.from_us, times.begins_us)
    # The container-id decides whether a client ever lacks credit, so that all sessions of a client agree.
    if sha256(session.client.container.encode()).digest()[0] / 256 >= starved.links:
        return []
    while True:
        at_us += 1 + int(random.exponential(starved.every) * 1e6)
        to_us = at_us + 1000 + int(random.exponential(starved.duration) * 1e6)
        if to_us >= min(session.to_us, times.ends_us):
            return found
        found.append(StarvedSpan(session, at_us, to_us, "takers"))
        at_us = to_us


def starvation(spans: Sequence[StarvedSpan], links: Mapping[SampleSession, RegistryEntry]) -> Starvation:
    return Starvation(
        link=numpy.array([links[span.session].place for span in spans], numpy.int64),
        from_us=numpy.array([span.from_us for span in spans], numpy.int64),
        to_us=numpy.array([span.to_us for span in spans], numpy.int64),
        cause=tuple(span.cause for span in spans),
    )
