"""The addresses that fall back to a queue, and this router's work for each.

As an ingress, this router sends the deliveries of producers to takers or to the queue. As the keeper of a broker, this
router passes the fallback deliveries of all routers to the broker's part of the queue, and feeds them back to the
address.
"""

from __future__ import annotations

from addressing.address import Address
from addressing.book import AddressPolicy, SpaceBooks
from router.circuits.spec import path_lost
from router.distribution.entries import AddressEntry
from router.distribution.reach import FALLBACK_PHASE
from router.events import FallbackBegan, FallbackEnded
from router.fallback.announcements import Advertise, ShareAnnouncements
from router.fallback.context import FallbackContext, FallbackServices
from router.fallback.producers import Fallback
from router.fallback.queue_share import QueueShare
from router.forwarding.ends import Inlet, Taker
from router.forwarding.fallback import AnycastWithFallback
from wire.errors import AmqpError
from wire.log import Emit


class Fallbacks:
    """The fallbacks of all addresses of this router that have a fallback queue.

    Always: ``_by_address`` has the fallback of every address entry that `equip` gave one and `drop` did not remove.
    """

    def __init__(self, books: SpaceBooks, ways: FallbackServices, advertise: Advertise, emit: Emit) -> None:
        self._books = books
        self._ways = ways
        self._advertise = advertise
        self._emit = emit
        self._policies = books.with_fallback()
        self._by_address: dict[Address, Fallback] = {}
        self._begun: set[Address] = set()
        """Addresses whose fallback is logged as begun; kept here, since entries come and go with their producers."""

    def on_addresses_added(self) -> set[str]:
        """Take up the addresses that were declared since; return the brokers of the fallback queues of these."""
        before, self._policies = set(self._policies), self._books.with_fallback()
        return {broker for policy in self._policies if policy not in before for broker in self._queue(policy).brokers}

    def kept_by(self, broker: str) -> list[AddressPolicy]:
        """Return the policies of the addresses whose fallback queue is, in whole or in part, at ``broker``."""
        return [policy for policy in self._policies if broker in self._queue(policy).brokers]

    def is_kept(self, policy: AddressPolicy) -> bool:
        """True if the address has a fallback queue with a broker in reach, which takes deliveries without a taker."""
        if not policy.fallback:
            return False
        brokers = self._queue(policy).brokers
        return any(self._ways.links.is_up(broker) or self._ways.reach.keeper_of(broker) for broker in brokers)

    def settle_keeping(self, broker: str) -> None:
        """Keep the shares of fallback queues at ``broker``, which came up, if this router is its keeper now."""
        for policy in self.kept_by(broker):
            fallback = self._by_address.get(policy.address)
            if fallback is not None:
                fallback.keeping.settle()

    def _queue(self, policy: AddressPolicy) -> AddressPolicy:
        queue = self._books.resolve(policy.fallback) if policy.fallback is not None else None
        assert queue is not None, f"fallback of {policy.address.text!r}: the topology was checked"
        return queue

    # Methods about the fallback of one address
    def equip(self, entry: AddressEntry, group: AnycastWithFallback) -> None:
        """Make the fallback of a new address entry, whose group is ``group``."""
        backed = FallbackContext(entry, group, self._queue(entry.policy))
        keeping = ShareAnnouncements(backed, self._ways, self._advertise)

        def tell(has_begun: bool) -> None:
            self._tell(backed, has_begun)

        self._by_address[backed.address] = Fallback(backed, self._ways, keeping, tell)

    def on_no_taker_in_time(self, entry: AddressEntry) -> None:
        """Switch the producers of the entry, which had no taker for ``hold_s``, between the takers and the queue.

        Nothing changes if there is no path that way either.
        """
        fallback = self._of(entry)
        if fallback is not None:
            fallback.on_no_taker_in_time()

    def _tell(self, backed: FallbackContext, has_begun: bool) -> None:
        if has_begun != (backed.address in self._begun):
            self._begun ^= {backed.address}
            kind = FallbackBegan if has_begun else FallbackEnded
            self._emit(kind(backed.address.text, backed.queue.address.text))

    def stream(self, entry: AddressEntry, taker: Taker, inlet: Inlet) -> Taker | None:
        """Return the link or circuit for large deliveries of ``inlet`` to where ``taker`` leads.

        ``taker`` leads to a fallback queue, to another router, or to a broker. Return None if there is no such link or
        circuit that can take a delivery now.
        """
        fallback = self._of(entry)
        if fallback is not None and fallback.is_to_queue(taker):
            return fallback.way.stream(inlet)
        if taker.cost:
            return self._ways.circuits.stream(entry, taker, inlet)
        if entry.group.phase < FALLBACK_PHASE:
            return self._ways.links.stream(entry, entry.policy, taker, inlet)
        found = self._share(entry.policy, entry.group.phase)
        if found is None:
            return None
        return self._ways.links.stream(entry, self._queue(entry.policy), taker, inlet, found[1])

    def settle(self, entry: AddressEntry) -> None:
        fallback = self._of(entry)
        if fallback is not None:
            fallback.settle()
        elif entry.group.phase >= FALLBACK_PHASE:
            self._settle_phase(entry)

    def _of(self, entry: AddressEntry) -> Fallback | None:
        return self._by_address.get(entry.policy.address) if entry.group.phase == 0 else None

    def is_keeping(self, entry: AddressEntry) -> bool:
        """True if this router keeps, or may come to keep, a share of the entry's fallback queue.

        True also while this router still announces messages in the queue.
        """
        fallback = self._of(entry)
        return fallback is not None and (fallback.keeping.is_hosting or fallback.keeping.holds)

    def on_end_lost(self, entry: AddressEntry, end: Inlet | Taker, error: AmqpError | None) -> None:
        fallback = self._by_address.get(entry.policy.address)
        if fallback is not None:
            fallback.on_lost(end, error)

    def drop(self, entry: AddressEntry) -> None:
        if entry.group.phase == 0:
            self._by_address.pop(entry.policy.address, None)

    # Methods of a keeper about the circuits of other routers to the fallback queue. For each broker of the queue, these
    # circuits join an address entry with a phase of its own.
    def _share(self, policy: AddressPolicy, phase: int) -> tuple[str, QueueShare] | None:
        fallback = self._by_address.get(policy.address)
        number = phase - FALLBACK_PHASE
        if fallback is None or not 0 <= number < len(fallback.queue.brokers):
            return None
        broker = fallback.queue.brokers[number]
        share = fallback.keeping.share(broker)
        return (broker, share) if share is not None else None

    def check_circuit(self, policy: AddressPolicy, phase: int) -> None:
        """Raise AmqpError if a circuit leads to a fallback queue at a broker whose share this router does not keep.

        The ingress of the circuit then looks for the keeper again.
        """
        if phase >= FALLBACK_PHASE and self._share(policy, phase) is None:
            raise path_lost(
                f"router {self._ways.reach.router_id} is not the keeper of the circuit's share of "
                f"the fallback queue of address {policy.address.name!r}"
            )

    def _settle_phase(self, entry: AddressEntry) -> None:
        """Open a link to the queue for the circuits of other routers in ``entry``, and close it once there are none."""
        found = self._share(entry.policy, entry.group.phase)
        taker = next(iter(entry.ends.broker_takers.values()), None)
        if taker is not None:
            self._ways.upkeep.keep(entry, taker, is_needed=bool(entry.group.inlets))
        elif found is not None and entry.group.inlets:
            broker, share = found
            if self._ways.links.is_up(broker) and self._ways.upkeep.may_try(entry, broker):
                queue = self._queue(entry.policy)
                taker = self._ways.links.open_fallback(entry.group, queue, broker, share, is_own=False)
                if taker is None:
                    self._ways.upkeep.on_refused(entry, broker, None)
                    return
                entry.ends.broker_takers[broker] = taker
                entry.group.add_taker(taker)
