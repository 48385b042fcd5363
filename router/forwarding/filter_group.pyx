"""Multicast to consumers that named a filter: a source address with wildcards, which matches many addresses.

A filter has a group, and its consumers are the takers of this group, which has no inlets. The group of each address
that the filter matches is a member of the filter's group: the member copies deliveries to the takers of its address and
to the takers of the filter. So the link of a consumer, with its credit, belongs to one group, whatever number of addresses it matches.

        prices.tea     inlets -> MatchedMulticast -+-> consumers of prices.tea, branches of its tree
                                                   |
        prices.coffee  inlets -> MatchedMulticast -+-> FilterGroup prices.# -> consumers of prices.#

The members share the credit of the filter's consumers: what one member has promised, no other member promises again.
A delivery that waits for a consumer of a filter makes its group one of the ``blocked`` groups of the filter, which go
on in the order in which they began to wait.
"""

from router.forwarding.address cimport AddressGroup
from router.forwarding.credit cimport CreditSharing
from router.forwarding.ends cimport Inlet, Taker
from router.forwarding.fan cimport Fan, FanCopy
from router.forwarding.multicast cimport Multicast

from collections import OrderedDict
from dataclasses import replace

cdef enum:
    PLENTY = 1 << 30
    # Bytes at most of the annotation x-opt-to and the section around it, and of a section of properties with the field
    # `to` only, both without the address itself. A long address has more bytes of lengths. [1.6.20, 1.6.22, 1.6.23]
    ANNOTATION_BYTES = 18
    TO_BYTES = 10
    LONG_ADDRESS_BYTES = 235
    MORE_BYTES = 9


