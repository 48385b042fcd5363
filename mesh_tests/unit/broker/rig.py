"""A broker without sockets: real node, real store, clients in memory, a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any

from addressing.topology.model import Topology
from broker.node import BrokerNode, BrokerNodeSnapshot
from broker.queueing.commit import PATIENCE_S
from broker.queueing.held_queue import QueueSummary
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from recording.records import Recorder
from wire import delivery as deliveries
from wire import terminus
from wire.delivery import Outcome
from wire.endpoint import Endpoint, EndpointSettings, Peer
from wire.engine import Pointer
from wire.errors import AmqpError
from wire.events import LinkDetached, LinkEstablished
from wire.link import IncomingLink, Link, OutgoingLink
from wire.log import LogEvent
from wire.message import Message, decode, encode
from wire.routed_name import USER

TOPOLOGY = Topology.model_validate(
    {
        "mesh": "rig",
        "routers": {"r1": {}},
        "brokers": {"b1": {"data": "unused"}},
        "addresses": {
            "orders": "queue",
            "parked": "queue",
            "renamed": {"type": "queue", "broker_address": "its-name-here"},
            "news.#": "topic",
            "alerts.#": {"type": "topic", "subscription_expiry_s": 3600},
            "alerts.fire": {"type": "topic", "broker_address": "fire", "subscription_expiry_s": 60},
            "elsewhere": "anycast",
        },
    }
)
WALL_OFFSET_S = 1_700_000_000.0


def topology_with(addresses: dict[str, Any]) -> Topology:
    """Of one broker that keeps these."""
    nodes = {"mesh": "rig", "routers": {"r1": {}}, "brokers": {"b1": {"data": "unused"}}}
    return Topology.model_validate({**nodes, "addresses": addresses})


class Rig:
    def __init__(self, data: Path, topology: Topology = TOPOLOGY, recorder: Recorder | None = None) -> None:
        self.recorder = recorder or Recorder()
        self.step_clock: Callable[[], float] | None = None
        """The clock by which steps of operators' work are made short; None: time stands still in a step."""
        self.data = data
        self.topology = topology
        self.now = 1000.0
        self.log: list[LogEvent] = []
        self.least_number, self.wall_offset_s = 1, WALL_OFFSET_S
        self.is_disk_held = False
        self.clients: list[Client] = []
        self._start()

    def _start(self) -> None:
        self.store = SqliteStore(self.data)
        self.inventory = self.store.load()
        self.node = BrokerNode(
            "b1",
            self.topology,
            self.inventory,
            now=self.now,
            wall_offset_s=self.wall_offset_s,
            secret="secret",
            log=self.log.append,
            recorder=self.recorder,
            clock=lambda: self.now if self.step_clock is None else self.step_clock(),
            least_number=self.least_number,
        )

    def client(
        self,
        container_id: str = "client",
        *,
        is_mesh: bool = True,
        peer: Peer | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Client:
        settings = EndpointSettings(container_id, max_frame_bytes=32768, properties=properties or {})
        client = Client(self, settings, peer or Peer(is_mesh=is_mesh, remote_address="test", listener="nodes"))
        self.clients.append(client)
        self.run()
        return client

    def run(self) -> None:
        """Until nothing moves any more, and nothing waits to be written."""
        self.run_now()
        while not self.is_disk_held and (deadline := self.node.next_deadline() or inf) <= self.now + PATIENCE_S:
            self.now = max(self.now, deadline)
            self.node.on_time(self.now)
            self.run_now()

    def run_now(self) -> None:
        """As far as it goes without time passing."""
        while any([*(client.exchange() for client in self.clients), self._serve_disk()]):
            pass

    def advance(self, passed_s: float) -> None:
        self.now += passed_s
        deadline = self.node.next_deadline()
        if deadline is not None and deadline <= self.now:
            self.node.on_time(self.now)
        self.run()

    def crash_damaged(self) -> None:
        """Of a store that is not sound."""
        self.clients.clear()
        self.store.close()
        self._start()

    def crash(self, meanwhile: Callable[[], object] | None = None) -> None:
        """As kill -9: what was not committed is gone, nobody is told. ``meanwhile`` something happens to the files."""
        self.clients.clear()
        self.is_disk_held = False
        self.store.close()
        assert check(self.data).findings == []
        if meanwhile is not None:
            meanwhile()
        self._start()

    def restart(self) -> None:
        """In order."""
        for client in list(self.clients):
            client.vanish()
        self.node.close()
        self.run()
        self.crash()

    def snapshot(self) -> BrokerNodeSnapshot:
        return self.node.snapshot()

    def queue(self, address: str) -> QueueSummary:
        (found,) = [queue for queue in self.snapshot().queues if queue.address == address]
        return found

    def commit(self) -> None:
        """What is due, also while the disk is held."""
        batch = self.node.take_batch()
        assert batch is not None
        self.store.commit(batch)
        self.node.on_committed(self.now)

    def _serve_disk(self) -> bool:
        fetches = self.node.take_fetches()
        if fetches:
            self.node.on_fetched(fetches, self.store.read([fetch.wanted for fetch in fetches]), self.now)
        batch = None if self.is_disk_held else self.node.take_batch()
        if batch is not None:
            self.store.commit(batch)
            self.node.on_committed(self.now)
        return bool(fetches) or batch is not None


class Client:
    """One connection with one session."""

    def __init__(self, rig: Rig, settings: EndpointSettings, peer: Peer) -> None:
        self.rig = rig
        self.near = Endpoint(settings)
        self.far = rig.node.on_accepted("nodes", peer, rig.now)
        self.near.open()
        self.session = self.near.begin()

    def exchange(self) -> bool:
        """Carry bytes both ways; true when there were any."""
        near, far = self.near, self.far
        sent = b"".join(iter(near.output, b""))
        if sent:
            far.receive(sent)
            self.rig.node.on_input(far, self.rig.now)
        elif far.has_waiters:
            self.rig.node.on_writable(far, self.rig.now)
        answered = b"".join(iter(far.output, b""))
        if answered:
            near.receive(answered)
            self._on_events()
        return bool(sent or answered)

    def vanish(self) -> None:
        """As a broken connection."""
        self.rig.clients.remove(self)
        self.rig.node.on_disconnected(self.far, "broken", self.rig.now)
        self.far.free()
        self.rig.run()

    def producer(
        self, address: str | None, name: str = "producer", *, user: str | None = None, **fields: Any
    ) -> Producer:
        producer = Producer(self.rig, self.session.sender(name))
        if user is not None:
            producer.link.set_property(USER, user)
        producer.link.set_source(terminus.source("here"))
        producer.link.set_target(terminus.target(address, **fields))
        producer.link.open()
        self.rig.run()
        return producer

    def consumer(
        self,
        address: str | None,
        credit: int = 100,
        name: str = "consumer",
        *,
        settle_modes: tuple[int, int] | None = None,
        is_null: bool = False,
        user: str | None = None,
        max_message_bytes: int = 0,
        **fields: Any,
    ) -> Consumer:
        consumer = Consumer(self.rig, self.session.receiver(name))
        if user is not None:
            consumer.link.set_property(USER, user)
        consumer.link.set_source(terminus.NULL_TERMINUS if is_null else terminus.source(address, **fields))
        consumer.link.set_target(terminus.target("here"))
        consumer.link.set_max_message_bytes(max_message_bytes)
        if settle_modes is not None:
            consumer.link.set_settle_modes(*settle_modes)
        consumer.link.open()
        if credit:
            consumer.link.grant(credit)
        self.rig.run()
        return consumer

    def _on_events(self) -> None:
        for event in self.near.drain(self):
            match event:
                case LinkDetached(link, closed, error):
                    link.owner.detached = (closed, error)
                    link.close()
                case LinkEstablished(link):
                    link.owner.is_established = True

    def on_delivery(self, link: IncomingLink, delivery: Pointer) -> None:
        link.owner.on_delivery()

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        link.owner.on_disposition(delivery)

    def on_flow(self, link: IncomingLink | OutgoingLink) -> None:
        pass


class Producer:
    def __init__(self, rig: Rig, link: OutgoingLink) -> None:
        self.link = link
        self.detached: tuple[bool, AmqpError | None] | None = None
        self.is_established = False
        self.outcomes: dict[int, Outcome | None] = {}
        self._rig = rig
        self._numbers: dict[Pointer, int] = {}
        link.owner = self

    def send(self, body: Any = "x", *, is_settled: bool = False, runs: bool = True, **fields: Any) -> int:
        """Send a message; its number, under which ``outcomes`` has what came back."""
        return self.send_raw(encode(Message(body=body, **fields)), is_settled=is_settled, runs=runs)

    def send_raw(self, data: bytes, *, is_settled: bool = False, runs: bool = True) -> int:
        """``runs`` false: nothing moves before the next input."""
        number = len(self._numbers) + len(self.outcomes)
        delivery = self.start(str(number).encode())
        for start in range(0, len(data), 65536):
            self.link.send(data[start : start + 65536])
            if runs:
                self._rig.run()
        self.link.finish()
        if is_settled:
            deliveries.settle(delivery)
        else:
            self._numbers[delivery] = number
        if runs:
            self._rig.run()
        return number

    def start(self, tag: bytes) -> Pointer:
        assert self.link.credit > 0
        return self.link.start(tag)

    def on_disposition(self, delivery: Pointer) -> None:
        if deliveries.is_settled(delivery):
            self.outcomes[self._numbers.pop(delivery)] = deliveries.remote_outcome(delivery)
            deliveries.settle(delivery)


class Received:
    """One delivery that a consumer got."""

    def __init__(self, consumer: Consumer, delivery: Pointer, data: bytes) -> None:
        self.delivery = delivery
        self.data = data
        self.message = decode(data)
        self.is_given = False
        self.is_confirmed = False
        self.consumer = consumer

    def give(self, outcome: Outcome | None, *, settles: bool = True, runs: bool = True) -> None:
        self.is_given = True
        if outcome is not None:
            deliveries.set_outcome(self.delivery, outcome)
        if settles:
            deliveries.settle(self.delivery)
        self.consumer.link.endpoint.mark_dirty()
        if runs:
            self.consumer.rig.run()


class Consumer:
    def __init__(self, rig: Rig, link: IncomingLink) -> None:
        self.rig = rig
        self.link = link
        self.detached: tuple[bool, AmqpError | None] | None = None
        self.is_established = False
        self.received: list[Received] = []
        self._by_delivery: dict[Pointer, Received] = {}
        self._partial = b""
        link.owner = self

    @property
    def bodies(self) -> list[Any]:
        return [received.message.body for received in self.received]

    @property
    def counts(self) -> list[int]:
        return [received.message.delivery_count for received in self.received]

    def on_delivery(self) -> None:
        while (delivery := self.link.current) is not None:
            while piece := self.link.recv(65536):
                self._partial += piece
            if deliveries.is_aborted(delivery):
                self._partial = b""
                self.link.advance()
                deliveries.settle(delivery)
                continue
            if deliveries.is_partial(delivery):
                return
            self.link.advance()
            received = self._by_delivery[delivery] = Received(self, delivery, self._partial)
            self.received.append(received)
            self._partial = b""

    def on_disposition(self, delivery: Pointer) -> None:
        received = self._by_delivery.get(delivery)
        if received is not None and deliveries.is_settled(delivery):
            received.is_confirmed = True

    def close(self) -> None:
        self.link.close()
        self.rig.run()

    def detach(self) -> None:
        self.link.detach()
        self.rig.run()
