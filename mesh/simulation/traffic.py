"""Producers and consumers during faults, and the fate of each message.

A client that loses its connection or link comes back at the tick after the loss was noticed: at the client's own router
or, while this router is down, at another. Producers send at their rate as far as credit allows, and never send a
message twice.
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
"""The credit of each consumer"""


class SimParty:
    """A client with a single link; after a loss the client dials and attaches again."""

    def __init__(self, flow: SimFlow, name: str, home: str) -> None:
        self.flow = flow
        self.name = name
        self._home = home
        self.client: FlowClient | None = None

    def tick(self) -> None:
        """Keep the link up now, and again every ``interval_s``."""
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
        """Called when the link is lost, for any reason."""

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
        """Sender's number of a message -> place of the message in the journal"""

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
    """The producer and the consumers of one address."""

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
        """Whether every consumer should get every message."""
        return self.plan.kind.is_copied

    @property
    def parties(self) -> Sequence[SimParty]:
        return [*self.consumers, self.producer]

    def user_of(self, party: SimParty) -> str | None:
        return self.plan.sender if isinstance(party, SimProducer) else self.plan.receiver

    def start(self) -> None:
        """Attach the links. Messages follow once ``is_open``."""
        for party in self.parties:
            party.tick()

    def on_arrival(self, consumer: SimConsumer, message: Message) -> None:
        who, number = self.consumers.index(consumer) if self.is_for_all else 0, int(message.body)
        if message.delivery_count > 0 and (who, number) in self._seen:
            self.redelivered += 1  # The message says that it was redelivered.
        else:
            self._seen.add((who, number))
            self.journal.on_arrival(who, 0, number, self.mesh.now)

    def lost(self) -> int:
        """Count messages that were accepted and then lost.

        A multicast message is lost if no consumer received the message; a topic's, if any consumer missed the message.
        """
        lost = list(self.journal.lost())
        is_lost_to_all = self.plan.kind.is_copied_by_routers
        return len(set(lost) - self.journal.received().keys()) if is_lost_to_all else len(lost)

    @property
    def is_over(self) -> bool:
        return not self.journal.unanswered() and not self.lost()


def client_routers(mesh: SimMesh) -> list[str]:
    """Routers that clients may connect to; all routers if the topology has no listener."""
    listening = [name for name, router in mesh.topology.routers.items() if router.listeners]
    return sorted(listening or mesh.topology.routers)
