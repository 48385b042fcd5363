"""What may stand in a traffic profile? The one model of it. Times and shares are texts with a unit in the file."""

from __future__ import annotations

import math
from datetime import time
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from mesh.drills.model import Names, Part, Size
from mesh.units import parse_duration_s, parse_rate_per_s, parse_share


def _duration(value: Any) -> float:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration: expected a number with a unit, such as 10s")
    return parse_duration_s(value)


def _signed(value: Any) -> float:
    """Of a clock: `-350ms` is behind."""
    text = value.strip() if isinstance(value, str) else value
    return -_duration(text[1:]) if isinstance(text, str) and text.startswith("-") else _duration(text)


def _time_of_day(value: Any) -> time:
    try:
        return time.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is no time of day: expected one such as '14:30', of UTC") from None


YEAR_S = 366 * 86_400
Duration = Annotated[float, BeforeValidator(_duration), Field(gt=0, le=YEAR_S)]
Offset = Annotated[float, BeforeValidator(_duration), Field(ge=0, le=YEAR_S)]
Skew = Annotated[float, BeforeValidator(_signed), Field(ge=-86_400, le=86_400)]
Rate = Annotated[float, BeforeValidator(lambda value: parse_rate_per_s(str(value))), Field(gt=0, le=10_000_000)]
Share = Annotated[float, BeforeValidator(lambda value: parse_share(str(value))), Field(ge=0, le=1)]
Spread = Annotated[float, Field(ge=0, le=3)]
Count = Annotated[int, Field(ge=0, le=10_000)]
TimeOfDay = Annotated[time, BeforeValidator(_time_of_day)]


class Traffic(Part):
    """Traffic of the addresses of one entry in the topology."""

    names: int = Field(default=6, ge=1, le=10_000)
    """Of a pattern: how many addresses that it stands for have traffic."""
    weight: float = Field(default=1.0, ge=0, le=1e6)
    """Their part of all messages, against those of other entries."""
    producers: Count = 4
    """Of each address."""
    consumers: Count = 3
    producers_at: Names = ()
    """Routers of the producers, drawn (default: those with a listener)."""
    consumers_at: Names = ()
    size: Size = 800
    """Half of the messages are smaller."""
    size_spread: Spread = 0.8
    """Of the logarithm: at 0.8 one message of six is 2.2 times as large, or larger."""
    latency: Duration = 0.004
    """At the consumer, or at the broker: half of the messages are settled sooner. Ways between routers come on top."""
    latency_spread: Spread = 0.7
    slow: Share = 0.002
    """Of the messages, those that take `slow_factor` times as long, and some of them much longer."""
    slow_factor: float = Field(default=25, ge=1, le=10_000)
    settled: Share = 0.1
    """Of the producers, those that send settled."""
    rejected: Share = 0.002
    released: Share = 0.004
    modified: Share = 0.001
    wait: Duration = 1.5
    """In a queue: half of the messages are fetched sooner."""
    wait_spread: Spread = 1.0
    expired: Share = 0.003
    """Of the messages in a queue."""
    dead_lettered: Share = 0.0
    """Likewise; into the queue that `dead_letter` of the topology names, if it is at the same broker."""

    @model_validator(mode="after")
    def _check_shares(self) -> Traffic:
        together = self.rejected + self.released + self.modified
        if together > 1:
            raise ValueError(
                f"rejected, released and modified are {together:.0%} of the messages: expected 100 % at most"
            )
        gone = self.expired + self.dead_lettered
        if gone > 1:
            raise ValueError(f"expired and dead_lettered are {gone:.0%} of the messages: expected 100 % at most")
        return self


class Day(Part):
    depth: Share = 0.5
    """How far the rate goes up at the peak, and down twelve hours later, against the average."""
    peak: TimeOfDay = time(14)
    """Of UTC."""


class Churn(Part):
    life: Duration = 1800.0
    """Of a connection, on average."""
    gap: Duration = 3.0
    """Until the client is there again, on average."""
    lost: Share = 0.1
    """Of the connections, those that break: what is on its way is in doubt."""


class Starved(Part):
    links: Share = 0.15
    """Of the producers, those that run out of credit now and then."""
    every: Duration = 600.0
    duration: Duration = Field(default=4.0, alias="for")


class Stalled(Part):
    links: Share = 0.0
    """Of the consumers of multicast addresses, those without credit now and then: they miss what is sent settled."""
    every: Duration = 600.0
    duration: Duration = Field(default=4.0, alias="for")


class Talkers(Part):
    count: Count = 1
    factor: float = Field(default=15, ge=1, le=1e6)
    """How many times as much they send as others of their address."""


class Outage(Part):
    router: str | None = None
    broker: str | None = None
    link: Annotated[tuple[str, str] | None, Field()] = None
    at: Offset
    """After the start."""
    duration: Duration = Field(alias="for")
    stopped: bool = False
    """The router or broker ends in order, and says so; else it is killed."""
    cause: str = Field(default="", max_length=200)

    @property
    def node(self) -> str | None:
        return self.router or self.broker

    @model_validator(mode="after")
    def _check_target(self) -> Outage:
        if sum(each is not None for each in (self.router, self.broker, self.link)) != 1:
            raise ValueError("expected one of 'router', 'broker' and 'link'")
        if self.stopped and self.link is not None:
            raise ValueError("a link is not stopped: expected 'router' or 'broker' with 'stopped'")
        return self


class Loss(Part):
    at: Offset
    duration: Duration = Field(alias="for")


class Step(Part):
    at: Offset
    by: Skew
    """With a minus: back."""


class Profile(Part):
    """Traffic over a topology."""

    duration: Duration = 3600.0
    rate: Rate = 300.0
    """Messages a second at all producers together, on average over a day."""
    zipf: float = Field(default=1.1, ge=0, le=5)
    """How much more popular the first address is than the second, the third: as 1, 2, 3 to the power of it."""
    users: int = Field(default=8, ge=1, le=100_000)
    """If the topology has none."""
    addresses: dict[str, Traffic] = Field(default_factory=dict)
    """By what the topology calls them (default: all of it, alike)."""
    hop: Duration = 0.0003
    """One way over a connection of cost 1."""
    day: Day = Day()
    churn: Churn = Churn()
    starved: Starved = Starved()
    stalled: Stalled = Stalled()
    talkers: Talkers = Talkers()
    outages: tuple[Outage, ...] | None = None
    """Default: a link and a router, drawn; none where there is nothing to go round them."""
    reroute: Duration = 0.2
    """Until traffic goes round what broke."""
    clock_skew: dict[str, Skew] = Field(default_factory=dict)
    """How far the clock of a node is ahead."""
    clock_steps: dict[str, tuple[Step, ...]] = Field(default_factory=dict)
    """When the clock of a node is set, and by how much."""
    lost_records: dict[str, tuple[Loss, ...]] = Field(default_factory=dict)
    """When a node had no room for records."""
    file_every: Duration = 3600.0
    """A file has the records of so long, at most; at most 524,288; and those of one hour."""


PARTS: dict[tuple[str, ...], type[BaseModel]] = {
    (): Profile,
    ("addresses", "*"): Traffic,
    ("day",): Day,
    ("churn",): Churn,
    ("starved",): Starved,
    ("stalled",): Stalled,
    ("talkers",): Talkers,
    ("outages",): Outage,
    ("clock_steps", "*"): Step,
    ("lost_records", "*"): Loss,
}
"""The models of the mappings in a profile; `*` is any key."""


def log_us(seconds: float) -> float:
    return math.log(seconds * 1e6)
