"""The findings of a drill as data: the one source of the terminal text, the JSON, the JUnit XML and the page.

Times of the drill are seconds since the start of its traffic; measurements are in milliseconds. None: not measured, or
there was nothing to measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class DrillVerdict(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"
    """A fault was not shown to bite, or there was no steady state before: the drill proves nothing about the mesh."""
    UNKNOWN = "UNKNOWN"
    """The drill ended early, or a value to be judged could not be measured."""


@dataclass(frozen=True, slots=True)
class FaultReport:
    """One fault as it was injected."""

    id: str
    """`1`, `2`, ... in order of time"""
    label: str
    """`kill r2`"""
    kind: str
    targets: tuple[str, ...]
    """The name of the node, or the names of both ends of the link."""
    at_s: float
    healed_s: float | None
    did_bite: bool
    evidence: tuple[str, ...]
    """Evidence that the fault was applied and healed, a sentence each."""
    detection_ms: float | None
    """Time until another node noticed the fault, by that node's log."""
    detected_by: str | None
    was_healed: bool = True
    """Whether the target was whole again by the end."""


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """The message ledger.

    attempted = accepted + rejected + released + modified + unknown. A message is lost if it was accepted and a consumer
    that should have received it never did. Duplicated and reordered count arrivals.
    """

    attempted: int = 0
    accepted: int = 0
    rejected: int = 0
    released: int = 0
    modified: int = 0
    unknown: int = 0
    received: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0


@dataclass(frozen=True, slots=True)
class LatencyFigures:
    """Latency of the arrivals in a span, from the due time of a message on: waiting for credit counts."""

    count: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None


@dataclass(frozen=True, slots=True)
class AddressReport:
    address: str
    type: str
    counts: MessageCounts
    latency: LatencyFigures
    rate_per_s: float
    """The rate that the drill file declares."""
    stalls: int
    """The number of times that a producer had to wait for credit for more than 100 ms."""
    longest_stall_ms: float
    reconnects: int
    """Reconnects of the producers' and consumers' connections."""


@dataclass(frozen=True, slots=True)
class FaultResult:
    """The effect of one fault on one address, until the next fault.

    Counts are of messages due from 1 s before this fault to 1 s before the next.
    """

    fault: str
    """The id of the fault"""
    address: str
    detection_ms: float | None
    outage_ms: float | None
    """The longest time in which a consumer received nothing."""
    first_delivery_ms: float | None
    """Time until the arrival of a message that was sent after the fault."""
    recovery_ms: float | None
    """Time until messages arrive at 95 % of the earlier rate, in time, and keep arriving like this for a second."""
    before: LatencyFigures
    during: LatencyFigures
    """From the fault until the later of healing and recovery of traffic."""
    after: LatencyFigures
    counts: MessageCounts
    stalls: int
    longest_stall_ms: float
    passed: bool


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation, judged by its worst observation."""

    text: str
    """`outage < 500ms`"""
    scope: str
    """Place of the worst observation: `kill r2, orders`; `before, orders` of a steady state"""
    observed: str
    """The observed value with its unit: `18 ms`"""
    passed: bool | None
    """None: could not be measured."""
    margin: str = ""
    """Distance from the bound: `27x below`"""
    advice: str = ""
    """Advice after a failure."""


@dataclass(frozen=True, slots=True)
class Series:
    """One address over time, in bins of ``bin_s``."""

    bin_s: float
    sent: tuple[int, ...] = ()
    received: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    """Messages that were not accepted, by their due time."""
    p50_ms: tuple[float | None, ...] = ()
    p99_ms: tuple[float | None, ...] = ()
    max_ms: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A message that fared badly."""

    address: str
    id: str
    """`<sender>/<number>`, the message's id on the wire"""
    due_s: float
    fate: str
    """`lost`, `duplicated`, `reordered`, `unknown`, ..."""
    trail: str
    """The known steps of the message: outcome, receivers, times of receipt."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The parts of the mesh that a drawing shows."""

    routers: tuple[str, ...]
    brokers: tuple[tuple[str, tuple[str, ...]], ...]
    """name, routers that attach the broker"""
    links: tuple[tuple[str, str, int], ...]
    """end, end, cost"""


@dataclass(frozen=True, slots=True)
class DrillReport:
    drill: str
    title: str
    verdict: DrillVerdict
    reasons: tuple[str, ...]
    """Reasons for a verdict other than PASS, a sentence each."""
    faults: tuple[FaultReport, ...]
    addresses: tuple[AddressReport, ...]
    results: tuple[FaultResult, ...]
    checks: tuple[Check, ...]
    examples: tuple[Example, ...]
    series: Mapping[str, Series]
    """By address"""
    messages: Mapping[str, Sequence[tuple[float, str, float | None]]]
    """By address, at most 2,000 each, all not-accepted messages first: due_s, outcome or `lost`, latency_ms"""
    phases: Mapping[str, tuple[float, float]]
    """`baseline`, `faults`, `cooldown`: from, to"""
    drawing: Drawing
    seed: int
    started_at: str
    """ISO 8601, UTC"""
    took_s: float
    command: str
    """The command that runs the drill again"""
    host: str
    """The host of the run: kernel, cores"""
    versions: Mapping[str, str]
    digests: Mapping[str, str]
    """SHA-256 of `drill` and `topology`"""
    previous: Mapping[str, Any] | None = None
    """The `summary` of the previous run of the same drill."""
    log: tuple[str, ...] = field(default=())
    """Lines printed during the drill."""
    link_logs: str = ""
    """The folder of link logs, relative to the page; empty if no link logs are kept."""
    link_log_report: str = ""
    """The page of the link log report, relative to the page of the drill; empty if there is no report."""

    def to_map(self) -> dict[str, Any]:
        return asdict(self)

    def summary(self) -> dict[str, Any]:
        """The part of the report that the next run is compared with."""
        return {
            "started_at": self.started_at,
            "verdict": str(self.verdict),
            "results": [
                {
                    "fault": next(fault.label for fault in self.faults if fault.id == result.fault),
                    "address": result.address,
                    "outage_ms": result.outage_ms,
                    "recovery_ms": result.recovery_ms,
                    "lost": result.counts.lost,
                }
                for result in self.results
            ],
        }
