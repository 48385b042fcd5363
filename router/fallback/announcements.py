"""This router's announcements to other routers about the fallback queue of an address.

Two facts are announced: the queue may hold messages, and producers should hold on, that is, send nothing for a moment.
The messages of the queue at one broker are a share of the queue. Each broker with a share has one router as its keeper,
which knows these facts about the share (`AddressReach.keeper_of`, `queue_share.py`).
"""

from __future__ import annotations

from typing import Protocol

from addressing.routing_keys import fallback_keys
from router.fallback.context import FallbackContext, FallbackServices
from router.fallback.queue_share import QueueShare
from router.forwarding.ends import Inlet, Taker
from wire.errors import AmqpError


class Advertise(Protocol):
    def __call__(self, key: str, is_there: bool, *, at_once: bool = False) -> None: ...


class ShareAnnouncements:
    """The shares of one fallback queue that this router keeps, and the announcements about these shares.

    When an announcement changed, the address that falls back to the queue is brought up to date.
    """

    def __init__(self, backed: FallbackContext, ways: FallbackServices, advertise: Advertise) -> None:
        self._backed = backed
        self._reach = ways.reach
        self._links = ways.links
        self._timers = ways.timers
        self._path_wait_s = ways.path_wait_s
        self._advertise = advertise
        self._changed = ways.changed
        self._shares: dict[str, QueueShare] = {}
        self._said = (False, False)
        self._doubt_until = 0.0

    @property
    def is_hosting(self) -> bool:
        """True if this router keeps a share of the queue, or may come to: it is connected to a broker of the queue."""
        return bool(self._shares) or any(self._links.is_up(broker) for broker in self._backed.queue.brokers)

    def share(self, broker: str) -> QueueShare | None:
        return self._shares.get(broker)

    # State
    @property
    def holds(self) -> bool:
        return self._is_in_doubt or any(share.holds for share in self._shares.values())

    @property
    def asks_to_hold_on(self) -> bool:
        """True if each share here that holds messages asks producers to hold on, so that it can be found empty.

        False if no share here holds messages, or the connection to a broker with messages was lost less than
        ``path_wait_s`` ago.
        """
        holders = [share for share in self._shares.values() if share.holds]
        return bool(holders) and not self._is_in_doubt and all(share.asks_to_hold_on for share in holders)

    @property
    def _is_in_doubt(self) -> bool:
        """True for ``path_wait_s`` after the connection to a broker with messages was lost.

        This router goes on announcing messages meanwhile, so that new messages do not overtake those at the broker.
        """
        return self._timers.now < self._doubt_until

    def tell(self) -> None:
        """Announce what changed to the other routers: shares here hold messages, producers should hold on, or not.

        The announcement leaves at once, so that it arrives before later deliveries.
        """
        now = (self.holds, self.asks_to_hold_on)
        changed = [
            (key, is_so)
            for key, was, is_so in zip(fallback_keys(self._backed.address), self._said, now, strict=True)
            if was != is_so
        ]
        self._said = now
        for key, is_so in changed:
            self._advertise(key, is_so, at_once=True)
        if changed:
            self._changed.add(self._backed.entry)

    # Shares
    def settle(self) -> None:
        """Begin or end keeping the share at each broker of the queue, as the mesh is now, and announce changes."""
        for broker in self._backed.queue.brokers:
            self._settle_role(broker)
        is_taken = self._reach.is_taken(self._backed.entry)
        for share in list(self._shares.values()):
            share.settle(is_taken=is_taken)
        self.tell()

    def _settle_role(self, broker: str) -> None:
        share = self._shares.get(broker)
        is_up = self._links.is_up(broker)
        is_mine = is_up and self._reach.keeper_of(broker) == self._reach.router_id
        if share is None:
            if is_mine:
                self._shares[broker] = self._make(broker)
        elif is_mine:
            share.is_leaving = False
        elif not is_up:
            self._forget(broker, share)
        elif share.is_leaving and share.is_idle:
            del self._shares[broker]
        else:
            share.is_leaving = True

    def _make(self, broker: str) -> QueueShare:
        def open_feed() -> Inlet | None:
            return self._links.open_feed(self._backed.entry, self._backed.queue, broker)

        return QueueShare(self._backed.group, open_feed, self.tell, self._timers, self._path_wait_s)

    def _forget(self, broker: str, share: QueueShare) -> None:
        """Stop keeping the share at ``broker``: the connection to it is lost, and all links with it.

        If the share held messages, this router goes on announcing messages for ``path_wait_s``.
        """
        del self._shares[broker]
        if share.holds:
            self._doubt_until = self._timers.now + self._path_wait_s
            self._timers.after(self._path_wait_s, self.tell)

    def on_lost(self, end: Inlet | Taker, error: AmqpError | None) -> None:
        """Tell each kept share that an inlet or taker of the address is gone, since it may be a link of the share.

        After an error, the link from the queue is opened again only after a delay of 2 s, or 0.05 s if the path was
        lost.
        """
        for broker, share in self._shares.items():
            if share.on_lost(end, error) and error is not None:
                self._links.on_feed_lost(self._backed.entry, broker, error)
