"""The address books: look-up of the declared addresses of each space of a mesh, with the policy for each address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any

from addressing.address import (
    BROKER_PREFIX,
    DEFAULT_SPACE,
    OBSERVER_PREFIX,
    OBSERVERS,
    PROBE_PREFIX,
    Address,
    is_dynamic,
    is_dynamic_topic,
    is_internal,
    normalize,
)
from addressing.coverage import may_overlap
from addressing.kinds import AddressKind, Distribution
from addressing.management import MANAGEMENT_PREFIX
from addressing.names import check_space_name
from addressing.pattern import MAX_ADDRESS_CHARS, PatternMap, is_pattern
from addressing.priority import DEFAULT_PRIORITY
from addressing.queue_policy import (
    DEFAULT_DELIVERY_ATTEMPTS,
    DEFAULT_MAX_QUEUES,
    DEFAULT_MAX_QUEUES_PER_USER,
    DEFAULT_QUEUE_EXPIRY_S,
    NO_POLICY,
    PatternPolicy,
    QueuePolicy,
)
from addressing.records import Level
from addressing.routing_keys import Key

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress, Topology

# Most addresses whose policies a book caches. The router looks up the address of each message that comes over a link
# without an address; the cache turns most look-ups into one C call.
_CACHED_ADDRESSES = 4096


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Treatment of one address in the mesh, as the address or its pattern is declared for the address's space.

    Always: ``brokers`` is empty for a kind of address that no broker stores, and has one broker for a topic.
    ``fallback`` is the address of a queue in the same space, or None. Only an anycast address has a ``fallback``,
    ``retransmit`` or ``spill``.
    """

    address: Address
    kind: AddressKind
    distribution: Distribution = Distribution.BALANCED
    brokers: tuple[str, ...] = ()
    broker_address: str = ""
    address_prefixes: tuple[str, ...] = ()
    pattern: str = ""
    has_wildcards: bool = False
    """Whether the client named a pattern; see `addressing.wildcards` for the clients that may."""
    is_internal: bool = False
    fallback: Address | None = None
    priority: int = DEFAULT_PRIORITY
    retransmit: bool = False
    spill: bool = False
    queue: QueuePolicy = NO_POLICY
    subscription_expiry_s: float = inf
    fills_to: bool = False
    """Whether an empty field `to` gets the address: in all messages of a topic, and for the filters of a multicast."""
    link_log: Level | None = None
    """How much of the address's deliveries nodes record in link logs; None: the default level of the mesh."""
    shared: Address | None = None
    """The declared pattern, if routers pass messages of links without an address on for all its addresses together.

    Such a message names its address itself, so the broker, or the egress of an anycast address, needs no link for the
    address; the policy of the pattern is the policy of this `Address`. None: each address has links of its own.
    """

    @property
    def is_sharded(self) -> bool:
        """Say whether the address is a queue that several brokers share, for which each router has two groups.

        The group of phase 0 leads from producers to the brokers, the group of phase 1 from the brokers to consumers.
        Each client's link to a queue on one broker is tied to a link at the broker instead (a link route).
        """
        return len(self.brokers) > 1

    @property
    def is_link_routed(self) -> bool:
        """Say whether each client's link for the address is tied to a link at the address's only broker (a link route).

        True for a queue or topic on one broker.
        """
        return self.kind.is_stored and len(self.brokers) == 1

    @property
    def consumer_phase(self) -> int:
        """The phase of the consumers' group: 1 for a queue on several brokers, whose producers' group is phase 0.

        For all other addresses 0, as producers and consumers share one group.
        """
        return 1 if len(self.brokers) > 1 else 0

    def ends_at_brokers(self, phase: int) -> bool:
        """Say whether deliveries in the address's group of ``phase`` go to brokers: in phase 0 of a queue or topic."""
        return phase == 0 and self.kind.is_stored

    def key(self, phase: int) -> Key:
        """Return the routing key by which a router advertises takers (outgoing links) of the address in ``phase``."""
        return Key(self.kind.takers_form, self.address.text, phase)

    @property
    def treatment(self) -> str:
        """The treatment of messages, as link logs name it: the distribution of an anycast address, else the kind."""
        return self.distribution.value if self.kind.is_distributed else self.kind.value

    @property
    def stands_for_pattern(self) -> bool:
        """Say whether this policy is that of a declared pattern whose addresses share links."""
        return self.shared == self.address

    @property
    def shares_circuits(self) -> bool:
        """Say whether the address may share the circuit to an egress with other addresses of its anycast pattern."""
        return self.shared is not None and self.kind.is_distributed

    @property
    def is_shared_by_user(self) -> bool:
        """Say whether this is the policy of a pattern whose addresses share links, but not with those of other users.

        True of a pattern of queues: the broker makes the user of a link the owner of the queues made for that link.
        """
        return self.kind.has_queues and self.stands_for_pattern

    @property
    def may_be_full(self) -> bool:
        """Say whether this is the policy of a pattern whose addresses share links, and hold producers back when full.

        An address whose queue is full is set apart: the address has links of its own until the queue has room.
        """
        return self.is_shared_by_user and self.queue.blocks

    def target_at_broker(self, broker: str) -> str | None:
        """Return the target of a router's link that sends to ``broker``; None if each message names its address."""
        return None if self.stands_for_pattern else self.at_broker(broker)

    def at_broker(self, broker: str) -> str:
        """Return the name by which a router attaches to this address at ``broker``, which is one of ``brokers``.

        The name is the broker's address prefix, then ``broker_address``, if there is one, else the address's own text.
        """
        space, name = self.address
        return self.address_prefixes[self.brokers.index(broker)] + Address(space, self.broker_address or name).text


