"""A random life of a mesh: clients come, send and go; trunks, routers and brokers fail and return. Seeded.

What must hold after every step: `invariants`, and a delivery never has two outcomes. And at the end, once everything
is healed: routers know each other again soon; every delivery of a producer that is still there has an outcome; every
message that a queue accepted was taken by a consumer for good. What must hold of what comes next: `aftermath`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.aftermath import Aftermath
from mesh_tests.sim.faults import NodeFaults
from mesh_tests.sim.invariants import CheckedMesh
from mesh_tests.sim.leftovers import QUIET_S, leftovers
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, OutcomeCode, rejected
from wire.link import Link

TOPOLOGY: dict[str, Any] = {
    "mesh": "walk",
    "node_tls": False,
    "routers": {
        "r1": {"connect": ["r2", {"to": "r4", "cost": 3}]},
        "r2": {"connect": ["r3"]},
        "r3": {"connect": ["r4"]},
        "r4": {"connect": ["r2"]},
    },
    "brokers": {"b1": {"data": "b1", "routers": ["r3"]}, "b2": {"data": "b2", "routers": ["r1", "r4"]}},
    "addresses": {
        "rpc": "anycast",
        "prices": "multicast",
        "orders": {"type": "queue", "broker": "b1"},
        "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
        "news": {"type": "topic", "broker": "b2"},
    },
}
WITH_EDGES: dict[str, Any] = {
    **TOPOLOGY["routers"],
    "e1": {"mode": "edge", "connect": ["r1", "r2"]},
    "e2": {"mode": "edge", "connect": ["r1", "r3"]},
    "e3": {"mode": "edge", "connect": ["r4", "r3", "r1"]},
}
RETRANSMITTED: dict[str, Any] = {"type": "anycast", "retransmit": True}
ADDRESSES = ("rpc", "prices", "orders", "sharded", "news")
QUEUES = ("orders", "sharded")
KEPT = (*QUEUES, "news")
"""By brokers."""
NO_PRIORITY_SAID = 4
OUTCOMES = (ACCEPTED, ACCEPTED, RELEASED, MODIFIED_FAILED, rejected("amqp:not-allowed", "no"))


SLOW = {"max_frame_bytes": 512, "window_frames": 4}
"""A consumer whose messages pile up before it."""
CONVERGED_S = 0.2
"""What four routers and three edges may take once all their connections are up; a byte takes a millisecond."""
PAUSES_S = (0.0005, 0.002, 0.01, 0.1, 0.5)


def data_section(number: int, padding: int) -> bytes:
    text = b"no=%012d" % number
    body = text + (text * (padding // len(text) + 1))[:padding]
    return b"\x00\x53\x75\xb0" + len(body).to_bytes(4, "big") + body


def number_in(message: bytes) -> int:
    """A message that comes again has another header, so messages are told apart by what they say."""
    return int(message[message.index(b"no=") + 3 :][:12])


def _top_up(receiver: SimReceiver) -> None:
    # A grant would take back the drain that it has asked for.
    if receiver.link.is_open and receiver.link.credit < 5 and not receiver.link.is_drain_pending:
        receiver.link.grant(10)


class Sent(NamedTuple):
    address: str
    body: bytes


@dataclass
class Ledger:
    """By the address that messages were sent to: numbers that producers know as accepted, and that consumers took."""

    accepted: dict[str, set[int]] = field(default_factory=dict)
    taken: dict[str, set[int]] = field(default_factory=dict)


class Walk(NodeFaults):
    RPC: Any = "anycast"
    """What the topology says of this address."""
    ROUTERS: Any = TOPOLOGY["routers"]
    ADDRESSES: tuple[str, ...] = ADDRESSES
    QUEUES: tuple[str, ...] = QUEUES
    PAUSES_S: tuple[float, ...] = PAUSES_S
    CONVERGED_S: float = CONVERGED_S
    REFUSING: tuple[str, ...] = ()
    """Queues that reject what comes while they are full."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.mesh: SimMesh = self.make_mesh(folder)
        self.mesh.converge()
        self.senders: list[tuple[str, SimClient, SimSender]] = []
        self.receivers: list[tuple[str, SimClient, SimReceiver]] = []
        self.sent: dict[int, Sent] = {}
        """By the number that the message says."""
        self.resting: set[SimReceiver] = set()
        """Consumers that want nothing any more, but keep their links."""
        self.numbers: dict[SimSender, dict[int, int]] = {}
        """That number, by the sender's own count."""
        self.trace: list[str] = []
        self._count = 0

    def make_mesh(self, folder: Path) -> SimMesh:
        return CheckedMesh(self, self.topology(), folder)

    def topology(self) -> dict[str, Any]:
        addresses = {**TOPOLOGY["addresses"], "rpc": self.RPC}
        return {**TOPOLOGY, "routers": self.ROUTERS, "addresses": addresses}

    def step(self) -> None:
        acts = self.acts()
        act = self.random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        self.trace.append(f"{self.mesh.now:.3f} {act.__name__}")
        act()
        self.pause()

    def pause(self) -> None:
        self.mesh.run(self.random.choice(self.PAUSES_S))

    def acts(self) -> list[tuple[int, Callable[[], None]]]:
        """What may happen, each with its weight."""
        return [
            (4, self.add_receiver),
            (4, self.add_sender),
            (30, self.send),
            (4, self.abort),
            (12, self.settle),
            (3, self.drop_client),
            (2, self.close_link),
            (3, self.cut_trunk),
            (1, self.kill_router),
            (1, self.kill_broker),
            (4, self.heal),
        ]

    # Clients
    def client(self) -> SimClient:
        self._count += 1
        return self.mesh.client(self.random.choice(sorted(self.mesh.routers)), f"c{self._count}")

    def add_receiver(self) -> None:
        address = self.random.choice(self.ADDRESSES)
        receiver = (client := self.client()).receiver(address, credit=self.random.choice((1, 10, 100)))
        receiver.accepts = self.random.random() < 0.7
        self.receivers.append((address, client, receiver))

    def add_sender(self) -> None:
        address = self.random.choice(self.ADDRESSES)
        sender = (client := self.client()).sender(address)
        self.senders.append((address, client, sender))
        self.numbers[sender] = {}

    def message(self, address: str, padding: int) -> bytes:
        self._count += 1
        body = data_section(self._count, padding)
        self.sent[self._count] = Sent(address, body)
        return body

    def priority_of(self, number: int) -> int:
        return NO_PRIORITY_SAID

    def can_begin(self, client: SimClient, sender: SimSender) -> bool:
        return not client.closed and sender.link.is_open and sender.link.credit > 0

    def send(self) -> None:
        if not self.senders:
            return
        address, client, sender = self.random.choice(self.senders)
        for _ in range(self.random.randint(1, 20)):
            if not self.can_begin(client, sender):
                return
            padding = 200_000 if self.random.random() < 0.03 else self.random.randint(0, 300)
            self.send_one(address, sender, padding, settled=self.random.random() < 0.1)

    def send_one(self, address: str, sender: SimSender, padding: int, *, settled: bool = False) -> int:
        """The number that the message says."""
        message = self.message(address, padding)
        count = sender.send(message, settled=settled)
        self.numbers[sender][count] = number_in(message)
        return number_in(message)

    def abort(self) -> None:
        """Begin a message, small or large, that never comes to its end."""
        if not self.senders:
            return
        _, client, sender = self.random.choice(self.senders)
        if not self.can_begin(client, sender):
            return
        delivery = sender.link.start(b"aborted")
        sender.link.send(bytes(self.random.choice((10, 1000, 100_000))))
        self.mesh.run(self.random.choice((0.0005, 0.01, 0.1)))
        if not sender.link.is_gone and not client.closed:
            sender.link.abort(delivery)

    def settle(self) -> None:
        for _, client, receiver in self.receivers:
            if receiver.held and not client.closed and receiver.link.is_open:
                receiver.settle(self.random.choice(OUTCOMES))
                receiver.link.grant(5)
                client.endpoint.mark_dirty()
        self.mesh.flush()

    def drop_client(self) -> None:
        clients = [client for _, client, _ in (*self.receivers, *self.senders) if not client.closed]
        if clients:
            self.mesh.cut(self.random.choice(clients).pipe)

    def open_links(self) -> list[Link]:
        ends = (*self.receivers, *self.senders)
        return [end.link for _, client, end in ends if end.link.is_open and not client.closed]

    def close_link(self) -> None:
        if links := self.open_links():
            self.random.choice(links).close()
            self.mesh.flush()

    # Faults
    def cut_trunk(self) -> None:
        if self.mesh.trunks:
            self.mesh.cut_trunk(*self.random.choice(sorted(map(sorted, self.mesh.trunks))))

    # The end
    def live(self, steps: int) -> None:
        """Do so many things, come to rest, and check that everybody had, and still gets, what is due."""
        for _ in range(steps):
            self.step()
        ledger = self.finish()
        assert not (unanswered := self.unanswered()), unanswered
        for address in self.QUEUES:
            missing = ledger.accepted[address] - ledger.taken[address]
            assert not missing, f"{len(missing)} of {len(ledger.accepted[address])} accepted by {address} are lost"
        Aftermath(self).check()
        self.leave()
        assert not (left := self.leftovers()), left

    def leftovers(self) -> list[str]:
        return leftovers(self.mesh)

    def leave(self) -> None:
        """Every client goes."""
        for pipe in [pipe for pipe in self.mesh.pipes if any(isinstance(node, SimClient) for node, _ in pipe.ends)]:
            self.mesh.cut(pipe)
        self.mesh.run(QUIET_S)

    def finish(self) -> Ledger:
        """Heal, let every consumer take all it is given, and fetch what the queues still have."""
        self.heal()
        self.mesh.converge(self.CONVERGED_S)
        for address in self.ADDRESSES:
            client = self.mesh.client("r1", f"last-{address}", **({} if address in KEPT else SLOW))
            self.receivers.append((address, client, client.receiver(address, 1000)))
        for address in ("rpc", "prices"):
            client = self.mesh.client(sorted(self.mesh.routers)[-1], f"last-to-{address}")
            self.senders.append((address, client, sender := client.sender(address)))
            self.numbers[sender] = {}
        for _ in range(60):
            self.serve()
            self.mesh.run(0.5)
        return self._ledger()

    def serve(self) -> None:
        """Every consumer accepts all that it has and will get, and has room for more unless it rests."""
        for _, client, receiver in self.receivers:
            receiver.accepts = True
            if client.closed or receiver.link.is_gone:
                continue
            receiver.settle()
            if receiver not in self.resting:
                _top_up(receiver)
            client.endpoint.mark_dirty()

    def _ledger(self) -> Ledger:
        ledger = Ledger(defaultdict(set), defaultdict(set))
        for sender, numbers in self.numbers.items():
            for count, outcome in sender.outcomes.items():
                if outcome.kind is OutcomeCode.ACCEPTED:
                    ledger.accepted[self.sent[numbers[count]].address].add(numbers[count])
        for _, _, receiver in self.receivers:
            for number in map(number_in, receiver.taken):
                ledger.taken[self.sent[number].address].add(number)
        return ledger

    def unanswered(self) -> list[tuple[str, int]]:
        """Deliveries of producers whose connection and link still live, without any outcome."""
        return [
            (address, number)
            for address, client, sender in self.senders
            if not client.closed and sender.link.is_open
            for number in sender.open.values()
        ]

    def seen(self, receiver: SimReceiver) -> list[int]:
        return list(map(number_in, receiver.messages))

    def sharers(self, receiver: SimReceiver) -> int:
        """The same number for all consumers of which one gets each message."""
        return id(receiver)

    # For the invariants
    def name_in(self, message: bytes) -> int | None:
        number = number_in(message) if b"no=" in message else None
        return number if number in self.sent else None

    def name_of(self, sender: SimSender, count: int) -> int:
        return self.numbers[sender][count]

    def sent_as(self, name: int) -> Sent:
        return self.sent[name]
