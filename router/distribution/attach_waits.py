"""Answer the attach of a multicast's consumer once each router with producers has this router in its tree.

Routers advertise their producers of a multicast (`addressing.routing_keys`). The answer to a consumer's attach waits,
``path_wait_s`` at most, until the circuits of these routers have arrived here: deliveries sent after an earlier answer
could miss the consumer. If all circuits are here, or no other router has producers, the attach is answered at once.
Decision 0042.
"""

from __future__ import annotations

from functools import partial

from addressing.address import Address
from addressing.routing_keys import producer_key
from router.distribution.changed_addresses import ChangedAddresses
from router.distribution.entries import AddressEntry
from router.distribution.filters import Filters
from router.distribution.reach import AddressReach
from router.distribution.waiting_consumer import WaitingConsumer
from router.forwarding.ends import Taker
from router.timers import Timers
from wire.link import OutgoingLink

NEWS_S = 0.5
"""Time by which every router with producers has heard that this router's last consumer left, and has closed the circuit
that led here."""


class AttachWaits:
    """Answers the attaches of multicast consumers, at once or when the circuits of all producers' routers are here.

    A consumer of a filter waits for the circuits of all addresses that match. ``entry.joiners`` are the consumers of an
    entry whose attach is not answered yet. When a consumer begins or ceases to wait, the entry is added to ``changed``.
    """

    def __init__(
        self, reach: AddressReach, filters: Filters, timers: Timers, patience_s: float, changed: ChangedAddresses
    ) -> None:
        self._reach = reach
        self._filters = filters
        self._missed: dict[AddressEntry, Address] = {}
        """Filter with waiting consumers -> an address that matches and whose circuits are not all here."""
        self._timers = timers
        self._patience_s = patience_s
        self._changed = changed

    def join(self, entry: AddressEntry, link: OutgoingLink) -> None:
        """Answer the consumer's attach of ``link`` now, or once the circuits of all producers' routers are here.

        The attach is answered after ``patience_s`` in any case. With the answer the consumer joins the entry's group.
        """
        if not self._is_missed(entry):
            _take(entry, link)
            return
        joiner = WaitingConsumer(link, partial(self._forget, entry))
        joiner.begin()
        entry.joiners = {**(entry.joiners or {}), joiner: None}
        joiner.timer = self._timers.after(self._patience_s, lambda: self._admit(entry, joiner))
        self._changed.add(entry)

    def look(self, entry: AddressEntry) -> None:
        """Answer the waiting consumers if the circuits of all producers' routers are here.

        Called when the entry is settled, after circuits or producers may have changed.
        """
        if entry.joiners and not self._is_missed(entry):
            for joiner in list(entry.joiners):
                self._admit(entry, joiner)
        if self._missed and not entry.policy.has_wildcards:
            self.look_at_filters(entry.policy.address)

    def look_at_filters(self, address: Address) -> None:
        """Have the filters whose consumers wait for circuits of ``address`` looked at again, after this input."""
        for filter_, missed in self._missed.items():
            if missed == address:
                self._changed.add(filter_)

    def on_withdrawn(self, entry: AddressEntry) -> None:
        """Note the time at which this router withdrew its advertisement of consumers, since the last one left.

        Other routers are about to close their circuits to this router. For ``NEWS_S`` from now on, `_is_missed` counts
        an arriving circuit only if it goes on to a further router.
        """
        entry.withdrawn_s = self._timers.now
        if entry.policy.has_wildcards:
            for member in self._filters.members(entry.policy.address):
                member.withdrawn_s = self._timers.now

    def _admit(self, entry: AddressEntry, joiner: WaitingConsumer) -> None:
        if joiner in (entry.joiners or ()):
            self._forget(entry, joiner)
            _take(entry, joiner.link)

    def _forget(self, entry: AddressEntry, joiner: WaitingConsumer) -> None:
        if entry.joiners is None or joiner not in entry.joiners:
            return
        del entry.joiners[joiner]
        if joiner.timer is not None:
            joiner.timer.cancel()
        if not entry.joiners:
            self._missed.pop(entry, None)
        self._changed.add(entry)

    def _is_missed(self, entry: AddressEntry) -> bool:
        """True if a router in reach with producers has no circuit to this router, or only one about to close."""
        if not entry.policy.has_wildcards:
            return self._is_missed_at(entry.policy.address, entry, entry)
        missed = self._missed.pop(entry, None)
        if missed is not None and self._is_missed_at(missed, self._filters.entry(missed), entry):
            self._missed[entry] = missed
            return True
        for address in self._filters.produced(entry.policy.address):
            if self._is_missed_at(address, self._filters.entry(address), entry):
                self._missed[entry] = address
                return True
        return False

    def _is_missed_at(self, address: Address, entry: AddressEntry | None, waiting: AddressEntry) -> bool:
        """True if circuits of ``address``, which ``entry`` is here, are missing for the consumers of ``waiting``."""
        reach = self._reach
        ingresses = reach.routing.routers_with(producer_key(address)) - {reach.router_id}
        if not ingresses:
            return False
        circuits = [inlet for inlet in entry.group.inlets if inlet.is_circuit] if entry is not None else []
        if entry is not None and self._timers.now < entry.withdrawn_s + NEWS_S:
            going_on = {taker.upstream for taker in entry.group.takers}
            circuits = [inlet for inlet in circuits if inlet in going_on]
            self._timers.after(NEWS_S, partial(self._changed.add, waiting))
        missing = ingresses - {inlet.ingress for inlet in circuits}
        return any(reach.path(ingress) is not None for ingress in missing)


def _take(entry: AddressEntry, link: OutgoingLink) -> None:
    if link.is_gone or link.has_left or link.has_peer_left:
        return
    link.open()
    entry.group.add_taker(Taker(link, entry.group))
