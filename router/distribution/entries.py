"""One router's state for one address and phase: the group, and the ends made for the group."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from addressing.book import AddressPolicy
from router.circuits.spec import CircuitKind, Tree
from router.distribution.waiting_consumer import WaitingConsumer
from router.forwarding.address import AddressGroup
from router.forwarding.ends import Inlet, Taker
from router.routing.spf import Path
from router.timers import Timer

BranchKey = tuple[str, CircuitKind]
"""The next hop and the kind of circuit."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An end was refused or lost: no retry before ``until_s``, unless the path has changed."""

    until_s: float
    path: Path | Tree | None


@dataclass(slots=True, eq=False)
class BetterPath:
    """A cheaper path than the circuit's; ``circuit`` is a circuit over that path, not yet in use."""

    path: Path
    since_s: float
    circuit: Taker | None = None


@dataclass(slots=True, eq=False)
class EntryEnds:
    """The ends made for an entry, by the names of the routers or brokers at the other side."""

    circuits: dict[str, Taker] = field(default_factory=dict)
    better: dict[str, BetterPath] = field(default_factory=dict)
    """Egress -> the better path that may replace the circuit's."""
    branches: dict[BranchKey, tuple[Tree, Taker]] = field(default_factory=dict)
    left: dict[Taker, tuple[str, Tree]] = field(default_factory=dict)
    """Replaced circuits and branches, and their streams -> the egress or neighbor, and the tree behind a neighbor."""
    streams: dict[tuple[str, Inlet], Taker] = field(default_factory=dict)
    broker_takers: dict[str, Taker] = field(default_factory=dict)
    broker_streams: dict[tuple[Taker, Inlet], Taker] = field(default_factory=dict)
    """The key has the shared link that the stream stands beside."""
    broker_inlets: dict[str, Inlet] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)

    def names_of(self, end: Inlet | Taker) -> list[str]:
        """Return the names of routers or brokers under which ``end`` would be made again."""
        ends = [*self.circuits.items(), *self.broker_takers.items(), *self.broker_inlets.items()]
        branches = [(hop, taker) for (hop, _), (_, taker) in self.branches.items()]
        better = [(egress, each.circuit) for egress, each in self.better.items()]
        return [name for name, known in [*ends, *branches, *better] if known is end]

    def leave(self, egress: str) -> list[Taker]:
        """Remove and return all takers that lead to ``egress``: the circuit and the streams beside it."""
        streams = [key for key in self.streams if key[0] == egress]
        return [self.circuits.pop(egress), *(self.streams.pop(key) for key in streams)]

    def leave_branch(self, hop: str, kind: CircuitKind) -> list[Taker]:
        """Remove and return a branch of a multicast and the streams beside it."""
        streams = [key for key in self.streams if key[0] == hop]
        return [self.branches.pop((hop, kind))[1], *(self.streams.pop(key) for key in streams)]

    def forget(self, end: Inlet | Taker) -> list[Taker]:
        """Remove an end wherever the end is listed; return the streams that close together with ``end``."""
        self.circuits = {name: taker for name, taker in self.circuits.items() if taker is not end}
        self.better = {name: better for name, better in self.better.items() if better.circuit is not end}
        self.branches = {key: branch for key, branch in self.branches.items() if branch[1] is not end}
        self.broker_takers = {name: taker for name, taker in self.broker_takers.items() if taker is not end}
        self.broker_inlets = {name: inlet for name, inlet in self.broker_inlets.items() if inlet is not end}
        self.left = {taker: branch for taker, branch in self.left.items() if taker is not end}
        gone = {key: stream for key, stream in self.streams.items() if end in (stream, key[1])}
        self.streams = {key: stream for key, stream in self.streams.items() if key not in gone}
        lost = {key: stream for key, stream in self.broker_streams.items() if end in (stream, *key)}
        self.broker_streams = {key: stream for key, stream in self.broker_streams.items() if key not in lost}
        return [stream for stream in [*gone.values(), *lost.values()] if stream is not end]


@dataclass(slots=True, eq=False)
class AddressEntry:
    """A group with the ends made for it. The ends of clients are not listed.

    ``ends`` are created on first use: a router may know a hundred thousand addresses with consumers only here.
    """

    policy: AddressPolicy
    group: AddressGroup
    key: str = field(init=False)
    """The routing key for takers of the group."""
    _ends: EntryEnds | None = None
    advertised: str | None = None
    idle_timer: Timer | None = None
    had_taker: bool = False
    is_producer_advertised: bool = False
    joiners: dict[WaitingConsumer, None] | None = None
    """Consumers of a multicast whose attach is not answered yet (`router.distribution.attach_waits`)."""
    withdrawn_s: float = -math.inf
    """Time at which this router last withdrew its consumers of the multicast."""

    def __post_init__(self) -> None:
        self.key = self.policy.key(self.group.phase).text

    @property
    def has_producer(self) -> bool:
        """True if deliveries for this address enter the mesh here."""
        return any(not inlet.is_circuit for inlet in self.group.inlets)

    @property
    def ends(self) -> EntryEnds:
        if self._ends is None:
            self._ends = EntryEnds()
        return self._ends

    @property
    def has_ends(self) -> bool:
        return self._ends is not None

    def names_of(self, end: Inlet | Taker) -> list[str]:
        return self._ends.names_of(end) if self._ends is not None else []

    def forget(self, end: Inlet | Taker) -> None:
        """Remove an end wherever the end is listed; the streams of an inlet close together with the inlet."""
        for stream in self._ends.forget(end) if self._ends is not None else ():
            stream.is_closing = True
            if self.group.has(stream):
                stream.on_left(True, None)
