"""A router's state for one address and phase: the group, and the circuits, branches and broker links made for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from addressing.address import router_of
from addressing.book import AddressPolicy
from router.circuits.spec import CircuitKind, Tree
from router.distribution.waiting_consumer import WaitingConsumer
from router.forwarding.address import AddressGroup
from router.forwarding.ends import Inlet, Taker
from router.routing.spf import Path
from router.timers import Timer

BranchKey = tuple[str, CircuitKind]
"""The key of a multicast branch: the next router, and the kind of circuit."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal or loss of an end (circuit, branch or broker link): no new try before ``until_s`` over ``path``.

    Over another path or tree than ``path``, the end may be tried at once.
    """

    until_s: float
    path: Path | Tree | None


@dataclass(slots=True, eq=False)
class BetterPath:
    """A path to an egress that is cheaper than the path of the circuit in use, known since the time ``since_s``.

    ``circuit``: a new circuit over the better path, not yet in use; None before it is opened.
    """

    path: Path
    since_s: float
    circuit: Taker | None = None


@dataclass(slots=True, eq=False)
class EntryEnds:
    """The circuits, branches and broker links that this router made for an address entry.

    Each is listed under the name of the router or broker at its other side.
    """

    circuits: dict[str, Taker] = field(default_factory=dict)
    better: dict[str, BetterPath] = field(default_factory=dict)
    """Egress -> the cheaper path on which a new circuit may replace the circuit to this egress."""
    branches: dict[BranchKey, tuple[Tree, Taker]] = field(default_factory=dict)
    left: dict[Taker, tuple[str, Tree]] = field(default_factory=dict)
    """Replaced circuits and branches, and their streams -> the egress (with no tree), or the next hop and its tree."""
    streams: dict[tuple[str, Inlet], Taker] = field(default_factory=dict)
    broker_takers: dict[str, Taker] = field(default_factory=dict)
    broker_streams: dict[tuple[Taker, Inlet], Taker] = field(default_factory=dict)
    """The shared link to a broker, and the inlet -> the inlet's stream beside that link, for large deliveries."""
    broker_inlets: dict[str, Inlet] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)

    def names_of(self, end: Inlet | Taker) -> list[str]:
        """Return the names of the routers or brokers under which ``end`` is listed here.

        Return no name for a stream, a replaced circuit or branch, and a client's link.
        """
        ends = [*self.circuits.items(), *self.broker_takers.items(), *self.broker_inlets.items()]
        branches = [(hop, taker) for (hop, _), (_, taker) in self.branches.items()]
        better = [(egress, each.circuit) for egress, each in self.better.items()]
        return [name for name, known in [*ends, *branches, *better] if known is end]

    def leave(self, egress: str) -> list[Taker]:
        """Remove and return all takers that lead to ``egress``: the circuit, then the streams beside the circuit."""
        streams = [key for key in self.streams if key[0] == egress]
        return [self.circuits.pop(egress), *(self.streams.pop(key) for key in streams)]

    def leave_branch(self, hop: str, kind: CircuitKind) -> list[Taker]:
        """Remove and return the takers of a multicast branch to router ``hop``: the branch, then its streams."""
        streams = [key for key in self.streams if key[0] == hop]
        return [self.branches.pop((hop, kind))[1], *(self.streams.pop(key) for key in streams)]

    def forget(self, end: Inlet | Taker) -> list[Taker]:
        """Remove ``end`` from all lists here; return the streams of inlet ``end``, or beside the broker link ``end``.

        A stream is a link for large deliveries. These streams are removed, too, and the caller closes them.
        """
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
    """A router's state for one address and phase: the group, and the circuits and links that the router made for it.

    Clients' links are in the group only, not in ``ends``. ``ends`` is created on first use to save memory: a router may
    have a hundred thousand addresses with local consumers only.
    """

    policy: AddressPolicy
    group: AddressGroup
    key: str = field(init=False)
    """The routing key by which routers advertise takers of the group."""
    owner: str | None = field(init=False)
    """The router that owns the dynamic address; None for any other address."""
    filter_keys: tuple[str, ...] = ()
    """The routing keys of the filters that match the address of a multicast (`router.distribution.filters`)."""
    has_set_here: bool = False
    """Whether a consumer here has a filter in its set that matches the address; its attach may not be answered yet."""
    _ends: EntryEnds | None = None
    advertised: str | None = None
    idle_timer: Timer | None = None
    had_taker: bool = False
    is_producer_advertised: bool = False
    joiners: dict[WaitingConsumer, None] | None = None
    """Consumers of the multicast here whose attach is not answered yet (`router.distribution.attach_waits`)."""
    withdrawn_s: float = -math.inf
    """Time at which this router last withdrew its advertisement of consumers of the multicast."""

    def __post_init__(self) -> None:
        self.key = self.policy.key(self.group.phase).text
        self.owner = router_of(self.policy.address.name)

    @property
    def has_producer(self) -> bool:
        """True if deliveries for this address enter the mesh at this router: some inlet is not a circuit.

        Such an inlet is a client's producer, a link from a broker, or a link from an edge router.
        """
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
        """Remove ``end``, which is gone, from the lists of ``ends``, and close the streams of ``end``.

        These are the streams of an inlet, or those beside a link to a broker.
        """
        for stream in self._ends.forget(end) if self._ends is not None else ():
            stream.is_closing = True
            if self.group.has(stream):
                stream.on_left(True, None)
