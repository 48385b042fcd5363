"""What must hold after every step of a random life; what can only be told at its end is in the walks.

producers   hear of an acceptance or rejection only when a consumer gave one, or a store has the message
            have no more credit than a listener promises
consumers   see only what was sent like that to the address it came from
            see a message of a multicast address once
            see any other again only with a delivery-count of 1 or more, unless who had it gave it back untouched
            do not see again what is over: confirmed to its taker, settled with its producer, or forgotten by its store
stores      forget only what a consumer accepted or rejected
nodes       want to be called at a moment that is not over
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from proton import Message

from addressing.kinds import AddressKind
from addressing.topology.model import Listener, Topology
from broker.store.batch import BodyRange, Inventory, QueueKind, Store, WriteBatch
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from recording.records import Recorder
from wire.delivery import OutcomeCode

LATE_S = 0.5
BEGINNING_BYTES = 1024
"""Of a large message: enough to tell which it is."""


class Life(Protocol):
    """Who knows what was sent."""

    def name_in(self, message: bytes) -> Hashable | None:
        """What the message of this beginning is called, however a broker changed its header; None: never sent."""

    def name_of(self, sender: SimSender, count: int) -> Hashable:
        """The same, by its sender's own count."""

    def sent_as(self, name: Hashable) -> tuple[str, bytes]:
        """The address that it went to, and its last section."""


@dataclass
class Known:
    """How much of what an end of a link tells was looked at."""

    messages: int = 0
    answers: int = 0
    confirmed: int = 0
    outcomes: int = 0
    has_left: bool = False
    names: set[Hashable] = field(default_factory=set)


