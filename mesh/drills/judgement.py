"""Makes the report of a drill, with a verdict, from the record of a rehearsal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mesh.drills import checks, plots, words
from mesh.drills.detection import Notice
from mesh.drills.fault_results import FaultObservation, address_report, baseline_of, fault_report, seen, with_verdict
from mesh.drills.model import Drill
from mesh.drills.rehearsal import RehearsalRecord
from mesh.drills.report import Check, Drawing, DrillReport, DrillVerdict, FaultReport
from mesh.drills.thresholds import Threshold
from mesh.drills.traffic import DrillTraffic

REACHED_SHARE = 0.8
"""The share of the planned load that producers must reach before the first fault; with less, the drill is invalid."""
ENOUGH = 20


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Facts about a run that stand in its report: seed, start, duration, command, host, versions, digests of files."""

    seed: int
    started_at: str
    took_s: float
    command: str
    host: str
    versions: dict[str, str]
    digests: dict[str, str]
    drawing: Drawing
    previous: dict[str, Any] | None = None


def make_report(drill: Drill, record: RehearsalRecord, notices: Sequence[Notice], made: Circumstances) -> DrillReport:
    observed = seen(record, notices)
    faults = tuple(fault_report(record, injected, notices) for injected in record.injected if injected.at)
    steady, broken = steady_checks(drill, record, observed), broken_checks(drill, record, observed)
    verdict, reasons = conclude(record, faults, steady[0], [*steady[1], *broken])
    sound = {fault.id for fault in faults if fault.did_bite and fault.was_healed}
    results = tuple(
        with_verdict(each.result, each.result.fault in sound and checks.did_pass(each, drill.expect))
        for each in observed
    )
    return DrillReport(
        drill=drill.drill,
        title=drill.title,
        verdict=verdict,
        reasons=tuple(reasons),
        faults=faults,
        addresses=tuple(address_report(record, traffic) for traffic in record.traffics),
        results=results,
        checks=(*steady[0], *broken, *steady[1]),
        examples=tuple(plots.examples(record)),
        series={traffic.flow.address: plots.series(record, traffic) for traffic in record.traffics},
        messages={traffic.flow.address: plots.messages(record, traffic) for traffic in record.traffics},
        phases=plots.phases(record),
        drawing=made.drawing,
        seed=made.seed,
        started_at=made.started_at,
        took_s=made.took_s,
        command=made.command,
        host=made.host,
        versions=made.versions,
        digests=made.digests,
        previous=made.previous,
        log=tuple(record.log),
    )


def steady_checks(
    drill: Drill, record: RehearsalRecord, observed: Sequence[FaultObservation]
) -> tuple[list[Check], list[Check]]:
    """Judge the steady state before the first fault, and again after recovery from the last fault.

    Return two lists: the checks before the first fault, and those after recovery, which are none without an observed
    fault. The counts of messages in the second list cover the whole drill.
    """
    steady = drill.steady_state
    before = [_judge(each, checks.before(each, record), drill) for each in steady.expect]
    after = [_judge(each, checks.after(each, record, observed), drill) for each in steady.expect if observed]
    return before, after


def broken_checks(drill: Drill, record: RehearsalRecord, observed: Sequence[FaultObservation]) -> list[Check]:
    """Judge the drill's expectations about faults: first those for all addresses, then those of single addresses."""
    found = [_judge(each, checks.expected(each, record.traffics, record, observed), drill) for each in drill.expect]
    for traffic in record.traffics:
        own = [each for each in observed if each.traffic is traffic]
        expect = traffic.flow.load.expect
        found += [_judge(each, checks.expected(each, [traffic], record, own), drill) for each in expect]
    return found


def _judge(threshold: Threshold, observations: list[checks.Observation], drill: Drill) -> Check:
    return checks.judge(threshold, observations, allow_no_data=drill.steady_state.allow_no_data)


def baseline_failure(drill: Drill, record: RehearsalRecord) -> str:
    """Return the reason why no fault may be injected after the baseline; an empty text if faults may be injected.

    Reasons: an address without arrivals; a steady state that failed, if the drill file has `abort_on_fail`.
    """
    if silent := _silent(record):
        return f"no message arrived on {', '.join(silent)}: the drill has no traffic to judge"
    if not drill.steady_state.abort_on_fail:
        return ""
    failed = [check for check in steady_checks(drill, record, [])[0] if check.passed is False]
    return words.not_steady(failed[0]) if failed else ""


def _silent(record: RehearsalRecord) -> list[str]:
    return [traffic.flow.address for traffic in record.traffics if not _arrived_before(record, traffic)]


def _arrived_before(record: RehearsalRecord, traffic: DrillTraffic) -> bool:
    start, end = baseline_of(record)
    return any(arrival.at < end or end <= start for arrival in traffic.journal.arrivals)


def _load_before(record: RehearsalRecord, traffic: DrillTraffic) -> float | None:
    """Return the rate of messages sent before the first fault, or None if the planned rate makes fewer than 20 due by
    then.
    """
    start, end = baseline_of(record)
    if (end - start) * traffic.flow.load.rate < ENOUGH:
        return None
    return sum(start <= at < end for at in traffic.journal.sent) / (end - start)


def conclude(
    record: RehearsalRecord, faults: Sequence[FaultReport], baseline: Sequence[Check], rest: Sequence[Check]
) -> tuple[DrillVerdict, list[str]]:
    """Return the verdict of a drill, and the reasons for a verdict other than PASS.

    The order of precedence: UNKNOWN if interrupted (deliveries are still in flight), INVALID without a sound baseline,
    FAIL for a failed check or a fault that could not be healed, INVALID for a fault without a proven effect, UNKNOWN
    for a check without data, a drill without expectations, or an early end.
    """
    unsound = list(_unsound(record, baseline))
    failed = [words.not_held(check) for check in rest if check.passed is False]
    failed += [f"{fault.label} could not be healed" for fault in faults if not fault.was_healed]
    toothless = [words.not_shown(fault) for fault in faults if not fault.did_bite]
    unknown = [words.not_measured(check) for check in (*baseline, *rest) if check.passed is None]
    if not (baseline or rest):
        unknown.append("the drill has no expectations: no key 'expect' has an entry")
    unknown += filter(None, [record.ended_early])
    interrupted = ["it was interrupted"] if record.was_interrupted else []
    # Each reason is named once: the reason for an early end may also be a reason for an unsound baseline.
    reasons = list(dict.fromkeys([*interrupted, *unsound, *failed, *toothless, *unknown]))
    for verdict, found in (
        (DrillVerdict.UNKNOWN, interrupted),
        (DrillVerdict.INVALID, unsound),
        (DrillVerdict.FAIL, failed),
        (DrillVerdict.INVALID, toothless),
        (DrillVerdict.UNKNOWN, unknown),
    ):
        if found:
            return verdict, reasons
    return DrillVerdict.PASS, []


def _unsound(record: RehearsalRecord, baseline: Sequence[Check]) -> Iterator[str]:
    if silent := _silent(record):
        yield f"no data: no message arrived on {', '.join(silent)} before the first fault"
    for traffic in record.traffics:
        reached, asked = _load_before(record, traffic), traffic.flow.load.rate
        if reached is not None and reached < REACHED_SHARE * asked:
            load = f"{reached:,.0f}/s of {asked:,.0f}/s on {traffic.flow.address}"
            yield f"the load was not reached before the first fault: {load}"
    for check in baseline:
        if check.passed is False:
            yield words.not_steady(check)
