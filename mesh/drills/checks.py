"""Judges each expectation of a drill by its worst observation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mesh.drills import figures
from mesh.drills.advice import advice_for
from mesh.drills.fault_results import UNDER_WAY_S, FaultObservation, baseline_of, whole_of
from mesh.drills.figures import Span
from mesh.drills.rehearsal import RehearsalRecord
from mesh.drills.report import Check, FaultResult, LatencyFigures, MessageCounts
from mesh.drills.thresholds import Threshold, Unit
from mesh.drills.traffic import DrillTraffic

PER_FAULT: dict[str, Callable[[FaultResult], float | None]] = {
    "detection": lambda result: result.detection_ms,
    "outage": lambda result: result.outage_ms,
    "first_delivery": lambda result: never(result.first_delivery_ms),
    "recovery": lambda result: never(result.recovery_ms) if result.before.count else None,
}
LATENCIES: dict[str, Callable[[LatencyFigures], float | None]] = {
    "p(50)": lambda latency: latency.p50_ms,
    "p(99)": lambda latency: latency.p99_ms,
    "max": lambda latency: latency.max_ms,
}
COUNTS = frozenset(MessageCounts.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Observation:
    scope: str
    value: float | None
    """None: the metric could not be measured. Infinite: the event, such as recovery, never came."""
    kind: str | None
    """Kind of the fault that caused the observation; None before the first fault."""
    type: str
    """Type of the address that was observed."""


def never(value: float | None) -> float:
    return math.inf if value is None else value


def judge(threshold: Threshold, observations: Sequence[Observation], *, allow_no_data: bool) -> Check:
    measured = [each for each in observations if each.value is not None]
    if not measured:
        return Check(threshold.text, "everywhere", "no data", True if allow_no_data else None)
    values = [each.value for each in measured if each.value is not None]
    worst = threshold.worst(values)
    where = next(each for each in measured if each.value == worst)
    passed = threshold.holds(worst)
    if passed and not allow_no_data and (missing := [each for each in observations if each.value is None]):
        return Check(threshold.text, missing[0].scope, "no data", None)
    observed = threshold.show(worst) if math.isfinite(worst) else "never"
    margin = threshold.margin(worst) if math.isfinite(worst) else ""
    metric = threshold.metric.replace("(", "").replace(")", "")
    advice = "" if passed else advice_for(metric, where.kind, where.type)
    return Check(threshold.text, where.scope, observed, passed, margin, advice)


def expected(
    threshold: Threshold, traffics: Sequence[DrillTraffic], record: RehearsalRecord, seen: Sequence[FaultObservation]
) -> list[Observation]:
    """Return the observations by which a threshold of the drill, or of one address, is judged.

    A metric of faults has one observation for each fault and address in ``seen``; any other metric has one for each of
    ``traffics``, over the whole drill.
    """
    if threshold.metric in PER_FAULT:
        measure = PER_FAULT[threshold.metric]
        return [
            Observation(
                f"{each.injected.planned.label}, {each.result.address}",
                measure(each.result),
                each.injected.planned.fault.kind,
                str(each.traffic.flow.type),
            )
            for each in seen
        ]
    return list(_in_span(threshold, traffics, whole_of(record), "", _first_kind(record)))


def before(threshold: Threshold, record: RehearsalRecord) -> list[Observation]:
    start, end = baseline_of(record)
    if threshold.metric in COUNTS:
        # Leave out the last second of the baseline (the last half of a baseline shorter than 2 s): a message due then
        # may still have been in flight when the first fault came, so that its outcome is attributed to this fault.
        end -= min(UNDER_WAY_S, (end - start) / 2)
    return list(_in_span(threshold, record.traffics, (start, end), "before, ", None))


def after(threshold: Threshold, record: RehearsalRecord, seen: Sequence[FaultObservation]) -> list[Observation]:
    """Return the observations by which the steady state is judged again, from each address's recovery after its last
    fault.

    Counts of messages cover the whole drill instead, because a lost message stays lost.
    """
    if threshold.metric in COUNTS:
        return list(_in_span(threshold, record.traffics, whole_of(record), "throughout, ", _first_kind(record)))
    found: list[Observation] = []
    for traffic in record.traffics:
        start = max((each.after[0] for each in seen if each.traffic is traffic), default=record.ended_at)
        found += _in_span(threshold, [traffic], (start, record.ended_at), "after, ", None)
    return found


def _in_span(
    threshold: Threshold, traffics: Iterable[DrillTraffic], span: Span, prefix: str, kind: str | None
) -> Iterable[Observation]:
    for traffic in traffics:
        value = _measure(threshold, traffic, span)
        yield Observation(f"{prefix}{traffic.flow.address}", value, kind, str(traffic.flow.type))


def _measure(threshold: Threshold, traffic: DrillTraffic, span: Span) -> float | None:
    journal, metric = traffic.journal, threshold.metric
    if span[1] <= span[0]:
        return None
    if metric in COUNTS:
        counts = figures.counts_of(journal, span)
        return float(getattr(counts, metric)) if counts.attempted else None
    if metric in LATENCIES:
        return LATENCIES[metric](figures.latency_of(journal, span))
    if threshold.unit is Unit.RATE:
        return figures.rate_in(journal, span)
    if metric == "reconnects":
        return float(sum(span[0] <= at < span[1] for at in journal.reconnects))
    stalls, longest_ms = figures.stalls_in(journal, span)
    match metric:
        case "stalls":
            return float(stalls)
        case "longest_stall":
            return longest_ms
        case "outage":
            return figures.to_ms_or_none(figures.outage_s(journal, span, span[1]))
    return None


def _first_kind(record: RehearsalRecord) -> str | None:
    return record.injected[0].planned.fault.kind if record.injected else None


def did_pass(each: FaultObservation, thresholds: Iterable[Threshold]) -> bool:
    """Tell whether an address met its own thresholds, and those for all addresses, during one fault.

    The thresholds judged are those on metrics of faults, and those on counts of messages with `<`, `<=` or `==`; a
    metric without a value passes.
    """
    for threshold in (*thresholds, *each.traffic.flow.load.expect):
        metric, result = threshold.metric, each.result
        if metric in PER_FAULT:
            value = PER_FAULT[metric](result)
        elif metric in COUNTS and threshold.how in ("<", "<=", "=="):
            value = float(getattr(result.counts, metric))
        else:
            continue
        if value is not None and not threshold.holds(value):
            return False
    return True
