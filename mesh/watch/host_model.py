"""The model of all nodes on one host: its entities, and how the records of the nodes change the entities. Sans-IO.

`NodeRecords` is the records of one run of a node. A node that starts again has a new run, with new numbers of links and
connections; its counts, and those of addresses, patterns and users, go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from addressing.address import Address
from mesh.watch.counts import OUTCOME_FIELDS, DeliveryCounts, DeliverySums
from mesh.watch.declared_limits import NO_LIMITS, DeclaredLimits
from mesh.watch.idle_addresses import IdleAddresses
from mesh.watch.slots import Alike, RingRecords, Row
from mesh.watch.states import (
    ENDED,
    LOST,
    RUNNING,
    SILENT,
    SILENT_S,
    NodeAddress,
    ObservedAddress,
    ObservedConnection,
    ObservedLink,
    ObservedNeighbor,
    ObservedNode,
    ObservedPath,
    ObservedPattern,
    ObservedQueue,
    ObservedUser,
    PatternQueueTotals,
    RouteCounts,
)
from recording.columns import STOPPED, DeliveryPart, RecordEvent, RecordKind
from recording.entities import ADDRESS, CONNECTION, LINK, NEIGHBOR, NODE, PATH, PATTERN, QUEUE, USER, Entity
from recording.ring_format import KINDS, PARTS

ENDED_KEPT_S: Final = 5.0
"""For how long a link that ended is known: the sums of its last second come after the record of its end."""
LEAST_RATED_S: Final = 2.0
"""The shortest time over which a rate is computed: nodes write sums once a second, so less would show leaps."""
ANONYMOUS: Final = "anonymous"
"""The user of clients without one."""
_MESSAGES: Final = {code: event.value for code, (_, event) in KINDS.items() if event is not None}
_MANY: Final = next(code for code, part in PARTS.items() if part is DeliveryPart.MANY)
_COPY: Final = next(code for code, part in PARTS.items() if part is DeliveryPart.COPY)
_CLIENT: Final = "client"
_OPERATOR: Final = "operator"
_BROKER: Final = "broker"
"""Role of a router's link to a broker, or from a broker."""
_CIRCUIT: Final = "circuit"
"""Role of a link between two routers."""
_PRODUCER: Final = "producer"
_CONSUMER: Final = "consumer"
"""Roles of clients' links at a router."""
_NAMED_BY: Final = {
    RecordKind.CONNECTION: "connection",
    RecordKind.LINK: "link",
    RecordKind.QUEUE: "queue",
    RecordKind.NEIGHBOR: "neighbor",
    RecordKind.PATH: "egress",
}
"""By the kind of a record, the column that names what the record describes."""
# As texts: to reach a member of an enum through its class takes as long as a call, and each record is asked.
_OPENED: Final = RecordEvent.OPENED.value
_CLOSED: Final = RecordEvent.CLOSED.value
_LIVE: Final = RecordEvent.LIVE.value
_Thing = tuple[str, Any]
"""Kind and number, or kind and name."""

PatternOf = Callable[[str], "tuple[str, str] | None"]
"""Returns the declared pattern that covers an address, and its type, or None."""


