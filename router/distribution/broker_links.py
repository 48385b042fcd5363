"""Keep a router's own links to brokers for an address: one to send to each broker, and for a sharded queue, which is
spread over several brokers, one to receive from each."""

from __future__ import annotations

from typing import Protocol

from addressing.book import AddressPolicy
from router.connections.brokers import Brokers
from router.distribution.entries import AddressEntry
from router.distribution.reach import AddressReach
from router.distribution.upkeep import Upkeep
from router.forwarding.address import AddressGroup
from router.forwarding.ends import Inlet, Taker
from wire.errors import AmqpError


class SendCounter(Protocol):
    """Counts the deliveries that this router sends to a fallback queue, each before it is sent.

    The announcement of a message in the queue has to leave before the message.
    """

    def add_sender(self, taker: Taker) -> None:
        """Count the unsettled deliveries of ``taker``, a new link to the queue, as under way from now on."""

    def on_sending(self) -> None:
        """Count a delivery that is about to go to the queue; called before the delivery is sent."""


class BrokerLinks:
    """Makes and closes this router's own links to brokers, for queues, topics and fallback queues."""

    def __init__(self, reach: AddressReach, brokers: Brokers, upkeep: Upkeep, link_capacity: int) -> None:
        self._reach = reach
        self._brokers = brokers
        self._upkeep = upkeep
        self._link_capacity = link_capacity

    def is_up(self, broker: str) -> bool:
        return self._brokers.is_up(broker)

    def settle(self, entry: AddressEntry) -> None:
        """Open the links to brokers that the entry lacks, and close those that the entry no longer needs.

        The links of a group of phase 0 send producers' deliveries to the brokers; those of a group of phase 1 receive
        the messages of a sharded queue for consumers.
        """
        if entry.group.phase == 0:
            self._settle_takers(entry)
        elif entry.policy.is_sharded:
            self._settle_inlets(entry)

    def _may_attach(self, entry: AddressEntry, broker: str) -> bool:
        return self.is_up(broker) and self._upkeep.may_try(entry, broker)

    def _settle_takers(self, entry: AddressEntry) -> None:
        group = entry.group
        for broker in entry.policy.brokers:
            taker = entry.ends.broker_takers.get(broker)
            if taker is None and group.inlets and self._may_attach(entry, broker):
                self._add_taker(entry, broker)
            elif taker is not None:
                self._upkeep.keep(entry, taker, is_needed=bool(group.inlets))

    def _add_taker(self, entry: AddressEntry, broker: str) -> None:
        try:
            link = self._brokers.sender(broker, entry.policy, user=entry.group.maker)
        except AmqpError as error:
            self._upkeep.on_refused(entry, broker, error)
            return
        entry.ends.broker_takers[broker] = taker = Taker(link, entry.group, is_broker=True)
        link.open()
        entry.group.add_taker(taker)

    def _add_inlet(self, entry: AddressEntry, broker: str) -> None:
        try:
            name, user = entry.policy.at_broker(broker), entry.group.maker
            link = self._brokers.receiver(broker, name, entry.policy.kind, user=user)
        except AmqpError as error:
            self._upkeep.on_refused(entry, broker, error)
            return
        entry.ends.broker_inlets[broker] = inlet = Inlet(link, entry.group, self._link_capacity)
        link.open()
        entry.group.add_inlet(inlet)

    def _settle_inlets(self, entry: AddressEntry) -> None:
        group = entry.group
        is_needed = bool(group.takers) or self._reach.is_taken(entry)
        for broker in entry.policy.brokers:
            inlet = entry.ends.broker_inlets.get(broker)
            if inlet is None and is_needed and self._may_attach(entry, broker):
                self._add_inlet(entry, broker)
            elif inlet is not None and not is_needed:
                del entry.ends.broker_inlets[broker]
                inlet.on_left(True, None)

    def are_open(self, entry: AddressEntry) -> bool:
        """True if the link from each connected broker of the sharded queue is open.

        A broker that refused the link less than 2 s ago does not count.
        """
        inlets = entry.ends.broker_inlets
        return all(
            inlets[broker].link.is_open if broker in inlets else not self._may_attach(entry, broker)
            for broker in entry.policy.brokers
        )

    # Methods about links to brokers for large deliveries.
    def stream(
        self,
        entry: AddressEntry,
        queue: AddressPolicy,
        shared: Taker,
        inlet: Inlet,
        counter: SendCounter | None = None,
    ) -> Taker | None:
        """Return the link for the large deliveries of ``inlet`` to the broker to which the link ``shared`` leads.

        The link is opened when first asked for. Return None until the link has credit and is free for a delivery.
        ``counter``, for a fallback queue, counts the deliveries.
        """
        stream = entry.ends.broker_streams.get((shared, inlet))
        if stream is None:
            broker = next((name for name, taker in entry.ends.broker_takers.items() if taker is shared), None)
            stream = self.open_stream(entry.group, queue, broker, counter) if broker is not None else None
            if stream is None:
                return None
            entry.ends.broker_streams[shared, inlet] = stream
        return stream if stream.can_take else None

    def open_stream(
        self, group: AddressGroup, queue: AddressPolicy, broker: str, counter: SendCounter | None = None
    ) -> Taker | None:
        """Open a link to the broker for large deliveries, and return it as a taker; None if it cannot be made now.

        ``counter``, for a fallback queue, counts the deliveries.
        """
        try:
            link = self._brokers.sender(broker, queue, "stream", user=group.maker, is_stream=True)
        except AmqpError:
            return None
        on_sending = counter.on_sending if counter is not None else None
        stream = Taker(link, group, is_stream=True, is_broker=True, on_sending=on_sending)
        if counter is not None:
            counter.add_sender(stream)
        link.open()
        group.add_stream(stream)
        return stream

    # Methods about links to and from the fallback queue of an address.
    def open_fallback(
        self, group: AddressGroup, queue: AddressPolicy, broker: str, counter: SendCounter, *, is_own: bool
    ) -> Taker | None:
        """Open a link to the fallback queue, and return it as a taker; None if it cannot be made now.

        ``counter`` counts the deliveries. ``is_own``: the link is for producers at this router, else for circuits of
        other routers; only the name of the link differs.
        """
        role = "fallback-own" if is_own else "fallback"
        try:
            link = self._brokers.sender(broker, queue, role, user=None)
        except AmqpError:
            return None
        taker = Taker(link, group, is_broker=True, on_sending=counter.on_sending)
        counter.add_sender(taker)
        taker.link.open()
        return taker

    def open_feed(self, entry: AddressEntry, queue: AddressPolicy, broker: str) -> Inlet | None:
        """Open a link from the fallback queue, and return it as an inlet, which is not in the group yet.

        Return None while the broker is not connected, for 2 s after the broker refused the link, and if the link cannot
        be made.
        """
        if not self.is_up(broker) or not self._upkeep.may_try(entry, _feed(broker)):
            return None
        try:
            link = self._brokers.receiver(broker, queue.at_broker(broker), queue.kind, "feed")
        except AmqpError as error:
            self._upkeep.on_refused(entry, _feed(broker), error)
            return None
        feed = Inlet(link, entry.group, self._link_capacity)
        link.open()
        return feed

    def on_feed_lost(self, entry: AddressEntry, broker: str, error: AmqpError) -> None:
        self._upkeep.on_refused(entry, _feed(broker), error)


def _feed(broker: str) -> str:
    return f"feed of {broker}"
