"""The model of a drill file. A file gives each time as text with a unit; the model holds times in seconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from addressing.kinds import AddressKind
from mesh.drills.thresholds import Threshold, parse_threshold
from mesh.terminal.file_model import FileMapping, Names, Size, listed
from mesh.terminal.units import parse_duration_s, parse_rate_per_s, parse_share, parse_size_bytes

ANY = "any"
"""A target with this name is chosen by the seed."""


def _with_unit(parse: Callable[[str], float], example: str) -> BeforeValidator:
    """Refuse a number without a unit: a drill that takes milliseconds for seconds proves nothing."""

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
    """Accept only a name that a folder can have: the report is kept in a folder of this name."""
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}", value):
        raise ValueError(
            f"{value!r} is not a valid name: expected up to 80 letters, digits, '_', '.' and '-'; "
            "other words go into 'title'"
        )
    return value


Duration = Annotated[float, _with_unit(parse_duration_s, "500ms or 10s"), Field(ge=0, le=86_400)]
Rate = Annotated[float, BeforeValidator(lambda value: parse_rate_per_s(str(value))), Field(gt=0, le=100_000)]
Bandwidth = Annotated[float, _with_unit(_parse_bytes_per_s, "100kB/s"), Field(gt=0)]
Share = Annotated[float, _with_unit(parse_share, "5%"), Field(gt=0, lt=1)]
Expectation = Annotated[Threshold, BeforeValidator(lambda value: parse_threshold(str(value)))]
Expectations = Annotated[tuple[Expectation, ...], BeforeValidator(listed)]


class Load(FileMapping):
    """Traffic on one address."""

    address: str = Field(min_length=1)
    rate: Rate = 100.0
    """Messages a second of all senders together. A sender that had to wait for credit makes up for lost time."""
    senders: int = Field(default=1, ge=1, le=100)
    receivers: int = Field(default=1, ge=1, le=100)
    from_: Names = Field(default=(), alias="from")
    """Routers the senders attach to, in turn. Default: the first router with a listener."""
    to: Names = ()
    """Routers the receivers attach to, in turn. Default: the last router with a listener."""
    size: Size = 100
    durable: bool = True
    presettled: bool = False
    type: AddressKind = AddressKind.ANYCAST
    """Type of the address where no topology gives the type: with `--against`."""
    expect: Expectations = ()
    """Thresholds for this address alone, judged like the thresholds of the drill."""


class SteadyState(FileMapping):
    """The steady state: expectations judged before the first fault, and again after the last fault is healed."""

    load: Annotated[tuple[Load, ...], BeforeValidator(listed), Field(min_length=1)]
    expect: Expectations = ()
    abort_on_fail: bool = False
    """Inject no fault if the steady state does not hold during the baseline."""
    allow_no_data: bool = False
    """Count an expectation as passed if there was nothing to measure."""


class Direction(StrEnum):
    BOTH = "both"
    FORTH = "forth"
    """From the first router of the link to the second."""
    BACK = "back"


class Fault(FileMapping):
    kind: ClassVar[str] = ""
    is_momentary: ClassVar[bool] = False
    """Whether the fault is over as soon as the node or link is back: without `for` the drill does not wait."""

    at: Duration = 0.0
    """Time since the end of the baseline."""
    after: Duration | None = None
    """Instead of `at`: time since the previous fault in the file was healed, or was back by itself."""
    for_: Duration | None = Field(default=None, alias="for")
    """Time until the fault is healed. Default: until the next `heal: all`, or the end of the method."""

    @property
    def targets(self) -> tuple[str, ...]:
        return ()

    @property
    def label(self) -> str:
        return f"{self.kind} {' - '.join(self.targets)}".strip()

    @model_validator(mode="after")
    def _has_an_end(self) -> Fault:
        if self.after is not None and self.for_ is None and not self.is_momentary:
            raise ValueError("'after' needs 'for', the duration of the fault")
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
        """The way in which this fault breaks a link. Two faults of the same way at once cannot be told apart."""
        return self.kind

    @property
    def targets(self) -> tuple[str, ...]:
        return self.link


class Kill(NodeFault):
    """SIGKILL. Without `for` the node is started again at once."""

    kind: ClassVar[str] = "kill"
    is_momentary: ClassVar[bool] = True


class Stop(NodeFault):
    """The node leaves in order and stays away."""

    kind: ClassVar[str] = "stop"


class Restart(NodeFault):
    """The node leaves in order and is started again at once."""

    kind: ClassVar[str] = "restart"
    is_momentary: ClassVar[bool] = True


class Pause(NodeFault):
    """SIGSTOP: the node's connections stay open, and the node answers nothing."""

    kind: ClassVar[str] = "pause"


