"""Producers and consumers of a simulation, which go on during faults; a journal notes the outcome of each message.

A client that has lost its connection or link connects again at its next tick: to its own router or, while this router
is down, to a random one. Producers send at their rate as far as credit allows, and never send a message twice.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mesh.client.journal import UNKNOWN, Journal
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.plan import FlowPlan
from mesh.simulation.sim_mesh import SimMesh
from wire.message import Message, decode, encode
from wire.terminus import Durability, Expiry

TICK_S = 0.1
CREDIT = 100
"""The credit of each consumer, in messages."""


class SimParty:
    """A client of a simulation with a single link; after a loss, the client connects and attaches again."""

    def __init__(self, flow: SimFlow, name: str, home: str) -> None:
        self.flow = flow
        self.name = name
        self._home = home
        self.client: FlowClient | None = None

    def tick(self) -> None:
        """Drop a client that lost its connection or link, or, without a client, connect one and attach its link.

        Schedule the same again after ``interval_s``.
        """
        mesh = self.flow.mesh
        self._keep_up()
        mesh.at(mesh.now + self.interval_s, self.tick, self.client or self)

    @property
    def interval_s(self) -> float:
        return TICK_S

    @property
    def end(self) -> SimSender | SimReceiver:
        raise NotImplementedError

    def attach(self, client: FlowClient) -> None:
        raise NotImplementedError

    def on_lost(self) -> None:
        """Do nothing: subclasses do here what the loss of the link demands, whatever the reason of the loss.

        A producer counts messages without an outcome as unknown.
        """

    def _keep_up(self) -> None:
        mesh, client = self.flow.mesh, self.client
        if client is not None and (client.closed or self.end.error is not None or self.end.link.is_gone):
            self.on_lost()
            mesh.cut(client.pipe)
            mesh.remove(client)
            self.client = None
        elif client is None and mesh.routers:
            router = self._home if self._home in mesh.routers else self.flow.chance.choice(sorted(mesh.routers))
            self.client = FlowClient(mesh, self.name, self)
            mesh.connect_client(self.client, router, self.flow.user_of(self))
            self.attach(self.client)


class SimProducer(SimParty):
    sender: SimSender

    def __init__(self, flow: SimFlow, name: str, home: str) -> None:
        super().__init__(flow, name, home)
        self._messages: dict[int, int] = {}
        """Number of each message in this sender's link -> place of the message in the journal."""

    @property
    def interval_s(self) -> float:
        return 1 / self.flow.rate_per_s

    @property
    def end(self) -> SimSender:
        return self.sender

    def attach(self, client: FlowClient) -> None:
        self.sender = client.sender(self.flow.plan.address)

    def tick(self) -> None:
        super().tick()
        if self.client is not None and self.flow.is_open and self.sender.link.credit > 0:
            now = self.flow.mesh.now
            message, number = self.flow.journal.on_sent(0, now, now)
            self._messages[self.sender.send(encode(Message(number)))] = message
            self.flow.mesh.touch(self.client)
        self._hear()

    def _hear(self) -> None:
        for count in [count for count in self._messages if count in self.sender.outcomes]:
            outcome = self.sender.outcomes.pop(count)
            self.flow.journal.on_outcome(self._messages.pop(count), outcome.kind.name.lower())

    def on_lost(self) -> None:
        self._hear()
        for message in self._messages.values():
            self.flow.journal.on_outcome(message, UNKNOWN)
        self._messages.clear()


class SimConsumer(SimParty):
    receiver: SimReceiver

    @property
    def end(self) -> SimReceiver:
        return self.receiver

    def attach(self, client: FlowClient) -> None:
        lasting: dict[str, Any] = {}
        if self.flow.plan.kind.has_subscriptions:
            lasting = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "name": "subscription"}
        self.receiver = client.receiver(self.flow.plan.address, CREDIT, **lasting)

    def on_messages(self) -> None:
        flow = self.flow
        for data in self.receiver.messages:
            flow.on_arrival(self, decode(data))
        for seen in (self.receiver.messages, self.receiver.taken, self.receiver.came_settled):
            seen.clear()


class FlowClient(SimClient):
    def __init__(self, mesh: SimMesh, container_id: str, party: SimParty) -> None:
        super().__init__(mesh, container_id)
        self._party = party

    def on_delivery(self, link: Any, delivery: Any) -> None:
        super().on_delivery(link, delivery)
        if isinstance(self._party, SimConsumer) and link.owner is self._party.receiver:
            self._party.on_messages()


class SimFlow:
    """The producer and the consumers of one address, with the journal of their messages."""

    def __init__(self, mesh: SimMesh, plan: FlowPlan, rate_per_s: float, consumers: int, chance: random.Random) -> None:
        self.mesh = mesh
        self.plan = plan
        self.rate_per_s = rate_per_s
        self.chance = chance
        self.is_open = False
        self.redelivered = 0
        names = [f"{plan.address}>{number}" for number in range(1, consumers + 1)]
        homes = [chance.choice(client_routers(mesh)) for _ in range(consumers + 1)]
        self.producer = SimProducer(self, f"{plan.address}<1", homes[0])
        self.consumers = [SimConsumer(self, name, home) for name, home in zip(names, homes[1:], strict=True)]
        self.journal = Journal(consumers, not self.is_for_all)
        self.journal.add_sender()
        self._seen: set[tuple[int, int]] = set()

    @property
    def is_for_all(self) -> bool:
        """Tell whether every consumer should receive every message, as of a multicast or topic address."""
        return self.plan.kind.is_copied

    @property
    def parties(self) -> Sequence[SimParty]:
        return [*self.consumers, self.producer]

    def user_of(self, party: SimParty) -> str | None:
        return self.plan.sender if isinstance(party, SimProducer) else self.plan.receiver

    def start(self) -> None:
        """Connect the clients and attach their links; the producer sends nothing before ``is_open`` is set."""
        for party in self.parties:
            party.tick()

    def on_arrival(self, consumer: SimConsumer, message: Message) -> None:
        who, number = self.consumers.index(consumer) if self.is_for_all else 0, int(message.body)
        if message.delivery_count > 0 and (who, number) in self._seen:
            # Only a message with a delivery-count above 0 may arrive again without counting as duplicated.
            self.redelivered += 1
        else:
            self._seen.add((who, number))
            self.journal.on_arrival(who, 0, number, self.mesh.now)

    def lost(self) -> int:
        """Return the number of messages that were accepted and then lost.

        A multicast message is lost if no consumer received it; a message of a topic, if any consumer did not receive
        it.
        """
        lost = list(self.journal.lost())
        is_lost_to_all = self.plan.kind.is_copied_by_routers
        return len(set(lost) - self.journal.received().keys()) if is_lost_to_all else len(lost)

    @property
    def is_over(self) -> bool:
        return not self.journal.unanswered() and not self.lost()


def client_routers(mesh: SimMesh) -> list[str]:
    """Return the names of the routers with a listener for clients; of all routers if no router has one."""
    listening = [name for name, router in mesh.topology.routers.items() if router.listeners]
    return sorted(listening or mesh.topology.routers)
