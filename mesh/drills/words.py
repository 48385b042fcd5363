"""Formats figures and findings of a drill as text, such as `18 ms` or `kill r2 had no proven effect`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mesh.drills.report import Check, DrillReport, FaultReport, FaultResult, MessageCounts

NONE = "-"
"""Stands for a figure that was not measured."""


def duration(value_ms: float | None) -> str:
    """Format a duration in milliseconds with three digits, as ms, s or min."""
    if value_ms is None:
        return NONE
    if value_ms < 999.5:
        return f"{value_ms:.3g} ms" if value_ms >= 0.01 or value_ms == 0 else "0.01 ms"
    if value_ms < 59_950:
        return f"{value_ms / 1000:.3g} s"
    minutes, seconds = divmod(round(value_ms / 1000), 60)
    return f"{minutes} min {seconds} s"


def seconds(value_s: float | None) -> str:
    return duration(None if value_s is None else value_s * 1000)


def count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def not_accepted(counts: MessageCounts) -> int:
    return counts.rejected + counts.released + counts.modified + counts.unknown


def not_held(check: Check) -> str:
    return f"{check.text}: observed {check.observed} ({check.scope})"


def not_steady(check: Check) -> str:
    return f"not steady before the first fault: {check.text}, observed {check.observed} ({check.scope})"


def not_measured(check: Check) -> str:
    return f"{check.text}: could not be measured"


def not_shown(fault: FaultReport) -> str:
    return f"{fault.label} had no proven effect"


def fault_labels(report: DrillReport) -> dict[str, str]:
    return {fault.id: fault.label for fault in report.faults}


@dataclass(frozen=True, slots=True)
class Headline:
    """The worst figures of a drill, over all faults and addresses; None for a figure that was not measured."""

    outage_ms: float | None
    outage_at: FaultResult | None
    recovery_ms: float | None
    recovery_at: FaultResult | None
    has_recovered: bool
    """Whether every address recovered after every fault."""
    attempted: int
    accepted: int
    lost: int | None
    duplicated: int | None

    @classmethod
    def of(cls, report: DrillReport) -> Headline:
        outage = _worst(report.results, "outage_ms")
        recovery = _worst(report.results, "recovery_ms")
        counts = [address.counts for address in report.addresses]
        attempted = sum(each.attempted for each in counts)
        return cls(
            outage_ms=outage.outage_ms if outage else None,
            outage_at=outage,
            recovery_ms=recovery.recovery_ms if recovery else None,
            recovery_at=recovery,
            has_recovered=all(result.recovery_ms is not None for result in report.results),
            attempted=attempted,
            accepted=sum(each.accepted for each in counts),
            lost=sum(each.lost for each in counts) if attempted else None,
            duplicated=sum(each.duplicated for each in counts) if attempted else None,
        )

    def sentence(self, report: DrillReport) -> str:
        """Return the summary of the drill in one line, without color."""
        return (
            f"{report.verdict}: {report.drill}: worst outage {duration(self.outage_ms)}, {count(self.lost)} lost, "
            f"{count(self.duplicated)} duplicated ({self.attempted:,} messages, {seconds(report.took_s)})"
        )


def _worst(results: Iterable[FaultResult], field: str) -> FaultResult | None:
    measured = [result for result in results if getattr(result, field) is not None]
    return max(measured, key=lambda result: float(getattr(result, field)), default=None)
