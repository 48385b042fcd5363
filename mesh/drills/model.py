"""What may stand in a drill file? The one model of it. Times are texts with a unit in the file, seconds here."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from addressing.book import AddressKind
from mesh.drills.thresholds import Threshold, parse_threshold
from mesh.units import parse_duration_s, parse_rate_per_s, parse_share, parse_size_bytes

ANY = "any"
"""As a target: chosen by the seed."""


def _with_unit(parse: Callable[[str], float], example: str) -> BeforeValidator:
    """A number without a unit is refused: milliseconds taken for seconds make a drill that proves nothing."""

    def read(value: Any) -> float:
        if isinstance(value, int | float) and value != 0:
            raise ValueError(f"expected a number with a unit, such as {example}")
        return parse(str(value)) if isinstance(value, str) else 0.0

    return BeforeValidator(read)


def _parse_bytes_per_s(text: str) -> float:
    amount, _, per = text.partition("/")
    if per != "s":
        raise ValueError(f"{text!r} is not a bandwidth: expected bytes a second, such as 100kB/s")
    return parse_size_bytes(amount)


def _two(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2 or not all(isinstance(name, str) for name in value):
        raise ValueError("expected the two routers of the link, such as [r1, r2]")
    return value


def _file_name(value: Any) -> Any:
    """The report is kept in a folder of this name."""
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}", value):
        raise ValueError(
            f"{value!r} is no name: expected up to 80 letters, digits, '_', '.' and '-'; words are for 'title'"
        )
    return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


Duration = Annotated[float, _with_unit(parse_duration_s, "500ms or 10s"), Field(ge=0, le=86_400)]
Rate = Annotated[float, BeforeValidator(lambda value: parse_rate_per_s(str(value))), Field(gt=0, le=100_000)]
Size = Annotated[int, BeforeValidator(lambda value: parse_size_bytes(str(value))), Field(ge=0, le=64 * 1024 * 1024)]
Bandwidth = Annotated[float, _with_unit(_parse_bytes_per_s, "100kB/s"), Field(gt=0)]
Share = Annotated[float, _with_unit(parse_share, "5%"), Field(gt=0, lt=1)]
Expectation = Annotated[Threshold, BeforeValidator(lambda value: parse_threshold(str(value)))]
Expectations = Annotated[tuple[Expectation, ...], BeforeValidator(_listed)]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class Part(BaseModel):
    """A mapping of the drill file. Keys that begin with x- are ignored, other unknown ones refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _without_comments(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None and not str(key).startswith("x-")}
        return value


class Load(Part):
    """Traffic on one address."""

    address: str = Field(min_length=1)
    rate: Rate = 100.0
    """Of all senders together; a sender that had to wait makes up for it."""
    senders: int = Field(default=1, ge=1, le=100)
    receivers: int = Field(default=1, ge=1, le=100)
    from_: Names = Field(default=(), alias="from")
    """Routers of the senders, in turn (default: the first with a listener)."""
    to: Names = ()
    """Routers of the receivers, in turn (default: the last with a listener)."""
    size: Size = 100
    durable: bool = True
    presettled: bool = False
    type: AddressKind = AddressKind.ANYCAST
    """What the address is where no topology tells: `--against`."""
    expect: Expectations = ()
    """Of this address alone; judged as the drill's."""


class SteadyState(Part):
    """What holds while nothing is broken: judged before the faults, and after the last is healed."""

    load: Annotated[tuple[Load, ...], BeforeValidator(_listed), Field(min_length=1)]
    expect: Expectations = ()
    abort_on_fail: bool = False
    """Inject nothing if it does not hold before."""
    allow_no_data: bool = False
    """What cannot be measured counts as passed."""


class Direction(StrEnum):
    BOTH = "both"
    FORTH = "forth"
    """From the first router of the link to the second."""
    BACK = "back"


class Fault(Part):
    kind: ClassVar[str] = ""
    is_momentary: ClassVar[bool] = False
    """Without `for` there is nothing to wait for: it is over when what it broke is back."""

    at: Duration = 0.0
    """Since the end of the baseline."""
    after: Duration | None = None
    """Instead: since the fault before it in the file was healed, or was back by itself."""
    for_: Duration | None = Field(default=None, alias="for")
    """Until it is healed; without it, at the end of the method."""

    @property
    def targets(self) -> tuple[str, ...]:
        return ()

    @property
    def label(self) -> str:
        return f"{self.kind} {' - '.join(self.targets)}".strip()

    @model_validator(mode="after")
    def _has_an_end(self) -> Fault:
        if self.after is not None and self.for_ is None and not self.is_momentary:
            raise ValueError("'after' needs 'for': how long does it last?")
        return self


