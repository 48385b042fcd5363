"""What a step costs the clients of a mesh, in numbers that a run of the step can be compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, Final

from addressing.coverage import covers
from addressing.names import ANONYMOUS
from mesh.change.effects import is_lowered, is_narrowed, is_tightened, loses_store
from mesh.change.observations import CountedConnection, CountedQueue, Observations
from mesh.change.resource import Difference, ResolvedTopology, Resource, ResourceKind

_RESTARTING: Final = (("mesh", "node_tls"), ("link_logs", "records"), ("link_logs", "ring_bytes"))
"""Settings whose change restarts all nodes."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """Numbers of what a step ends, moves and loses. None: unknown, as the mesh does not run or a node was not seen."""

    connections_closed: int | None = 0
    """Connections of clients."""
    links_ended: int | None = 0
    """Links of clients whose connections stay."""
    messages_moved: int | None = 0
    bytes_moved: int | None = 0
    messages_lost: int | None = 0
    """Messages that have nowhere to go."""
    deliveries_released: int | None = 0
    """Deliveries that clients get back without an attempt."""
    processes_restarted: int | None = 0

    def __add__(self, other: StepCost) -> StepCost:
        pairs = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return StepCost(*(None if one is None or two is None else one + two for one, two in pairs))

    def to_map(self) -> dict[str, int | None]:
        """Return the numbers by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def total_of(costs: Iterable[StepCost]) -> StepCost:
    """Return the sums of all numbers; a sum with an unknown number is unknown."""
    return reduce(lambda one, other: one + other, costs, StepCost())


