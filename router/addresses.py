"""The addresses in use at this router, with the circuits, broker links and advertisements that each address needs.

An address that changes is only noted as changed, and settled after the input: settling makes and closes circuits and
links, and advertises. So a burst of attaches costs one pass. The actions by which groups report changes
(`router.forwarding.actions`) are taken at the same moment.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any

from addressing.address import Address, router_of
from addressing.book import AddressPolicy, SpaceBooks
from addressing.kinds import Distribution
from addressing.narrowed_filters import NarrowedFilter
from addressing.routing_keys import Key, KeyForm, producer_key
from recording.records import Recorder
from router.circuits.circuits import Circuits
from router.circuits.spec import NO_TAKER, CircuitKind, CircuitSpec
from router.connections.brokers import Brokers
from router.distribution.address_circuits import AddressCircuits
from router.distribution.address_recordings import AddressRecordings
from router.distribution.attach_waits import AttachWaits
from router.distribution.branches import Branches
from router.distribution.broker_links import BrokerLinks
from router.distribution.changed_addresses import ChangedAddresses
from router.distribution.circuit_sharing import CircuitSharing
from router.distribution.entries import AddressEntry
from router.distribution.filters import Filters
from router.distribution.reach import AddressReach
from router.distribution.set_consumers import SetConsumers
from router.distribution.set_filters import AdvertiseKeys
from router.distribution.upkeep import Upkeep
from router.fallback.announcements import Advertise
from router.fallback.context import FallbackServices
from router.fallback.fallbacks import Fallbacks
from router.forwarding.actions import GroupActions, NoTakerInTime, ReplacementUp
from router.forwarding.address import AddressGroup
from router.forwarding.anycast import Anycast
from router.forwarding.copies import Copies
from router.forwarding.ends import Inlet, Taker
from router.forwarding.fallback import AnycastWithFallback
from router.forwarding.filter_group import FilterGroup, MatchedMulticast
from router.forwarding.multicast import Multicast
from router.forwarding.settings import AddressSnapshot, ForwardingSettings
from router.forwarding.shared_anycast import SharedAnycast
from router.forwarding.shared_circuit import SharedArrivals, SharedCircuit
from router.routing.actions import Action
from router.routing.edges import EdgeRouters
from router.routing.messages import ReachLevel
from router.timers import Timers
from wire.errors import AmqpError
from wire.link import IncomingLink, OutgoingLink
from wire.log import Emit

EntryKey = tuple[Address, int, str | None]
"""The key of an address entry: address, phase, and for a pattern a user or an egress.

A pattern of queues has an entry for each user, and an anycast pattern one for each egress. For all others this is None.
"""
BURIAL_S = 0.5
SHARED_CREDIT = 4000
"""The credit of a circuit that many addresses share, which does not depend on their consumers' credit."""
_MOST_AT_ONCE = 64
"""Most addresses settled in one turn. Other inputs are handled between turns, and the next hop gets the first circuits
before this router makes the last.
"""


