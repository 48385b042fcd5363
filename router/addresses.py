"""Which addresses are in use at this router, and what must exist for each: circuits, broker links, advertisements.

Changes are noted as they happen and settled once after each input, so that a burst of attaches costs one pass.
Keys of the addresses advertised to other routers: M<phase><address> takers of an anycast or sharded queue, X0<address>
takers of a multicast, B:<broker> a broker that this router is connected to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from addressing.address import router_of
from addressing.book import AddressBook, AddressKind, AddressPolicy, Distribution
from router.brokers import Brokers
from router.circuits import Circuits
from router.events import CircuitRefused
from router.forwarding.address import AddressGroup
from router.forwarding.anycast import Anycast
from router.forwarding.ends import Inlet, Taker
from router.forwarding.move import Copies
from router.forwarding.multicast import Multicast
from router.forwarding.settings import AddressSnapshot, ForwardingSettings
from router.routing.core import Routing
from router.spec import NO_TAKER, PATH_LOST, CircuitKind, CircuitSpec, Tree, tree_of
from router.timers import Timer, Timers
from wire.errors import AmqpError
from wire.link import IncomingLink
from wire.log import Emit

MAX_CIRCUITS = 8
IDLE_S = 10.0
BURIAL_S = 0.5
RETRY_S = {PATH_LOST: 0.05}
_RETRY_DEFAULT_S = 2.0


@dataclass(slots=True)
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


class Addresses:
    """Owner of every group. ``advertise(key, is_there)`` tells the other routers."""

    def __init__(
        self,
        router_id: str,
        book: AddressBook,
        routing: Routing,
        circuits: Circuits,
        brokers: Brokers,
        timers: Timers,
        settings: ForwardingSettings,
        advertise: Callable[[str, bool], None],
        emit: Emit,
    ) -> None:
        self._router_id = router_id
        self._book = book
        self._routing = routing
        self._circuits = circuits
        self._brokers = brokers
        self._timers = timers
        self._settings = settings
        self._copies = Copies(settings.copies_bytes)
        self._advertise = advertise
        self._emit = emit
        self._entries: dict[tuple[str, int], Entry] = {}
        self._changed: dict[tuple[str, int], None] = {}
        self._consumed: set[str] = set()
        """Keys of sharded queues that some router had consumers for, so that a broker that comes up finds them."""

    # Groups
    def group(self, policy: AddressPolicy, phase: int = 0) -> AddressGroup:
        key = (policy.address, phase)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = Entry(policy, self._make(policy, phase))
            self._changed[key] = None
        return entry.group

    def _make(self, policy: AddressPolicy, phase: int) -> AddressGroup:
        if policy.kind is AddressKind.MULTICAST:
            multicast = Multicast(policy.address, phase, self._timers, self._settings, self)
            multicast.open_streams = lambda inlet: self._stream_branches(multicast, inlet)
            return multicast
        group = Anycast(
            policy.address,
            phase,
            self._timers,
            self._settings,
            self,
            self._copies,
            closest=policy.distribution is Distribution.CLOSEST,
        )
        group.open_stream = lambda circuit, inlet: self._stream(group, circuit, inlet)
        return group

    def has_taker(self, address: str) -> bool:
        entry = self._entries.get((address, 0))
        return entry is not None and bool(entry.group.takers)

    def accept_circuit(self, link: IncomingLink, spec: CircuitSpec) -> None:
        """Be the egress of an anycast circuit, or a router on the tree of a multicast one. Raises LinkError."""
        policy = self._book.resolve(spec.address)
        if policy is None or policy.kind is AddressKind.UNAVAILABLE:
            raise AmqpError("amqp:not-found", f"{self._router_id} knows no address {spec.address!r}")
        is_copy = policy.kind is AddressKind.MULTICAST
        if router_of(spec.address) and not is_copy and not self.has_taker(policy.address):
            raise AmqpError(NO_TAKER, f"nobody listens to {spec.address!r} any more")
        group = self.group(policy, spec.phase)
        link.accept_as_proposed()
        inlet = Inlet(link, group, self._settings.link_capacity, is_circuit=True)
        for hop, tree in spec.tree.items():
            self._branch(group, spec.kind, hop, tree, spec.ingress, inlet)
        group.add_inlet(inlet)

    # What the groups tell
    def on_group_changed(self, group: AddressGroup) -> None:
        self._changed[group.address, group.phase] = None

    def on_end_lost(self, group: AddressGroup, end: Inlet | Taker, error: AmqpError | None) -> None:
        entry = self._entries.get((group.address, group.phase))
        if entry is None:
            return
        if isinstance(end, Inlet) and end.is_circuit:
            self._close_branches(group, end)
        for name, known in [*entry.circuits.items(), *entry.broker_takers.items(), *entry.broker_inlets.items()]:
            if known is end:
                self._on_refused(entry, name, error)
        for neighbor, (_, taker) in entry.branches.items():
            if taker is end:
                self._on_refused(entry, neighbor, error)
        _purge(entry, end)
        if error is not None and error.condition == NO_TAKER:
            group.give_up()

    def _on_refused(self, entry: Entry, name: str, error: AmqpError | None) -> None:
        delay_s = RETRY_S.get(error.condition if error else PATH_LOST, _RETRY_DEFAULT_S)
        entry.not_before[name] = self._timers.now + delay_s
        group = entry.group
        self._timers.after(delay_s, lambda: self.on_group_changed(group))
        if error is not None and error.condition not in (PATH_LOST, NO_TAKER):
            self._emit(CircuitRefused(group.address, name, error.condition, error.description))

    # What the mesh tells
    def on_paths_changed(self) -> None:
        self._changed.update(dict.fromkeys(self._entries))
        self._look_for_consumers()

    def _look_for_consumers(self) -> None:
        """Consumers that can be reached now may want what a broker here has."""
        self.on_keys_changed(frozenset(key for key in self._consumed if self._routing.routers_with(key)))

    def on_keys_changed(self, keys: frozenset[str]) -> None:
        """Other routers gained or lost takers for these."""
        for key in keys:
            if key.startswith("B:"):
                self.on_broker_changed(key[2:])
                continue
            name = (key[2:], int(key[1:2]))
            if key.startswith("M1"):
                self._consumed.add(key)
            if name in self._entries:
                self._changed[name] = None
            elif name[1] == 1 and (policy := self._book.resolve(name[0])) is not None and self._hosts(policy):
                self.group(policy, 1)

    def on_broker_changed(self, broker: str) -> None:
        for key, entry in self._entries.items():
            if broker in entry.policy.brokers:
                entry.not_before.pop(broker, None)
                self._changed[key] = None
        if not self._brokers.is_up(broker):
            return
        self._look_for_consumers()

    def _hosts(self, policy: AddressPolicy) -> bool:
        return policy.is_sharded and any(self._brokers.is_up(broker) for broker in policy.brokers)

    # Settling
    def settle(self) -> None:
        """Make what is missing, drop what is not needed any more."""
        while self._changed:
            changed, self._changed = self._changed, {}
            for key in changed:
                entry = self._entries.get(key)
                if entry is not None:
                    self._settle(key, entry)

    def _settle(self, key: tuple[str, int], entry: Entry) -> None:
        group = entry.group
        self._settle_advertisement(entry)
        if entry.policy.kind.is_stored:
            self._settle_brokers(entry)
        if isinstance(group, Multicast):
            self._settle_branches(entry)
        else:
            self._settle_circuits(entry)
        if group.takers:
            entry.had_taker = True
        elif entry.had_taker and router_of(entry.policy.address) == self._router_id:
            self._bury(group)
        elif not entry.had_taker and not entry.policy.kind.is_stored and not self._is_announced(entry):
            # Nobody takes from it and nobody ever said he would: anonymous senders hear so at once.
            group.give_up()
        if not group.inlets and not group.takers and not self._is_awaited(entry):
            del self._entries[key]

    def _bury(self, group: AddressGroup) -> None:
        """The consumer of a dynamic address is gone, and with it the address: who sends to it hears so at once."""
        group.give_up()
        # What is on its way is still answered one by one, as never written; then the circuits end.
        self._timers.after(BURIAL_S, lambda: self._end_circuits(group))

    @staticmethod
    def _end_circuits(group: AddressGroup) -> None:
        if group.takers:
            return
        for inlet in [inlet for inlet in group.inlets if inlet.is_circuit]:
            inlet.expel(AmqpError(NO_TAKER, f"nobody listens to {group.address!r} any more"))

    def _is_announced(self, entry: Entry) -> bool:
        takers = self._remote_takers(entry)
        # A dynamic address announces itself, also when its router is gone or never was.
        return bool(self._cheapest(takers) if router_of(entry.policy.address) else takers)

    def _is_awaited(self, entry: Entry) -> bool:
        """Other routers have consumers of a queue that this one has a broker for."""
        return entry.group.phase == 1 and self._hosts(entry.policy) and bool(self._remote_takers(entry))

    def _settle_advertisement(self, entry: Entry) -> None:
        group, policy = entry.group, entry.policy
        key = f"{'X' if isinstance(group, Multicast) else 'M'}{group.phase}{policy.address}"
        is_ours = not router_of(policy.address) and not (policy.kind.is_stored and group.phase == 0)
        wanted = key if is_ours and any(taker.cost == 0 for taker in group.takers) else None
        if wanted != entry.advertised:
            self._advertise(key, wanted is not None)
            entry.advertised = wanted

    def _remote_takers(self, entry: Entry) -> frozenset[str]:
        """Routers to which a circuit of this address could go, whether reachable or not."""
        policy, phase = entry.policy, entry.group.phase
        owner = router_of(policy.address)
        if owner is not None:
            found = frozenset({owner})
        elif policy.kind.is_stored and phase == 0:
            found = frozenset().union(*(self._routing.routers_with(f"B:{broker}") for broker in policy.brokers))
        else:
            letter = "X" if policy.kind is AddressKind.MULTICAST else "M"
            found = self._routing.routers_with(f"{letter}{phase}{policy.address}")
        return found - {self._router_id}

    # Anycast circuits
    def _settle_circuits(self, entry: Entry) -> None:
        has_producer = any(not inlet.is_circuit for inlet in entry.group.inlets)
        wanted = self._cheapest(self._remote_takers(entry)) if has_producer else {}
        for egress, taker in list(entry.circuits.items()):
            if egress not in wanted:
                self._retire(entry, taker, at_once=has_producer)
        for egress, path in wanted.items():
            if egress not in entry.circuits and self._may_try(entry, egress):
                self._open_circuit(entry, egress, path)

    def _cheapest(self, routers: frozenset[str]) -> dict[str, tuple[str, ...]]:
        reachable = [(cost, router) for router in routers if (cost := self._routing.cost_to(router)) is not None]
        paths = {router: self._routing.path(router) for _, router in sorted(reachable)[:MAX_CIRCUITS]}
        return {router: path for router, path in paths.items() if path is not None}

    def _may_try(self, entry: Entry, name: str) -> bool:
        return entry.not_before.get(name, 0.0) <= self._timers.now

    def _open_circuit(self, entry: Entry, egress: str, path: tuple[str, ...]) -> None:
        taker = self._open(entry.group, CircuitKind.ANYCAST, path)
        if taker is None:
            entry.not_before[egress] = self._timers.now + RETRY_S[PATH_LOST]
            self._timers.after(RETRY_S[PATH_LOST], lambda: self.on_group_changed(entry.group))
            return
        entry.circuits[egress] = taker
        entry.group.add_taker(taker)

    def _open(self, group: AddressGroup, kind: CircuitKind, path: tuple[str, ...]) -> Taker | None:
        spec = CircuitSpec(kind, group.address, self._router_id, group.phase, path)
        try:
            link = self._circuits.sender(spec, path[1])
        except AmqpError:
            return None
        cost = self._routing.cost_to(path[-1]) or 1
        taker = Taker(link, group, cost, is_stream=kind is CircuitKind.STREAM)
        link.open()
        return taker

    def _stream(self, group: AddressGroup, circuit: Taker, inlet: Inlet) -> Taker | None:
        """The streaming circuit of this inlet towards the egress of ``circuit``: opened when first asked for."""
        entry = self._entries[group.address, group.phase]
        egress = next((name for name, taker in entry.circuits.items() if taker is circuit), None)
        if egress is None:
            return None
        taker = entry.streams.get((egress, inlet))
        if taker is None:
            path = self._routing.path(egress)
            taker = self._open(group, CircuitKind.STREAM, path) if path else None
            if taker is None:
                return None
            entry.streams[egress, inlet] = taker
            group.add_stream(taker)
        return taker if taker.can_take else None

    def _retire(self, entry: Entry, taker: Taker, *, at_once: bool) -> None:
        """Close a circuit nobody needs: at once when its egress has no takers, else when it stays idle."""
        if at_once or taker.is_closing:
            taker.is_closing = True
            self._close_if_idle(entry, taker)
        elif entry.idle_timer is None:
            entry.idle_timer = self._timers.after(IDLE_S, lambda: self._on_idle(entry))

    def _on_idle(self, entry: Entry) -> None:
        entry.idle_timer = None
        if any(not inlet.is_circuit for inlet in entry.group.inlets):
            return
        for taker in [*entry.circuits.values(), *(taker for _, taker in entry.branches.values())]:
            taker.is_closing = True
            self._close_if_idle(entry, taker)

    def _close_if_idle(self, entry: Entry, taker: Taker) -> None:
        if taker.unsettled_count:
            self._timers.after(1.0, lambda: self._close_if_idle(entry, taker))
            return
        _purge(entry, taker)
        if taker in entry.group.takers:
            taker.on_left(True, None)

    # Multicast branches
    def _settle_branches(self, entry: Entry) -> None:
        group = entry.group
        has_producer = any(not inlet.is_circuit for inlet in group.inlets)
        targets = self._remote_takers(entry) if has_producer else frozenset()
        wanted = {hop: tree_of(branch) for hop, branch in self._routing.tree(targets).items()}
        for hop, (tree, taker) in list(entry.branches.items()):
            if wanted.get(hop) != tree:
                if has_producer:
                    entry.branches.pop(hop)
                self._retire(entry, taker, at_once=has_producer)
                for key, stream in list(entry.streams.items()):
                    if key[0] == hop:
                        self._retire(entry, stream, at_once=True)
        for hop, tree in wanted.items():
            if hop not in entry.branches and self._may_try(entry, hop):
                branch = self._branch(group, CircuitKind.MULTICAST, hop, tree, self._router_id, None)
                if branch is None:
                    self._on_refused(entry, hop, None)
                else:
                    entry.branches[hop] = (tree, branch)

    def _branch(
        self,
        group: AddressGroup,
        kind: CircuitKind,
        hop: str,
        tree: Tree,
        ingress: str,
        upstream: Inlet | None,
    ) -> Taker | None:
        spec = CircuitSpec(kind, group.address, ingress, path=(self._router_id, hop), tree=tree)
        try:
            link = self._circuits.sender(spec, hop)
        except AmqpError:
            return None
        is_own_stream = kind is CircuitKind.MULTICAST_STREAM and ingress == self._router_id
        taker = Taker(link, group, cost=1, upstream=upstream, is_stream=is_own_stream)
        link.open()
        group.add_taker(taker)
        return taker

    def _stream_branches(self, group: AddressGroup, inlet: Inlet) -> list[Taker]:
        """For the large deliveries of this inlet: a branch of its own beside each that is shared."""
        entry = self._entries[group.address, group.phase]
        for hop, (tree, _) in entry.branches.items():
            if (hop, inlet) not in entry.streams:
                taker = self._branch(group, CircuitKind.MULTICAST_STREAM, hop, tree, self._router_id, inlet)
                if taker is not None:
                    entry.streams[hop, inlet] = taker
        return [taker for (hop, owner), taker in entry.streams.items() if owner is inlet and hop in entry.branches]

    @staticmethod
    def _close_branches(group: AddressGroup, upstream: Inlet) -> None:
        for taker in [taker for taker in group.takers if taker.upstream is upstream]:
            taker.on_left(True, None)

    # Broker links
    def _settle_brokers(self, entry: Entry) -> None:
        if entry.group.phase == 0:
            self._settle_broker_takers(entry)
        elif entry.policy.is_sharded:
            self._settle_broker_inlets(entry)

    def _settle_broker_takers(self, entry: Entry) -> None:
        group = entry.group
        for broker in entry.policy.brokers:
            taker = entry.broker_takers.get(broker)
            if taker is None and group.inlets and self._brokers.is_up(broker) and self._may_try(entry, broker):
                link = self._brokers.sender(broker, entry.policy.at_broker(broker), entry.policy.kind)
                entry.broker_takers[broker] = taker = Taker(link, group)
                link.open()
                group.add_taker(taker)
            elif taker is not None and not group.inlets:
                self._close_if_idle(entry, taker)

    def _settle_broker_inlets(self, entry: Entry) -> None:
        group = entry.group
        needed = bool(group.takers) or bool(self._cheapest(self._remote_takers(entry)))
        for broker in entry.policy.brokers:
            inlet = entry.broker_inlets.get(broker)
            if inlet is None and needed and self._brokers.is_up(broker) and self._may_try(entry, broker):
                link = self._brokers.receiver(broker, entry.policy.at_broker(broker))
                entry.broker_inlets[broker] = inlet = Inlet(link, group, self._settings.link_capacity)
                link.open()
                group.add_inlet(inlet)
            elif inlet is not None and not needed:
                del entry.broker_inlets[broker]
                inlet.on_left(True, None)

    def snapshot(self) -> tuple[AddressSnapshot, ...]:
        return tuple(entry.group.snapshot() for entry in self._entries.values())


def _purge(entry: Entry, end: Inlet | Taker) -> None:
    """Forget an end wherever it stands."""
    entry.circuits = {name: taker for name, taker in entry.circuits.items() if taker is not end}
    entry.branches = {hop: branch for hop, branch in entry.branches.items() if branch[1] is not end}
    entry.broker_takers = {name: taker for name, taker in entry.broker_takers.items() if taker is not end}
    entry.broker_inlets = {name: inlet for name, inlet in entry.broker_inlets.items() if inlet is not end}
    for key, stream in list(entry.streams.items()):
        if stream is end:
            del entry.streams[key]
        elif key[1] is end:
            del entry.streams[key]
            stream.is_closing = True
            if stream in entry.group.takers:
                stream.on_left(True, None)
