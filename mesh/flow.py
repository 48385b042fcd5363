"""A steady stream of numbered messages from one router to others, kept up as an application would: who loses its link
attaches again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from mesh.client import Client
from mesh.client_links import Received, Receiver, Sender
from mesh.failure import CommandFailed
from mesh.ledger import UNKNOWN, Ledger
from wire.delivery import ACCEPTED, Outcome
from wire.message import Message, decode, encode

REATTACH_PAUSE_S = 0.05
CREDIT = 200

End = TypeVar("End", Sender, Receiver)


@dataclass(frozen=True, slots=True)
class FlowPlan:
    kind: str
    """The type of the address."""
    address: str
    producer: str
    consumers: tuple[str, ...]
    """Routers; each gets every message."""


class Flow:
    def __init__(self, plan: FlowPlan, clients: dict[str, Client], rate_per_s: float) -> None:
        self.plan = plan
        self.ledger = Ledger([f"{index}@{router}" for index, router in enumerate(plan.consumers)])
        self._clients = clients
        self._interval_s = 1 / rate_per_s
        self._tasks: list[asyncio.Task[None]] = []
        self._producer: asyncio.Task[None] | None = None
        self._is_consuming = asyncio.Semaphore(0)

    async def start(self) -> None:
        """Consumers first: each has its link before the first message is sent."""
        for name in self.ledger.arrivals:
            client = self._clients[name.partition("@")[2]]
            self._tasks.append(asyncio.create_task(self._consume(name, client)))
        for _ in self._tasks:
            await self._is_consuming.acquire()
        self._producer = asyncio.create_task(self._produce(self._clients[self.plan.producer]))

    async def stop_producing(self) -> None:
        assert self._producer is not None
        self._producer.cancel()
        await asyncio.gather(self._producer, return_exceptions=True)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _produce(self, client: Client) -> None:
        async def attach() -> Sender:
            return await client.sender(self.plan.address)

        await self._keep_attached(attach, self._send_steadily)

    async def _send_steadily(self, sender: Sender) -> None:
        due = time.monotonic()
        while True:
            await sender.wait_credit()
            number = self.ledger.on_attempt()
            outcome = await sender.send(encode(Message(number, durable=True)))
            outcome.add_done_callback(lambda done, number=number: self._on_outcome(number, done))  # type: ignore[misc]
            # After a stall the rate goes on; it does not catch up.
            due = max(due + self._interval_s, time.monotonic())
            await asyncio.sleep(due - time.monotonic())

    def _on_outcome(self, number: int, done: asyncio.Future[Outcome | None]) -> None:
        outcome = None if done.cancelled() or done.exception() is not None else done.result()
        self.ledger.on_outcome(number, outcome.kind.name.lower() if outcome is not None else UNKNOWN)

    async def _consume(self, name: str, client: Client) -> None:
        async def attach() -> Receiver:
            receiver = await client.receiver(self.plan.address, credit=CREDIT)
            receiver.top_up()
            self._is_consuming.release()
            return receiver

        async def receive(receiver: Receiver) -> None:
            while True:
                receiver.top_up()
                received = await receiver.receive()
                receiver.settle(received, ACCEPTED)
                self.ledger.on_arrival(name, number_of(received), time.monotonic())

        await self._keep_attached(attach, receive)

    async def _keep_attached(self, attach: Callable[[], Awaitable[End]], use: Callable[[End], Awaitable[None]]) -> None:
        while True:
            try:
                await use(await attach())
            except CommandFailed:
                await asyncio.sleep(REATTACH_PAUSE_S)


def number_of(received: Received) -> int:
    return int(decode(received.data).body)
