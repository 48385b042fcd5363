"""What does this router have for one address and phase: its group, and the ends that were made for it?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from addressing.book import AddressPolicy
from router.forwarding.address import AddressGroup
from router.forwarding.ends import Inlet, Taker
from router.routing.spf import Path
from router.spec import CircuitKind, Tree
from router.timers import Timer

if TYPE_CHECKING:
    from router.joining import Joiner

BranchKey = tuple[str, CircuitKind]
"""The next hop, and what goes there."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An end was refused or lost: until then not again, unless there is another path by now."""

    until_s: float
    path: Path | Tree | None


@dataclass(slots=True, eq=False)
class Better:
    """A cheaper path than that of a circuit; ``circuit`` is one over it, not used yet."""

    path: Path
    since_s: float
    circuit: Taker | None = None


@dataclass(slots=True, eq=False)
class Ends:
    """Those that were made for an entry, by the names of the routers or brokers at their other ends."""

    circuits: dict[str, Taker] = field(default_factory=dict)
    better: dict[str, Better] = field(default_factory=dict)
    """By egress: what may take the place of its circuit."""
    branches: dict[BranchKey, tuple[Tree, Taker]] = field(default_factory=dict)
    left: dict[Taker, tuple[str, Tree]] = field(default_factory=dict)
    """Circuits and branches that others replaced, and the streams beside them: the egress or neighbor, and the tree
    behind a neighbor."""
    streams: dict[tuple[str, Inlet], Taker] = field(default_factory=dict)
    broker_takers: dict[str, Taker] = field(default_factory=dict)
    broker_streams: dict[tuple[Taker, Inlet], Taker] = field(default_factory=dict)
    """By the shared link that each is beside."""
    broker_inlets: dict[str, Inlet] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)

    def names_of(self, end: Inlet | Taker) -> list[str]:
        """Under which names, of routers or brokers, would it be made again?"""
        ends = [*self.circuits.items(), *self.broker_takers.items(), *self.broker_inlets.items()]
        branches = [(hop, taker) for (hop, _), (_, taker) in self.branches.items()]
        better = [(egress, each.circuit) for egress, each in self.better.items()]
        return [name for name, known in [*ends, *branches, *better] if known is end]

    def leave(self, egress: str) -> list[Taker]:
        """Take out all that leads there: a circuit, and the streams beside it."""
        streams = [key for key in self.streams if key[0] == egress]
        return [self.circuits.pop(egress), *(self.streams.pop(key) for key in streams)]

    def leave_branch(self, hop: str, kind: CircuitKind) -> list[Taker]:
        """Take out a branch of a multicast, and the streams beside it."""
        streams = [key for key in self.streams if key[0] == hop]
        return [self.branches.pop((hop, kind))[1], *(self.streams.pop(key) for key in streams)]

    def forget(self, end: Inlet | Taker) -> list[Taker]:
        """Take an end out wherever it stands; the streams that end with it."""
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
class Entry:
    """One group with what was made for it. The ends of clients are not listed.

    ``ends`` come with the first: a router may know a hundred thousand addresses of its own consumers.
    """

    policy: AddressPolicy
    group: AddressGroup
    _ends: Ends | None = None
    advertised: str | None = None
    idle_timer: Timer | None = None
    had_taker: bool = False
    is_producer_advertised: bool = False
    joiners: dict[Joiner, None] | None = None
    """Consumers of a multicast that are not answered yet (`router.joining`)."""
    withdrawn_s: float = -math.inf
    """When this router said last that it has no consumers of the multicast any more."""

    @property
    def has_producer(self) -> bool:
        """Something enters the mesh here for this address."""
        return any(not inlet.is_circuit for inlet in self.group.inlets)

    @property
    def ends(self) -> Ends:
        if self._ends is None:
            self._ends = Ends()
        return self._ends

    @property
    def has_ends(self) -> bool:
        return self._ends is not None

    def names_of(self, end: Inlet | Taker) -> list[str]:
        return self._ends.names_of(end) if self._ends is not None else []

    def forget(self, end: Inlet | Taker) -> None:
        """Take an end out wherever it stands; the streams of an inlet end with it."""
        for stream in self._ends.forget(end) if self._ends is not None else ():
            stream.is_closing = True
            if self.group.has(stream):
                stream.on_left(True, None)