class Cut(LinkFault):
    """Connections are reset, and new connections are refused until the link is healed."""

    kind: ClassVar[str] = "cut"


class Reset(LinkFault):
    """Connections are reset once."""

    kind: ClassVar[str] = "reset"
    is_momentary: ClassVar[bool] = True


class Blackhole(LinkFault):
    """No byte passes, and neither end is told."""

    kind: ClassVar[str] = "blackhole"


class Latency(LinkFault):
    kind: ClassVar[str] = "latency"

    latency: Duration
    jitter: Duration = 0.0


class Slow(LinkFault):
    kind: ClassVar[str] = "bandwidth"

    rate: Bandwidth


class Loss(LinkFault):
    """A lost packet holds up the packets behind it for 200 ms, the time until TCP sends the packet again."""

    kind: ClassVar[str] = "loss"

    loss: Share


class Flap(LinkFault):
    """The link is cut and healed over and over."""

    kind: ClassVar[str] = "flap"

    down: Duration = 0.5
    up: Duration = 1.0

    @property
    def way(self) -> str:
        return Cut.kind


class DiskFull(Fault):
    """The files of the broker cannot grow."""

    kind: ClassVar[str] = "disk_full"

    broker: str

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.broker,)


class ExpireCertificate(NodeFault):
    """The node restarts with a certificate that has expired; its peers refuse the certificate."""

    kind: ClassVar[str] = "expire_certificate"


class Command(Fault):
    """Any other fault: a shell command injects the fault, another command heals the fault."""

    kind: ClassVar[str] = "command"

    run: str = Field(min_length=1)
    heal: str | None = None
    proof: str | None = None
    """A command that exits with 0 while the fault holds."""

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
"""Faults that need nothing but a router or a link as target."""


def _drawable(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return names
    meant = [SYNONYMS.get(str(name), str(name)) for name in names]
    for name in meant:
        if name not in DRAWN:
            raise ValueError(f"fault {name!r} cannot be chosen at random: expected some of {', '.join(DRAWN)}")
    return meant


class Random(FileMapping):
    """`fault: random`: ``count`` faults, chosen by the seed."""

    at: Duration = 0.0
    among: Annotated[tuple[str, ...], BeforeValidator(_drawable)] = Field(
        default=("kill", "restart", "pause", "cut", "blackhole"), min_length=1
    )
    count: int = Field(default=5, ge=1, le=1000)
    every: Duration = 8.0
    for_: Duration = Field(default=3.0, alias="for")


class Heal(FileMapping):
    """`heal: all`: heals every fault that is in force at that time."""

    at: Duration = 0.0
    heal: str = Field(pattern="^all$")


class Drill(FileMapping):
    """A drill file, except the entries of ``method``: each entry is read on its own."""

    drill: Annotated[str, BeforeValidator(_file_name)]
    title: str = ""
    """The hypothesis: what should hold although something breaks."""
    topology: str | None = None
    """Path of the topology file, relative to the drill file."""
    steady_state: SteadyState
    baseline: Duration = 5.0
    method: tuple[Any, ...] = ()
    cooldown: Duration = 5.0
    expect: Expectations = ()
    seed: int = 1
