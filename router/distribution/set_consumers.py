"""Consumers of multicasts with a filter set: each has a filter group of its own, with one taker.

So a consumer gets one copy of each delivery, however many of its filters match. The group's members are the groups of
all addresses in use here that match the source and any filter (`router.distribution.set_filters`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from addressing.book import AddressPolicy
from addressing.filter_set import FilterChange, FilterSet
from addressing.narrowed_filters import NarrowedFilter
from router.distribution.set_filters import SetFilters
from router.forwarding.address import AddressGroup
from router.forwarding.ends import Taker
from router.forwarding.filter_group import FilterGroup
from router.forwarding.settings import AddressSnapshot
from router.timers import Timers
from wire.errors import AmqpError
from wire.link import OutgoingLink

MOST_TOLD = 200_000
"""Most filters of sets that one router advertises: each is in the memory of every router."""
MOST_TOLD_BYTES = 16 << 20
"""Most bytes of the routing keys of these filters: a router that comes up gets all keys in one control message."""
LIMIT = "amqp:resource-limit-exceeded"
_AT_ONCE = 1000
"""So many filters of a consumer that ended are withdrawn in one turn, which takes some milliseconds."""


class SetConsumer:
    """A consumer with a filter set: its group, and the changes of its set.

    ``on_over``, if set, is called when the consumer's link has ended.
    """

    def __init__(self, policy: AddressPolicy, filter_set: FilterSet, group: FilterGroup, filters: SetFilters) -> None:
        self.policy = policy
        self.source = policy.address
        self.filter_set = filter_set
        self.group = group
        self.on_over: Callable[[], None] | None = None
        self._filters = filters

    def begin(self) -> None:
        """Advertise the first filters of the set; raise AmqpError if that would be too many for this router."""
        narrowed = self._narrowed(self.filter_set.filters)
        self._check_limits(narrowed, len(narrowed))
        self._filters.change(self.group, narrowed, ())

    def take(self, link: OutgoingLink) -> None:
        """Answer the attach of the consumer's link, which gets deliveries from now on."""
        link.open()
        self.group.add_taker(Taker(link, self.group))

    def change(self, change: FilterChange) -> bool:
        """Make ``change`` in the set; return True if other routers have to learn of it before it is in effect.

        Removed filters match nothing any more, whichever router a delivery comes from. Raises AmqpError, and changes
        nothing, if the change would make this router advertise too many filters.
        """
        added, removed = self.filter_set.difference(change)
        new = self._narrowed(added)
        self._check_limits(new, len(added) - len(removed))
        self.filter_set.serial = change.serial
        self.filter_set.filters |= added
        self.filter_set.filters -= removed
        if added or removed:
            self._filters.change(self.group, new, self._narrowed(removed))
        return bool(added)

    def withdraw_some(self) -> bool:
        """Withdraw some filters, now that the consumer's link has ended; return True if filters are left."""
        filters = self.filter_set.filters
        some = {filters.pop() for _ in range(min(_AT_ONCE, len(filters)))}
        self._filters.change(self.group, (), self._narrowed(some))
        return bool(filters)

    def _check_limits(self, added: list[NarrowedFilter], more: int) -> None:
        """Raise AmqpError if this router would advertise too many filters with ``added``, ``more`` in all, or too long.

        Filters that other consumers here have, too, count as new here, and removed ones still have their bytes.
        """
        count = self._filters.told_count + more
        if more > 0 and count > MOST_TOLD:
            what = f"this router would advertise {count} filters of sets: expected at most {MOST_TOLD}"
            raise AmqpError(LIMIT, what)
        size = self._filters.told_bytes + sum(len(filter_.key.encode()) for filter_ in added)
        if added and size > MOST_TOLD_BYTES:
            what = f"this router would advertise {size} bytes of filters of sets: expected at most {MOST_TOLD_BYTES}"
            raise AmqpError(LIMIT, what)

    def _narrowed(self, filters: set[str]) -> list[NarrowedFilter]:
        return [NarrowedFilter(self.source, self.filter_set.kind, text) for text in sorted(filters)]


class SetConsumers:
    """The consumers with filter sets at this router, by their groups. ``make_group`` makes the group of a consumer."""

    def __init__(self, filters: SetFilters, make_group: Callable[[AddressPolicy], FilterGroup], timers: Timers) -> None:
        self._filters = filters
        self._make_group = make_group
        self._timers = timers
        self._consumers: dict[AddressGroup, SetConsumer] = {}

    def add(self, policy: AddressPolicy, filter_set: FilterSet) -> SetConsumer:
        """Return a new consumer of the address of ``policy``, whose filters are advertised from now on.

        The consumer has no link yet. Raises AmqpError if this router would advertise too many filters.
        """
        consumer = SetConsumer(policy, filter_set, self._make_group(policy), self._filters)
        consumer.begin()
        self._consumers[consumer.group] = consumer
        return consumer

    def __contains__(self, group: AddressGroup) -> bool:
        return group in self._consumers

    def end(self, group: AddressGroup) -> None:
        """Take note that the link of the group's consumer has ended; the filters are withdrawn after this input."""
        consumer = self._consumers.pop(group)
        self._timers.after(0.0, lambda: self._withdraw(consumer))
        if consumer.on_over is not None:
            consumer.on_over()

    def _withdraw(self, consumer: SetConsumer) -> None:
        if consumer.withdraw_some():
            self._timers.after(0.0, lambda: self._withdraw(consumer))

    def policies(self) -> Iterator[AddressPolicy]:
        """Yield the policy of the source of each consumer."""
        return (consumer.policy for consumer in self._consumers.values())

    def snapshots(self) -> Iterator[AddressSnapshot]:
        for group in self._consumers:
            yield group.snapshot()