class NodeFault(Fault):
    router: str | None = None
    broker: str | None = None

    @model_validator(mode="after")
    def _one_target(self) -> NodeFault:
        if (self.router is None) == (self.broker is None):
            raise ValueError("expected 'router' or 'broker', the name of one node")
        return self

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.router or self.broker or "",)


class LinkFault(Fault):
    link: Annotated[tuple[str, str], BeforeValidator(_two)]
    direction: Direction = Direction.BOTH

    @property
    def way(self) -> str:
        """In which it breaks a link: two of the same way are not told apart."""
        return self.kind

    @property
    def targets(self) -> tuple[str, ...]:
        return self.link


class Kill(NodeFault):
    """SIGKILL. Without `for` it is started again at once."""

    kind: ClassVar[str] = "kill"
    is_momentary: ClassVar[bool] = True


class Stop(NodeFault):
    """It leaves in order, and stays away."""

    kind: ClassVar[str] = "stop"


class Restart(NodeFault):
    """It leaves in order, and is started again at once."""

    kind: ClassVar[str] = "restart"
    is_momentary: ClassVar[bool] = True


class Pause(NodeFault):
    """SIGSTOP: connections stay, nobody answers."""

    kind: ClassVar[str] = "pause"


class Cut(LinkFault):
    """Connections are reset, and refused until it is healed."""

    kind: ClassVar[str] = "cut"


class Reset(LinkFault):
    """Connections are reset once."""

    kind: ClassVar[str] = "reset"
    is_momentary: ClassVar[bool] = True


class Blackhole(LinkFault):
    """No byte passes, and nobody is told."""

    kind: ClassVar[str] = "blackhole"


class Latency(LinkFault):
    kind: ClassVar[str] = "latency"

    latency: Duration
    jitter: Duration = 0.0


class Slow(LinkFault):
    kind: ClassVar[str] = "bandwidth"

    rate: Bandwidth


class Loss(LinkFault):
    """A lost packet holds up what comes behind it until it is sent again, as TCP does: 200 ms."""

    kind: ClassVar[str] = "loss"

    loss: Share


class Flap(LinkFault):
    """Cut, and whole again, over and over."""

    kind: ClassVar[str] = "flap"

    down: Duration = 0.5
    up: Duration = 1.0

    @property
    def way(self) -> str:
        return Cut.kind


class DiskFull(Fault):
    """The broker's files cannot grow."""

    kind: ClassVar[str] = "disk_full"

    broker: str

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.broker,)


class ExpireCertificate(NodeFault):
    """Its certificate has expired when it is started again; the others refuse it."""

    kind: ClassVar[str] = "expire_certificate"


class Command(Fault):
    """Anything else: a shell command breaks it, another one heals it."""

    kind: ClassVar[str] = "command"

    run: str = Field(min_length=1)
    heal: str | None = None
    proof: str | None = None
    """Exits with 0 while the fault holds."""

    @property
    def label(self) -> str:
        return self.run if len(self.run) <= 40 else f"{self.run[:37]}..."


FAULTS: dict[str, type[Fault]] = {
    fault.kind: fault
    for fault in (
        *(Kill, Stop, Restart, Pause, DiskFull, ExpireCertificate, Command),
        *(Cut, Reset, Blackhole, Latency, Slow, Loss, Flap),
    )
}
SYNONYMS = {"delay": "latency", "rate": "bandwidth", "reset_peer": "reset", "timeout": "blackhole", "down": "cut"}


DRAWN = ("kill", "stop", "restart", "pause", "cut", "reset", "blackhole", "flap", "expire_certificate")
"""Faults that need no more than a router or a link."""


def _drawable(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return names
    meant = [SYNONYMS.get(str(name), str(name)) for name in names]
    for name in meant:
        if name not in DRAWN:
            raise ValueError(f"{name!r} cannot be drawn: expected some of {', '.join(DRAWN)}")
    return meant


class Random(Part):
    """`fault: random`: so many faults, chosen by the seed."""

    at: Duration = 0.0
    among: Annotated[tuple[str, ...], BeforeValidator(_drawable)] = Field(
        default=("kill", "restart", "pause", "cut", "blackhole"), min_length=1
    )
    count: int = Field(default=5, ge=1, le=1000)
    every: Duration = 8.0
    for_: Duration = Field(default=3.0, alias="for")


class Heal(Part):
    """`heal: all`: whatever is broken then."""

    at: Duration = 0.0
    heal: str = Field(pattern="^all$")


class Drill(Part):
    """A file of drills, but for what is read entry by entry: ``method``."""

    drill: Annotated[str, BeforeValidator(_file_name)]
    title: str = ""
    """The hypothesis: what should hold although something breaks."""
    topology: str | None = None
    """Path of the topology, from this file."""
    steady_state: SteadyState
    baseline: Duration = 5.0
    method: tuple[Any, ...] = ()
    cooldown: Duration = 5.0
    expect: Expectations = ()
    seed: int = 1