def subscription_expiry_s(entry: DeclaredAddress) -> float:
    return inf if entry.subscription_expiry_s is None else entry.subscription_expiry_s


def names_in(addresses: Mapping[str, DeclaredAddress]) -> Iterator[str]:
    """Yield the names in ``broker_address``, ``dead_letter``, ``expiry`` and ``fallback`` of declared addresses."""
    for entry in addresses.values():
        for name in (entry.broker_address, entry.dead_letter, entry.expiry, entry.fallback):
            if name:
                yield name


class AddressBook:
    """The addresses of one space, by their names there. ``resolve`` is fast enough for one call per message.

    ``addresses`` are the declarations for ``space``; None stands for the declarations of the topology file.
    """

    def __init__(
        self,
        topology: Topology,
        space: str = DEFAULT_SPACE,
        addresses: Mapping[str, DeclaredAddress] | None = None,
    ) -> None:
        self.space = space
        self._topology = topology
        self._addresses = topology.addresses if addresses is None else addresses
        self._declared = PatternMap({pattern: (pattern, entry) for pattern, entry in self._addresses.items()})
        self._fields: dict[str, dict[str, Any]] = {}
        self._named = frozenset(names_in(self._addresses))
        self._resolve_declared = lru_cache(_CACHED_ADDRESSES)(self._find_declared)

    def extended(self, added: Mapping[str, DeclaredAddress]) -> AddressBook:
        """Return a book with the declarations ``added`` beside those of this book, which does not change.

        The book equals a new one if no declaration here gets another meaning by ``added``; see
        `addressing.additions.conflicts`.
        """
        found = copy(self)
        found._addresses = {**self._addresses, **added}
        found._declared = self._declared.extended({pattern: (pattern, entry) for pattern, entry in added.items()})
        found._fields = dict(self._fields)
        found._named = self._named.union(names_in(added))
        found._resolve_declared = lru_cache(_CACHED_ADDRESSES)(found._find_declared)
        return found

    def adopt(self, other: AddressBook) -> None:
        """Have the declarations of ``other``, so that all who hold this book look addresses up in them from now on."""
        self.__dict__.update(other.__dict__)

    @property
    def addresses(self) -> Mapping[str, DeclaredAddress]:
        """The declarations, by address or pattern."""
        return self._addresses

    @property
    def declared_patterns(self) -> tuple[str, ...]:
        """The declared patterns with wildcards, best match first."""
        return self._declared.patterns

    def brokers_of(self, entry: DeclaredAddress) -> tuple[str, ...]:
        """Return the brokers of a declaration."""
        return self._topology.brokers_of(entry)

    def resolve(self, address: str) -> AddressPolicy | None:
        """Return the policy of ``address``, which may have a scheme and a host; None for an address without a policy.

        An address of at most MAX_ADDRESS_CHARS has a policy if the space declares the address or a matching pattern, or
        if the address is dynamic. In the default space the addresses of probes (messages that test routers and embedded
        brokers) have one, too.
        """
        name = normalize(address)
        if not name or len(name) > MAX_ADDRESS_CHARS:
            return None
        if is_internal(name):
            return self._resolve_internal(name)
        return self._resolve_declared(name)

    def _find_declared(self, address: str) -> AddressPolicy | None:
        # An address that is the text of a declared pattern gets the declaration of this pattern: `find` could return
        # that of another pattern, which matches the text better.
        entry = self._addresses.get(address)
        found = (address, entry) if entry is not None else self._declared.find(address)
        return self._policy(address, *found) if found else None

    def shared_pattern(self, name: str) -> Address | None:
        """Return the ``shared`` of the policy of the address ``name``, in normal form, without making the policy.

        Making the policy takes longer. None also for an address without a policy, and for an address with wildcards.
        """
        found = self._declared.find(name)
        if found is None:
            return None
        shared: Address | None = self._fields_of(*found)["shared"]
        return None if shared is None or not name or is_internal(name) or is_pattern(name) else shared

    def overlaps(self, filter_: str) -> dict[str, AddressKind]:
        """Return the declared addresses and patterns, with their kinds, that match some address of ``filter_``.

        Entries that declare addresses unavailable do not count.
        """
        entries = self._addresses.items()
        return {name: entry.type for name, entry in entries if not entry.type.is_refused and may_overlap(name, filter_)}

    def resolve_filter(self, address: str) -> AddressPolicy | None:
        """Return the policy of an address in a consumer's source: that of `resolve`, or of a filter without an entry.

        A filter that no entry matches has a policy if it matches multicast addresses of some entries, and no topics.
        """
        found, name = self.resolve(address), normalize(address)
        if found is not None or not name or len(name) > MAX_ADDRESS_CHARS or not is_pattern(name):
            return found
        copied = [kind for kind in self.overlaps(name).values() if kind.has_filters]
        if is_internal(name) or not copied or any(kind.has_subscriptions for kind in copied):
            return None
        return AddressPolicy(Address(self.space, name), AddressKind.MULTICAST, pattern=name, has_wildcards=True)

    def _shared_of(self, pattern: str, entry: DeclaredAddress) -> Address | None:
        """Return ``pattern`` as the address for which routers pass on the messages of all its addresses together.

        None if each address has links of its own. The broker has to know each address by the name in the message: so
        the only broker is embedded, and the space is the default space. For an anycast address, the ingress alone
        decides about a fallback queue, and about sending again.
        """
        if is_pattern(pattern) and entry.type.is_distributed:
            return None if entry.fallback or entry.retransmit else Address(self.space, pattern)
        if not is_pattern(pattern) or not entry.type.is_stored or entry.broker_address or self.space:
            return None
        sites = [self._topology.brokers[broker] for broker in self._topology.brokers_of(entry)]
        if len(sites) != 1 or not sites[0].is_embedded or sites[0].address_prefix:
            return None
        return Address(self.space, pattern)

    def _policy(self, address: str, pattern: str, entry: DeclaredAddress) -> AddressPolicy:
        return AddressPolicy(
            Address(self.space, address), has_wildcards=is_pattern(address), **self._fields_of(pattern, entry)
        )

    def _fields_of(self, pattern: str, entry: DeclaredAddress) -> dict[str, Any]:
        """Return the fields of the policies of all addresses of a declared pattern, all fields but the address.

        Made once for each pattern, since a pattern may have a hundred thousand addresses.
        """
        fields = self._fields.get(pattern)
        if fields is None:
            brokers = self._topology.brokers_of(entry)
            fields = self._fields[pattern] = {
                "kind": entry.type,
                "distribution": entry.distribution,
                "brokers": brokers,
                "broker_address": entry.broker_address,
                "address_prefixes": tuple(self._topology.brokers[broker].address_prefix for broker in brokers),
                "pattern": pattern,
                "fallback": Address(self.space, entry.fallback) if entry.fallback else None,
                "priority": entry.priority,
                "retransmit": entry.retransmit,
                "spill": entry.spill,
                "queue": self.queue_policy(entry),
                "subscription_expiry_s": subscription_expiry_s(entry),
                "fills_to": bool(entry.fill_to),
                "link_log": entry.link_log,
                "shared": self._shared_of(pattern, entry),
            }
        return fields

    def queue_policy(self, entry: DeclaredAddress) -> QueuePolicy:
        """Return the policy of the queue that ``entry`` declares, or of each subscription of the topic it declares."""
        attempts = entry.max_delivery_attempts or DEFAULT_DELIVERY_ATTEMPTS
        return QueuePolicy(
            dead_letter=self._name_at_broker(entry.dead_letter),
            max_delivery_attempts=attempts if entry.dead_letter else 0,
            expiry=self._name_at_broker(entry.expiry),
            max_messages=entry.max_messages or 0,
            max_bytes=entry.max_bytes or 0,
            when_full=entry.when_full or entry.type.when_full,
            link_log=entry.link_log,
        )

    def pattern_policy(self, address: str) -> PatternPolicy | None:
        """Return the limits of the pattern under which a client's first use makes the queue of ``address``.

        None for a queue that is declared by its name, or that a declaration names as its fallback, say, and for an
        address that is not a queue or not declared.
        """
        found = None if address in self._named else self._declared.find(address)
        if found is None or not is_pattern(found[0]) or not found[1].type.has_queues:
            return None
        pattern, entry = found
        return PatternPolicy(
            Address(self.space, pattern).text,
            entry.max_queues or DEFAULT_MAX_QUEUES,
            entry.max_queues_per_user or DEFAULT_MAX_QUEUES_PER_USER,
            entry.queue_expiry_s or DEFAULT_QUEUE_EXPIRY_S,
        )

    def _name_at_broker(self, address: str | None) -> Address | None:
        found = self._declared.find(address) if address else None
        return Address(self.space, found[1].broker_address or address or "") if found else None

    def name_in_mesh(self, broker: str, name: str) -> str:
        """Return the name in this space of the address that is ``name`` at ``broker``, the reverse of `at_broker`.

        The broker's address prefix is removed, and a declared address takes the place of its ``broker_address``. For an
        address of another space, return the text of the address.
        """
        site = self._topology.brokers.get(broker)
        text = name.removeprefix(site.address_prefix) if site is not None else name
        space, local = Address.parse(text)
        if space != self.space:
            return text
        for address, entry in self._addresses.items():
            if entry.broker_address == local and broker in self._topology.brokers_of(entry):
                return address
        return local

    def renamed_at(self, broker: str) -> list[DeclaredAddress]:
        """Return the declarations of the addresses that have another name, their ``broker_address``, at ``broker``."""
        found = self._addresses.values()
        return [entry for entry in found if entry.broker_address and broker in self._topology.brokers_of(entry)]

    def names_users(self, broker: str) -> bool:
        """Say whether routers put the client's user into the names of links and subscriptions at ``broker``."""
        return self._topology.brokers[broker].names_users

    def has_filter_sets(self, policy: AddressPolicy) -> bool:
        """Say whether receivers of the address may have filter sets.

        They may if it is a topic of embedded brokers, or if it has wildcards, and stands for multicast addresses.
        """
        if policy.kind.is_copied_by_routers:
            return policy.has_wildcards
        return policy.kind.has_subscriptions and all(
            self._topology.brokers[name].is_embedded for name in policy.brokers
        )

    def with_fallback(self) -> tuple[AddressPolicy, ...]:
        """Return the policies of this space's addresses that have a fallback queue; no such address is a pattern."""
        found = (self.resolve(address) for address, entry in self._addresses.items() if entry.fallback)
        return tuple(policy for policy in found if policy is not None)

    def subscription_policy(self, broker: str) -> AddressPolicy:
        """Return the policy of a client's link to a durable subscription by name alone: a topic with an empty name.

        The subscription is at ``broker``.
        """
        return AddressPolicy(Address(self.space, ""), AddressKind.TOPIC, brokers=(broker,), address_prefixes=("",))

    def _resolve_internal(self, address: str) -> AddressPolicy | None:
        there = Address(self.space, address)
        if is_dynamic_topic(address):
            return AddressPolicy(there, AddressKind.MULTICAST, is_internal=True)
        if is_dynamic(address):
            # All consumers of a dynamic address are at the router that the address names, so there is nothing to
            # balance: CLOSEST spares the arithmetic of BALANCED.
            return AddressPolicy(there, AddressKind.ANYCAST, Distribution.CLOSEST, is_internal=True)
        # Nodes and operators, who use all other internal addresses, are in the default space.
        if self.space != DEFAULT_SPACE:
            return None
        if address.startswith(PROBE_PREFIX) and address != PROBE_PREFIX:
            return AddressPolicy(there, AddressKind.ANYCAST, is_internal=True)
        if address == OBSERVERS:
            return AddressPolicy(there, AddressKind.MULTICAST, is_internal=True)
        if address in (OBSERVER_PREFIX, MANAGEMENT_PREFIX):
            return None
        if address.startswith((OBSERVER_PREFIX, MANAGEMENT_PREFIX)):
            return AddressPolicy(there, AddressKind.ANYCAST, Distribution.CLOSEST, is_internal=True)
        if address.startswith(BROKER_PREFIX):
            return self._resolve_probe_queue(address)
        return None

    def _resolve_probe_queue(self, address: str) -> AddressPolicy | None:
        name, _, queue = address.removeprefix(BROKER_PREFIX).partition("/")
        broker = self._topology.brokers.get(name)
        # An existing broker (not embedded) has no probe queue, since amqpmesh makes no queues there, so an address of
        # such a probe queue has no policy.
        if broker is None or not broker.is_embedded or not queue:
            return None
        there = Address(self.space, address)
        return AddressPolicy(there, AddressKind.QUEUE, brokers=(name,), address_prefixes=("",), is_internal=True)


