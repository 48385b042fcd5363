"""What does this router have for one address and phase: its group, and the ends that were made for it?"""

from __future__ import annotations

from dataclasses import dataclass, field

from addressing.book import AddressPolicy
from router.forwarding.address import AddressGroup
from router.forwarding.ends import Inlet, Taker
from router.spec import Tree
from router.timers import Timer


@dataclass(slots=True, eq=False)
class Entry:
    """One group with what was made for it. The ends in it are ours to close; those of clients are not listed."""

    policy: AddressPolicy
    group: AddressGroup
    circuits: dict[str, Taker] = field(default_factory=dict)
    branches: dict[str, tuple[Tree, Taker]] = field(default_factory=dict)
    streams: dict[tuple[str, Inlet], Taker] = field(default_factory=dict)
    broker_takers: dict[str, Taker] = field(default_factory=dict)
    broker_inlets: dict[str, Inlet] = field(default_factory=dict)
    not_before: dict[str, float] = field(default_factory=dict)
    advertised: str | None = None
    idle_timer: Timer | None = None
    had_taker: bool = False

    @property
    def has_producer(self) -> bool:
        """Something enters the mesh here for this address."""
        return any(not inlet.is_circuit for inlet in self.group.inlets)

    def has(self, taker: Taker) -> bool:
        return taker in self.group.takers or taker in self.group.streams

    def names_of(self, end: Inlet | Taker) -> list[str]:
        """Under which names, of routers or brokers, would it be made again?"""
        ends = [*self.circuits.items(), *self.broker_takers.items(), *self.broker_inlets.items()]
        branches = [(hop, taker) for hop, (_, taker) in self.branches.items()]
        return [name for name, known in [*ends, *branches] if known is end]

    def forget(self, end: Inlet | Taker) -> None:
        """Take an end out wherever it stands; the streams of an inlet end with it."""
        self.circuits = {name: taker for name, taker in self.circuits.items() if taker is not end}
        self.branches = {hop: branch for hop, branch in self.branches.items() if branch[1] is not end}
        self.broker_takers = {name: taker for name, taker in self.broker_takers.items() if taker is not end}
        self.broker_inlets = {name: inlet for name, inlet in self.broker_inlets.items() if inlet is not end}
        for key, stream in list(self.streams.items()):
            if stream is end:
                del self.streams[key]
            elif key[1] is end:
                del self.streams[key]
                stream.is_closing = True
                if self.has(stream):
                    stream.on_left(True, None)