class CostEstimate:
    """Counts the cost of differences between two resolved topologies by the observations of the running mesh."""

    def __init__(self, before: ResolvedTopology, after: ResolvedTopology, observations: Observations) -> None:
        self._before, self._after, self._seen = before, after, observations
        self._routers = frozenset(each.name for each in before.of_kind(ResourceKind.ROUTER))
        self._nodes = self._routers | {
            each.name for each in before.of_kind(ResourceKind.BROKER) if each.values["is_embedded"]
        }
        self._by_kind: dict[ResourceKind, Callable[[Difference], StepCost]] = {
            ResourceKind.SETTINGS: self._settings,
            ResourceKind.ROUTER: self._router,
            ResourceKind.BROKER: self._broker,
            ResourceKind.LISTENER: self._listener,
            ResourceKind.USER: self._user,
        }

    def of(self, differences: Collection[Difference]) -> StepCost:
        """Return the cost of a step with all ``differences``."""
        costs = [self._by_kind[each.key[0]](each) for each in differences if each.key[0] in self._by_kind]
        addresses = [each for each in differences if each.key[0] is ResourceKind.ADDRESS]
        if any(each.key[0] is ResourceKind.ROUTER and each.before and not each.is_added for each in differences):
            # The router's own connections are all that its listeners have.
            costs = [self._router(each) for each in differences if each.key[0] is ResourceKind.ROUTER]
        return total_of([*costs, *(self._address(each) for each in addresses)])

    def queue_counts(self, names: Collection[str], brokers: Collection[str]) -> tuple[int, int] | None:
        """Return the messages, and their bytes, of addresses at some brokers; None if that is unknown."""
        queues = self._seen.queues_of(names, brokers)
        if queues is None:
            return None
        return sum(queue.messages for queue in queues), sum(queue.size_bytes for queue in queues)

    def _settings(self, difference: Difference) -> StepCost:
        changed = {(difference.key[1], change.name) for change in difference.changes}
        if not changed.intersection(_RESTARTING):
            return StepCost()
        return StepCost(
            connections_closed=self._connections(self._routers, lambda _: True), processes_restarted=len(self._nodes)
        )

    def _router(self, difference: Difference) -> StepCost:
        if difference.is_added:
            return StepCost()
        closed = self._connections([difference.key[1]], lambda _: True)
        return StepCost(connections_closed=closed, processes_restarted=0 if difference.is_removed else 1)

    def _broker(self, difference: Difference) -> StepCost:
        if difference.is_added:
            return StepCost()
        if difference.is_removed:
            return StepCost(messages_lost=self._left_at(difference))
        restarts = any(difference.change_of(name) for name in ("data", "host", "port"))
        return StepCost(processes_restarted=1 if restarts else 0)

    def _left_at(self, removed: Difference) -> int | None:
        """Return the messages at a removed broker that no declaration has there; None if it was not observed."""
        name = removed.key[1]
        if not self._before.value(ResourceKind.BROKER, name, "is_embedded"):
            return 0
        if not self._seen.are_observed([name]):
            return None
        resources = self._before.resources
        return sum(
            queue.messages
            for queue in self._seen.queues
            if queue.broker == name
            and (
                (ResourceKind.ADDRESS, queue.address) not in resources
                or name not in self._before.value(ResourceKind.ADDRESS, queue.address, "brokers")
            )
        )

    def _connections(self, routers: Collection[str], ends: Callable[[CountedConnection], bool]) -> int | None:
        if not self._seen.are_observed(routers):
            return None
        return sum(1 for each in self._seen.connections if each.node in routers and ends(each))

    def _listener(self, difference: Difference) -> StepCost:
        if difference.is_added:
            return StepCost()
        (router,) = difference.resource.nodes
        endpoint = difference.key[1].removeprefix(f"{router} ")
        listeners = [each for each in self._before.of_kind(ResourceKind.LISTENER) if each.nodes == (router,)]
        here = [each for each in self._seen.connections if each.node == router]
        if not self._seen.are_observed([router]) or (len(listeners) > 1 and any(not each.listener for each in here)):
            is_known = False
            here = []
        else:
            is_known = True
            here = [each for each in here if each.listener in (None, endpoint)]
        return self._of_listener(difference, here, is_known=is_known)

    def _of_listener(self, difference: Difference, here: list[CountedConnection], *, is_known: bool) -> StepCost:
        if difference.is_removed or difference.change_of("tls"):
            return StepCost(connections_closed=len(here) if is_known else None)
        cost = StepCost()
        login, most = difference.change_of("authentication"), difference.change_of("max_connections")
        if login and is_tightened(login):
            closed = sum(1 for each in here if each.user == ANONYMOUS)
            cost += StepCost(connections_closed=closed if is_known else None)
        if most and is_lowered(most):
            cost += StepCost(connections_closed=max(0, len(here) - most.after) if is_known else None)
        links = difference.change_of("max_links")
        if links and is_lowered(links):
            ids = {(each.node, each.id) for each in here}
            counts = Counter((each.node, each.connection) for each in self._seen.links)
            beyond = sum(max(0, count - links.after) for key, count in counts.items() if key in ids)
            cost += StepCost(links_ended=beyond if is_known else None)
        for name in ("max_frame_bytes", "max_message_bytes"):
            size = difference.change_of(name)
            if size and is_lowered(size) and (here or not is_known):
                # No observation has the sizes that a peer agreed to.
                cost += StepCost(connections_closed=None)
        return cost

    def _user(self, difference: Difference) -> StepCost:
        if difference.is_added:
            return StepCost()
        user = difference.key[1]
        if difference.is_removed and user != ANONYMOUS:
            return StepCost(connections_closed=self._connections(self._routers, lambda each: each.user == user))
        cost = StepCost()
        narrowed = {each.name: each.after or () for each in difference.changes if each.name in ("send", "receive")}
        if any(change.name in narrowed and is_narrowed(change) for change in difference.changes):
            cost += StepCost(links_ended=self._links_without_right(user, narrowed))
        most = difference.change_of("max_connections")
        if most and is_lowered(most) and not difference.is_removed:
            beyond = [self._connections([router], lambda each: each.user == user) for router in sorted(self._routers)]
            known = [max(0, count - most.after) for count in beyond if count is not None]
            cost += StepCost(connections_closed=sum(known) if len(known) == len(beyond) else None)
        return cost

    def _links_without_right(self, user: str, rights: dict[str, Any]) -> int | None:
        if not self._seen.are_observed(self._routers):
            return None
        routers = self._routers - self._routers_for_logins() if user == ANONYMOUS else self._routers
        links = [each for each in self._seen.links if each.user == user and each.node in routers]
        return sum(
            1
            for link in links
            if link.address is not None
            and (patterns := rights.get("send" if link.is_producer else "receive")) is not None
            and not any(covers(pattern, link.address) for pattern in patterns)
        )

    def _routers_for_logins(self) -> frozenset[str]:
        """Return the routers all of whose listeners require a login after the change: no anonymous connection stays."""
        logins: dict[str, set[str]] = {}
        for each in self._after.of_kind(ResourceKind.LISTENER):
            logins.setdefault(each.nodes[0], set()).add(each.values["authentication"])
        return frozenset(router for router, found in logins.items() if found == {"required"})

    def _address(self, difference: Difference) -> StepCost:
        before, after = difference.before, difference.after
        if before is None:
            return StepCost()
        name = before.name
        cost = StepCost()
        if after is None or after.values["type"] == "unavailable":
            links = sum(1 for each in self._seen.links if each.address == name)
            cost += StepCost(links_ended=links if self._seen.are_observed(self._routers) else None)
        if loses_store(difference):
            counts = self.queue_counts([name], before.values["brokers"])
            return cost + StepCost(messages_lost=counts[0] if counts is not None else None)
        return cost + self._moved(difference) + self._dropped(difference)

    def _moved(self, difference: Difference) -> StepCost:
        left = brokers_left(difference)
        if not left:
            return StepCost()
        counts = self.queue_counts([difference.key[1]], left)
        return StepCost(messages_moved=counts and counts[0], bytes_moved=counts and counts[1])

    def _dropped(self, difference: Difference) -> StepCost:
        """Return the messages that go since a limit is lowered, or a subscription expires earlier."""
        assert difference.before is not None
        after = difference.after
        queues = self._seen.queues_of([difference.key[1]], difference.before.values["brokers"])
        cost = StepCost()
        for name in ("max_messages", "max_bytes"):
            limit = difference.change_of(name)
            if limit is None or after is None or not is_lowered(limit) or after.values["when_full"] != "drop-oldest":
                continue
            cost += StepCost(messages_lost=_beyond(queues, name, limit.after))
        if brokers_left(difference) and after is not None and _may_overflow(queues, after):
            cost += StepCost(messages_lost=None)
        shorter = difference.change_of("subscription_expiry_s")
        if shorter and is_lowered(shorter) and (queues is None or any(each.is_subscription for each in queues)):
            cost += StepCost(messages_lost=None)
        return cost