cdef class MatchedMulticast(Multicast):
    """The group of one multicast address at one router, of which the consumers of matching filters get copies, too.

    ``fills_to``: whether copies for the consumers of filters get the address as `to`, if the message has none.
    """

    def __init__(self, *given, bint fills_to=False, **options):
        super().__init__(*given, **options)
        self.published = self.address.name.encode()
        self.fills_to = fills_to
        long_bytes = MORE_BYTES if len(self.published) > LONG_ADDRESS_BYTES else 0
        self.address_bytes = len(self.published) + ANNOTATION_BYTES + long_bytes
        if fills_to:
            self.address_bytes += len(self.published) + TO_BYTES + long_bytes

    # Methods about filters that match the address
    def add_filter(self, FilterGroup filter_):
        """Copy deliveries to the consumers of ``filter_`` from now on; no effect if they get copies already."""
        if self.filters is None:
            self.filters = []
        if filter_ in self.filters:
            return
        self.filters.append(filter_)
        filter_.admit(self)
        if filter_.takers:
            self.on_filter_taken()

    def remove_filter(self, FilterGroup filter_):
        if self.filters is None or filter_ not in self.filters:
            return
        filter_.dismiss(self)
        self.filters = [each for each in self.filters if each is not filter_] or None
        self.on_filter_left()
        # The consumers of the filter may have been those with the least credit.
        self.top_up_all()

    def leave_filters(self):
        """Copy deliveries to no consumer of a filter any more, since the group's owner drops the group."""
        for filter_ in self.filters or ():
            (<FilterGroup>filter_).dismiss(self)
        self.filters = None
        self.version += 1

    cdef int on_filter_taken(self) except -1:
        """Called when a consumer joined the group of a matching filter."""
        self.revive()
        self.kick()
        return self.end_exclusion()

    cdef int on_filter_left(self) except -1:
        """Called when a consumer left the group of a matching filter."""
        if not self.has_takers():
            self._despair_later()
        self.on_changed()
        self.is_thorough = True
        return self.kick()

    @property
    def filter_takers(self):
        """The number of consumers of matching filters."""
        return sum([len((<FilterGroup>each).takers) for each in self.filters or ()])

    cdef bint has_filter_takers(self) noexcept:
        cdef FilterGroup each
        if self.filters is not None:
            for each in self.filters:
                if len(each.takers) > 0:
                    return True
        return False

    cdef bint has_takers(self) noexcept:
        return len(self.takers) > 0 or self.has_filter_takers()

    cdef bint has_other_than(self, Inlet inlet) noexcept:
        # No edge router is a taker of a filter's group.
        return self.has_filter_takers() or Multicast.has_other_than(self, inlet)

    cdef list takers_for(self, Inlet inlet, bint is_settled):
        cdef FilterGroup each
        cdef Taker taker
        cdef list known = inlet.audience, found
        found = Multicast.takers_for(self, inlet, is_settled)
        if self.filters is not None and found is not known:
            for each in self.filters:
                for taker in each.takers:
                    if not taker.is_closing_now:
                        found.append(taker)
        return found

    # Inlets
    def add_inlet(self, Inlet inlet):
        for each in self.filters or ():
            (<FilterGroup>each).add_sender(inlet)
        Multicast.add_inlet(self, inlet)

    def forget_inlet(self, Inlet inlet):
        Multicast.forget_inlet(self, inlet)
        for each in self.filters or ():
            (<FilterGroup>each).forget_sender(inlet)

    # Credit
    cdef int credit_for(self, Inlet inlet) except? -2147483648:
        cdef Taker taker
        cdef int credit, least = PLENTY, promised = self.promised_to_circuits + self.promised_to_producers
        if self.filters is None:
            return Multicast.credit_for(self, inlet)
        self.tightest = None
        for taker in self.takers_for(inlet, inlet.sends_settled and self.is_settled_apart):
            if self._leaves_out(taker, inlet.sends_settled):
                continue
            credit = taker.credit_count - (taker.group.promised_by_members if taker.group is not self else promised)
            if credit < least:
                least = credit
                self.tightest = <FilterGroup>taker.group if taker.group is not self else None
        return -promised if least == PLENTY else least

    cdef int top_up_now(self, Inlet inlet) except -1:
        cdef int credit, promised = inlet.promised_count
        if self.filters is None:
            return Multicast.top_up_now(self, inlet)
        if not self.has_takers() or (inlet.shuns and not self.has_other_than(inlet)):
            return self.exclude(inlet)
        credit = self.credit_for(inlet)
        if self.tightest is None:
            self.sharing.top_up(inlet, credit)
        else:
            self.tightest.sharing.top_up(inlet, credit)
        return self.note_use(inlet) if inlet.promised_count > promised else 0

    cdef int note_use(self, Inlet inlet) except -1:
        cdef FilterGroup each
        Multicast.note_use(self, inlet)
        if self.filters is not None:
            for each in self.filters:
                each.sharing.watch(inlet)
        return 0

    # Movement
    cdef bint may_pass_on(self) noexcept:
        cdef FilterGroup each
        cdef Taker taker
        if self.filters is not None:
            for each in self.filters:
                for taker in each.takers:
                    if self.holds_up_all(taker):
                        return False
        return Multicast.may_pass_on(self)

    cdef int on_late(self, Taker taker) except -1:
        if taker.group is not self:
            (<FilterGroup>taker.group).blocked[self] = None
        return 0

    cdef int on_moved(self, Taker taker) except -1:
        cdef FilterGroup each
        if self.filters is not None:
            for each in self.filters:
                if each.blocked:
                    each.kick()
        return Multicast.on_moved(self, taker)

    def snapshot(self):
        found = Multicast.snapshot(self)
        return replace(found, takers=found.takers + self.filter_takers)


