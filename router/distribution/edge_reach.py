"""An edge router's knowledge of takers at other routers: the answers of its active uplink, and nothing else.

The active uplink is the connection to the one interior router that the edge router uses. The edge router asks this
interior router about each address with producers here. All circuits of the edge router lead to the interior router,
which decides where the deliveries go next.
"""

from __future__ import annotations

from collections.abc import Callable

from addressing.book import AddressPolicy
from router.connections.brokers import Brokers
from router.distribution.entries import AddressEntry
from router.distribution.reach import AddressReach
from router.routing.messages import ReachLevel
from router.routing.uplinks import Uplinks


class EdgeReach(AddressReach):
    """The reach of addresses at an edge router: whether an address has takers behind the active uplink.

    ``ask(key, is_wanted)`` starts or ends the question to the active uplink whether the routing key has takers.
    """

    is_edge = True

    def __init__(self, router_id: str, uplinks: Uplinks, brokers: Brokers, ask: Callable[[str, bool], None]) -> None:
        super().__init__(router_id, uplinks, brokers)
        self._uplinks = uplinks
        self._ask = ask
        self._asked: dict[str, set[AddressEntry]] = {}
        """The routing keys asked for, with the entries that asked: a pattern of queues has an entry for each user."""

    # Deliveries of a queue, or of an address with a fallback queue, always go into the mesh, and never straight to
    # consumers at this edge router: messages that are stored in the queue come before new messages.
    def consumer_phase(self, policy: AddressPolicy) -> int:
        return 1 if policy.fallback else policy.consumer_phase

    def arrival_phase(self, policy: AddressPolicy, phase: int) -> int:
        return 1 if policy.fallback else phase

    def told_key(self, entry: AddressEntry) -> str:
        return entry.policy.key(0).text if entry.policy.fallback else entry.key

    def is_told(self, entry: AddressEntry) -> bool:
        return not entry.policy.kind.is_stored or entry.group.phase == 1

    def may_fall_back(self, policy: AddressPolicy) -> bool:
        return False

    # Asking
    def follow(self, entry: AddressEntry) -> None:
        if not entry.has_producer:
            return
        askers = self._asked.setdefault(entry.key, set())
        if not askers:
            self._ask(entry.key, True)
        askers.add(entry)

    def forget(self, entry: AddressEntry) -> None:
        askers = self._asked.get(entry.key)
        if askers is None or entry not in askers:
            return
        askers.remove(entry)
        if not askers:
            del self._asked[entry.key]
            self._ask(entry.key, False)

    # Answers
    def takers(self, entry: AddressEntry) -> frozenset[str]:
        return self.routing.routers_with(entry.key)

    def ways(self, entry: AddressEntry) -> dict[str, tuple[str, ...]]:
        return self.cheapest(self.takers(entry))

    def sole_egress(self, policy: AddressPolicy) -> str | None:
        """Return None: only the uplink knows which routers have takers. Each address has a circuit to the uplink."""
        return None

    def is_known(self, entry: AddressEntry) -> bool:
        return self._uplinks.active is None or self._uplinks.level(entry.key) is not None

    def is_announced(self, entry: AddressEntry) -> bool:
        return self._uplinks.level(entry.key) is not ReachLevel.NONE

    def keeper_of(self, broker: str) -> str | None:
        return None
