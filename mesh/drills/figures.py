"""Computes counts, latencies, outages and recovery from a journal of messages over a span of time, in seconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from mesh.client.journal import Journal
from mesh.drills.report import LatencyFigures, MessageCounts
from mesh.terminal.figures import rank

RECOVERED_SHARE = 0.95
RECOVERED_S = 1.0
HOLE_S = 0.02
FRESH_S = 0.1
CALM_FACTOR = 1.5
"""Factor over the worst gap and the greatest latency of the baseline, up to which traffic counts as undisturbed.

A busy machine has gaps and late messages even without a fault.
"""
Span = tuple[float, float]


def counts_of(journal: Journal, span: Span) -> MessageCounts:
    """Count the outcomes and arrivals of the messages that were due in ``span``."""
    messages = set(journal.due_between(*span))
    told = [journal.outcome(message) for message in messages]
    return MessageCounts(
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


def latency_of(journal: Journal, span: Span) -> LatencyFigures:
    """Return the percentiles of latency of the messages that first arrived in ``span``; latency counts from the due
    time.
    """
    start, end = span
    came = [arrival for arrival in journal.firsts() if start <= arrival.at < end]
    return percentiles([arrival.at - journal.due[arrival.message] for arrival in came])


def percentiles(seconds: Sequence[float]) -> LatencyFigures:
    if not seconds:
        return LatencyFigures()
    ordered = sorted(seconds)
    p50, p99 = (ordered[rank(share, len(ordered))] for share in (0.5, 0.99))
    return LatencyFigures(len(ordered), to_ms(p50), to_ms(p99), to_ms(ordered[-1]))


def outage_s(journal: Journal, span: Span, until: float, usual_s: float = 0.0) -> float | None:
    """Return the longest time in s, begun in ``span``, in which some consumer received nothing, or all consumers if
    they compete; None if no message ever arrived.

    A gap that begins in ``span`` counts in full, but not beyond ``until``. A gap that reaches the end of ``span`` is
    cut there if it has lasted at most ``usual_s`` by then, the usual pause between two messages.
    """
    if not journal.arrivals:
        return None
    return max(_longest_gap_s(times, span, until, usual_s) for times in journal.arrival_times())


def _longest_gap_s(times: Sequence[float], span: Span, until: float, usual_s: float) -> float:
    start, end = span
    first, after = bisect_left(times, start), bisect_left(times, end)
    before = times[after - 1] if after > first else start
    ended = end if end - before <= usual_s else min([until, *times[after : after + 1]])
    return _longest_s([start, *times[first:after], ended])


def first_delivery_s(journal: Journal, span: Span) -> float | None:
    """Return the seconds from the start of ``span`` until every consumer has received some message sent in ``span``.

    If consumers compete for messages, one arrival is enough. Return None if some consumer got no such message.
    """
    start, end = span
    firsts: dict[int, float] = {}
    for arrival in journal.arrivals:
        if start <= journal.sent[arrival.message] < end:
            firsts.setdefault(0 if journal.is_competing else arrival.consumer, arrival.at)
    wanted = 1 if journal.is_competing else journal.consumers
    return max(firsts.values()) - start if len(firsts) == wanted else None


def usual_pause_s(journal: Journal, before: Span) -> float:
    """Return the longest pause in s between two arrivals that does not count as a gap: 1.5 times the longest pause in
    the span ``before``, which is the baseline, and at least 20 ms.
    """
    return max(HOLE_S, CALM_FACTOR * (outage_s(journal, before, before[1]) or 0.0))


def recovery_s(journal: Journal, span: Span, before: Span) -> float | None:
    """Return the seconds from the start of ``span`` to the start of its first normal second of traffic; None if
    ``span`` has no normal second.

    In a normal second, at least 95 % of the rate in the span ``before`` arrives, without a gap and without a late
    message: late messages, which an outage has held up, arrive in a burst that may look like the full rate.
    """
    start, end = span
    rate = rate_in(journal, before)
    fresh_s = max(FRESH_S, CALM_FACTOR * (latency_of(journal, before).max_ms or 0.0) / 1000)
    hole_s = max(10 / rate if rate else 0.0, usual_pause_s(journal, before))
    late = [(arrival.at, arrival.at - journal.due[arrival.message]) for arrival in journal.firsts()]
    late = [each for each in late if start <= each[0] < end]
    times = [at for at, _ in late]
    old = [at for at, age_s in late if age_s > fresh_s]
    for at in (start, *times) if rate else ():
        until = at + RECOVERED_S
        if until > end:
            return None
        second = times[bisect_left(times, at) : bisect_left(times, until)]
        has_old = bisect_left(old, until) > bisect_left(old, at)
        is_full = len(second) >= rate * RECOVERED_S * RECOVERED_SHARE
        if is_full and not has_old and _longest_s([at, *second, until]) < hole_s:
            return at - start
    return None


def _longest_s(times: Sequence[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(times))


def rate_in(journal: Journal, span: Span) -> float:
    """Return the rate of arrivals in ``span``, in messages a second."""
    start, end = span
    return sum(start <= arrival.at < end for arrival in journal.arrivals) / (end - start) if end > start else 0.0


def stalls_in(journal: Journal, span: Span) -> tuple[int, float]:
    """Return the number of stalls, in which a producer waited for credit, that began in ``span``, and the longest stall
    in milliseconds, 0 without a stall.
    """
    start, end = span
    found = [stall.seconds for stall in journal.stalls if start <= stall.at < end]
    return len(found), to_ms(max(found, default=0.0))


def to_ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def to_ms_or_none(seconds: float | None) -> float | None:
    return None if seconds is None else to_ms(seconds)
