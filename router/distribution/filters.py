"""The filters of multicast consumers, anywhere in the mesh, and the multicast addresses in use here that they match.

A filter is a source address with wildcards. A router advertises its filters as it advertises addresses with consumers,
and the filter itself stands in the routing key. So a router that has producers of an address looks for its consumers
under the keys of the address and of all matching filters (`AddressEntry.filter_keys`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from addressing.address import Address
from addressing.filter_tree import AmqpTree, FilterTrees
from addressing.pattern import is_pattern
from addressing.routing_keys import Key, KeyForm
from router.distribution.changed_addresses import ChangedAddresses
from router.distribution.entries import AddressEntry
from router.distribution.set_filters import AdvertiseKeys, SetFilters
from router.forwarding.filter_group import FilterGroup, MatchedMulticast
from router.timers import Timers


class Filters:
    """Finds the filters that match an address, and the addresses that match a filter, and joins their groups.

    ``is_advertised(key)`` says whether another router, or an edge router behind this one, advertises a routing key;
    ``is_taken_behind(key)`` says so of the edge routers alone. Entries whose consumers may have changed are added to
    ``changed``. ``sets`` has the filters of filter sets, which ``advertise`` advertises.
    """

    def __init__(
        self,
        is_advertised: Callable[[str], bool],
        is_taken_behind: Callable[[str], bool],
        advertise: AdvertiseKeys,
        changed: ChangedAddresses,
        timers: Timers,
    ) -> None:
        self._is_advertised = is_advertised
        self._changed = changed
        self._tree: FilterTrees[Address] = FilterTrees()
        self._known: set[Address] = set()
        self._own: dict[Address, AddressEntry] = {}
        """Filters with an entry here, mostly since they have consumers here."""
        self._addresses: dict[Address, AddressEntry] = {}
        """Multicast addresses in use here that filters may match."""
        self._produced: dict[Address, None] = {}
        """Multicast addresses that have producers at other routers."""
        self.sets = SetFilters(
            self._addresses, is_advertised, is_taken_behind, advertise, self._find_keys, changed, timers
        )

    # Entries
    def on_made(self, entry: AddressEntry) -> None:
        """Join the group of a new entry with the groups of the filters that match, or of the addresses that do."""
        address, group = entry.policy.address, entry.group
        if isinstance(group, FilterGroup):
            self._own[address] = entry
            members = self._matching_addresses(address)
            for member in members:
                if isinstance(member.group, MatchedMulticast):
                    member.group.add_filter(group)
            self._look(address, members)
        elif isinstance(group, MatchedMulticast) and not entry.policy.is_internal:
            self._addresses[address] = entry
            self._find_keys(entry)
            for filter_ in self._tree.matching(address):
                own = self._own.get(filter_)
                if own is not None and isinstance(own.group, FilterGroup):
                    group.add_filter(own.group)
            self.sets.join_all(entry, group)

    def on_dropped(self, entry: AddressEntry) -> None:
        address, group = entry.policy.address, entry.group
        if isinstance(group, FilterGroup):
            del self._own[address]
            members = self._matching_addresses(address)
            for member in members:
                if isinstance(member.group, MatchedMulticast):
                    member.group.remove_filter(group)
            self._look(address, members)
        elif isinstance(group, MatchedMulticast):
            self._addresses.pop(address, None)
            group.leave_filters()

    # News of other routers
    def on_key(self, key: Key) -> None:
        """Take note that routers began or ceased to advertise ``key``; nothing happens unless it concerns filters."""
        address = key.address
        if key.form is KeyForm.COPY_TAKERS and is_pattern(address.name):
            self._look(address, self._matching_addresses(address))
        elif key.form is KeyForm.PRODUCERS:
            if self._is_advertised(key.text):
                self._produced[address] = None
            else:
                self._produced.pop(address, None)

    def _look(self, filter_: Address, members: list[AddressEntry]) -> None:
        """Find out whether the filter is still known, and have ``members``, which it matches, brought up to date."""
        is_there = filter_ in self._own or self._is_advertised(key_of(filter_))
        has_changed = is_there is not (filter_ in self._known)
        if has_changed and is_there:
            self._known.add(filter_)
            self._tree.add(filter_, filter_)
        elif has_changed:
            self._known.discard(filter_)
            self._tree.remove(filter_, filter_)
        for entry in members:
            if has_changed:
                self._find_keys(entry)
            self._changed.add(entry)

    def _find_keys(self, entry: AddressEntry) -> None:
        address = entry.policy.address
        keys = [key_of(filter_) for filter_ in self._tree.matching(address)]
        entry.filter_keys = (*keys, *self.sets.matching(address))

    def _matching_addresses(self, filter_: Address) -> list[AddressEntry]:
        return [self._addresses[address] for address in _matching(filter_, self._addresses)]

    # Questions
    def members(self, filter_: Address) -> list[AddressEntry]:
        """Return the entries of the multicast addresses in use here that ``filter_`` matches."""
        return self._matching_addresses(filter_)

    def entry(self, address: Address) -> AddressEntry | None:
        """Return the entry of a multicast address in use here; None without one."""
        return self._addresses.get(address)

    def produced(self, filter_: Address) -> Iterator[Address]:
        """Yield the multicast addresses with producers at other routers that ``filter_`` matches."""
        return _matching(filter_, self._produced)


def key_of(filter_: Address) -> str:
    """Return the routing key by which a router advertises consumers of a filter."""
    return Key(KeyForm.COPY_TAKERS, filter_.text).text


def _matching(filter_: Address, addresses: dict[Address, AddressEntry] | dict[Address, None]) -> Iterator[Address]:
    tree: AmqpTree[None] = AmqpTree()
    tree.add(filter_.name, None)
    return (address for address in addresses if address.space == filter_.space and tree.matching(address.name))