class HostModel:
    """The entities of a host. ``pattern_of`` is the topology's answer for an address.

    ``declared`` are the topology's patterns with their types, which are there before anybody uses them, and ``limits``
    its limits. ``is_detailed`` tells whether the counters of an address stay when nobody uses the address any more.
    ``host``: the id of the host, if observers of other hosts are there as well.
    """

    def __init__(
        self,
        pattern_of: PatternOf,
        declared: Iterable[tuple[str, str]] = (),
        limits: DeclaredLimits | None = None,
        is_detailed: Callable[[str], bool] = lambda _: False,
        host: str | None = None,
    ) -> None:
        self.host = host
        self.utc_s = 0.0
        """The time of the last `on_time`, in seconds of UTC."""
        self.nodes: dict[str, ObservedNode] = {}
        self.addresses: dict[str, ObservedAddress] = {}
        self.idle = IdleAddresses(is_detailed)
        """Those of ``addresses`` that nobody uses."""
        self.dropped_answers = 0
        """Answers to requests of `$management` that no client took."""
        self._limits = limits or DeclaredLimits()
        self.patterns = {pattern: self._new_pattern(pattern, type_) for pattern, type_ in declared}
        self.users: dict[str, ObservedUser] = {}
        self._pattern_of = pattern_of
        self._rated_at: float | None = None
        self._moving: set[DeliveryCounts] = set()
        """Counts that were added to since the last `on_time`, or have a rate that is not 0."""

    def states(self, entity: Entity) -> Collection[Any]:
        """Return the state of each ``entity``, in no order."""
        nodes = self.nodes.values()
        match entity.plural:
            case NODE.plural:
                return nodes
            case ADDRESS.plural:
                return self.addresses.values()
            case PATTERN.plural:
                return self.patterns.values()
            case USER.plural:
                return self.users.values()
            case CONNECTION.plural:
                return [each for node in nodes for each in node.connections.values()]
            case LINK.plural:
                return [each for node in nodes for each in node.links.values() if not each.is_ended]
            case QUEUE.plural:
                return [each for node in nodes for each in node.queues.values()]
            case NEIGHBOR.plural:
                return [each for node in nodes for each in node.neighbors.values()]
            case PATH.plural:
                return [each for node in nodes for each in node.paths.values()]
        raise ValueError(f"no state is kept of {entity.plural}")

    def node(self, name: str) -> ObservedNode:
        found = self.nodes.get(name)
        if found is None:
            found = self.nodes[name] = ObservedNode(name, self.host)
            found.counted_since = self.utc_s
            found.max_clients = self._limits.routers.get(name)
        return found

    def address(self, text: str) -> ObservedAddress | None:
        """Return the state of an address, which a link or a queue begins to use; None for addresses of the mesh itself.

        `leave` is called when the use ends.
        """
        found = self.addresses.get(text)
        if found is None:
            # Internal addresses begin so, also in other spaces; to parse each address would take 2 us.
            if text.startswith("_") and Address.parse(text).is_internal:
                return None
            found = self.addresses[text] = ObservedAddress(text, self._pattern(text))
        if not found.users_count:
            self.idle.use(text)
            if found.pattern is not None:
                found.pattern.addresses += 1
        found.users_count += 1
        return found

    def leave(self, address: ObservedAddress) -> None:
        address.users_count -= 1
        if not address.users_count:
            if address.pattern is not None:
                address.pattern.addresses -= 1
            forgotten = self.idle.keep(address.address)
            if forgotten is not None:
                del self.addresses[forgotten]

    def user(self, name: str | None) -> ObservedUser:
        name = name or ANONYMOUS
        found = self.users.get(name)
        if found is None:
            found = self.users[name] = ObservedUser(name, self._limits.users.get(name))
        return found

    def count(self, counts: DeliveryCounts, field: str, sums: DeliverySums) -> None:
        counts.add(field, sums)
        self._moving.add(counts)

    def on_time(self, utc_s: float, *, is_caught_up: bool = True) -> None:
        """Set the time, and compute rates of the deliveries that were added since the rates before. Call once a second.

        ``is_caught_up``: all records that the nodes have written so far were added. Without that, rates stay as they
        are. What was added before the first time that all were added has no rate: it may be hours old.
        """
        self.utc_s = utc_s
        for node in self.nodes.values():
            if node.is_over:
                node.age_s = max(0.0, utc_s - node.beat_at)
        if not is_caught_up:
            return
        passed_s = utc_s - self._rated_at if self._rated_at is not None else -1.0
        if passed_s < 0:
            self.skip_rates()
        elif passed_s >= LEAST_RATED_S:
            self._moving = {counts for counts in self._moving if counts.on_time(passed_s)}
            self._rated_at = utc_s

    def skip_rates(self) -> None:
        """Leave what was added so far out of all rates: nobody knows in which time it came."""
        for counts in self._moving:
            counts.skip()
        self._rated_at = self.utc_s

    def _pattern(self, address: str) -> ObservedPattern | None:
        found = self._pattern_of(address)
        if found is None:
            return None
        pattern, type_ = found
        state = self.patterns.get(pattern)
        if state is None:
            state = self.patterns[pattern] = self._new_pattern(pattern, type_)
        return state

    def _new_pattern(self, pattern: str, type_: str) -> ObservedPattern:
        return ObservedPattern(pattern, type_, self._limits.queues.get(pattern, NO_LIMITS))


