"""A broker as a node of the mesh: the node owns all state of the broker, and does no I/O.

The driver gives the node the inputs of connections (``wire.node.Node``). `broker.disk.Disk` takes the work for the disk
from the node and returns the results: ``take_batch`` and ``on_committed``, ``take_fetches`` and ``on_fetched``, and
``on_space``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from addressing.book import SpaceBooks
from addressing.pattern import PatternMap
from broker.addresses import BrokerAddresses
from broker.events import DiskFine, DiskLow, MemoryFine, MemoryLow, MessageUnreadable, SubscriberBehind
from broker.links.attachments import Attachments
from broker.links.forced_ends import BrokerForcedEnds
from broker.links.incoming import ProducerGate
from broker.links.link_log import BrokerLinkLog
from broker.links.second_settlement import SecondSettlements
from broker.operating.administration import Administration
from broker.operating.control import Control
from broker.queueing.body_cache import BodyCache, Fetch
from broker.queueing.client_queues import ClientQueues
from broker.queueing.commit import Commits
from broker.queueing.expired_subscriptions import ExpiredSubscriptions
from broker.queueing.held_queue import QueueSummary
from broker.queueing.message_store import MessageStore
from broker.queueing.recovery import recover_queues
from broker.queueing.subscribers import Subscribers
from broker.queueing.subscription_owners import SubscriptionOwners
from broker.queueing.subscriptions import TopicSubscriptions
from broker.store.batch import Inventory, UnreadableBody, WriteBatch
from broker.store.space import Space, Watermark
from recording.records import Recorder
from wire.core import DirtyEndpoints
from wire.endpoint import MAX_SESSIONS_BETWEEN_NODES, Endpoint, EndpointSettings, Peer
from wire.engine import Pointer
from wire.errors import LocalStateError
from wire.events import Closed, LinkAttached, LinkDetached, Opened
from wire.forced_end import ForcedEnd
from wire.link import IncomingLink, Link, OutgoingLink
from wire.log import Emit, emit
from wire.lost_links import TURN_S, LostLinks
from wire.node import Command
from wire.request_link import RequestLink

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress, Topology

MAX_LINKS_PER_CONNECTION = 100_000
PRODUCT = "amqpmesh broker"


@dataclass(frozen=True, slots=True)
class BrokerNodeSnapshot:
    name: str
    queues: tuple[QueueSummary, ...]
    connection_count: int
    link_count: int
    unsynced_bytes: int
    pinned_bytes: int
    is_disk_low: bool
    is_memory_low: bool


class BrokerNode:
    """All state of a broker: links, queues, messages, and writes under way to the disk.

    ``wall_offset_s``: wall clock less monotonic clock, read once at the start: deadlines on disk are wall time, and
    setting the clock later must neither expire messages nor keep expired ones. ``secret`` makes the addresses of
    dynamic termini hard to guess. ``clock`` gives monotonic seconds, by which the steps of operators' work are made
    short; without it time stands still during an input. ``spaces`` are the declarations of further spaces; the topology
    file has none yet.
    ``least_number``: no message gets a smaller number, by which operators know it.
    """

    def __init__(
        self,
        name: str,
        topology: Topology,
        inventory: Inventory,
        *,
        now: float,
        wall_offset_s: float,
        secret: str,
        log: Emit = emit,
        recorder: Recorder,
        clock: Callable[[], float] | None = None,
        spaces: Mapping[str, Mapping[str, DeclaredAddress]] | None = None,
        least_number: int = 1,
    ) -> None:
        self.name = name
        self._endpoint_settings = EndpointSettings(
            name,
            max_frame_bytes=32768,
            max_sessions=MAX_SESSIONS_BETWEEN_NODES,
            max_links=MAX_LINKS_PER_CONNECTION,
            properties={"product": PRODUCT},
            offered_capabilities=("ANONYMOUS-RELAY", "SHARED-SUBS"),
        )
        self.dirty = DirtyEndpoints()
        self.commands: list[Command] = []
        self._endpoints: dict[Endpoint, None] = {}
        self._lost = LostLinks(self._want_turn)
        self._turn_at: float | None = None
        self._log = log
        self._recorder = recorder
        self._commits = Commits()
        self._body_cache = BodyCache()
        books = SpaceBooks(topology, spaces)
        addresses = self._addresses = BrokerAddresses(name, books)
        self._message_store = MessageStore(
            self._commits, self._body_cache, recorder, wall_offset_s, addresses.queue_policy
        )
        self._live_rows_at: float | None = None
        self._link_log = BrokerLinkLog(
            recorder, self._message_store.every_queue, self._message_store.oldest_us, self._want_live_rows, log
        )
        self._gate = ProducerGate(self._commits, self._body_cache)
        self._last_words = SecondSettlements()
        self._is_memory_low = False
        self._watermark = Watermark(topology.brokers[name].disk_free_min_bytes)
        self._abandoned = ExpiredSubscriptions(self._message_store, addresses.subscription_expiry_s, log)
        self._made = ClientQueues(self._message_store, addresses.pattern_policy, wall_offset_s, log)
        serials = itertools.count(1)
        owners = SubscriptionOwners(topology, partial(books.name_in_space, name), self._message_store, log)
        self._attachments = Attachments(
            addresses,
            self._made,
            TopicSubscriptions(self._message_store, Subscribers(topology.mesh), self._abandoned, owners),
            self._message_store,
            self._body_cache,
            self._commits,
            self._gate,
            self._last_words,
            lambda: f"{secret}.{next(serials)}",
            log,
            self._link_log,
        )
        self._forced_ends = BrokerForcedEnds(name, self._link_log, self._attachments, log)
        administration = Administration(
            addresses,
            self._message_store,
            self._attachments.evict,
            wall_offset_s,
            clock or (lambda: self._message_store.now),
        )
        self._control = Control(name, administration, self._message_store, self._commits, log)
        recover_queues(self._message_store, inventory, now, least_number)
        self._abandoned.begin(now)
        self._made.begin(now)

    def _look_at_clock(self, now: float) -> None:
        self._message_store.now = now
        self._recorder.set_now(now)

    # The disk

    def take_batch(self) -> WriteBatch | None:
        """Return the batch of writes to commit now; the caller calls ``on_committed`` once the batch is on disk.

        None while another batch is being committed, or no write has to go to the disk yet.
        """
        return self._commits.take(self._message_store.now)

    def on_committed(self, now: float) -> None:
        self._look_at_clock(now)
        self._commits.on_committed(now)
        self._settle_down(now)

    def take_fetches(self) -> list[Fetch]:
        """Return, once, the reads of message bodies to make now; the caller passes the bodies to ``on_fetched``."""
        return self._body_cache.take_fetches()

    def on_fetched(self, fetches: Sequence[Fetch], bodies: Sequence[bytes | UnreadableBody], now: float) -> None:
        self._look_at_clock(now)
        for fetch, body in zip(fetches, bodies, strict=True):
            if isinstance(body, UnreadableBody):
                self._log(MessageUnreadable(fetch.address, body.message_id, body.why))
                fetch.on_unreadable(now)
            else:
                fetch.on_body(body, now)
        self._settle_down(now)

    def on_space(self, space: Space, now: float) -> None:
        """Take a measure of the disk's room; while it is low, producers of stored or large messages have to wait.

        Each change between low and enough room is logged, as `DiskLow` or `DiskFine`.
        """
        self._look_at_clock(now)
        if not self._watermark.on_space(space):
            return
        self._gate.on_disk(is_low=self._watermark.is_low)
        kind = DiskLow if self._watermark.is_low else DiskFine
        self._log(
            kind(
                space.directory,
                space.free_bytes,
                space.reusable_bytes,
                space.reserve_bytes,
                self._watermark.wanted_of(space),
            )
        )
        self._settle_down(now)

    # The driver

    def on_accepted(self, listener: str, peer: Peer, now: float) -> Endpoint:
        endpoint = Endpoint(self._endpoint_settings, peer, self.dirty)
        self._endpoints[endpoint] = None
        return endpoint

    def on_connected(self, connector: str, peer: Peer, now: float) -> Endpoint:
        raise LocalStateError(
            f"bug in this program: connector {connector!r} is reported as connected, but a broker has no connectors"
        )

    def on_connect_failed(self, connector: str, reason: str, now: float) -> None:
        raise LocalStateError(
            f"bug in this program: connector {connector!r} is reported as failed ({reason}), but a broker has no "
            "connectors"
        )

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        self._look_at_clock(now)
        for event in endpoint.drain(self):
            match event:
                case Opened():
                    endpoint.open()
                    self._link_log.on_opened(endpoint)
                case LinkAttached(IncomingLink() as link) if self._control.is_for(link):
                    self._control.attach(link)
                case LinkAttached(link):
                    self._attachments.attach(link, now)
                case LinkDetached(link, closed, error):
                    # The end of a session detaches its links, but does not close them: durable subscriptions stay.
                    self._attachments.detach(link, now, closed=closed and link.has_peer_left, error=error)
                case Closed():
                    self._lost.on_closed(endpoint, self._end_link)
        endpoint.wake_waiters()
        self._settle_down(now)

    def on_writable(self, endpoint: Endpoint, now: float) -> None:
        self._look_at_clock(now)
        endpoint.wake_waiters()
        self._settle_down(now)

    def on_disconnected(self, endpoint: Endpoint, reason: str, now: float) -> None:
        self._look_at_clock(now)
        self._link_log.on_disconnected(endpoint, reason)
        self._endpoints.pop(endpoint, None)
        self._lost.on_lost(endpoint, self._end_link)
        self._settle_down(now)

    def on_time(self, now: float) -> None:
        self._look_at_clock(now)
        self._message_store.on_time(now)
        self._message_store.published.on_time(now)
        self._message_store.used.on_time(now)
        self._abandoned.on_time(now)
        self._made.on_time(now)
        self._last_words.on_time(now)
        self._commits.on_time(now)
        self._control.on_time()
        self._take_turn(now)
        self._write_live_rows(now)
        self._settle_down(now)

    def on_second(self, now: float) -> None:
        """Write into the link log's ring the records of links and queues that changed in the last second."""
        self._look_at_clock(now)
        self._link_log.on_second(now)

    def recorded_counts(self) -> tuple[int, int]:
        """Return the numbers of connections and links in the link log that have not ended."""
        return self._link_log.counts()

    def list_live(self, now: float) -> int:
        """Begin to write the live rows of all connections, links and queues into the ring of the link log.

        Return the number of the slot from which on the rows follow. Raises ValueError if the broker has no ring.
        """
        self._look_at_clock(now)
        return self._link_log.live_rows.request()

    def endpoint_of(self, number: int) -> Endpoint:
        """Return the endpoint of the open connection with this number. Raises ValueError if there is none."""
        return self._forced_ends.endpoint(number)

    def close_connection(self, number: int, forced: ForcedEnd, now: float) -> None:
        """Close a connection, by its number in the records, by an operator's request.

        Raises ValueError if there is no such connection.
        """
        self._look_at_clock(now)
        self._forced_ends.close_connection(number, forced)
        self._settle_down(now)

    def close_link(self, connection: int, number: int, forced: ForcedEnd, now: float) -> None:
        """Close the link of a client or operator, by its number in the records, by an operator's request.

        Raises ValueError if there is no such link, or it is a router's own.
        """
        self._look_at_clock(now)
        self._forced_ends.close_link(connection, number, forced, now)
        self._settle_down(now)

    def check_added(self, added: Mapping[str, DeclaredAddress]) -> None:
        """Raise ValueError if a queue or subscription is stored here to which ``added``, declarations, give a policy.

        It was declared once, and no link can use it now. It has no limits until the broker starts again.
        """
        at_broker = {entry.broker_address: entry for entry in added.values() if entry.broker_address}
        names = PatternMap({**added, **at_broker})
        for held in self._message_store.every_queue():
            if names.find(held.address) is not None and self._addresses.resolve(held.address) is None:
                raise ValueError(
                    f"the broker stores {held.address} from an earlier topology, and would begin to serve it as "
                    "the added address"
                )

    def add_addresses(self, added: Mapping[str, DeclaredAddress], now: float) -> None:
        """Serve the addresses that ``added``, further declarations of the topology, declare."""
        self._look_at_clock(now)
        self._addresses.adopt(self._addresses.extended(added))
        self._settle_down(now)

    def next_deadline(self) -> float | None:
        deadlines = (
            self._message_store.next_deadline(),
            self._message_store.published.next_deadline(),
            self._message_store.used.next_deadline(),
            self._abandoned.next_deadline(),
            self._made.next_deadline(),
            self._last_words.next_deadline(),
            self._commits.next_deadline(),
            self._control.next_deadline(),
            self._turn_at,
            self._live_rows_at,
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    # Methods of wire.events.Sink, for events of links with requests to the broker itself, and of links without an
    # owner, such as a link that has ended.

    def on_delivery(self, link: IncomingLink, delivery: Pointer) -> None:
        if isinstance(link.owner, RequestLink):
            link.owner.on_delivery()

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        pass

    def on_flow(self, link: IncomingLink | OutgoingLink) -> None:
        pass

    # Closing

    def close(self) -> None:
        """Add the last writes of a broker that stops in order, and make all writes due: ``take_batch`` returns them.

        Call after the last connection ended.
        """
        self._message_store.close()
        self._commits.close()

    def snapshot(self) -> BrokerNodeSnapshot:
        return BrokerNodeSnapshot(
            self.name,
            self._message_store.summaries(),
            len(self._endpoints),
            self._attachments.count,
            self._commits.unsynced_bytes,
            self._body_cache.pinned_bytes,
            self._watermark.is_low,
            self._is_memory_low,
        )

    # Within

    def _end_link(self, link: Link) -> None:
        self._attachments.end(link, self._message_store.now)

    def _want_turn(self) -> None:
        self._turn_at = self._message_store.now + TURN_S

    def _take_turn(self, now: float) -> None:
        if self._turn_at is not None and now >= self._turn_at:
            self._turn_at = None
            self._lost.take_turn()

    def _want_live_rows(self, delay_s: float) -> None:
        self._live_rows_at = self._message_store.now + delay_s

    def _write_live_rows(self, now: float) -> None:
        if self._live_rows_at is not None and now >= self._live_rows_at:
            self._live_rows_at = None
            self._link_log.live_rows.take_turn()

    def _settle_down(self, now: float) -> None:
        """Do what follows each input: write as much as possible to consumers, and let waiting producers go on.

        Producers go on only while their gate is open. Evictions and changes of memory shortage are logged as events;
        queues made or deleted go into the link log.
        """
        self._message_store.pump(now)
        while self._gate.let_in():
            self._message_store.pump(now)
        self._tell_of_memory()
        self._link_log.settle()

    def _tell_of_memory(self) -> None:
        for held, count, size_bytes in self._message_store.eviction.take_given_way():
            self._log(SubscriberBehind(held.address, held.subscriber, count, size_bytes))
        if self._gate.is_short_of_memory != self._is_memory_low:
            self._is_memory_low = not self._is_memory_low
            kind = MemoryLow if self._is_memory_low else MemoryFine
            self._log(kind(self._body_cache.pinned_bytes))
