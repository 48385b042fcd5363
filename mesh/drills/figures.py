"""What a journal says about a span of time: counts, latencies, outages, recovery. Pure; times in seconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from mesh.bench.figures import rank
from mesh.drills.journal import Journal
from mesh.drills.report import Counts, Latency

RECOVERED_SHARE = 0.95
RECOVERED_S = 1.0
HOLE_S = 0.02
Span = tuple[float, float]


def counts_of(journal: Journal, span: Span) -> Counts:
    """Of the messages that were due in ``span``."""
    messages = set(journal.due_between(*span))
    told = [journal.outcome(message) for message in messages]
    return Counts(
        attempted=len(messages),
        accepted=told.count("accepted"),
        rejected=told.count("rejected"),
        released=told.count("released"),
        modified=told.count("modified"),
        unknown=told.count("unknown"),
        received=sum(arrival.message in messages for arrival in journal.arrivals),
        lost=sum(message in messages for message in journal.lost()),
        duplicated=sum(arrival.message in messages for arrival in journal.duplicated()),
        reordered=sum(arrival.message in messages for arrival in journal.reordered()),
    )


def latency_of(journal: Journal, span: Span) -> Latency:
    start, end = span
    found = [arrival.at - journal.due[arrival.message] for arrival in journal.arrivals]
    due = [journal.due[arrival.message] for arrival in journal.arrivals]
    return percentiles([late for late, at in zip(found, due, strict=True) if start <= at < end])


def percentiles(seconds: Sequence[float]) -> Latency:
    if not seconds:
        return Latency()
    ordered = sorted(seconds)
    p50, p99 = (ordered[rank(share, len(ordered))] for share in (0.5, 0.99))
    return Latency(len(ordered), to_ms(p50), to_ms(p99), to_ms(ordered[-1]))


def outage_s(journal: Journal, span: Span) -> float | None:
    """The longest time in ``span`` in which some consumer got nothing; None if none ever got anything."""
    if not journal.arrivals:
        return None
    return max(_longest_gap_s(times, span) for times in journal.arrival_times())


def _longest_gap_s(times: Sequence[float], span: Span) -> float:
    start, end = span
    within = [start, *times[bisect_left(times, start) : bisect_left(times, end)], end]
    return max(later - earlier for earlier, later in pairwise(within))


def first_delivery_s(journal: Journal, span: Span) -> float | None:
    """From the start of ``span`` until each consumer has a message that was sent in it."""
    start, end = span
    firsts: dict[int, float] = {}
    for arrival in journal.arrivals:
        if start <= journal.sent[arrival.message] < end:
            firsts.setdefault(0 if journal.is_competing else arrival.consumer, arrival.at)
    wanted = 1 if journal.is_competing else journal.consumers
    return max(firsts.values()) - start if len(firsts) == wanted else None


def recovery_s(journal: Journal, span: Span, rate_before: float) -> float | None:
    """From the start of ``span`` until messages have come for a second at 95 % of the rate before; None: never."""
    start, end = span
    times = sorted(arrival.at for arrival in journal.arrivals if start <= arrival.at < end)
    wanted = rate_before * RECOVERED_S * RECOVERED_SHARE
    if wanted <= 0:
        return None
    edges = [start, *times]
    for at in edges:
        if at + RECOVERED_S > end:
            return None
        second = times[bisect_left(times, at) : bisect_left(times, at + RECOVERED_S)]
        # What had waited comes in one burst: a second with a hole in it is no recovery.
        if len(second) >= wanted and _is_steady([at, *second, at + RECOVERED_S], rate_before):
            return at - start
    return None


def _is_steady(times: Sequence[float], rate: float) -> bool:
    return max(later - earlier for earlier, later in pairwise(times)) < max(HOLE_S, 10 / rate)


def rate_in(journal: Journal, span: Span) -> float:
    """Arrivals a second."""
    start, end = span
    return sum(start <= arrival.at < end for arrival in journal.arrivals) / (end - start) if end > start else 0.0


def stalls_in(journal: Journal, span: Span) -> tuple[int, float]:
    """How many began in ``span``, and the longest, in milliseconds."""
    start, end = span
    found = [stall.seconds for stall in journal.stalls if start <= stall.at < end]
    return len(found), to_ms(max(found, default=0.0))


def to_ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def to_ms_or_none(seconds: float | None) -> float | None:
    return None if seconds is None else to_ms(seconds)