class NodeRecords:
    """The records of one run of ``node``, and what they make of the entities of ``host``.

    ``began_at``: the start of the run, in seconds of UTC.
    """

    def __init__(self, host: HostModel, node: ObservedNode, began_at: float) -> None:
        self._host, self.node = host, node
        self._ended: deque[tuple[float, int]] = deque()
        self._totals: dict[int, PatternQueueTotals] = {}
        """By the number of a queue, also of one that ended a few seconds ago, the totals of its pattern."""
        self._ended_queues: deque[tuple[float, int]] = deque()
        self._utc_s = lambda: host.utc_s
        """The time, for all queues."""
        node.started_at, node.state, node.cause = began_at, RUNNING, None
        self._unsure: set[_Thing] = set()
        self._live_count = 0
        """Live rows since records were missed, or since the last list that was not complete."""
        self.wants_list = False
        """Whether the node is to list all that it has, since records were missed. Callers ask the node."""

    def set_role(self, role: str) -> None:
        self.node.role = role

    def on_missed(self) -> None:
        """Note that records were missed: whatever the next complete list of the node lacks has ended meanwhile.

        Until then all that is known stays.
        """
        node = self.node
        self._unsure = {
            *((RecordKind.CONNECTION, number) for number in node.connections),
            *((RecordKind.LINK, number) for number, link in node.links.items() if not link.is_ended),
            *((RecordKind.QUEUE, number) for number in node.queues),
            *((RecordKind.NEIGHBOR, name) for name in node.neighbors),
            *((RecordKind.PATH, name) for name in node.paths),
        }
        self._live_count = 0
        self.wants_list = True

    def add(self, records: RingRecords) -> None:
        """Take in records that the node wrote, in order.

        Sums come after the rows: a link is known by then, also one that has ended, for ENDED_KEPT_S.
        """
        for at_us, row in records.rows:
            self._on_row(at_us, row)
        for alike, sums in records.deliveries.items():
            self._on_deliveries(alike, sums)
        for (code, number), count in records.messages.items():
            queue = self.node.queues.get(number)
            if queue is not None:
                name = _MESSAGES[code]
                setattr(queue, name, getattr(queue, name) + count)
            totals = self._totals.get(number)
            if totals is not None:
                name = _MESSAGES[code]
                setattr(totals, name, getattr(totals, name) + count)

    def on_time(self) -> None:
        """Forget links and queues that ended a while ago."""
        links = self.node.links
        while self._ended and self._is_long_ago(self._ended[0][0]):
            link = links.pop(self._ended.popleft()[1], None)
            if link is not None:
                self._forget_link(link)
        while self._ended_queues and self._is_long_ago(self._ended_queues[0][0]):
            number = self._ended_queues.popleft()[1]
            if number not in self.node.queues:
                self._totals.pop(number, None)

    def _is_long_ago(self, at: float) -> bool:
        """Say whether ``at`` is ENDED_KEPT_S ago; also if it is in the future, since the clock was set back."""
        return not self._host.utc_s - ENDED_KEPT_S < at <= self._host.utc_s

    def end(self, state: str) -> None:
        """The run is over: end everything that the node had, and say that the node is in ``state``."""
        node = self.node
        for number in list(node.connections):
            self._close_connection(number)
        for link in list(node.links.values()):
            self._close_link(link)
            self._forget_link(link)
        node.links.clear()
        for queue in node.queues.values():
            self._leave_queue(queue)
        node.queues.clear()
        self._totals.clear()
        node.neighbors.clear()
        node.paths.clear()
        node.state = state

    # Rows
    def _on_row(self, at_us: int, row: Row) -> None:
        event = row.get("event")
        if self.wants_list:
            kind = row["kind"]
            self._unsure.discard((kind, row.get(_NAMED_BY.get(kind, ""))))
            self._live_count += event == _LIVE
        take = _TAKEN_BY.get(row["kind"])
        if take is not None:
            take(self, at_us, row, event)

    def _on_drop(self, at_us: int, row: Row, event: str | None) -> None:
        link = self.node.links.get(row.get("link", 0))
        if link is not None:
            link.missed += row.get("count", 0)
            self.node.missed += row.get("count", 0)

    def _on_node(self, at_us: int, row: Row, event: str | None) -> None:
        match event:
            case RecordEvent.CHANGED if "cpu_us" in row:
                self.node.cpu_s, self.node.resident_bytes = row["cpu_us"] / 1e6, row.get("resident_bytes")
            case RecordEvent.CLOSED:
                self.node.cause = row.get("cause")
            case RecordEvent.LISTED if self.wants_list:
                self._on_listed(row.get("count", 0))

    def _on_listed(self, count: int) -> None:
        """All that the node had is listed in ``count`` rows; end what is not, if all these rows were read."""
        if self._live_count < count:
            # The list began before the records that were missed.
            self._live_count = 0
            return
        unsure, self._unsure = self._unsure, set()
        self.wants_list = False
        node = self.node
        for kind, name in unsure:
            match kind:
                case RecordKind.CONNECTION:
                    self._close_connection(name)
                case RecordKind.LINK:
                    # A link may be forgotten by now, with a connection that ended.
                    if (link := node.links.get(name)) is not None:
                        self._close_link(link)
                case RecordKind.QUEUE:
                    self._close_queue(name)
                case RecordKind.NEIGHBOR:
                    node.neighbors.pop(name, None)
                case RecordKind.PATH:
                    node.paths.pop(name, None)

    def _on_connection(self, at_us: int, row: Row, event: str | None) -> None:
        number = row.get("connection")
        if not isinstance(number, int):
            return
        if event == _CLOSED:
            self._close_connection(number)
        elif number not in self.node.connections:
            opened_at = at_us / 1e6 if event == _OPENED else None
            found = self.node.connections[number] = ObservedConnection(self.node, number, row, opened_at)
            if found.role == _CLIENT and not self.node.is_broker:
                found.user = self._host.user(row.get("user"))
                found.user.connections += 1
                self.node.clients += 1

    def _close_connection(self, number: int) -> None:
        found = self.node.connections.pop(number, None)
        if found is None:
            return
        for link in list(found.links.values()):
            self._close_link(link)
        if found.user is not None:
            found.user.connections -= 1
            self.node.clients -= 1

    def _on_link(self, at_us: int, row: Row, event: str | None) -> None:
        number = row.get("link")
        if not isinstance(number, int):
            return
        link = self.node.links.get(number)
        if event == _CLOSED:
            if link is not None:
                self._close_link(link)
        elif link is None:
            self._open_link(row, at_us / 1e6 if event == _OPENED else None)
        elif link.connection is None and not link.is_ended:
            # The record of the connection was missed before, and listed meanwhile.
            self._join(link, row)

    def _open_link(self, row: Row, attached_at: float | None) -> None:
        link = self.node.links[row["link"]] = ObservedLink(self.node, None, row, attached_at)
        self.node.attached += 1
        self._join(link, row)
        address = link.address = self._host.address(link.address_text) if link.address_text else None
        if address is not None:
            address.treatment = address.treatment or link.treatment
            self._join_address(link, address)
            self._count_ends(link, address, 1)

    def _join(self, link: ObservedLink, row: Row) -> None:
        connection = link.connection = self.node.connections.get(row.get("connection", 0))
        if connection is not None:
            connection.links[link.number] = link
            if connection.role == _OPERATOR and link.role in (_PRODUCER, _CONSUMER):
                # Observers and commands are no clients, and what they say to each other is no traffic of clients.
                self._set_waiting(link, None)
                link.role = _OPERATOR
            if connection.user is not None:
                connection.user.links += 1

    def _join_address(self, link: ObservedLink, address: ObservedAddress) -> None:
        if self.node.is_broker:
            return
        there = self.node.addresses.get(address.address)
        if there is None:
            there = self.node.addresses[address.address] = NodeAddress(address)
        there.users_count += 1
        link.at_node = there

    def _close_link(self, link: ObservedLink) -> None:
        if link.is_ended:
            return
        self._set_waiting(link, None)
        link.is_ended = True
        self._ended.append((self._host.utc_s, link.number))
        self.node.attached -= 1
        if link.connection is not None:
            link.connection.links.pop(link.number, None)
            if link.connection.user is not None:
                link.connection.user.links -= 1
        if link.address is not None:
            self._count_ends(link, link.address, -1)

    def _forget_link(self, link: ObservedLink) -> None:
        """Leave the address of a link that has ended and whose sums have come, so that the address may be forgotten."""
        if link.address is not None:
            self._host.leave(link.address)
        if link.at_node is not None:
            link.at_node.users_count -= 1
            if not link.at_node.users_count:
                del self.node.addresses[link.at_node.address.address]

    def _count_ends(self, link: ObservedLink, address: ObservedAddress, change: int) -> None:
        if link.at_node is not None and link.role == _BROKER:
            link.at_node.brokers += change
        pattern, at_node = address.pattern, link.at_node
        if link.is_producer:
            address.producers += change
            if pattern is not None:
                pattern.producers += change
            if at_node is not None:
                at_node.producers += change
        elif link.is_consumer:
            address.consumers += change
            if pattern is not None:
                pattern.consumers += change
            if at_node is not None:
                at_node.consumers += change

    def _on_credit(self, at_us: int, row: Row, event: str | None) -> None:
        link = self.node.links.get(row.get("link", 0))
        if link is None or link.is_ended:
            return
        link.credit = row.get("credit", link.credit)
        if event == RecordEvent.DRAIN:
            return
        if "unsettled_count" in row:
            link.unsettled = row["unsettled_count"]
        starved_us, cause = row.get("starved_us", 0), row.get("cause")
        if starved_us:
            link.add_starved(cause, starved_us)
            if link.pattern_state is not None and link.is_producer:
                link.pattern_state.starved.add(cause, starved_us)
        # A record of a link that stands still has no cause: what the link waits for is still so, without credit.
        waits_for = (cause or link.waits_for) if not link.credit else None
        # A live row does not tell since when the sender has had no credit.
        self._set_waiting(link, waits_for, None if event == _LIVE else (at_us - starved_us) / 1e6)

    def _set_waiting(self, link: ObservedLink, cause: str | None, since: float | None = None) -> None:
        """Note that the sender of ``link`` waits for ``cause``; None is for not waiting.

        ``since``: begin of the wait if the sender did not wait before, in seconds of UTC; None if unknown.
        """
        before, link.waits_for = link.waits_for, cause
        if cause == before:
            return
        change = (cause is not None) - (before is not None)
        if change:
            link.waiting_since = since if cause is not None else None
        if change and (link.is_producer or self.node.is_broker):
            self.node.waiting_producers += change
        if link.is_producer:
            if link.address is not None:
                link.address.change_waiting(before, cause, link.waiting_since)
            if link.pattern_state is not None:
                link.pattern_state.waiting_producers += change

    def _on_queue(self, at_us: int, row: Row, event: str | None) -> None:
        number = row.get("queue")
        if not isinstance(number, int):
            return
        queue = self.node.queues.get(number)
        if event == _CLOSED:
            self._close_queue(number)
            return
        if queue is None:
            queue = self._open_queue(number, row)
        if "depth_count" in row:
            self._set_depth(queue, row["depth_count"])
            queue.depth_bytes, queue.acquired = row.get("depth_bytes", 0), row.get("acquired_count", 0)
            oldest_us = row.get("oldest_us")
            queue.came_at = None if oldest_us is None else (at_us - oldest_us) / 1e6

    def _open_queue(self, number: int, row: Row) -> ObservedQueue:
        queue = self.node.queues[number] = ObservedQueue(self.node, row, self._utc_s)
        address = queue.address = self._host.address(queue.address_text) if queue.address_text else None
        if address is None:
            return queue
        if queue.subscriber is None:
            address.queues_count += 1
            address.depth = address.depth or 0
        if address.pattern is not None:
            self._totals[number] = self.node.queue_totals.setdefault(address.pattern, PatternQueueTotals())
        return queue

    def _set_depth(self, queue: ObservedQueue, depth: int) -> None:
        if queue.address is not None and queue.subscriber is None:
            queue.address.depth = (queue.address.depth or 0) + depth - queue.depth
        queue.depth = depth

    def _close_queue(self, number: int) -> None:
        queue = self.node.queues.pop(number, None)
        if queue is not None:
            self._leave_queue(queue)
            self._ended_queues.append((self._host.utc_s, number))

    def _leave_queue(self, queue: ObservedQueue) -> None:
        self._set_depth(queue, 0)
        address = queue.address
        if address is None:
            return
        if queue.subscriber is None:
            address.queues_count -= 1
            if not address.queues_count:
                address.depth = None
        self._host.leave(address)

    def _on_neighbor(self, at_us: int, row: Row, event: str | None) -> None:
        name, known = row.get("neighbor"), self.node.neighbors
        if name is None:
            return
        if event == _CLOSED:
            known.pop(name, None)
        elif name in known:
            known[name].cost = row.get("cost")
        else:
            since = at_us / 1e6 if event == _OPENED else None
            known[name] = ObservedNeighbor(self.node, name, row.get("cost"), since)

    def _on_path(self, at_us: int, row: Row, event: str | None) -> None:
        if "egress" not in row:
            return
        if event == _CLOSED:
            self.node.paths.pop(row["egress"], None)
        else:
            since = None if event == _LIVE else at_us / 1e6
            self.node.paths[row["egress"]] = ObservedPath(self.node, row, since)

    # Deliveries
    def _on_deliveries(self, alike: Alike, sums: DeliverySums) -> None:
        field = OUTCOME_FIELDS.get(alike.outcome, "settled")
        links = self.node.links
        incoming, outgoing = links.get(alike.incoming), links.get(alike.outgoing)
        if not alike.incoming and not alike.outgoing:
            # A message that the router refused to a client without a fixed address; the record does not name the link.
            self._host.count(self.node.incoming, field, sums)
            self._host.count(self.node.ingress, field, sums)
        elif alike.part != _COPY:
            self._on_arrivals(field, sums, incoming, outgoing, is_from_link=bool(alike.incoming))
        if alike.part != _MANY and alike.outgoing:
            self._on_departures(field, sums, outgoing)
        self._on_routed(alike.part, sums.count, incoming, outgoing)

    def _on_routed(self, part: int, count: int, incoming: ObservedLink | None, outgoing: ObservedLink | None) -> None:
        """Count deliveries that a router passed on, by the kinds of links on both sides."""
        came, went = incoming.role if incoming is not None else "", outgoing.role if outgoing is not None else ""
        at = incoming.at_node if incoming is not None else None
        if at is None and outgoing is not None:
            # What a producer without a fixed address sends leaves over links of the messages' addresses.
            at = outgoing.at_node
        sums: tuple[RouteCounts, ...] = (self.node.routed,) if at is None else (self.node.routed, at)
        for each in sums:
            if part != _COPY:
                each.ingress += count * (came == _PRODUCER)
                each.from_brokers += count * (came == _BROKER)
            if part != _MANY:
                each.egress += count * (went == _CONSUMER)
                each.to_brokers += count * (went == _BROKER)
                each.transit += count * (came == went == _CIRCUIT)

    def _on_arrivals(
        self,
        field: str,
        sums: DeliverySums,
        incoming: ObservedLink | None,
        outgoing: ObservedLink | None,
        *,
        is_from_link: bool,
    ) -> None:
        count = self._host.count
        if is_from_link:
            count(self.node.incoming, field, sums)
        if incoming is None:
            return
        count(incoming.counts, field, sums)
        connection = incoming.connection
        if connection is not None:
            count(connection.incoming, field, sums)
        if not incoming.is_producer:
            return
        count(self.node.ingress, field, sums)
        self.node.latencies.add(sums.latencies)
        if connection is not None and connection.user is not None:
            count(connection.user.ingress, field, sums)
        address = incoming.address
        if incoming.address_text is None and outgoing is not None:
            # What a producer without a fixed address sends leaves over links of the messages' addresses.
            address = outgoing.address
        if address is not None:
            count(address.ingress, field, sums)
            if address.pattern is not None:
                count(address.pattern.ingress, field, sums)
                address.pattern.latencies.add(sums.latencies)

    def _on_departures(self, field: str, sums: DeliverySums, outgoing: ObservedLink | None) -> None:
        count = self._host.count
        count(self.node.outgoing, field, sums)
        if outgoing is None:
            return
        count(outgoing.counts, field, sums)
        connection = outgoing.connection
        if connection is not None:
            count(connection.outgoing, field, sums)
        if not outgoing.is_consumer:
            return
        count(self.node.egress, field, sums)
        if connection is not None and connection.user is not None:
            count(connection.user.egress, field, sums)
        if outgoing.address is not None:
            count(outgoing.address.egress, field, sums)
            if outgoing.address.pattern is not None:
                count(outgoing.address.pattern.egress, field, sums)


_TAKEN_BY: Final[dict[str, Callable[[NodeRecords, int, Row, str | None], None]]] = {
    RecordKind.CONNECTION: NodeRecords._on_connection,
    RecordKind.LINK: NodeRecords._on_link,
    RecordKind.CREDIT: NodeRecords._on_credit,
    RecordKind.QUEUE: NodeRecords._on_queue,
    RecordKind.DROP: NodeRecords._on_drop,
    RecordKind.NEIGHBOR: NodeRecords._on_neighbor,
    RecordKind.PATH: NodeRecords._on_path,
    RecordKind.NODE: NodeRecords._on_node,
}
"""By the kind of a record, what takes it in."""


def state_of(age_s: float, *, is_abandoned: bool, cause: str | None) -> str:
    """Return the state of a node whose ring was written ``age_s`` ago, as entity `node` has it.

    ``cause``: the reason in the record of the node's end; None without such a record.
    """
    if is_abandoned:
        return ENDED if cause == STOPPED else LOST
    return SILENT if age_s >= SILENT_S else RUNNING
