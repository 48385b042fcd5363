"""The filters of the sets of multicast consumers, anywhere in the mesh, and the addresses in use here that they match.

A router advertises each filter of its consumers' sets by a routing key of its own, once for however many consumers. The
key is known to all routers, so deliveries go to the routers that have a match, and to no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from addressing.address import Address
from addressing.narrowed_filters import NarrowedFilter, NarrowedTrees
from router.distribution.changed_addresses import ChangedAddresses
from router.distribution.entries import AddressEntry
from router.forwarding.filter_group import FilterGroup, MatchedMulticast
from router.timers import Timers

AdvertiseKeys = Callable[[list[str], list[str]], None]
"""Takes two lists of routing keys: keys to advertise from now on, and keys to withdraw."""


class SetFilters:
    """Finds the filters of sets that match an address, and has consumers with a match get the address's deliveries.

    ``is_advertised(key)`` says whether another router, or an edge router behind this one, advertises a routing key;
    ``is_taken_behind(key)`` says so of the edge routers alone, whose keys this router advertises as its own.
    ``addresses`` has the entries of the multicast addresses in use here that filters may match. ``find_keys(entry)``
    finds the keys of the filters that match an entry. Entries whose takers may have changed are added to ``changed``.
    """

    def __init__(
        self,
        addresses: Mapping[Address, AddressEntry],
        is_advertised: Callable[[str], bool],
        is_taken_behind: Callable[[str], bool],
        advertise: AdvertiseKeys,
        find_keys: Callable[[AddressEntry], None],
        changed: ChangedAddresses,
        timers: Timers,
    ) -> None:
        self._addresses = addresses
        self._is_advertised = is_advertised
        self._is_taken_behind = is_taken_behind
        self._advertise = advertise
        self._find_keys = find_keys
        self._timers = timers
        self._changed = changed
        self._trees: NarrowedTrees[str] = NarrowedTrees()
        self._known: set[str] = set()
        """The keys in the trees: keys of this router's consumers, and keys that other routers advertise."""
        self._own: dict[str, tuple[FilterGroup, ...]] = {}
        """Key -> the groups of the consumers here with this filter; nearly every key has one."""
        self._told: set[str] = set()
        """The keys that this router advertises."""
        self.told_bytes = 0
        """The size of these keys in a message to other routers."""

    @property
    def told_count(self) -> int:
        """The number of filters that this router advertises."""
        return len(self._told)

    # Consumers here
    def change(self, group: FilterGroup, added: Iterable[NarrowedFilter], removed: Iterable[NarrowedFilter]) -> None:
        """Add filters to those of ``group``, which lacks them, and remove others, which it has.

        Deliveries that reach this router are matched by the new filters at once.
        """
        new, old = _by_key(added), _by_key(removed)
        for key in new:
            self._own[key] = (*self._own.get(key, ()), group)
        for key in old:
            left = tuple(each for each in self._own[key] if each is not group)
            if left:
                self._own[key] = left
            else:
                del self._own[key]
        both = new | old
        for entry in self._look(both):
            self._join(entry, group)
        self._tell(both)

    def _join(self, entry: AddressEntry, group: FilterGroup) -> None:
        member = entry.group
        assert isinstance(member, MatchedMulticast)
        groups = self._groups(entry.policy.address)
        if group in groups:
            member.add_filter(group)
        else:
            member.remove_filter(group)
        if entry.has_set_here and not groups and entry.advertised is None:
            # Other routers are about to close their circuits to this router, as when its last consumer leaves.
            entry.withdrawn_s = self._timers.now
        entry.has_set_here = bool(groups)

    def _groups(self, address: Address) -> dict[FilterGroup, None]:
        """Return the groups of the consumers here that have a filter which matches ``address``."""
        return {group: None for key in self._trees.matching(address) for group in self._own.get(key, ())}

    def join_all(self, entry: AddressEntry, member: MatchedMulticast) -> None:
        """Have all consumers here with a filter that matches the address of a new entry get its group's deliveries."""
        groups = self._groups(entry.policy.address)
        entry.has_set_here = bool(groups)
        for group in groups:
            member.add_filter(group)

    # News of other routers
    def on_keys(self, filters: Mapping[str, NarrowedFilter]) -> None:
        """Take note that other routers, or edge routers behind this one, began or ceased to advertise ``filters``.

        The filters are given by their routing keys.
        """
        self._look(filters)
        self._tell(filters)

    def _tell(self, keys: Iterable[str]) -> None:
        added: list[str] = []
        removed: list[str] = []
        for key in keys:
            is_told = key in self._own or self._is_taken_behind(key)
            if is_told is not (key in self._told):
                (added if is_told else removed).append(key)
        self._told.update(added)
        self._told.difference_update(removed)
        self.told_bytes += sum(len(key.encode()) for key in added) - sum(len(key.encode()) for key in removed)
        if added or removed:
            self._advertise(added, removed)

    def _look(self, filters: Mapping[str, NarrowedFilter]) -> list[AddressEntry]:
        """Find out which of ``filters`` are still known, and return the entries of the addresses that they match.

        Each of these entries is to be brought up to date.
        """
        has_changed = False
        for key, filter_ in filters.items():
            is_there = key in self._own or self._is_advertised(key)
            if is_there is (key in self._known):
                continue
            has_changed = True
            if is_there:
                self._known.add(key)
                self._trees.add(filter_, key)
            else:
                self._known.discard(key)
                self._trees.remove(filter_, key)
        entries = self._matched(filters.values())
        for entry in entries:
            if has_changed:
                self._find_keys(entry)
            self._changed.add(entry)
        return entries

    def _matched(self, filters: Iterable[NarrowedFilter]) -> list[AddressEntry]:
        """Return the entries of the addresses in use here that any of ``filters`` matches.

        Only filters with wildcards need a look at all addresses: one look for all these filters.
        """
        if not self._addresses:
            return []
        trees = NarrowedTrees((filter_, None) for filter_ in filters)
        places = [filter_.only_match for filter_ in filters]
        some = self._addresses if None in places else dict.fromkeys(place for place in places if place is not None)
        found = (self._addresses.get(address) for address in some if trees.matching(address))
        return [entry for entry in found if entry is not None]

    # Questions
    def matching(self, address: Address) -> list[str]:
        """Return the routing keys of the filters, of consumers anywhere, that match ``address``."""
        return self._trees.matching(address)


def _by_key(filters: Iterable[NarrowedFilter]) -> dict[str, NarrowedFilter]:
    return {filter_.key: filter_ for filter_ in filters}
