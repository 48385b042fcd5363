"""Writes the state records of a broker for its link log: of connections, links, queues, and the depth of queues.

Records of single messages are written elsewhere (`broker.queueing.message_records`), as messages enter and leave
queues, and name queues by the numbers that are recorded here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from broker.links.incoming import BrokerReceiver
from broker.links.link_name import name_of
from broker.links.outgoing import BrokerSender
from broker.queueing.held_queue import HeldQueue
from recording.columns import RecordEvent, RecordKind
from recording.live_rows import LiveRows, RowMaker
from recording.pending_records import Row
from recording.records import Recorder
from recording.state_records import AT_ONCE, StateRecorder, row_of
from wire.end_reasons import told
from wire.endpoint import Endpoint
from wire.errors import AmqpError
from wire.link import Link
from wire.log import Emit

ROUTER = "amqpmesh.router"
"""The property in the OPEN of a router, by which the log knows a router that has no certificate."""
_CLIENT = "client"


@dataclass(frozen=True, slots=True)
class _RecordedLink:
    """An attached link with a state record: its number, and the treatment of its address."""

    number: int
    treatment: str | None


class BrokerLinkLog:
    """Writes the state records of one broker: connections, links and queues that began, changed or ended.

    ``queues()`` returns all queues and subscriptions; ``oldest_us`` gives the age of a queue's oldest waiting message,
    in microseconds. ``want_turn(delay_s)`` is called when ``live_rows.take_turn`` is to be called after this delay, in
    seconds.
    """

    def __init__(
        self,
        recorder: Recorder,
        queues: Callable[[], Iterable[HeldQueue]],
        oldest_us: Callable[[HeldQueue], int | None],
        want_turn: Callable[[float], None],
        log: Emit,
    ) -> None:
        self._recorder = recorder
        self._teller = StateRecorder(recorder, log)
        self._tell = self._teller.tell
        self._connections: dict[Endpoint, int] = {}
        self._links: dict[Link, _RecordedLink] = {}
        """The recorded links that are attached; only links of recorded connections are recorded."""
        self._last_connection = self._last_link = 0
        self._queues = queues
        self._oldest_us = oldest_us
        self.live_rows = LiveRows(self._teller, self._things, want_turn)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of connections and links that have a state record, and have not ended."""
        return len(self._connections), len(self._links)

    def endpoint_of(self, connection: int) -> Endpoint | None:
        """Return the endpoint of the recorded connection with this number; None if there is none."""
        return next((endpoint for endpoint, number in self._connections.items() if number == connection), None)

    def connection_numbers(self) -> list[int]:
        return list(self._connections.values())

    def links_of(self, endpoint: Endpoint) -> dict[int, Link]:
        """Return the recorded links of a connection that are attached, by their numbers in the records."""
        return {self._links[link].number: link for link in endpoint.links if link in self._links}

    # Connections
    def on_opened(self, endpoint: Endpoint) -> None:
        """Record a connection whose peer has sent its OPEN, which identifies the peer, if the link log is on."""
        if self._teller.is_on and endpoint.remote is not None:
            self._last_connection += 1
            self._connections[endpoint] = self._last_connection
            self._teller.tell_opened(self._last_connection, _role_of(endpoint), endpoint)

    def on_disconnected(self, endpoint: Endpoint, reason: str) -> None:
        """Record that a connection is gone for whatever ``reason``, and with it the links that are still attached.

        Call before the links of the connection end.
        """
        number = self._connections.pop(endpoint, None)
        if number is not None:
            links = [self._forget(link) for link in endpoint.links if link in self._links]
            self._teller.tell_lost(number, links, reason)

    # Links
    def on_attached(self, worker: BrokerReceiver | BrokerSender, treatment: str | None) -> None:
        if worker.link.endpoint in self._connections:
            self._last_link += 1
            self._links[worker.link] = _RecordedLink(self._last_link, treatment)
            self._tell(RecordKind.LINK, RecordEvent.OPENED, **self._link_columns(worker))

    def _link_columns(self, worker: BrokerReceiver | BrokerSender) -> Row:
        link = worker.link
        recorded = self._links[link]
        send, receive = link.settle_modes
        is_incoming, role = isinstance(worker, BrokerReceiver), _role_of(link.endpoint)
        return {
            "link": recorded.number,
            "connection": self._connections[link.endpoint],
            "role": ("producer" if is_incoming else "consumer") if role == _CLIENT else role,
            "direction": "incoming" if is_incoming else "outgoing",
            "address": worker.address,
            "treatment": recorded.treatment,
            "name": name_of(link),
            "sender_settle_mode": send,
            "receiver_settle_mode": receive,
        }

    def on_detached(self, link: Link, error: AmqpError | None) -> None:
        """Record the detach of a link, unless its attach was never recorded, or its connection is recorded as gone."""
        if link in self._links:
            connection = self._connections[link.endpoint]
            self._teller.tell_detached(self._forget(link), connection, told(error))

    def _forget(self, link: Link) -> int:
        number = self._links.pop(link).number
        if isinstance(link.owner, BrokerReceiver):
            self._teller.tell_credit(number, link.owner, link.owner.waits_for)
            self._tell_lost(number, link.owner)
        return number

    def _tell_lost(self, number: int, receiving: BrokerReceiver) -> None:
        for cause, count in receiving.take_lost().items():
            self._tell(RecordKind.DROP, None, link=number, count=count, cause=cause)

    # Queues
    def settle(self) -> None:
        """Record the queues and subscriptions that were made or deleted since the last call."""
        if self._recorder.has_changes:
            for held, is_there, _ in self._recorder.take_changes():
                self._tell_queue(held, RecordEvent.OPENED if is_there else RecordEvent.CLOSED)

    def on_second(self, now: float) -> None:
        """Record the links and queue depths that changed in the last second."""
        self._recorder.set_now(now)
        self.settle()
        self._teller.end_second()
        for worker in self._recorder.take_moved(AT_ONCE):
            self._note(worker)
        for each in self._recorder.take_restless():
            if isinstance(each, BrokerReceiver):
                self._note_producer(each)
            else:
                each.rest()
                if not each.is_deleted:
                    self._tell_depth(each)
        self._teller.tell_starving(self._cause_of)
        self._teller.tell_standing(now)

    def _note(self, worker: BrokerReceiver | BrokerSender) -> None:
        worker.rest()
        recorded = self._links.get(worker.link)
        if recorded is not None:
            self._teller.is_moving(recorded.number, worker)

    def _note_producer(self, receiving: BrokerReceiver) -> None:
        recorded = self._links.get(receiving.link)
        if recorded is not None:
            self._teller.is_starving(recorded.number, receiving)
            self._tell_lost(recorded.number, receiving)

    def _cause_of(self, number: int, receiving: BrokerReceiver) -> str | None:
        recorded = self._links.get(receiving.link)
        return receiving.waits_for if recorded is not None and recorded.number == number else None

    def _tell_queue(self, held: HeldQueue, event: RecordEvent) -> None:
        self._tell(RecordKind.QUEUE, event, **_queue_columns(held))

    def _tell_depth(self, held: HeldQueue) -> None:
        self._tell(RecordKind.QUEUE, RecordEvent.CHANGED, queue=held.number, **self._depth_columns(held))

    def _depth_columns(self, held: HeldQueue) -> Row:
        depth = held.queue.snapshot()
        return {
            "depth_count": depth.available_count + depth.acquired_count,
            "depth_bytes": depth.size_bytes,
            "oldest_us": self._oldest_us(held),
            "acquired_count": depth.acquired_count,
        }

    # Live rows
    def _things(self) -> Iterator[RowMaker]:
        for endpoint in list(self._connections):
            yield partial(self._live_connection, endpoint)
        for link in list(self._links):
            yield partial(self._live_link, link)
            yield partial(self._live_credit, link)
        for held in self._queues():
            yield partial(self._live_queue, held)

    def _live_connection(self, endpoint: Endpoint) -> Row | None:
        number = self._connections.get(endpoint)
        return None if number is None else self._teller.live_connection(number, _role_of(endpoint), endpoint)

    def _live_link(self, link: Link) -> Row | None:
        if link not in self._links or link.is_gone:
            return None
        return row_of(RecordKind.LINK, RecordEvent.LIVE, **self._link_columns(link.owner))

    def _live_credit(self, link: Link) -> Row | None:
        recorded = self._links.get(link)
        return self._teller.live_credit(recorded.number) if recorded is not None else None

    def _live_queue(self, held: HeldQueue) -> Row | None:
        if held.is_deleted:
            return None
        return row_of(RecordKind.QUEUE, RecordEvent.LIVE, **_queue_columns(held), **self._depth_columns(held))


def _queue_columns(held: HeldQueue) -> Row:
    return {"queue": held.number, "address": held.address, "name": held.subscriber}


def _role_of(endpoint: Endpoint) -> str:
    if endpoint.peer.mesh_role is not None:
        return str(endpoint.peer.mesh_role)
    return "router" if endpoint.remote is not None and ROUTER in endpoint.remote.properties else _CLIENT
