"""Derives the content of a drill's page from the report: timeline, equations of message counts, differences to before.

Places on the timeline are in percent of the drill's duration.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

from addressing.kinds import AddressKind
from mesh.drills import words
from mesh.drills.report import AddressReport, DrillReport, DrillVerdict, FaultReport, FaultResult, MessageCounts, Series

MARKS = {DrillVerdict.PASS: "✓", DrillVerdict.FAIL: "✗", DrillVerdict.INVALID: "!", DrillVerdict.UNKNOWN: "?"}
MOST_TICKS = 8
MOST_LISTED = 6
TRAFFIC_POINTS = 240
TRAFFIC_HEIGHT = 100
OUTCOMES = ("accepted", "released", "modified", "rejected", "unknown", "lost")
COPIED = tuple(kind.value for kind in AddressKind if kind.is_copied)
"""Address types of which each consumer receives a copy of every message."""


@dataclass(frozen=True, slots=True)
class FaultLane:
    """A fault's bar on the timeline, with its place and width in percent."""

    fault: FaultReport
    left: float
    width: float
    recovered: float | None
    """Place in percent at which the last address had recovered; None unless all addresses recovered."""
    outage_ms: float | None
    is_right: bool
    """Whether the label goes to the left of the bar, because the fault lies far to the right."""


@dataclass(frozen=True, slots=True)
class Equation:
    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class LedgerRow:
    address: AddressReport
    outcomes: Equation
    arrivals: Equation


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """A result of this run (outage, recovery, lost messages) beside the same result of the previous run."""

    fault: str
    address: str
    outage: str
    recovery: str
    lost: str


class PageView:
    def __init__(self, report: DrillReport) -> None:
        self._report = report
        self.mark = MARKS[report.verdict]
        self.labels = words.fault_labels(report)

    @cached_property
    def end_s(self) -> float:
        """Return the end of the drill in seconds: the latest time in the report, never 0."""
        report = self._report
        times = [end for _, end in report.phases.values()]
        times += [fault.at_s for fault in report.faults] + [fault.healed_s or 0.0 for fault in report.faults]
        times += [series.bin_s * len(series.sent) for series in report.series.values()]
        return max(times, default=0.0) or report.took_s or 1.0

    def percent(self, at_s: float) -> float:
        return round(100 * min(max(at_s / self.end_s, 0.0), 1.0), 3)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the place in percent and the label of each mark on the time axis."""
        step = _nice(self.end_s / MOST_TICKS)
        # A mark in the last 3 % of the time axis is left out, because its label would stick out of the page.
        count = math.floor(self.end_s * 0.97 / step)
        return [(self.percent(i * step), f"{i * step:g} s") for i in range(count + 1)]

    def phases(self) -> list[tuple[str, float, float]]:
        return [
            (name, self.percent(start), round(self.percent(end) - self.percent(start), 3))
            for name, (start, end) in self._report.phases.items()
        ]

    def lanes(self) -> Iterator[FaultLane]:
        for fault in self._report.faults:
            left = self.percent(fault.at_s)
            healed = self.percent(self.end_s if fault.healed_s is None else fault.healed_s)
            results = [result for result in self._report.results if result.fault == fault.id]
            recoveries = [each.recovery_ms for each in results]
            known = [each for each in recoveries if each is not None]
            yield FaultLane(
                fault=fault,
                left=left,
                width=round(healed - left, 3),
                recovered=self.percent(fault.at_s + max(known) / 1000) if known and known == recoveries else None,
                outage_ms=max((each.outage_ms for each in results if each.outage_ms is not None), default=None),
                is_right=left > 55,
            )

    def traffic(self) -> str:
        """Return the arrivals of all addresses over time as the path of an SVG area, 1,000 units wide; empty without
        arrivals.
        """
        bins = [0.0] * TRAFFIC_POINTS
        for series in self._report.series.values():
            bins = [sum(both) for both in zip(bins, self._resampled(series), strict=True)]
        most = max(bins)
        if not most:
            return ""
        step = 1000 / TRAFFIC_POINTS
        tops = (f"V{TRAFFIC_HEIGHT * (1 - each / most):.1f}H{(i + 1) * step:.1f}" for i, each in enumerate(bins))
        return f"M0 {TRAFFIC_HEIGHT}{''.join(tops)}V{TRAFFIC_HEIGHT}Z"

    def _resampled(self, series: Series) -> list[float]:
        """Return the arrivals of ``series``, distributed over ``TRAFFIC_POINTS`` equal spans of the drill's time."""
        until = [0, *accumulate(series.received)]
        wide = self.end_s / series.bin_s / TRAFFIC_POINTS
        totals = [_between(until, i * wide) for i in range(TRAFFIC_POINTS + 1)]
        return [later - earlier for earlier, later in pairwise(totals)]

    def worst_result(self) -> str:
        worst = words.Headline.of(self._report).outage_at
        return f"{self.labels.get(worst.fault, worst.fault)}, {worst.address}" if worst else "not measured"

    def hypothesis(self) -> str:
        """Return the hypothesis of the drill as a sentence: the load, the faults, and the expectations."""
        report = self._report
        faults = _listed([fault.label for fault in report.faults]) or "no fault at all"
        flows = [f"{each.rate_per_s:g} messages a second to {each.type} {each.address}" for each in report.addresses]
        checks = _listed([check.text for check in report.checks]) or "nothing was expected"
        return f"With {_listed(flows) or 'no messages'}, through {faults}: {checks}."

    def series(self, address: str) -> Series | None:
        found = self._report.series.get(address)
        return found if found is not None and found.sent else None

    def outcomes(self, address: str) -> list[tuple[str, int]]:
        """Return, for each outcome of the messages of an address that its chart shows, the number of these messages, in
        a fixed order of outcomes.
        """
        counts = Counter(outcome for _, outcome, _ in self._report.messages.get(address, ()))
        order = (*OUTCOMES, *sorted(counts.keys() - set(OUTCOMES)))
        return [(outcome, counts[outcome]) for outcome in order if counts[outcome]]

    def ledger(self) -> list[LedgerRow]:
        return [LedgerRow(each, _outcomes(each.counts), _arrivals(each)) for each in self._report.addresses]

    def differences(self) -> list[ResultDifference]:
        previous = self._report.previous or {}
        known: defaultdict[tuple[Any, Any], deque[Mapping[str, Any]]] = defaultdict(deque)
        for each in previous.get("results", ()):
            known[each.get("fault"), each.get("address")].append(each)
        return [self._difference(result, known) for result in self._report.results]

    def _difference(
        self, result: FaultResult, known: Mapping[tuple[Any, Any], deque[Mapping[str, Any]]]
    ) -> ResultDifference:
        """Compare one result with the result of the same fault and address in the previous run, and take that one out
        of ``known``: of several equal faults, the first is compared with the first, and so on.
        """
        fault = self.labels.get(result.fault, result.fault)
        in_turn = known[fault, result.address]
        before = in_turn.popleft() if in_turn else {}
        return ResultDifference(
            fault,
            result.address,
            _change_ms(before.get("outage_ms"), result.outage_ms),
            _change_ms(before.get("recovery_ms"), result.recovery_ms),
            _change(before.get("lost"), result.counts.lost),
        )