class SpaceBooks:
    """The address books of all spaces: the default space, with the addresses of the topology file, and other spaces.

    ``spaces``: name of a space -> its declarations. The topology file declares no space yet; tests do.
    """

    def __init__(self, topology: Topology, spaces: Mapping[str, Mapping[str, DeclaredAddress]] | None = None) -> None:
        self._books = {DEFAULT_SPACE: AddressBook(topology)}
        for space, addresses in (spaces or {}).items():
            self._books[check_space_name(space)] = AddressBook(topology, space, addresses)

    def __iter__(self) -> Iterator[AddressBook]:
        return iter(self._books.values())

    def of(self, space: str) -> AddressBook:
        """Return the book of ``space``. Raises KeyError if there is no such space."""
        return self._books[space]

    def extended(self, added: Mapping[str, DeclaredAddress]) -> SpaceBooks:
        """Return books with the declarations ``added`` in the default space; these books do not change."""
        found = copy(self)
        found._books = {**self._books, DEFAULT_SPACE: self._books[DEFAULT_SPACE].extended(added)}
        return found

    def adopt(self, other: SpaceBooks) -> None:
        """Have each book adopt the book of ``other`` for its space; all who hold one of the books notice."""
        for space, book in self._books.items():
            if other._books[space] is not book:
                book.adopt(other._books[space])

    def resolve(self, address: Address) -> AddressPolicy | None:
        """Return the policy of ``address`` in the book of its space; None without a policy, or for an unknown space."""
        book = self._books.get(address.space)
        return None if book is None else book.resolve(address.name)

    def resolve_filter(self, address: Address) -> AddressPolicy | None:
        """Return what `AddressBook.resolve_filter` of the address's space returns; None for an unknown space."""
        book = self._books.get(address.space)
        return None if book is None else book.resolve_filter(address.name)

    def with_fallback(self) -> tuple[AddressPolicy, ...]:
        """Return the policies of all addresses with a fallback queue, in all spaces."""
        return tuple(policy for book in self for policy in book.with_fallback())

    def pattern_policy(self, address: Address) -> PatternPolicy | None:
        """Return what `AddressBook.pattern_policy` of the address's space returns; None for an unknown space."""
        book = self._books.get(address.space)
        return None if book is None else book.pattern_policy(address.name)

    def name_in_space(self, broker: str, name: str) -> str:
        """Return the name within its own space of the address that is ``name`` at ``broker``.

        An address of an unknown space keeps ``name``.
        """
        book = self._books.get(Address.parse(name).space)
        return name if book is None else book.name_in_mesh(broker, name)
