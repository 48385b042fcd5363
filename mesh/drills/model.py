"""The model of a drill file. The file gives each time as text with a unit, such as `500ms`; the model holds seconds."""

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
"""The target name for which a node is chosen at random, by the drill's seed."""


def _with_unit(parse: Callable[[str], float], example: str) -> BeforeValidator:
    """Make a validator that parses a text with ``parse``, and refuses a number without a unit, except 0: milliseconds
    that are read as seconds would falsify a drill.
    """

    def read(value: Any) -> float:
        if isinstance(value, str):
            return parse(value)
        if isinstance(value, int | float) and value == 0 and not isinstance(value, bool):
            return 0.0
        raise ValueError(f"expected a number with a unit, such as {example}")

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
    """Return a drill's name, checked to be a possible name of a folder, since the report is kept in such a folder."""
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}", value):
        raise ValueError(
            f"{value!r} is not a valid name of a drill: expected 1 to 80 letters, digits, '_', '.' and '-', with a "
            "letter or digit first; other words go into 'title'"
        )
    return value


Duration = Annotated[float, _with_unit(parse_duration_s, "500ms or 10s"), Field(ge=0, le=86_400)]
Rate = Annotated[float, BeforeValidator(lambda value: parse_rate_per_s(str(value))), Field(gt=0, le=100_000)]
Bandwidth = Annotated[float, _with_unit(_parse_bytes_per_s, "100kB/s"), Field(gt=0)]
Share = Annotated[float, _with_unit(parse_share, "5%"), Field(gt=0, lt=1)]
Expectation = Annotated[Threshold, BeforeValidator(lambda value: parse_threshold(str(value)))]
Expectations = Annotated[tuple[Expectation, ...], BeforeValidator(listed)]


class Load(FileMapping):
    """The traffic on one address during a drill: senders, receivers, rate, and size of messages."""

    address: str = Field(min_length=1)
    rate: Rate = 100.0
    """Rate of all senders together, in messages a second. A sender that had to wait for credit catches up
    afterwards.
    """
    senders: int = Field(default=1, ge=1, le=100)
    receivers: int = Field(default=1, ge=1, le=100)
    from_: Names = Field(default=(), alias="from")
    """The routers to which the senders attach, in turn. Default: the first router of the topology."""
    to: Names = ()
    """The routers to which the receivers attach, in turn. Default: the last router of the topology."""
    size: Size = 100
    durable: bool = True
    presettled: bool = False
    type: AddressKind = AddressKind.ANYCAST
    """Type of the address, for a drill against a running mesh (`--against`), where no topology gives the type."""
    expect: Expectations = ()
    """Thresholds for this address alone."""


class SteadyState(FileMapping):
    """The steady state: traffic, and expectations judged before the first fault and again after recovery from the
    last.
    """

    load: Annotated[tuple[Load, ...], BeforeValidator(listed), Field(min_length=1)]
    expect: Expectations = ()
    abort_on_fail: bool = False
    """Whether no fault is injected if the steady state does not hold during the baseline."""
    allow_no_data: bool = False
    """Whether an expectation counts as passed if there was nothing to measure."""


class Direction(StrEnum):
    BOTH = "both"
    FORTH = "forth"
    """From the first router of the link to the second."""
    BACK = "back"


class Fault(FileMapping):
    kind: ClassVar[str] = ""
    is_momentary: ClassVar[bool] = False
    """Whether the effect lasts only until the node or link is back: without `for` the drill heals such a fault at
    once.
    """

    at: Duration = 0.0
    """Time since the end of the baseline."""
    after: Duration | None = None
    """Time since the previous fault in the file was healed; replaces `at`."""
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
            raise ValueError("expected either 'router' or 'broker' as a key of the fault, with the name of one node")
        return self

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.router or self.broker or "",)


class LinkFault(Fault):
    link: Annotated[tuple[str, str], BeforeValidator(_two)]
    direction: Direction = Direction.BOTH

    @property
    def way(self) -> str:
        """Return the manner of breaking the link: the fault's kind, or `cut` for a flap. Two faults of the same manner
        on one link must not overlap.
        """
        return self.kind

    @property
    def targets(self) -> tuple[str, ...]:
        return self.link