def _may_overflow(queues: tuple[CountedQueue, ...] | None, after: Resource) -> bool:
    """Tell whether messages that move may be too many for a broker that drops the oldest ones."""
    most, most_bytes = after.values["max_messages"], after.values["max_bytes"]
    if after.values["when_full"] != "drop-oldest" or (most is None and most_bytes is None):
        return False
    return (
        queues is None
        or (most is not None and sum(each.messages for each in queues) > most)
        or (most_bytes is not None and sum(each.size_bytes for each in queues) > most_bytes)
    )


def _beyond(queues: tuple[CountedQueue, ...] | None, name: str, most: int) -> int | None:
    if queues is None:
        return None
    if name == "max_messages":
        return sum(max(0, queue.messages - most) for queue in queues)
    return None if any(queue.size_bytes > most for queue in queues) else 0


def brokers_left(difference: Difference) -> tuple[str, ...]:
    """Return the brokers from which the messages of an address move; none unless it is stored before and after."""
    before, after = difference.before, difference.after
    if before is None or after is None or loses_store(difference):
        return ()
    old = dict(
        zip(before.values["brokers"], before.values["names_at_brokers"] or before.values["prefixes"], strict=True)
    )
    new = dict(zip(after.values["brokers"], after.values["names_at_brokers"] or after.values["prefixes"], strict=True))
    return tuple(broker for broker, name in old.items() if new.get(broker) != name)