cdef class FilterGroup(Multicast):
    """The group of a filter at one router: its takers are the consumers here that named the filter.

    The groups of the addresses that the filter matches (members) copy their deliveries to these takers.

    Always: the group has no inlets, and is in the ``filters`` of its members and of no other group.
    """

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.is_of_filter = True
        self.members = {}
        self.senders = {}
        self.blocked = OrderedDict()
        self.sharing = CreditSharing(self.senders, self._top_up_sender, self.timers)

    # Members
    cdef int admit(self, MatchedMulticast member) except -1:
        self.members[member] = None
        for inlet in member.inlets:
            self.add_sender(inlet)
        self.promised_by_members += member.promised_to_circuits + member.promised_to_producers
        return 0

    cdef int dismiss(self, MatchedMulticast member) except -1:
        del self.members[member]
        self.blocked.pop(member, None)
        for inlet in member.inlets:
            self.forget_sender(inlet)
        self.promised_by_members -= member.promised_to_circuits + member.promised_to_producers
        return 0

    cdef int add_sender(self, Inlet inlet) except -1:
        self.senders[inlet] = None
        return self.sharing.watch(inlet)

    cdef int forget_sender(self, Inlet inlet) except -1:
        self.senders.pop(inlet, None)
        self.sharing.forget(inlet)
        return 0

    # Consumers
    def add_inlet(self, Inlet inlet):
        raise AssertionError(f"expected no sender to the filter {self.address.name!r}")

    def add_taker(self, Taker taker):
        cdef MatchedMulticast member
        Multicast.add_taker(self, taker)
        for member in list(self.members):
            member.on_filter_taken()

    def on_taker_leaving(self, Taker taker):
        cdef MatchedMulticast member
        for member in self.members:
            member.version += 1

    def on_taker_left(self, Taker taker, closed, error):
        cdef MatchedMulticast member
        Multicast.on_taker_left(self, taker, closed, error)
        for member in list(self.members):
            member.on_filter_left()

    cdef int on_copy_aborted(self) except -1:
        # The caller may be in the midst of several copies: the blocked members go on after this input.
        if self.blocked and not self.has_freed_soon:
            self.has_freed_soon = True
            self.timers.after(0.0, self._on_freed)
        return 0

    cdef bint _holds_up_others(self, Taker taker) except -1:
        cdef Fan fan
        if not isinstance(taker.moving, FanCopy):
            return False
        fan = (<FanCopy>taker.moving).fan
        return any([member is not fan.inlet.group for member in self.blocked])

    def _on_freed(self):
        self.has_freed_soon = False
        self.kick()

    # Credit and movement
    cdef int room(self) noexcept:
        """Return how many deliveries each consumer that is not left out would take beyond all promised credit."""
        cdef Taker taker
        cdef int least = PLENTY
        for taker in self.takers:
            if not taker.is_stalled and not taker.is_closing_now:
                least = min(least, taker.credit_count)
        return least - self.promised_by_members

    cdef bint is_free(self) noexcept:
        """True if no consumer holds up a delivery now: each has credit and is not busy, or is left out."""
        cdef Taker taker
        for taker in self.takers:
            if not taker.can_take_now() and not taker.is_stalled and not taker.is_skipped and not taker.is_closing_now:
                return False
        return True

    cdef int kick(self) except -1:
        """Let the members go on that waited for a consumer of the filter, and grant their senders credit."""
        self.is_kicked = True
        if self.is_kicking:
            return 0  # called again by a delivery of a member that moved: the loop below goes round again
        self.is_kicking = True
        try:
            while self.is_kicked:
                self.is_kicked = False
                self._kick_blocked()
                self.offer_credit()
        finally:
            self.is_kicking = self.is_thorough = False
        return self.look_at_drains()

    cdef int _kick_blocked(self) except -1:
        cdef MatchedMulticast member
        # A member that waits again goes to the end, and is not looked at twice.
        cdef Py_ssize_t count = len(self.blocked)
        while count > 0 and self.blocked and self.is_free():
            count -= 1
            member, _ = self.blocked.popitem(last=False)
            if member in self.members:
                member.kick()
        return 0

    cdef int offer_credit(self) except -1:
        return self.sharing.offer() if self.room() > 0 else 0

    def _top_up_sender(self, Inlet inlet):
        (<AddressGroup>inlet.group).top_up_now(inlet)