def _between(values: Sequence[float], at: float) -> float:
    """Return the value at the fractional index ``at``, between the values next to it; the last value beyond the end."""
    whole = min(int(at), len(values) - 1)
    after = values[min(whole + 1, len(values) - 1)]
    return values[whole] + (after - values[whole]) * (at - whole)


def _nice(least: float) -> float:
    """Return the smallest of 1, 2, 5 and 10 times a power of ten that is not below ``least``."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * 0.999)


def _listed(items: list[str]) -> str:
    if len(items) > MOST_LISTED:
        items = [*items[:MOST_LISTED], f"{len(items) - MOST_LISTED} more"]
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def _outcomes(counts: MessageCounts) -> Equation:
    parts = (counts.accepted, counts.rejected, counts.released, counts.modified, counts.unknown)
    sums = " + ".join(f"{part:,}" for part in parts)
    return _equation(f"{counts.attempted:,} attempted", sums, counts.attempted - sum(parts))


def _arrivals(address: AddressReport) -> Equation:
    """Return the equation: accepted (times copies) + arrived though not accepted = received - duplicated + lost."""
    counts = address.counts
    due = counts.received - counts.duplicated + counts.lost
    copies = max(1, due // counts.accepted) if counts.accepted and address.type in COPIED else 1
    others = due - copies * counts.accepted
    left = f"{counts.accepted:,} accepted" + (f" × {copies} consumers" if copies > 1 else "")  # noqa: RUF001
    left += f" + {others:,} others that arrived" if others > 0 else ""
    right = f"{counts.received:,} received − {counts.duplicated:,} duplicated + {counts.lost:,} lost"  # noqa: RUF001
    most = copies * words.not_accepted(counts)
    return _equation(left, right, others if others < 0 else max(0, others - most))


def _equation(left: str, right: str, off_by: int) -> Equation:
    return Equation(f"{left} = {right}" if not off_by else f"{left} ≠ {right}, off by {off_by:,}", not off_by)


def _change_ms(before: float | None, now: float | None) -> str:
    if before is None or now is None:
        return f"{_dash(before)} → {_dash(now)}"
    if now == before:
        return f"{_dash(now)}, as before"
    sign = "+" if now > before else "−"  # noqa: RUF001
    return f"{_dash(before)} → {_dash(now)} ({sign}{words.duration(abs(now - before))})"


def _change(before: int | None, now: int) -> str:
    return f"{'–' if before is None else f'{before:,}'} → {now:,}"  # noqa: RUF001


def _dash(value_ms: float | None) -> str:
    return "–" if value_ms is None else words.duration(value_ms)  # noqa: RUF001
