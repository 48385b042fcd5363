"""An edge router's choice of the active uplink, its only path into the mesh, and the messages to and from that uplink.

Sans-IO. Feed inputs and carry out the returned actions in order. ``now`` is monotonic seconds and never goes back.

An edge router keeps a connection to each of its uplinks and uses the active one: the first by preference among the
uplinks that are up when a choice is needed. The active uplink stays until its connection breaks or is silent for
``hello_max_age_s``; then the next uplink becomes active at once. Only at its start an edge router waits
``start_wait_s`` for the preferred uplink.

The edge router tells the active uplink which keys its consumers take (MAU, at first all keys) and which keys its
producers send to (ASK). The uplink answers for each asked key whether another router takes the key (REACH), and reports
every change. An edge router gets no link state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from addressing.routing_keys import names_broker
from router.routing import spf
from router.routing.actions import (
    Action,
    AddressesChanged,
    CloseConnection,
    ConfirmationRequest,
    SendControl,
    TopologyChanged,
)
from router.routing.advertisements import Advertisements
from router.routing.events import ControlMessageRefused, UplinkChosen
from router.routing.fields import ControlMessageError
from router.routing.messages import (
    Ask,
    Hello,
    MauAll,
    MauChanges,
    Reach,
    ReachLevel,
    UnknownMessage,
    VersionCheck,
    VersionConfirmation,
    parse,
)
from router.routing.mobile import Version
from router.routing.neighbors import Neighbors
from router.routing.settings import RoutingSettings
from router.routing.snapshot import NeighborSnapshot, RouterSnapshot, RoutingSnapshot


class Uplinks:
    """The routing core of an edge router, with the same queries as `Routing`: chooses among the connections to uplinks.

    ``costs``: uplink -> cost of the connection to the uplink, in order of preference.
    """

    def __init__(self, router_id: str, instance: int, settings: RoutingSettings, costs: Mapping[str, int]) -> None:
        self._router_id = router_id
        self._instance = instance
        self._settings = settings
        self._costs = dict(costs)
        self._preference: Sequence[str] = tuple(costs)
        self._neighbors = Neighbors(router_id, instance, settings)
        self._active: tuple[str, int] | None = None
        self._choose_at: float | None = None
        self._has_chosen = False
        self._takes: set[str] = set()
        self._taking = Advertisements(settings.mau_interval_s)
        self._asked: set[str] = set()
        self._asking = Advertisements(settings.mau_interval_s)
        self._levels: dict[str, ReachLevel] = {}
        self._seq = 0
        self._wanted = 0  # The number of the MAU that the active uplink is to confirm; 0 for none.
        self._confirmed = 0
        self._ignoring: set[int] = set()

    # Inputs
    def on_connected(self, connection: int, cost: int, now: float) -> list[Action]:
        return self._neighbors.on_connected(connection, cost, now)

    def on_connection_lost(self, connection: int, now: float) -> list[Action]:
        return self._neighbors.on_connection_lost(connection, "connection lost") + self._follow(now)

    def on_heard(self, connection: int, now: float) -> None:
        self._neighbors.on_heard(connection, now)

    def on_message(self, connection: int, body: Mapping[str, Any], opcode: str, now: float) -> list[Action]:
        if not self._neighbors.knows(connection):
            return []  # The connection was closed by this router: messages that were on the way are ignored.
        self._neighbors.on_heard(connection, now)
        try:
            message = parse(opcode, body)
        except UnknownMessage as unknown:
            return self._ignore(connection, str(unknown))
        except ControlMessageError as error:
            close = CloseConnection(connection, error.condition, error.description)
            lost = self._neighbors.on_connection_lost(connection, error.description)
            return [ControlMessageRefused(error.description), close, *lost, *self._follow(now)]
        match message:
            case Hello():
                return self._neighbors.on_hello(connection, message, now) + self._follow(now)
            case Reach():
                return self._on_reach(connection, message)
            case VersionCheck(mobile_seq=number):
                is_active = self._active is not None and connection == self._active[1]
                return [ConfirmationRequest(message.id, (0, number))] if is_active else []
            case VersionConfirmation(seen_seq=seq):
                if self._active is not None and connection == self._active[1]:
                    self._confirmed = max(self._confirmed, seq)
                return []
            case _:
                return self._ignore(connection, f"unexpected {opcode} to an edge router")

    def on_cost_changed(self, connection: int, cost: int, now: float) -> list[Action]:
        """Ignore the new cost: an edge router prefers its uplinks by the costs in the topology file."""
        return []

    def advertise(
        self, added: Iterable[str], removed: Iterable[str], now: float, *, at_once: bool = False
    ) -> list[Action]:
        """Tell the active uplink that this router has consumers for the keys ``added`` now, and none for ``removed``.

        Without ``at_once`` the MAU may wait for further changes (`advertisements.py`).
        """
        self._taking.change(added, removed, self._takes)
        told = self._tell_takes(now, at_once=at_once)
        # Changes may undo those that waited to be sent: then the MAU is confirmed that was sent last.
        return told if told or self._seq >= self._wanted else self._check()

    def ask(self, added: Iterable[str], removed: Iterable[str], now: float) -> list[Action]:
        """Ask the active uplink whether the keys ``added`` have takers elsewhere, and no longer about ``removed``."""
        self._asking.change(added, removed, self._asked)
        return self._tell_asked(now)

    def on_time(self, now: float) -> list[Action]:
        actions = self._neighbors.on_time(now) + self._follow(now)
        return actions + self._tell_takes(now) + self._tell_asked(now)

    def next_deadline(self) -> float | None:
        deadlines = (
            self._neighbors.next_deadline(),
            self._taking.next_deadline(),
            self._asking.next_deadline(),
            self._choose_at,
        )
        return min((at for at in deadlines if at is not None), default=None)

    # Choosing
    def _follow(self, now: float) -> list[Action]:
        """Choose an uplink that is up if none is active, or the active one is gone, and introduce this router to it."""
        up = self._neighbors.connections
        if self._active is not None and up.get(self._active[0]) == self._active[1]:
            return []
        best = next((router for router in self._preference if router in up), None)
        if best is None:
            self._choose_at = None
        elif self._waits_for_better(best, now):
            best = None
        before = self._active[0] if self._active is not None else None
        if best is None and before is None:
            return []
        self._active = (best, up[best]) if best is not None else None
        gone, new = (frozenset((router,) if router else ()) for router in (before, best))
        changed: list[Action] = [UplinkChosen(best, before), TopologyChanged(gone - new, new - gone)]
        return self._introduce(now) + changed

    def _waits_for_better(self, best: str, now: float) -> bool:
        if self._has_chosen or best == self._preference[0]:
            self._has_chosen, self._choose_at = True, None
            return False
        if self._choose_at is None:
            self._choose_at = now + self._settings.start_wait_s
        if now < self._choose_at:
            return True
        self._has_chosen, self._choose_at = True, None
        return False

    def _introduce(self, now: float) -> list[Action]:
        """Send the new active uplink all keys that this edge router takes, and all keys that it asks for.

        The answers of the previous uplink count until the new uplink answers. Without an active uplink, send nothing.
        """
        self._tell_takes(now, at_once=True)
        self._tell_asked(now, at_once=True)
        if self._active is None:
            return []
        self._seq += 1
        mau = MauAll(self._router_id, self._instance, self._seq, tuple(sorted(self._takes)))
        ask = Ask(self._router_id, tuple(sorted(self._asked)), (), is_all=True)
        self._confirmed = 0
        return [self._say(mau), self._say(ask), *self._check()]

    # Sending
    def _tell_takes(self, now: float, *, at_once: bool = False) -> list[Action]:
        told = self._taking.take(now, at_once=at_once)
        if told is None:
            return []
        self._takes = self._takes.union(told[0]).difference(told[1])
        self._seq += 1
        mau = MauChanges(self._router_id, self._instance, self._seq - 1, self._seq, *told)
        return [self._say(mau), *self._check()] if self._active is not None else []

    def _tell_asked(self, now: float, *, at_once: bool = False) -> list[Action]:
        told = self._asking.take(now, at_once=at_once)
        if told is None:
            return []
        self._asked = self._asked.union(told[0]).difference(told[1])
        # The uplink's answers about removed keys are dropped only now that the ASK goes out. If a key were removed and
        # asked for again before the ASK, the uplink would not hear of the change, and would not answer again.
        for key in told[1]:
            self._levels.pop(key, None)
        return [self._say(Ask(self._router_id, *told))] if self._active is not None else []

    # Confirmations
    def want_confirmed(self, now: float) -> tuple[Version, list[Action]]:
        """Ask the active uplink to confirm that the keys this router takes are in effect in the mesh.

        Return the version of these keys for `is_confirmed`.
        """
        self._wanted = self._seq + (self._taking.next_deadline() is not None)
        return (0, self._wanted), self._check()

    def _check(self) -> list[Action]:
        sent = self._sent(self._wanted)
        if self._active is None or not self._wanted or sent is None or self._confirmed >= sent:
            return []
        return [self._say(VersionCheck(self._router_id, 0, self._seq, (self._active[0],)))]

    def is_confirmed(self, version: Version) -> bool:
        """Say whether ``version`` of this router's keys is in effect in the mesh; True if no uplink is active."""
        sent = self._sent(version[1])
        return sent is not None and (self._active is None or self._confirmed >= sent)

    def _sent(self, seq: int) -> int | None:
        """Return ``seq`` if that MAU was sent, or the number of the last one if none follows; None if one waits."""
        if self._seq < seq and self._taking.next_deadline() is not None:
            return None
        return min(self._seq, seq)

    def has_seen(self, router: str, version: Version) -> bool:
        """Return True: an edge router reads the answers of its uplink in the order in which they were sent."""
        return True

    def confirm(self, router: str, version: Version) -> list[Action]:
        """Tell the active uplink that its answers before its question, which ``version`` numbers, are in effect."""
        if self._active is None or self._active[0] != router:
            return []
        return [self._say(VersionConfirmation(self._router_id, self._instance, router, *version))]

    def _say(self, message: MauAll | MauChanges | Ask | VersionCheck | VersionConfirmation) -> SendControl:
        assert self._active is not None
        return SendControl(self._active[1], message.opcode, message.to_map())

    # Receiving
    def _on_reach(self, connection: int, reach: Reach) -> list[Action]:
        if self._active is None or connection != self._active[1]:
            return []
        news = {key: level for key, level in reach.levels.items() if self._levels.get(key) is not level}
        self._levels |= news
        return [AddressesChanged(self._active[0], frozenset(news), frozenset())] if news else []

    def _ignore(self, connection: int, reason: str) -> list[Action]:
        if connection in self._ignoring:
            return []
        self._ignoring.add(connection)
        return [ControlMessageRefused(reason)]

    # Queries
    @property
    def active(self) -> str | None:
        return self._active[0] if self._active is not None else None

    @property
    def neighbors(self) -> Mapping[str, int]:
        """A map from the active uplink alone to the number of its connection: links are made over no other uplink."""
        return dict([self._active]) if self._active is not None else {}

    def level(self, key: str) -> ReachLevel | None:
        """Return the last uplink's answer whether ``key`` has takers elsewhere; None until an uplink has answered."""
        return self._levels.get(key)

    def path(self, target: str) -> spf.Path | None:
        return (self._router_id, target) if target == self.active else None

    def cost_to(self, target: str) -> int | None:
        return self._costs.get(target) if target == self.active else None

    def cost_along(self, path: spf.Path) -> int | None:
        return self.cost_to(path[-1])

    def routers_with(self, key: str) -> frozenset[str]:
        """Return the active uplink if it has takers for ``key``, or if ``key`` stands for a broker.

        An edge router does not know which brokers are connected: it attaches at the uplink, which may refuse.
        """
        if self._active is None or not (self._levels.get(key) is ReachLevel.TAKEN or names_broker(key)):
            return frozenset()
        return frozenset((self._active[0],))

    def is_advertised(self, key: str) -> bool:
        """Return False: an edge router learns of no key that it did not ask for, and it asks for no filters."""
        return False

    def tree(self, targets: Iterable[str]) -> Mapping[str, spf.Branch]:
        return {target: spf.Branch(True, {}) for target in targets if target == self.active}

    def snapshot(self) -> RoutingSnapshot:
        costs, up = self._neighbors.costs, self._neighbors.connections
        return RoutingSnapshot(
            router_id=self._router_id,
            instance=self._instance,
            neighbors={router: NeighborSnapshot(at, costs[router]) for router, at in up.items()},
            routers={
                router: RouterSnapshot(0, 0, 0, {}, frozenset(), self.path(router), self.cost_to(router))
                for router in self._preference
            },
            edges={},
        )