class Invariants:
    """Raise AssertionError at the first step after which one of them does not hold."""

    def __init__(self, life: Life, topology: Topology) -> None:
        self._life = life
        self._kinds = {pattern: address.type for pattern, address in topology.addresses.items()}
        self._heirs = heirs(topology)
        self._lenient = {name for name, found in self._heirs.items() if len(found) > 1 or _is_limited(topology, name)}
        """Queues that give messages up: to other queues, or by refusing them when they are full."""
        self._credit = max(
            each.link_capacity for router in topology.routers.values() for each in router.listeners or [Listener()]
        )
        self._given_up = self._lenient | {heir for name in self._lenient for heir in self._heirs[name]}
        self._known: dict[SimReceiver | SimSender, Known] = {}
        self._clients: dict[SimClient, None] = {}
        self._now = 0.0
        self._overdue: dict[int, float] = {}
        self._late: dict[SimClient, float] = {}
        """Who did not read, or could not be written to: until then, what they see may have been sent long ago."""
        self._taken: set[Hashable] = set()
        self._rejected: set[Hashable] = set()
        self._given_back: Counter[Hashable] = Counter()
        self._sights: Counter[Hashable] = Counter()
        self._over: set[Hashable] = set()
        self._stored: set[Hashable] = set()
        self._copies: Counter[Hashable] = Counter()
        """In stores; two of one that was in doubt when it was sent again."""
        self._bodies: dict[tuple[str, int], Hashable] = {}
        """What each broker's store calls a message."""
        self._beginnings: dict[tuple[str, int], bytes] = {}
        self._queues: set[tuple[str, int]] = set()

    def on_step(self, node: Any, now: float) -> None:
        self._now = now
        self._check_deadline(node, now)
        if isinstance(node, SimClient):
            self._clients[node] = None
            if _is_held_up(node):
                self._late[node] = now + LATE_S
            self._look_at(node)
            for sender in node.senders:
                self._hear(sender)

    def _check_deadline(self, node: Any, now: float) -> None:
        """A deadline may be over when a node hears of it, as of a message that expired while its broker was down; then
        the node is called at that very moment."""
        deadline = node.next_deadline()
        if deadline is None or deadline >= now:
            self._overdue.pop(id(node), None)
            return
        since = self._overdue.setdefault(id(node), now)
        assert since == now, f"{node} wants to be called at {deadline}, and it is {now}"

    # Consumers
    def _look_at_all(self) -> None:
        """What a consumer did between two steps counts."""
        for client in self._clients:
            self._look_at(client)

    def _look_at(self, client: SimClient) -> None:
        for receiver in client.receivers:
            known = self._known.setdefault(receiver, Known())
            for message, came_settled in islice(
                zip(receiver.messages, receiver.came_settled, strict=True), known.messages, None
            ):
                self._see(receiver, message, known, is_late=self._late.get(client, 0) > self._now)
                if came_settled:
                    self._taken.add(self._life.name_in(message))
            for message, outcome in islice(receiver.answers, known.answers, None):
                self._answer(self._life.name_in(message), outcome.kind)
            self._over.update(map(self._life.name_in, self._confirmed(receiver, known)))
            known.messages, known.answers = len(receiver.messages), len(receiver.answers)
            known.confirmed = len(receiver.confirmed)
            if not known.has_left and (receiver.link.has_left or receiver.link.session.has_left):
                # A consumer that leaves in order gives back what it has no outcome for.
                known.has_left = True
                self._given_back.update(self._life.name_in(message) for _, message in receiver.held)

    def _confirmed(self, receiver: SimReceiver, known: Known) -> list[bytes]:
        """What its sender settled after it; what it only gave back may come again."""
        if known.confirmed == len(receiver.confirmed):
            return []
        said = dict(receiver.answers)  # of one that came again as it was, the last
        confirmed = receiver.confirmed[known.confirmed :]
        return [message for message in confirmed if said[message].kind in (OutcomeCode.ACCEPTED, OutcomeCode.REJECTED)]

    def _see(self, receiver: SimReceiver, message: bytes, known: Known, *, is_late: bool) -> None:
        name = self._life.name_in(message)
        assert name is not None, f"{receiver.address}: nobody sent {message[:60]!r}"
        address, end = self._life.sent_as(name)
        came_from = receiver.address or ""
        assert came_from in self._heirs[address], f"{name} for {address} came from {came_from}"
        assert message.endswith(end), f"{name} came with other bytes"
        match self._kinds[address]:
            case AddressKind.MULTICAST:
                assert name not in known.names, f"{name} was seen twice at {receiver.link.name}"
                known.names.add(name)
            case AddressKind.ANYCAST | AddressKind.QUEUE:
                if not is_late and address not in self._lenient:
                    self._see_once(name, message)
                self._sights[name] += 1

    def _see_once(self, name: Hashable, message: bytes) -> None:
        assert name not in self._over, f"{name} was seen again after all was said"
        if self._sights[name] > self._given_back[name]:
            assert _delivery_count(message) > 0, f"{name} was seen again with a delivery-count of 0"

    def _answer(self, name: Hashable, kind: OutcomeCode) -> None:
        match kind:
            case OutcomeCode.ACCEPTED:
                self._taken.add(name)
            case OutcomeCode.REJECTED:
                self._rejected.add(name)
            case OutcomeCode.RELEASED:
                self._given_back[name] += 1

    # Producers
    def _hear(self, sender: SimSender) -> None:
        known = self._known.setdefault(sender, Known())
        for count, outcome in islice(sender.outcomes.items(), known.outcomes, None):
            name = self._life.name_of(sender, count)
            self._judge(name, self._kinds[self._life.sent_as(name)[0]], outcome.kind)
        known.outcomes = len(sender.outcomes)
        credit = sender.link.credit
        assert credit <= self._credit + 1, (
            f"{sender.link.name} has a credit of {credit}, {self._credit} and a float of one were promised"
        )

    def _judge(self, name: Hashable, address: AddressKind, told: OutcomeCode) -> None:
        if address is AddressKind.TOPIC:
            return  # without subscribers the broker accepts, and keeps nothing
        self._look_at_all()
        if told is OutcomeCode.ACCEPTED:
            assert name in self._stored or name in self._taken, f"{name} is accepted, and nobody has it"
        elif told is OutcomeCode.REJECTED and self._life.sent_as(name)[0] not in self._lenient:
            assert name in self._rejected, f"{name} is rejected, and nobody did that"
        if address is AddressKind.ANYCAST and told is not OutcomeCode.MODIFIED and name not in self._stored:
            self._over.add(name)

    # Stores
    def on_start(self, broker: str) -> None:
        """What was not complete is gone, and its numbers are used again."""
        self._beginnings = {key: known for key, known in self._beginnings.items() if key[0] != broker}

    def on_commit(self, broker: str, batch: WriteBatch) -> None:
        """The store of this broker holds the batch."""
        for message_id, piece in batch.pieces:
            if len(known := self._beginnings.get((broker, message_id), b"")) < BEGINNING_BYTES:
                self._beginnings[broker, message_id] = known + piece[:BEGINNING_BYTES]
        for message_id, *_, body in batch.messages:
            name = self._life.name_in(self._beginnings.pop((broker, message_id)) if body is None else body)
            assert name is not None, f"{broker} stores what nobody sent"
            self._bodies[broker, message_id] = name
            self._stored.add(name)
            self._copies[name] += 1
        self._queues |= {
            (broker, row.queue_id)
            for row in batch.queues
            if row.kind is QueueKind.QUEUE and row.address not in self._given_up
        }
        for queue_id, messages in batch.archived.items():
            if (broker, queue_id) in self._queues:
                for message_id in messages:
                    self._forget(self._bodies[broker, message_id])
        for message_id in batch.unlinked:
            self._beginnings.pop((broker, message_id), None)

    def _forget(self, name: Hashable) -> None:
        self._look_at_all()
        assert name in self._taken or name in self._rejected, f"a store forgot {name}, and nobody took it"
        self._copies[name] -= 1
        if not self._copies[name]:
            self._over.add(name)


