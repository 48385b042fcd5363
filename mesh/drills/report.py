"""The report of a drill as data, from which the terminal text, the JSON, the JUnit XML and the HTML page are made.

Times of the drill are in seconds since the start of its traffic; measurements are in milliseconds. None stands for a
value that was not measured, or could not be.
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
    """A fault had no proven effect, or there was no steady state before the faults: the drill proves nothing about the
    mesh.
    """
    UNKNOWN = "UNKNOWN"
    """The drill was interrupted or ended early, or an expected value could not be measured."""


@dataclass(frozen=True, slots=True)
class FaultReport:
    """A fault as the drill injected it, with the evidence of its effect."""

    id: str
    """`1`, `2`, ... in the order of the drill file."""
    label: str
    """The fault in words, such as `kill r2`."""
    kind: str
    targets: tuple[str, ...]
    """The name of the node, or the names of both ends of the link."""
    at_s: float
    healed_s: float | None
    did_bite: bool
    evidence: tuple[str, ...]
    """Evidence that the fault took effect and was healed, a sentence each."""
    detection_ms: float | None
    """Time until another node noticed the fault, according to this node's log."""
    detected_by: str | None
    was_healed: bool = True
    """Whether the target was whole again at the end."""


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """Counts of messages by outcome and arrival.

    attempted = accepted + rejected + released + modified + unknown. A message is lost if it was accepted, but did not
    arrive at a consumer that should have received it. Duplicated and reordered count arrivals, not messages.
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
    """Percentiles of the latency of messages that arrived in a span of time.

    Latency counts from the time at which a message was due, so that a wait for credit is part of it.
    """

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
    """The rate in the drill file, in messages a second."""
    stalls: int
    """Number of times that a producer waited for credit for more than 100 ms."""
    longest_stall_ms: float
    reconnects: int
    """Number of times that a producer's or consumer's connection was made anew."""


@dataclass(frozen=True, slots=True)
class FaultResult:
    """The effect of one fault on one address, until the next fault.

    The counts are of messages due from 1 s before this fault until 1 s before the next or, without a next fault, until
    the end.
    """

    fault: str
    """The id of the fault"""
    address: str
    detection_ms: float | None
    outage_ms: float | None
    """The longest time in which some consumer received nothing."""
    first_delivery_ms: float | None
    """Time until a message sent after the fault had arrived."""
    recovery_ms: float | None
    """Time until messages arrived at 95 % of the earlier rate, without delay, for a whole second."""
    before: LatencyFigures
    during: LatencyFigures
    """Latency from the fault until healing or recovery of the traffic, whichever was later."""
    after: LatencyFigures
    counts: MessageCounts
    stalls: int
    longest_stall_ms: float
    passed: bool


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation of the drill, with the worst observation by which the expectation is judged."""

    text: str
    """The expectation as in the drill file: `outage < 500ms`."""
    scope: str
    """The place of the worst observation: `kill r2, orders`, or `before, orders` for the steady state."""
    observed: str
    """The observed value with its unit, such as `18 ms`."""
    passed: bool | None
    """None: the metric could not be measured."""
    margin: str = ""
    """The distance of the observed value from the bound, such as `27x below`."""
    advice: str = ""
    """Advice to the user, after a failure."""


@dataclass(frozen=True, slots=True)
class Series:
    """The traffic of one address over time, in bins of ``bin_s`` seconds."""

    bin_s: float
    sent: tuple[int, ...] = ()
    received: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    """Messages that were not accepted, in the bin of their due time."""
    p50_ms: tuple[float | None, ...] = ()
    p99_ms: tuple[float | None, ...] = ()
    max_ms: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A message that was lost, duplicated, reordered or not accepted."""

    address: str
    id: str
    """The message-id, `<sender>/<number>`."""
    due_s: float
    fate: str
    """`lost`, `duplicated`, `reordered`, `unknown`, ..."""
    trail: str
    """The known events of the message: time of sending, outcome, receivers with their times."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The nodes and connections that the drawing of a mesh shows."""

    routers: tuple[str, ...]
    brokers: tuple[tuple[str, tuple[str, ...]], ...]
    """Name of each broker, with the names of the routers attached to it."""
    links: tuple[tuple[str, str, int], ...]
    """Both ends of each connection between routers, and its cost."""


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
    """The series of each address."""
    messages: Mapping[str, Sequence[tuple[float, str, float | None]]]
    """At most 2,000 messages of each address, as (due_s, outcome or `lost`, latency_ms); not accepted ones come
    first.
    """
    phases: Mapping[str, tuple[float, float]]
    """Start and end of the phases `baseline`, `faults` and `cooldown`."""
    drawing: Drawing
    seed: int
    started_at: str
    """ISO 8601, UTC"""
    took_s: float
    command: str
    """The command line that runs the drill again."""
    host: str
    """The host of the run: system, release, number of cores."""
    versions: Mapping[str, str]
    digests: Mapping[str, str]
    """SHA-256 of the drill file (`drill`) and of the topology file (`topology`)."""
    previous: Mapping[str, Any] | None = None
    """The `summary` of the previous run of the same drill."""
    log: tuple[str, ...] = field(default=())
    """The lines printed during the drill."""
    link_logs: str = ""
    """The folder of link logs, relative to the HTML page; empty if no link logs are kept."""
    link_log_report: str = ""
    """The page of the link log report, relative to the drill's page; empty if there is no such report."""

    def to_map(self) -> dict[str, Any]:
        return asdict(self)

    def summary(self) -> dict[str, Any]:
        """Return the part of the report that the next run of the drill is compared with: start, verdict, and the
        outage, recovery and lost messages of each fault and address.
        """
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
