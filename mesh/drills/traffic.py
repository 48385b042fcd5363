"""Keeps up steady traffic on the addresses of a drill, with clients that recover from losses as applications do.

A client that loses a link attaches again; a client that loses its connection dials the next router.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import TypeVar

from mesh.client.client import Client
from mesh.client.connect import connected
from mesh.client.errors import MeshError
from mesh.client.journal import UNKNOWN, Journal, Stall
from mesh.client.links import Received, Receiver, Sender
from mesh.client.server import Server
from mesh.drills.plan import DrillFlow
from wire.delivery import ACCEPTED, Outcome
from wire.message import MalformedMessage, Message, decode, encode

CONNECT_S = 5.0
PAUSE_S = 0.05
STALL_S = 0.1
CREDIT = 200
RUN, SENDER, NUMBER = "amqpmesh-run", "amqpmesh-sender", "amqpmesh-number"

End = TypeVar("End", Sender, Receiver)


class DrillClient:
    """A client's connection, first to the router ``home``; after each loss or failed attempt, to the next router in
    turn.
    """

    def __init__(self, home: str, servers: Mapping[str, Server], on_reconnected: Callable[[], None]) -> None:
        self._servers = [servers[home], *(server for name, server in servers.items() if name != home)]
        self._on_reconnected = on_reconnected
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        for attempt in count():
            try:
                await self._serve(self._servers[attempt % len(self._servers)])
            except MeshError:
                await asyncio.sleep(PAUSE_S)

    async def _serve(self, server: Server) -> None:
        async with connected(server, CONNECT_S) as client:
            self._client.set_result(client)
            await client.wait_for(lambda: client.error is not None)
            self._client = asyncio.get_running_loop().create_future()
            self._on_reconnected()

    async def client(self) -> Client:
        """Return the connected client; wait for a connection if there is none."""
        while True:
            client = await asyncio.shield(self._client)
            if client.error is None:
                return client
            await asyncio.sleep(PAUSE_S)


class DrillTraffic:
    """All senders and receivers of one address, and the journal of their messages."""

    def __init__(self, flow: DrillFlow, servers: Mapping[str, Server], run: str | None = None) -> None:
        self.flow = flow
        self.journal = Journal(len(flow.receivers), flow.is_competing)
        self._servers = servers
        self._run = run or secrets.token_hex(4)
        self._body = b"x" * flow.load.size
        self._sending: list[asyncio.Task[None]] = []
        self._others: list[asyncio.Task[None]] = []
        self._is_consuming = asyncio.Semaphore(0)
        self.refusal = ""
        """The latest reason why a link could not be attached, or was lost."""

    async def start(self) -> None:
        """Start the receivers, wait until each has attached its link, and then start the senders."""
        for consumer, home in enumerate(self.flow.receivers):
            self._others.append(asyncio.create_task(self._consume(consumer, self._party(home))))
        for _ in self.flow.receivers:
            await self._is_consuming.acquire()
        for home in self.flow.senders:
            number = self.journal.add_sender()
            self._sending.append(asyncio.create_task(self._produce(number, self._party(home))))

    async def stop_sending(self) -> None:
        await _end(self._sending)

    async def stop(self) -> None:
        await _end([*self._sending, *self._others])

    def _party(self, home: str) -> DrillClient:
        party = DrillClient(home, self._servers, self._on_reconnected)
        self._others.append(asyncio.create_task(party.run()))
        return party

    def _on_reconnected(self) -> None:
        self.journal.reconnects.append(time.monotonic())

    async def _produce(self, number: int, party: DrillClient) -> None:
        interval_s = len(self.flow.senders) / self.flow.load.rate
        schedule = _Schedule(time.monotonic() + interval_s * number / len(self.flow.senders), interval_s)
        load = self.flow.load

        async def attach(client: Client) -> Sender:
            return await client.sender(load.address, is_presettled=load.presettled)

        async def send_steadily(sender: Sender) -> None:
            while True:
                await self._send_next(number, sender, schedule)

        await self._keep_attached(party, attach, send_steadily)

    async def _send_next(self, number: int, sender: Sender, schedule: _Schedule) -> None:
        await schedule.wait()
        await self._wait_credit(sender)
        message, n = self.journal.on_sent(number, schedule.take(), time.monotonic())
        try:
            outcome = await sender.send(self._encode(number, n))
        except BaseException:
            self.journal.on_outcome(message, UNKNOWN)
            raise
        outcome.add_done_callback(lambda done: self._on_outcome(message, done))

    def _encode(self, sender: int, number: int) -> bytes:
        return encode(
            Message(
                self._body,
                durable=self.flow.load.durable,
                message_id=f"{sender}/{number}",
                properties={RUN: self._run, SENDER: sender, NUMBER: number},
            )
        )

    async def _wait_credit(self, sender: Sender) -> None:
        began = time.monotonic()
        try:
            await sender.wait_credit()
        finally:
            waited_s = time.monotonic() - began
            if waited_s > STALL_S:
                self.journal.stalls.append(Stall(began, waited_s))

    def _on_outcome(self, message: int, done: asyncio.Future[Outcome | None]) -> None:
        if done.cancelled() or done.exception() is not None:
            self.journal.on_outcome(message, UNKNOWN)
            return
        outcome = done.result()
        # A delivery that was settled without an outcome, such as a pre-settled one, counts as accepted.
        self.journal.on_outcome(message, outcome.kind.name.lower() if outcome is not None else "accepted")

    async def _consume(self, consumer: int, party: DrillClient) -> None:
        async def attach(client: Client) -> Receiver:
            receiver = await client.receiver(self.flow.address, credit=CREDIT)
            receiver.top_up()
            self._is_consuming.release()
            return receiver

        async def receive(receiver: Receiver) -> None:
            while True:
                receiver.top_up()
                received = await receiver.receive()
                receiver.settle(received, ACCEPTED)
                self._on_received(consumer, received, time.monotonic())

        await self._keep_attached(party, attach, receive)

    async def _keep_attached(
        self, party: DrillClient, attach: Callable[[Client], Awaitable[End]], use: Callable[[End], Awaitable[None]]
    ) -> None:
        while True:
            try:
                await use(await attach(await party.client()))
            except MeshError as failed:
                self.refusal = str(failed)
                await asyncio.sleep(PAUSE_S)

    def _on_received(self, consumer: int, received: Received, now: float) -> None:
        try:
            properties = decode(received.data).properties
        except MalformedMessage:
            properties = {}
        if properties.get(RUN) != self._run:
            self.journal.foreign += 1
            return
        self.journal.on_arrival(consumer, int(properties[SENDER]), int(properties[NUMBER]), now)


class _Schedule:
    """The times at which a sender's messages are due, at a fixed interval.

    The schedule does not wait for a late sender: messages that the sender missed are due at once.
    """

    def __init__(self, first: float, interval_s: float) -> None:
        self._next = first
        self._interval_s = interval_s

    async def wait(self) -> None:
        await asyncio.sleep(max(0.0, self._next - time.monotonic()))

    def take(self) -> float:
        due = self._next
        self._next += self._interval_s
        return due


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