class RouterAddresses:
    """Owns the address entries and groups of this router, and brings each up to date (settles it) after a change.

    ``advertise(key, is_there)`` tells other routers that this router begins or ceases to advertise a routing key: this
    router has takers or producers of an address, or a fallback queue holds messages. ``advertise`` is a call, not an
    action, since some keys have to leave before the next delivery. ``advertise_keys(added, removed)`` does so for many
    keys. ``sets`` has the consumers with filter sets.
    """

    def __init__(
        self,
        reach: AddressReach,
        books: SpaceBooks,
        edges: EdgeRouters,
        circuits: Circuits,
        brokers: Brokers,
        timers: Timers,
        settings: ForwardingSettings,
        copies: Copies,
        recorder: Recorder,
        advertise: Advertise,
        advertise_keys: AdvertiseKeys,
        emit: Emit,
    ) -> None:
        self._books = books
        self._routing = reach.routing
        self._edges = edges
        self._brokers = brokers
        self._timers = timers
        self._settings = settings
        self._copies = copies
        self._recorder = recorder
        self._advertise = advertise
        self._reach = reach
        self._actions = GroupActions()
        self._changed = ChangedAddresses()
        self._upkeep = Upkeep(timers, self._changed, emit)
        self._circuits = AddressCircuits(self._reach, circuits, self._upkeep, timers, self._changed)
        self._branches = Branches(self._reach, circuits, self._upkeep, timers)
        self._broker_links = BrokerLinks(self._reach, brokers, self._upkeep, settings.link_capacity)
        ways = FallbackServices(
            self._reach, self._circuits, self._broker_links, self._upkeep, timers, self._changed, settings.path_wait_s
        )
        self._fallbacks = Fallbacks(books, ways, advertise, emit)
        self._entries: dict[EntryKey, AddressEntry] = {}
        self._of_users: dict[Address, dict[AddressEntry, None]] = {}
        """The entries of each pattern of queues for single users, in addition to the entry for messages of nobody."""
        self._filters = Filters(
            self._reach.is_advertised, lambda key: bool(edges.taking(key)), advertise_keys, self._changed, timers
        )
        self.sets = SetConsumers(self._filters.sets, self._make_filter_group, timers)
        self._joining = AttachWaits(self._reach, self._filters, timers, settings.path_wait_s, self._changed)
        self._sharing = {book.space: CircuitSharing(book, self._sole_egress, timers) for book in books}
        self._moved: dict[str, set[str]] = {}
        """Space -> names of the addresses of which some router began or ceased to have takers in this input."""
        self.recordings = AddressRecordings(recorder.decisions, timers, self._mark_recorded)
        self._has_more = False
        self._has_news = False
        self._consumed: set[str] = set()
        """Keys of queues on several brokers that have, or had, consumers at other routers.

        When a broker comes up here later, its messages for these consumers are fetched.
        """

    # Declarations
    def filter_conflict(self, books: SpaceBooks) -> str | None:
        """Return the text of a filter in use here that ``books`` give another meaning; None if there is none."""
        used = (entry.policy for entry in self._entries.values() if entry.policy.has_wildcards)
        for policy in (*used, *self.sets.policies()):
            if books.resolve_filter(policy.address) != policy:
                return policy.address.text
        return None

    def on_addresses_added(self) -> None:
        """Have all that waits for declarations which the books have now, and had not before, brought up to date.

        Other routers and edge routers may know the new addresses already, and may have consumers of them.
        """
        for broker in self._fallbacks.on_addresses_added():
            self.on_broker_changed(broker)
        self._look_for_consumers()
        for edge, keys in self._edges.keys().items():
            self.on_edge_changed(edge, keys, has_moved=False)

    # Groups
    def group(self, policy: AddressPolicy, phase: int = 0, user: str | None = None) -> AddressGroup:
        """Return the group of an address and phase, made if there is none.

        ``user``, the sender of the messages, matters only for a pattern of queues, which has a group for each user.
        """
        return self._entry(policy, phase, user if policy.is_shared_by_user else None).group

    def anonymous_group(self, policy: AddressPolicy, *, is_apart: bool) -> AddressGroup:
        """Return the group for messages of links without an address to an address of an anycast pattern.

        That is the group of the circuit that the address shares with others; the group of the address itself if the
        address shares none now, or ``is_apart``.
        """
        egress = None if is_apart else self._sole_egress(policy)
        if egress is not None and policy.shared is not None and (shared := self._books.resolve(policy.shared)):
            return self._entry(shared, 0, egress=egress).group
        entry = self._entry(policy, 0)
        # Deliveries of an address that is set apart may wait for consumers: the address had some.
        entry.had_taker = entry.had_taker or is_apart
        return entry.group

    def sharing(self, space: str) -> CircuitSharing:
        """Return the circuits that addresses of ``space`` share. Raises KeyError if there is no such space."""
        return self._sharing[space]

    def _sole_egress(self, policy: AddressPolicy) -> str | None:
        entry = self._entries.get((policy.address, 0, None))
        if entry is not None and any(taker.is_near for taker in entry.group.takers):
            return None
        return self._reach.sole_egress(policy)

    def _group_taken_here(self, space: str, name: str) -> AddressGroup | None:
        """Return the group of an anycast address with consumers here, or at edge routers behind this one, else None."""
        policy = self._books.of(space).resolve(name)
        if policy is None or not policy.shares_circuits or policy.stands_for_pattern:
            return None
        entry = self._entries.get((policy.address, 0, None))
        if entry is None or not (any(taker.is_near for taker in entry.group.takers) or self._reach.behind(entry)):
            return None
        return entry.group

    def is_taken_beside(self, group: AddressGroup, egresses: frozenset[str | None]) -> bool:
        """True if routers other than ``egresses`` have takers of the group's address."""
        entry = self._entries.get(_key(group))
        return entry is not None and bool(self._reach.takers(entry) - egresses)

    def _entry(
        self, policy: AddressPolicy, phase: int, user: str | None = None, egress: str | None = None
    ) -> AddressEntry:
        key = (policy.address, phase, user or egress)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = self._make(policy, phase, user, egress)
            if user is not None:
                self._of_users.setdefault(policy.address, {})[entry] = None
            if self.recordings.is_any:
                entry.group.record_decisions(self.recordings.number_for(policy.address))
            self._changed.add(entry)
            if policy.kind.is_copied_by_routers:
                self._filters.on_made(entry)
        return entry

    def _mark_recorded(self) -> None:
        for entry in self._entries.values():
            entry.group.record_decisions(self.recordings.number_for(entry.policy.address))

    def recorded_groups(self) -> list[AddressGroup]:
        """Return the groups whose decisions are recorded now."""
        return [entry.group for entry in self._entries.values() if entry.group.recording]

    def _make_filter_group(self, policy: AddressPolicy) -> FilterGroup:
        options: dict[str, Any] = {"priority": policy.priority, "record_level": policy.link_log}
        return FilterGroup(*self._given(policy, 0), **options)

    def _given(self, policy: AddressPolicy, phase: int) -> tuple[Any, ...]:
        return policy.address, phase, self._timers, self._settings, self, self._actions, self._copies, self._recorder

    def _make(self, policy: AddressPolicy, phase: int, user: str | None, egress: str | None) -> AddressEntry:
        given = self._given(policy, phase)
        options: dict[str, Any] = {"priority": policy.priority, "record_level": policy.link_log}
        if policy.kind.is_copied_by_routers:
            if policy.has_wildcards:
                return AddressEntry(policy, self._make_filter_group(policy))
            return AddressEntry(policy, MatchedMulticast(*given, fills_to=policy.fills_to, **options))
        if policy.shares_circuits:
            options["pattern"] = policy.shared
            if policy.stands_for_pattern and egress is None:
                find = partial(self._group_taken_here, policy.address.space)
                return AddressEntry(policy, SharedArrivals(*given, find=find, distribution=policy.treatment, **options))
        if egress is not None:
            is_closest = policy.distribution is Distribution.CLOSEST
            return AddressEntry(policy, SharedAnycast(*given, closest=is_closest, egress=egress, **options))
        options |= {
            "closest": policy.distribution is Distribution.CLOSEST,
            "spills": policy.spill,
            "is_retransmitted": policy.retransmit,
            "user": user,
            "may_be_full": policy.may_be_full,
        }
        if phase or not self._reach.may_fall_back(policy):
            return AddressEntry(policy, Anycast(*given, **options))
        anycast = AnycastWithFallback(*given, **options)
        entry = AddressEntry(policy, anycast)
        self._fallbacks.equip(entry, anycast)
        return entry

    def has_taker(self, policy: AddressPolicy) -> bool:
        """True if a dynamic address has a taker here, or, as an open one, at a router that advertises consumers."""
        entry = self._entries.get((policy.address, 0, None))
        return bool(entry is not None and entry.group.takers) or self._reach.is_taken_elsewhere(policy)

    def add_consumer(self, policy: AddressPolicy, link: OutgoingLink, user: str | None) -> None:
        """Answer the attach of a consumer of ``user``, and add the consumer to the address's group.

        ``user`` becomes the maker of a queue that has none yet. The attach to a multicast may be answered later
        (`router.distribution.attach_waits`).
        """
        entry = self._entry(policy, self._reach.consumer_phase(policy))
        if policy.kind.is_stored and entry.group.maker is None:
            entry.group.maker = user
        if isinstance(entry.group, Multicast):
            self._joining.join(entry, link)
        else:
            link.open()
            entry.group.add_taker(Taker(link, entry.group))
            self._note_moved(policy)

    def accept_circuit(self, link: IncomingLink, spec: CircuitSpec, edge: int = 0) -> None:
        """Accept the arriving ``link`` of a circuit, as the circuit's egress or as a router on the tree of a multicast.

        ``edge``: number of the connection if the circuit comes from an edge router; then this router is the ingress.
        Raises AmqpError if this router cannot serve the circuit.
        """
        policy = self._books.resolve(spec.address)
        if policy is None or policy.kind.is_refused:
            raise AmqpError(
                "amqp:not-found",
                f"the topology of router {self._reach.router_id} makes no address {spec.address.name!r} available",
            )
        is_copy = policy.kind.is_copied_by_routers
        if is_copy and policy.has_wildcards:
            raise AmqpError("amqp:not-found", f"{spec.address.name!r} has wildcards, expected one address of a circuit")
        if router_of(spec.address.name) and not is_copy and not edge and not self._is_alive(policy):
            raise AmqpError(NO_TAKER, f"dynamic address {spec.address.name!r} has no receiver, so it takes no circuit")
        self._fallbacks.check_circuit(policy, spec.phase)
        group = self.group(policy, self._reach.arrival_phase(policy, spec.phase), spec.user or None)
        group.maker = group.maker or spec.user or None
        link.accept_as_proposed()
        if isinstance(group, SharedArrivals):
            shared = SharedCircuit(link, group, SHARED_CREDIT)
            shared.ingress = spec.ingress
            group.add_inlet(shared)
            return
        inlet = Inlet(link, group, self._settings.link_capacity, is_circuit=not edge)
        inlet.ingress = spec.ingress
        inlet.is_stream = spec.kind is CircuitKind.STREAM
        if edge:
            inlet.is_edge = True
            # Deliveries do not go back to the edge router from which they came (``shuns``). Deliveries of an address
            # with a fallback queue may go back: an edge router sends even the deliveries for its own consumers here,
            # since they have to go behind those of the queue.
            inlet.shuns = 0 if policy.fallback else edge
        else:
            self._branches.pass_on(group, spec, inlet)
        group.add_inlet(inlet)

    def _is_alive(self, policy: AddressPolicy) -> bool:
        """True if a dynamic address has a taker here, at an edge router behind this one, or, if it is open, elsewhere.

        Elsewhere means at a router in reach that advertises consumers of it.
        """
        return self.has_taker(policy) or bool(self._edges.taking(policy.key(0).text))

    # Actions of groups
    def _take_actions(self) -> None:
        """Carry out what groups reported; have the addresses of the groups that changed brought up to date."""
        for group in self._actions.take_changed():
            if (entry := self._entries.get(_key(group))) is not None:
                self._changed.add(entry)
        for action in self._actions.take():
            entry = self._entries.get(_key(action.group))
            if entry is None or entry.group is not action.group:
                continue  # The entry of the group was dropped after the group's report: nothing is left to do.
            match action:
                case ReplacementUp(_, taker):
                    self._circuits.better.on_up(entry, taker)
                case NoTakerInTime():
                    self._fallbacks.on_no_taker_in_time(entry)

    # Methods that a group calls in the midst of a delivery, since the group needs the answer or the effect at once
    def on_end_lost(self, group: AddressGroup, end: Inlet | Taker, error: AmqpError | None) -> None:
        if group in self.sets:
            self.sets.end(group)
            return
        entry = self._entries.get(_key(group))
        if entry is None:
            return
        if isinstance(end, Inlet) and end.is_circuit:
            self._branches.close(group, end)
        elif isinstance(end, Taker) and error is not None:
            self._branches.on_lost(entry, group, end, error)
        for name in entry.names_of(end):
            self._upkeep.on_refused(entry, name, error, end.path if isinstance(end, Taker) else None)
        entry.forget(end)
        self._fallbacks.on_end_lost(entry, end, error)
        # The egress says that a dynamic address has no taker: release the deliveries that wait for the address, unless
        # another router advertises consumers. Consumers of an open dynamic address may be at several routers.
        if error is not None and error.condition == NO_TAKER and not self._reach.is_taken_elsewhere(entry.policy):
            group.give_up()

    def is_complete(self, group: AddressGroup, is_circuit: bool) -> bool:
        """True if the messages of a queue on several brokers arrive here from each broker in reach.

        A broker that refused its link less than 2 s ago does not count. ``is_circuit``, for a consumer at another
        router: True if the messages arrive from each broker connected to this router.
        """
        entry = self._entries.get(_key(group))
        if entry is None:
            return True
        ingresses = {inlet.ingress for inlet in group.inlets if inlet.is_circuit}
        return self._broker_links.are_open(entry) and (is_circuit or self._reach.shards(entry.policy) <= ingresses)

    def open_stream(self, group: AddressGroup, taker: Taker, inlet: Inlet) -> Taker | None:
        entry = self._entries.get(_key(group))
        return self._fallbacks.stream(entry, taker, inlet) if entry is not None else None

    def open_branches(self, group: AddressGroup) -> None:
        entry = self._entries.get(_key(group))
        if entry is not None and (self._branches.lacks_some(entry) or _has_one_producer(group)):
            self._branches.settle(entry)

    def open_streams(self, group: AddressGroup, inlet: Inlet) -> list[Taker]:
        entry = self._entries.get(_key(group))
        return self._branches.streams(entry, inlet) if entry is not None else []

    # Methods that the node calls after the routing core reported changes of paths, or of takers at other routers
    def on_paths_changed(self) -> None:
        for entry in self._entries.values():
            if self._depends_on_paths(entry):
                self._changed.add(entry)
        for sharing in self._sharing.values():
            sharing.on_paths_changed()
        self._look_for_consumers()

    def _depends_on_paths(self, entry: AddressEntry) -> bool:
        """True if a change of paths may concern the address.

        False if the address has consumers here and nothing else: no inlet, no circuit or link of this router's own, no
        attach that waits, no queue, and no edge router that asks for takers.
        """
        group, policy = entry.group, entry.policy
        if not group.takers or group.inlets or entry.has_ends or entry.joiners:
            return True
        return policy.kind.is_stored or bool(policy.fallback) or bool(self._edges.asking(entry.key))

    def _look_for_consumers(self) -> None:
        """Have the queues on several brokers that have consumers at other routers in reach now brought up to date.

        A broker connected to this router may hold messages for these consumers.
        """
        self.on_keys_changed(frozenset(key for key in self._consumed if self._routing.routers_with(key)))

    def on_keys_changed(self, keys: frozenset[str]) -> None:
        """Have the addresses of ``keys``, which other routers began or ceased to advertise, brought up to date.

        The key of a broker or edge router concerns all addresses at the broker or edge router. A malformed key of a
        neighbor, or one of a later protocol, is ignored.
        """
        of_sets: dict[str, NarrowedFilter] = {}
        for text in keys:
            key = Key.parse(text)
            if key is None:
                continue
            if key.form is KeyForm.BROKER:
                self.on_broker_changed(key.name)
            elif key.form is KeyForm.EDGE:
                self._on_edge_moved(key.name)
            elif key.form is KeyForm.SET_TAKERS:
                _add_filter(of_sets, text, key)
            else:
                self._on_takers_changed(text, key)
        if of_sets:
            self._filters.sets.on_keys(of_sets)

    def _on_takers_changed(self, text: str, key: Key) -> None:
        address, phase = key.address, key.phase
        self._filters.on_key(key)
        if key.form is KeyForm.TAKERS and phase == 0:
            self._moved.setdefault(address.space, set()).add(address.name)
        if key.form is KeyForm.PRODUCERS:
            self._joining.look_at_filters(address)
        if phase == 1 and key.form is KeyForm.TAKERS:
            self._consumed.add(text)
        for of_user in self._of_users.get(address, ()):
            self._changed.add(of_user)
        if (entry := self._entries.get((address, phase, None))) is not None:
            self._changed.add(entry)
        elif phase == 1 and (policy := self._books.resolve(address)) is not None and self._hosts(policy):
            self.group(policy, 1)

    # Edge routers
    def _on_edge_moved(self, edge: str) -> None:
        """Have the dynamic addresses that name edge router ``edge`` brought up to date: its uplink may have changed."""
        for entry in self._entries.values():
            if entry.owner == edge:
                self._changed.add(entry)

    def on_edge_changed(self, edge: str, keys: frozenset[str], *, has_moved: bool) -> None:
        """Have the addresses of ``keys``, which ``edge`` began or ceased to take or ask for, brought up to date.

        ``edge`` is an edge router. A malformed key, or a key of no address that the topology makes available, is
        answered with "no taker". ``has_moved``: the edge router began or ceased to use this router as its active
        uplink.
        """
        if has_moved:
            self._on_edge_moved(edge)
        of_sets: dict[str, NarrowedFilter] = {}
        for text in keys:
            key = Key.parse(text)
            if key is not None and key.form is KeyForm.SET_TAKERS:
                _add_filter(of_sets, text, key)
                continue
            policy = self._books.resolve_filter(key.address) if key is not None else None
            if key is None or policy is None or policy.kind.is_refused or key != policy.key(key.phase):
                self._deny(text)
            elif (
                (key.address, key.phase, None) in self._entries or self._edges.taking(text) or self._edges.asking(text)
            ):
                self._changed.add(self._entry(policy, key.phase))
                self._filters.on_key(key)
                self._note_moved(policy)
        if of_sets:
            self._filters.sets.on_keys(of_sets)

    def _deny(self, key: str) -> None:
        """Answer "no taker" to the edge routers that ask for ``key``, which is malformed or of no available address."""
        for edge in self._edges.asking(key):
            self._edges.note(edge, key, ReachLevel.NONE)
            self._has_news = True

    def _settle_asked(self, entry: AddressEntry) -> None:
        key = entry.key
        for edge in self._edges.asking(key):
            level = self._reach.level(entry, edge)
            if level is not ReachLevel.TAKEN and self._fallbacks.is_kept(entry.policy):
                level = ReachLevel.TAKEN
            before = self._edges.note(edge, key, level)
            self._has_news = self._has_news or before is not level
            if before is ReachLevel.TAKEN and level is not ReachLevel.TAKEN:
                self._give_back_later(entry, edge)

    def _give_back_later(self, entry: AddressEntry, edge: str) -> None:
        """Release the waiting deliveries of edge router ``edge`` after ``hold_s``, if no other taker of the address
        exists.

        The credit of the edge router is revoked, too. Deliveries are held for the same time after any last taker
        leaves. Later deliveries are released every ``hold_s``, as long as no other taker exists.
        """
        self._timers.after(entry.group.hold_s, lambda: self._give_back(entry, edge))

    def _give_back(self, entry: AddressEntry, edge: str) -> None:
        number, group = self._reach.edge_number(edge), entry.group
        is_there = number and any(inlet.shuns == number for inlet in group.inlets)
        if is_there and self._reach.level(entry, edge) is not ReachLevel.TAKEN:
            group.give_back_to(number)
            self._give_back_later(entry, edge)

    def on_broker_changed(self, broker: str) -> None:
        kept = self._fallbacks.kept_by(broker)
        for entry in self._entries.values():
            if broker in entry.policy.brokers or entry.policy in kept:
                entry.ends.refusals.pop(broker, None)
                self._changed.add(entry)
        if not self._brokers.is_up(broker):
            return
        for policy in kept:
            self.group(policy)
        # The shares of fallback queues at the broker are settled now, not at the end of this input: their announcements
        # have to go out before the broker is advertised (`RouterNode._on_broker_changed`).
        self._fallbacks.settle_keeping(broker)
        self._look_for_consumers()

    def _hosts(self, policy: AddressPolicy) -> bool:
        return policy.is_sharded and any(self._brokers.is_up(broker) for broker in policy.brokers)

    # Settling
    def settle(self) -> list[Action]:
        """Settle changed addresses: make the circuits and links that each needs now, close others, and advertise.

        Return the changed answers to edge routers about the keys that they ask for, as messages to send. If more than
        64 addresses have changed, a timer due at once has the node settle the rest, after other inputs.
        """
        actions = self._actions
        if not (actions.changed or actions.actions or self._changed or self._has_news or self._moved):
            return []  # as after nearly each input
        if self._moved:
            self._look_at_moved()
        count = 0
        while self._has_work() and count < _MOST_AT_ONCE:
            count += 1
            entry = self._changed.pop()
            key = _key(entry.group)
            if self._entries.get(key) is entry:
                self._settle(key, entry)
        if self._changed and not self._has_more:
            self._has_more = True
            self._timers.after(0.0, self._go_on)
        if not self._has_news:
            return []
        self._has_news = False
        return list(self._edges.take_news())

    @property
    def is_settled(self) -> bool:
        """True if no address waits to be brought up to date: `settle` would do nothing now."""
        return not (self._changed or self._moved or self._actions.changed or self._actions.actions)

    def _note_moved(self, policy: AddressPolicy) -> None:
        if policy.shares_circuits:
            self._moved.setdefault(policy.address.space, set()).add(policy.address.name)

    def _look_at_moved(self) -> None:
        """Have addresses whose takers came or went no longer share the circuit to the wrong egress."""
        moved, self._moved = self._moved, {}
        for space, names in moved.items():
            if (sharing := self._sharing.get(space)) is not None:
                sharing.on_takers_changed(names)

    def _has_work(self) -> bool:
        """Carry out the actions that groups reported, if any; return True if an address is to be brought up to date."""
        if self._actions.changed or self._actions.actions:
            self._take_actions()
        return bool(self._changed)

    def _go_on(self) -> None:
        """Note that the timer for the rest of the changed addresses is over.

        The node itself calls `settle` after all due timers.
        """
        self._has_more = False

    def _settle(self, key: EntryKey, entry: AddressEntry) -> None:
        group = entry.group
        self._reach.follow(entry)
        if isinstance(group, Multicast):
            self._branches.settle(entry)
        else:
            self._circuits.settle(entry)
        # The circuits and branches made above have marked the entry as changed. The code below sees all of them, so the
        # mark is taken away: the entry need not be settled once more.
        self._actions.changed.pop(group, None)
        self._changed.discard(entry)
        self._settle_advertisement(entry)
        self._joining.look(entry)
        if entry.policy.kind.is_stored:
            self._broker_links.settle(entry)
        self._fallbacks.settle(entry)
        self._settle_asked(entry)
        if group.has_taker or self._reach.behind(entry):
            entry.had_taker = True
        elif entry.had_taker and self._reach.owns(entry.policy.address):
            self._bury(group)
        elif self._is_over(entry):
            group.give_up()
        elif not entry.had_taker and not self._may_be_kept(entry) and not self._reach.is_announced(entry):
            # The address never had a taker, and no router announces one: its waiting deliveries, mostly messages of
            # anonymous producers, are released at once, not after ``hold_s``.
            group.give_up()
        if not group.inlets and not group.takers and not entry.joiners and not self._is_awaited(entry):
            del self._entries[key]
            if group.user is not None:
                del self._of_users[group.address][entry]
                if not self._of_users[group.address]:
                    del self._of_users[group.address]
            if entry.policy.kind.is_copied_by_routers:
                self._filters.on_dropped(entry)
            self._fallbacks.drop(entry)
            self._reach.forget(entry)

    def _is_over(self, entry: AddressEntry) -> bool:
        """True if this is an edge router, and its uplink says that the entry's dynamic address has no takers."""
        return self._reach.is_edge and bool(entry.owner) and not self._reach.is_announced(entry)

    @staticmethod
    def _may_be_kept(entry: AddressEntry) -> bool:
        """True if the deliveries of the address may wait for takers, because a broker can store the deliveries."""
        return entry.policy.kind.is_stored or bool(entry.policy.fallback)

    def _bury(self, group: AddressGroup) -> None:
        """Release at once the deliveries that wait for a dynamic address, owned here, whose last taker is gone.

        An address is owned here if it names this router or an edge router behind it. The circuits of other routers to
        the address are ended after ``BURIAL_S``, unless a taker came by then.
        """
        group.give_up()
        # During ``BURIAL_S``, deliveries on the way are still released one by one, so that their producers learn that
        # no consumer got them.
        self._timers.after(BURIAL_S, lambda: self._end_circuits(group))

    @staticmethod
    def _end_circuits(group: AddressGroup) -> None:
        if group.has_taker:
            return
        for inlet in [inlet for inlet in group.inlets if inlet.is_circuit]:
            inlet.expel(AmqpError(NO_TAKER, f"dynamic address {group.address.name!r} no longer has a receiver"))

    def _is_awaited(self, entry: AddressEntry) -> bool:
        """True if the entry must stay although the entry has no inlet and no taker.

        Reasons are consumers at other routers of a queue on several brokers, one of them connected here; a fallback
        queue that this router keeps; an edge router that takes the address or asks for takers.
        """
        if self._fallbacks.is_keeping(entry) or self._reach.behind_by_key(entry) or self._edges.asking(entry.key):
            return True
        return entry.group.phase == 1 and self._hosts(entry.policy) and bool(self._reach.takers(entry))

    def _settle_advertisement(self, entry: AddressEntry) -> None:
        key = self._reach.told_key(entry)
        is_taken_here = bool(entry.joiners) or any(taker.cost == 0 for taker in entry.group.takers)
        has_taker = is_taken_here or bool(self._reach.behind_by_key(entry))
        wanted = key if has_taker and self._reach.is_told(entry) else None
        if wanted != entry.advertised:
            self._advertise(key, wanted is not None)
            entry.advertised = wanted
            if wanted is None:
                self._joining.on_withdrawn(entry)
        if isinstance(entry.group, Multicast) and not self._reach.is_edge:
            has_producer = entry.has_producer and self._reach.is_told(entry)
            if has_producer != entry.is_producer_advertised:
                self._advertise(producer_key(entry.policy.address), has_producer)
                entry.is_producer_advertised = has_producer

    def snapshot(self) -> tuple[AddressSnapshot, ...]:
        return (*(entry.group.snapshot() for entry in self._entries.values()), *self.sets.snapshots())


def _add_filter(filters: dict[str, NarrowedFilter], text: str, key: Key) -> None:
    """Add the filter of a set that ``key``, whose text is ``text``, names to ``filters``; ignore a malformed key."""
    filter_ = NarrowedFilter.of_key(key)
    if filter_ is not None:
        filters[text] = filter_


def _key(group: AddressGroup) -> EntryKey:
    return group.address, group.phase, group.user or group.egress


def _has_one_producer(group: AddressGroup) -> bool:
    """True if the first producer just came: without one, no branches were made for consumers that came meanwhile."""
    return len(list(islice((inlet for inlet in group.inlets if not inlet.is_circuit), 2))) == 1