def heirs(topology: Topology) -> dict[str, set[str]]:
    """Of each address, itself and the queues to which its messages may go when it gives them up."""
    found = {name: {name} for name in topology.addresses}
    for name, known in found.items():
        waiting = [name]
        while waiting:
            address = topology.addresses[waiting.pop()]
            for heir in (address.dead_letter, address.expiry):
                if heir is not None and heir not in known:
                    known.add(heir)
                    waiting.append(heir)
    return found


def _is_limited(topology: Topology, name: str) -> bool:
    address = topology.addresses[name]
    return address.max_messages is not None or address.max_bytes is not None


def _delivery_count(message: bytes) -> int:
    found = Message()
    found.decode(message)
    return int(found.delivery_count)


def _is_held_up(client: SimClient) -> bool:
    ends = client.pipe.ends if client.pipe is not None else ()
    return any(end.is_output_blocked for _, end in ends) or not all(each.reads for each in client.receivers)


class CheckedMesh(SimMesh):
    """In which the invariants are looked at after every step."""

    def __init__(
        self,
        life: Life,
        topology: dict[str, Any],
        folder: Path,
        recorder_of: Callable[[str], Recorder] | None = None,
    ) -> None:
        parsed = Topology.model_validate(topology)
        self.invariants = Invariants(life, parsed)
        super().__init__(parsed, folder, recorder_of=recorder_of)

    def start_broker(self, name: str) -> None:
        super().start_broker(name)
        self.invariants.on_start(name)
        broker = self.brokers[name]
        broker.store = _WatchedStore(broker.store, name, self.invariants)

    def on_step(self, node: Any) -> None:
        self.invariants.on_step(node, self.now)


@dataclass
class _WatchedStore:
    store: Store
    broker: str
    invariants: Invariants

    def load(self) -> Inventory:
        return self.store.load()

    def commit(self, batch: WriteBatch) -> None:
        self.store.commit(batch)
        self.invariants.on_commit(self.broker, batch)

    def read(self, ranges: Sequence[BodyRange]) -> list[bytes]:
        return self.store.read(ranges)

    def close(self) -> None:
        self.store.close()