class Kill(NodeFault):
    """The node's process is killed (SIGKILL); with `for`, the node stays down for this time; then, or at once without
    `for`, the supervisor starts the node again after its back-off.
    """

    kind: ClassVar[str] = "kill"
    is_momentary: ClassVar[bool] = True


class Stop(NodeFault):
    """The node's process is stopped in order (SIGTERM), and the node stays down until the fault is healed."""

    kind: ClassVar[str] = "stop"


class Restart(NodeFault):
    """The node's process is stopped in order (SIGTERM), and the supervisor starts the node again after its
    back-off.
    """

    kind: ClassVar[str] = "restart"
    is_momentary: ClassVar[bool] = True


class Pause(NodeFault):
    """The node's process is paused (SIGSTOP): its connections stay open, but the node answers nothing."""

    kind: ClassVar[str] = "pause"


class Cut(LinkFault):
    """The link's connections are reset, and new connections are refused until the fault is healed."""

    kind: ClassVar[str] = "cut"


class Reset(LinkFault):
    """The link's connections are reset once; new connections are accepted at once."""

    kind: ClassVar[str] = "reset"
    is_momentary: ClassVar[bool] = True


class Blackhole(LinkFault):
    """The link passes no byte, in the directions given, until the fault is healed; its connections stay open."""

    kind: ClassVar[str] = "blackhole"


class Latency(LinkFault):
    kind: ClassVar[str] = "latency"

    latency: Duration
    jitter: Duration = 0.0


class Slow(LinkFault):
    kind: ClassVar[str] = "bandwidth"

    rate: Bandwidth


class Loss(LinkFault):
    """The link loses packets: each lost packet delays the bytes behind it by 200 ms, as TCP's retransmission would."""

    kind: ClassVar[str] = "loss"

    loss: Share


class Flap(LinkFault):
    """The link is cut for the time `down` and whole for the time `up`, again and again."""

    kind: ClassVar[str] = "flap"

    down: Duration = 0.5
    up: Duration = 1.0

    @property
    def way(self) -> str:
        return Cut.kind


class DiskFull(Fault):
    """The files of a broker cannot grow, as on a full disk, until the fault is healed."""

    kind: ClassVar[str] = "disk_full"

    broker: str

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.broker,)


class ExpireCertificate(NodeFault):
    """The node restarts with an expired certificate, which the node's peers refuse, until it is healed by a restart
    with a valid one.
    """

    kind: ClassVar[str] = "expire_certificate"


class Command(Fault):
    """A fault of the user's own: one shell command injects the fault, and another, if given, heals the fault."""

    kind: ClassVar[str] = "command"

    run: str = Field(min_length=1)
    heal: str | None = None
    proof: str | None = None
    """A shell command that exits with 0 while the fault is in effect."""

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
"""The kinds of faults that `fault: random` may draw, because a router or a link is all they need."""


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
    """The step `fault: random`: a number of faults, drawn with the seed, at even intervals."""

    at: Duration = 0.0
    among: Annotated[tuple[str, ...], BeforeValidator(_drawable)] = Field(
        default=("kill", "restart", "pause", "cut", "blackhole"), min_length=1
    )
    count: int = Field(default=5, ge=1, le=1000)
    every: Duration = 8.0
    for_: Duration = Field(default=3.0, alias="for")


class Heal(FileMapping):
    """The step `heal: all`: ends every fault in force at that time, except one with `after`, which its `for` ends."""

    at: Duration = 0.0
    heal: str = Field(pattern="^all$")


class Drill(FileMapping):
    """The content of a drill file. The entries of ``method`` stay unparsed here, since each entry is read by the model
    of its step: a kind of fault, random faults, or healing.
    """

    drill: Annotated[str, BeforeValidator(_file_name)]
    title: str = ""
    """The hypothesis of the drill: the property of the mesh that should hold although something breaks."""
    topology: str | None = None
    """Path of the topology file, relative to the drill file."""
    steady_state: SteadyState
    baseline: Duration = 5.0
    method: tuple[Any, ...] = ()
    cooldown: Duration = 5.0
    expect: Expectations = ()
    seed: int = 1
