"""The model of a traffic profile; the file gives times and shares as text with a unit, such as `10s` or `5%`."""

from __future__ import annotations

import math
from datetime import time
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from mesh.terminal.file_model import FileMapping, Names, Size
from mesh.terminal.units import parse_duration_s, parse_rate_per_s, parse_share


def _duration(value: Any) -> float:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a valid duration: expected a number with a unit, such as 10s")
    return parse_duration_s(value)


def _signed(value: Any) -> float:
    """Parse the offset of a clock in seconds; `-350ms` stands for a clock that is behind."""
    text = value.strip() if isinstance(value, str) else value
    return -_duration(text[1:]) if isinstance(text, str) and text.startswith("-") else _duration(text)


def _time_of_day(value: Any) -> time:
    try:
        return time.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a valid time of day: expected one such as '14:30', in UTC") from None


YEAR_S = 366 * 86_400
Duration = Annotated[float, BeforeValidator(_duration), Field(gt=0, le=YEAR_S)]
Offset = Annotated[float, BeforeValidator(_duration), Field(ge=0, le=YEAR_S)]
Skew = Annotated[float, BeforeValidator(_signed), Field(ge=-86_400, le=86_400)]
Rate = Annotated[float, BeforeValidator(lambda value: parse_rate_per_s(str(value))), Field(gt=0, le=10_000_000)]
Share = Annotated[float, BeforeValidator(lambda value: parse_share(str(value))), Field(ge=0, le=1)]
Spread = Annotated[float, Field(ge=0, le=3)]
Count = Annotated[int, Field(ge=0, le=10_000)]
TimeOfDay = Annotated[time, BeforeValidator(_time_of_day)]


class TrafficProfile(FileMapping):
    """The part of a traffic profile for the addresses that match one entry of the topology."""

    names: int = Field(default=6, ge=1, le=10_000)
    """Number of invented addresses with traffic, for an entry that is a pattern."""
    weight: float = Field(default=1.0, ge=0, le=1e6)
    """Weight of this entry when messages are distributed among entries."""
    producers: Count = 4
    """Number of producers of each address."""
    consumers: Count = 3
    producers_at: Names = ()
    """Routers to which the producers attach, in turn (default: routers with a listener)."""
    consumers_at: Names = ()
    size: Size = 800
    """Median size of a message in bytes."""
    size_spread: Spread = 0.8
    """Standard deviation of the size's natural logarithm: at 0.8, one message of six has 2.2 times the median or
    more.
    """
    latency: Duration = 0.004
    """Median latency at the consumer or broker; the time over connections between routers is added."""
    latency_spread: Spread = 0.7
    slow: Share = 0.002
    """Share of messages that take `slow_factor` times as long, some of them far longer."""
    slow_factor: float = Field(default=25, ge=1, le=10_000)
    settled: Share = 0.1
    """Share of producers whose messages are pre-settled."""
    rejected: Share = 0.002
    released: Share = 0.004
    modified: Share = 0.001
    wait: Duration = 1.5
    """Median time that a message waits in a queue."""
    wait_spread: Spread = 1.0
    expired: Share = 0.003
    """Share of the messages in a queue that expire."""
    dead_lettered: Share = 0.0
    """Share of the messages in a queue that go to the queue of `dead_letter` in the topology, at the same broker."""

    @model_validator(mode="after")
    def _check_shares(self) -> TrafficProfile:
        together = self.rejected + self.released + self.modified
        if together > 1:
            raise ValueError(
                f"rejected, released and modified are {together:.0%} of the messages: expected 100 % at most"
            )
        gone = self.expired + self.dead_lettered
        if gone > 1:
            raise ValueError(f"expired and dead_lettered are {gone:.0%} of the messages: expected 100 % at most")
        return self


class DayProfile(FileMapping):
    depth: Share = 0.5
    """Share by which the rate rises above its average at the peak, and falls below it twelve hours later."""
    peak: TimeOfDay = time(14)
    """Time of the peak, in UTC."""


class Churn(FileMapping):
    life: Duration = 1800.0
    """Mean duration of a connection."""
    gap: Duration = 3.0
    """Mean time from the end of a connection until its client connects again."""
    lost: Share = 0.1
    """Share of connections that break, so that deliveries in flight are in doubt."""


