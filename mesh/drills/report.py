"""What a drill found, as data: the one source of the text on the terminal, the JSON, the JUnit XML and the page.

Times of the drill are seconds since its traffic began; what was measured is in milliseconds. None: not measured, or
there was nothing to measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"
    """A fault was not shown to bite, or nothing flowed: the drill says nothing about the mesh."""
    UNKNOWN = "UNKNOWN"
    """It ended early, or something that was to be judged could not be measured."""


@dataclass(frozen=True, slots=True)
class FaultReport:
    """One fault as it was injected."""

    id: str
    """`1`, `2`, ... in order of time"""
    label: str
    """`kill r2`"""
    kind: str
    targets: tuple[str, ...]
    """The names of the node, or of both ends of the link."""
    at_s: float
    healed_s: float | None
    did_bite: bool
    evidence: tuple[str, ...]
    """What shows that it was applied and healed, a sentence each."""
    detection_ms: float | None
    """Until another node noticed, by its log."""
    detected_by: str | None
    was_healed: bool = True
    """What it broke was whole again by the end."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The message ledger.

    attempted = accepted + rejected + released + modified + unknown; lost: accepted, and never received by a consumer
    that should have it; duplicated and reordered are arrivals.
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
class Latency:
    """Of what arrived in a span: from when a message was due until it came. If its producer has to wait, it is late."""

    count: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None


@dataclass(frozen=True, slots=True)
class AddressReport:
    address: str
    type: str
    counts: Counts
    latency: Latency
    rate_per_s: float
    """As declared."""
    stalls: int
    """How often a producer had to wait for credit for more than 100 ms."""
    longest_stall_ms: float
    reconnects: int
    """Of the connections of its producers and consumers."""


@dataclass(frozen=True, slots=True)
class Result:
    """One fault as one address saw it, until the next; counts are of messages due from a second before it on."""

    fault: str
    """The id of the fault"""
    address: str
    detection_ms: float | None
    outage_ms: float | None
    """The longest time in which a consumer got nothing."""
    first_delivery_ms: float | None
    """Until a message arrived that was sent after the fault."""
    recovery_ms: float | None
    """Until messages arrived at 95 % of the rate before, and in time, to stay so for a second."""
    before: Latency
    during: Latency
    """From the fault until it was healed, or traffic had recovered, whichever is later."""
    after: Latency
    counts: Counts
    stalls: int
    longest_stall_ms: float
    passed: bool


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation, where it came out worst."""

    text: str
    """`outage < 500ms`"""
    scope: str
    """Where it came out worst: `kill r2, orders`; `before, orders` of a steady state"""
    observed: str
    """With its unit: `18 ms`"""
    passed: bool | None
    """None: could not be measured."""
    margin: str = ""
    """How far from the bound: `27x below`"""
    advice: str = ""
    """What to look at when it failed."""


@dataclass(frozen=True, slots=True)
class Series:
    """One address over time, in bins of ``bin_s``."""

    bin_s: float
    sent: tuple[int, ...] = ()
    received: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    """Not accepted, by when they were due."""
    p50_ms: tuple[float | None, ...] = ()
    p99_ms: tuple[float | None, ...] = ()
    max_ms: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A message that did not fare well."""

    address: str
    id: str
    """`<sender>/<number>`, the message's id on the wire"""
    due_s: float
    fate: str
    """`lost`, `duplicated`, `reordered`, `unknown`, ..."""
    trail: str
    """What is known of its way: outcome, by whom received and when."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The mesh, as far as a drawing needs it."""

    routers: tuple[str, ...]
    brokers: tuple[tuple[str, tuple[str, ...]], ...]
    """name, routers that attach it"""
    links: tuple[tuple[str, str, int], ...]
    """end, end, cost"""


@dataclass(frozen=True, slots=True)
class Report:
    drill: str
    title: str
    verdict: Verdict
    reasons: tuple[str, ...]
    """Why the verdict is not PASS, a sentence each."""
    faults: tuple[FaultReport, ...]
    addresses: tuple[AddressReport, ...]
    results: tuple[Result, ...]
    checks: tuple[Check, ...]
    examples: tuple[Example, ...]
    series: Mapping[str, Series]
    """By address"""
    messages: Mapping[str, Sequence[tuple[float, str, float | None]]]
    """By address, at most 2,000 of each, all that were not accepted first: due_s, outcome or `lost`, latency_ms"""
    phases: Mapping[str, tuple[float, float]]
    """`baseline`, `faults`, `cooldown`: from, to"""
    drawing: Drawing
    seed: int
    started_at: str
    """ISO 8601, UTC"""
    took_s: float
    command: str
    """To run it again"""
    host: str
    """What it ran on: kernel, cores"""
    versions: Mapping[str, str]
    digests: Mapping[str, str]
    """SHA-256 of `drill` and `topology`"""
    previous: Mapping[str, Any] | None = None
    """The `summary` of the run before of the same drill."""
    log: tuple[str, ...] = field(default=())
    """What was told while it ran."""
    link_logs: str = ""
    """The folder of what the nodes recorded, as seen from the page; empty where nothing is kept."""
    link_log_report: str = ""
    """The page of the report of that, as seen from the page; empty where none was made."""

    def to_map(self) -> dict[str, Any]:
        return asdict(self)

    def summary(self) -> dict[str, Any]:
        """What the next run is compared with."""
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
