"""Measures the effect of each fault on each address, from the record of a rehearsal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mesh.drills import figures
from mesh.drills.detection import Notice, first_notice
from mesh.drills.figures import Span, to_ms, to_ms_or_none
from mesh.drills.rehearsal import FaultRun, RehearsalRecord
from mesh.drills.report import AddressReport, FaultReport, FaultResult
from mesh.drills.traffic import DrillTraffic

SAME_TIME_S = 0.1
UNDER_WAY_S = 1.0
"""Seconds before a fault in which a message may be due and still be in flight at the fault: the fault is blamed for its
outcome.
"""
NOTICE_EARLY_S = 0.002
"""Seconds by which a log line may seem to precede its fault, because logs have a resolution of milliseconds."""
SEEN_FACTOR = 5.0
SEEN_S = 0.1


@dataclass(frozen=True, slots=True)
class FaultObservation:
    """The effect of one fault on the traffic of one address; ``after`` is the span from healing and recovery to the
    next fault, and empty if one of the two did not come before the next fault.
    """

    injected: FaultRun
    traffic: DrillTraffic
    result: FaultResult
    after: Span


def baseline_of(record: RehearsalRecord) -> Span:
    first = min((injected.at for injected in record.injected if injected.at), default=record.ended_at)
    return record.began_at, first


def whole_of(record: RehearsalRecord) -> Span:
    return record.began_at, record.ended_at


def seen(record: RehearsalRecord, notices: Sequence[Notice]) -> list[FaultObservation]:
    return [
        _see(record, injected, traffic, notices)
        for injected in record.injected
        if injected.at
        for traffic in record.traffics
    ]


def _see(
    record: RehearsalRecord, injected: FaultRun, traffic: DrillTraffic, notices: Sequence[Notice]
) -> FaultObservation:
    journal = traffic.journal
    before = baseline_of(record)
    span = (injected.at, _next_fault_at(record, injected))
    # Recovery is looked for until the end of the drill, even if another fault comes before: with overlapping faults, a
    # span that ends at the next fault would be too short to contain the recovery.
    recovery = figures.recovery_s(journal, (injected.at, record.ended_at), before)
    calm_at = min(
        span[1], max(injected.healed_at or span[1], injected.at + recovery if recovery is not None else span[1])
    )
    during, after = (span[0], calm_at), (calm_at, span[1])
    stalls, longest_ms = figures.stalls_in(journal, span)
    notice = notice_of(record, injected, notices)
    usual_s = figures.usual_pause_s(journal, before)
    result = FaultResult(
        fault=injected.planned.id,
        address=traffic.flow.address,
        detection_ms=None if notice is None else max(0.0, to_ms(notice.at - injected.wall_at)),
        outage_ms=to_ms_or_none(figures.outage_s(journal, span, record.ended_at, usual_s)),
        first_delivery_ms=to_ms_or_none(figures.first_delivery_s(journal, span)),
        recovery_ms=to_ms_or_none(recovery),
        before=figures.latency_of(journal, before),
        during=figures.latency_of(journal, during),
        after=figures.latency_of(journal, after),
        counts=figures.counts_of(
            journal, (max(record.began_at, span[0] - UNDER_WAY_S), _counts_until(record, span[1]))
        ),
        stalls=stalls,
        longest_stall_ms=longest_ms,
        passed=True,
    )
    return FaultObservation(injected, traffic, result, after)


def _counts_until(record: RehearsalRecord, end: float) -> float:
    return end if end == record.ended_at else end - UNDER_WAY_S


def _next_fault_at(record: RehearsalRecord, injected: FaultRun) -> float:
    later = [other.at for other in record.injected if other.at > injected.at + SAME_TIME_S]
    return min(later, default=record.ended_at)


def notice_of(record: RehearsalRecord, injected: FaultRun, notices: Sequence[Notice]) -> Notice | None:
    until = injected.wall_at + _next_fault_at(record, injected) - injected.at - NOTICE_EARLY_S
    targets = injected.planned.fault.targets
    return first_notice(notices, targets, injected.wall_at - NOTICE_EARLY_S, until) if targets else None


def fault_report(record: RehearsalRecord, injected: FaultRun, notices: Sequence[Notice]) -> FaultReport:
    planned, injection = injected.planned, injected.injection
    notice = notice_of(record, injected, notices)
    evidence = [*injection.evidence, *([injected.error] if injected.error else [])]
    did_bite, was_healed = injection.did_bite, injection.was_healed and injected.healed_at is not None
    if notice is not None:
        evidence.append(f"noticed by {notice}")
    if not did_bite and not injected.error and planned.fault.kind == "command" and _traffic_saw(record, injected):
        did_bite = True
        evidence.append("traffic stopped, or failed, more than before the fault")
    return FaultReport(
        id=planned.id,
        label=planned.label,
        kind=planned.fault.kind,
        targets=planned.fault.targets,
        at_s=round(injected.at - record.began_at, 3),
        healed_s=round(injected.healed_at - record.began_at, 3) if was_healed and injected.healed_at else None,
        did_bite=did_bite,
        was_healed=was_healed,
        evidence=tuple(evidence),
        detection_ms=None if notice is None else max(0.0, to_ms(notice.at - injected.wall_at)),
        detected_by=None if notice is None else notice.node,
    )


def _traffic_saw(record: RehearsalRecord, injected: FaultRun) -> bool:
    span, before = (injected.at, _next_fault_at(record, injected)), baseline_of(record)
    for traffic in record.traffics:
        counts = figures.counts_of(traffic.journal, span)
        usual = figures.counts_of(traffic.journal, (before[0], before[1] - UNDER_WAY_S))
        usual_s, outage_s = (figures.outage_s(traffic.journal, each, each[1]) or 0.0 for each in (before, span))
        if usual.accepted == usual.attempted and counts.accepted < counts.attempted:
            return True
        if outage_s > max(SEEN_S, SEEN_FACTOR * usual_s):
            return True
    return False


def address_report(record: RehearsalRecord, traffic: DrillTraffic) -> AddressReport:
    journal, span = traffic.journal, whole_of(record)
    stalls, longest_ms = figures.stalls_in(journal, span)
    return AddressReport(
        address=traffic.flow.address,
        type=str(traffic.flow.type),
        counts=figures.counts_of(journal, span),
        latency=figures.latency_of(journal, span),
        rate_per_s=traffic.flow.load.rate,
        stalls=stalls,
        longest_stall_ms=longest_ms,
        reconnects=len(journal.reconnects),
    )


def with_verdict(result: FaultResult, passed: bool) -> FaultResult:
    return replace(result, passed=passed)