class StarvedShare(FileMapping):
    links: Share = 0.15
    """Share of producers that have no credit from time to time."""
    every: Duration = 600.0
    duration: Duration = Field(default=4.0, alias="for")


class StalledShare(FileMapping):
    links: Share = 0.0
    """Share of consumers of multicast addresses that give no credit from time to time, and miss pre-settled messages
    then.
    """
    every: Duration = 600.0
    duration: Duration = Field(default=4.0, alias="for")


class TalkerProfile(FileMapping):
    count: Count = 1
    factor: float = Field(default=15, ge=1, le=1e6)
    """Factor by which a talker sends more messages than its share as a producer."""


class OutageProfile(FileMapping):
    router: str | None = None
    broker: str | None = None
    link: Annotated[tuple[str, str] | None, Field()] = None
    at: Offset
    """Time from the start of the logs to the outage."""
    duration: Duration = Field(alias="for")
    stopped: bool = False
    """Whether the router or broker is stopped in order, and records its end; otherwise the node is killed."""
    cause: str = Field(default="", max_length=200)

    @property
    def node(self) -> str | None:
        return self.router or self.broker

    @model_validator(mode="after")
    def _check_target(self) -> OutageProfile:
        if sum(each is not None for each in (self.router, self.broker, self.link)) != 1:
            raise ValueError("an outage has several targets, or none: expected one of 'router', 'broker' and 'link'")
        if self.stopped and self.link is not None:
            raise ValueError("a link cannot be stopped: expected 'router' or 'broker' with 'stopped'")
        return self


class RecordLoss(FileMapping):
    at: Offset
    duration: Duration = Field(alias="for")


class ClockChange(FileMapping):
    at: Offset
    by: Skew
    """Time by which the clock is set forward; a negative one sets the clock back."""


class Profile(FileMapping):
    """A traffic profile: the load, and the disturbances, of a mesh whose link logs are generated."""

    duration: Duration = 3600.0
    rate: Rate = 300.0
    """Rate of all producers together, in messages a second on average over a day."""
    zipf: float = Field(default=1.1, ge=0, le=5)
    """Exponent of popularity: the shares of addresses are proportional to 1, 2, 3, ... to the power of minus this
    number.
    """
    users: int = Field(default=8, ge=1, le=100_000)
    """Number of invented users, if the topology has no users."""
    addresses: dict[str, TrafficProfile] = Field(default_factory=dict)
    """Traffic by address or pattern of the topology (default: the same traffic for all entries of the topology)."""
    hop: Duration = 0.0003
    """One-way time over a connection of cost 1; a connection of cost n takes n times as long."""
    day: DayProfile = DayProfile()
    churn: Churn = Churn()
    starved: StarvedShare = StarvedShare()
    stalled: StalledShare = StalledShare()
    talkers: TalkerProfile = TalkerProfile()
    outages: tuple[OutageProfile, ...] | None = None
    """Outages of nodes and links (default: one link and one router, drawn at random, if there are other paths)."""
    reroute: Duration = 0.2
    """Time from an outage until traffic avoids the broken node or link."""
    clock_skew: dict[str, Skew] = Field(default_factory=dict)
    """Time by which the clock of each node is ahead at the start."""
    clock_steps: dict[str, tuple[ClockChange, ...]] = Field(default_factory=dict)
    """Times at which the clock of each node is set, and the changes."""
    lost_records: dict[str, tuple[RecordLoss, ...]] = Field(default_factory=dict)
    """Spans in which each node has no room for records, so that records are lost."""
    file_every: Duration = 3600.0
    """The longest span of records in a file; a file also ends with the hour, and at 524,288 records."""


PARTS: dict[tuple[str, ...], type[BaseModel]] = {
    (): Profile,
    ("addresses", "*"): TrafficProfile,
    ("day",): DayProfile,
    ("churn",): Churn,
    ("starved",): StarvedShare,
    ("stalled",): StalledShare,
    ("talkers",): TalkerProfile,
    ("outages",): OutageProfile,
    ("clock_steps", "*"): ClockChange,
    ("lost_records", "*"): RecordLoss,
}
"""The models of the mappings in a profile, by path of keys; `*` stands for any key."""


def log_us(seconds: float) -> float:
    return math.log(seconds * 1e6)
