"""The observer's connection to the mesh: as an operator, to a router, by which observers of several hosts talk.

The connection is made again after a loss. Everything runs in the event loop of the observer, which waits for nothing
here: what is asked while there is no connection fails at once.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mesh.client.client import Client
from mesh.client.connect import connected
from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh.client.links import Received, Receiver, Sender
from mesh.client.server import Server
from mesh.watch.reply_links import ReplyLinks
from wire.delivery import ACCEPTED, Outcome, OutcomeCode, rejected
from wire.message import MalformedMessage, Message, decode, encode
from wire.transport.tls import TlsSetupError

CONNECT_S: Final = 5.0
FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 8.0
AT_ONCE: Final = 32
"""The most requests to one address that are answered at the same time; others wait at their routers."""

Handler = Callable[[Message], Awaitable[Message | None]]
"""Answers a request; the answer goes to the request's reply-to, and to nobody if there is none."""


@dataclass(slots=True)
class _Connection:
    """What one connection has, until it is lost."""

    client: Client
    sender: Sender
    replies: Receiver
    reply_links: ReplyLinks
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    waiting: dict[str, asyncio.Future[str]] = field(default_factory=dict)
    """By message-id of a request, the future of the answer."""


class MeshLink:
    """The connection. ``servers`` returns the node ports of routers, in the order in which they are tried."""

    def __init__(self, servers: Callable[[], Iterable[Server]], container_id: str) -> None:
        self.reason = "no router was tried yet"
        """Why there is no connection."""
        self.sent = 0
        """Messages that this link has sent."""
        self._servers, self._container_id = servers, container_id
        self._handlers: dict[str, Handler] = {}
        self._connection: _Connection | None = None
        self._opened: _Connection | None = None
        """The connection already while its addresses are attached: requests may come that are answered over it."""

    @property
    def is_up(self) -> bool:
        return self._connection is not None

    async def run(self, stopping: asyncio.Event) -> None:
        """Connect, and connect again after each loss, until ``stopping`` is set."""
        retry_s = FIRST_RETRY_S
        while not stopping.is_set():
            if await self._try_all(stopping):
                retry_s = FIRST_RETRY_S
            with suppress(TimeoutError):
                async with asyncio.timeout(retry_s):
                    await stopping.wait()
            retry_s = min(2 * retry_s, LONGEST_RETRY_S)

    async def serve(self, address: str, handler: Handler) -> None:
        """Answer requests to ``address``, an internal address of the mesh, by ``handler``; also after a new connection.

        An exception of ``handler`` rejects the request.
        """
        self._handlers[address] = handler
        if self._connection is not None:
            await self._attach(self._connection, address, handler)

    async def ask(self, address: str, body: str, timeout_s: float) -> str:
        """Send a request to ``address``, and return the body of the answer.

        Raises Unreachable if there is no connection to a router or nobody serves the address, and TimedOut if there is
        no answer within ``timeout_s``.
        """
        connection = self._open_connection()
        number = secrets.token_hex(8)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        connection.waiting[number] = answer
        request = Message(body, to=address, message_id=number, reply_to=connection.replies.answered_address)
        try:
            async with asyncio.timeout(timeout_s):
                outcome = await self._send(connection, request)
                await asyncio.wait((answer, outcome), return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    told = outcome.result()
                    if told is not None and told.kind is not OutcomeCode.ACCEPTED:
                        raise Unreachable(f"nobody answers at {address}: the request was {told.kind.name.lower()}")
                return await answer
        except TimeoutError:
            raise TimedOut(f"no answer from {address} within {timeout_s:g} s") from None
        finally:
            connection.waiting.pop(number, None)

    async def send(self, message: Message) -> None:
        """Send ``message`` to the address in its ``to``. Raises Unreachable if there is no connection."""
        await self._send(self._open_connection(), message)

    async def deliver(self, address: str, message: bytes, timeout_s: float) -> Outcome | None:
        """Send an encoded message to ``address`` over a link for this address, and return the outcome.

        So it waits for the credit of nobody else, and nobody else waits if there is none at ``address``. Raises
        TimedOut without an outcome after ``timeout_s``, LinkRefusedError for an address that takes no messages, and
        Unreachable without a connection.
        """
        connection = self._open_connection()
        self.sent += 1
        return await connection.reply_links.deliver(address, message, timeout_s)

    def _open_connection(self) -> _Connection:
        if self._opened is None:
            raise Unreachable(f"the observer has no connection to a router: {self.reason}")
        return self._opened

    async def _send(self, connection: _Connection, message: Message) -> asyncio.Future[Outcome | None]:
        self.sent += 1
        return await connection.sender.send(encode(message))

    # Connection
    async def _try_all(self, stopping: asyncio.Event) -> bool:
        """Try the servers in order, and keep the first connection until it is lost; return whether there was one."""
        try:
            for server in self._servers():
                if await self._keep(server, stopping):
                    return True
                if stopping.is_set():
                    return False
        except (MeshError, TlsSetupError, OSError) as error:
            self.reason = str(error)
        return False

    async def _keep(self, server: Server, stopping: asyncio.Event) -> bool:
        was_up = False
        try:
            async with connected(server, CONNECT_S, container_id=self._container_id) as client:
                sender, replies = await client.sender(None), await client.receiver(None)
                connection = _Connection(client, sender, replies, ReplyLinks(client))
                self._start(connection, self._take_answers(connection))
                self._start(connection, connection.reply_links.run())
                self._opened = connection
                try:
                    for address, handler in list(self._handlers.items()):
                        await self._attach(connection, address, handler)
                    self._connection, was_up = connection, True
                    await self._wait_lost(connection, stopping)
                finally:
                    self._connection = self._opened = None
                    await _cancel(connection.tasks)
                    for answer in connection.waiting.values():
                        if not answer.done():
                            answer.set_exception(Unreachable(f"connection to {server.address} lost"))
            self.reason = f"connection to {server.address} lost"
        except MeshError as error:
            self.reason = error.message
        return was_up

    async def _wait_lost(self, connection: _Connection, stopping: asyncio.Event) -> None:
        waits = {asyncio.create_task(each.wait()) for each in (connection.broken, stopping)}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        await _cancel(waits)

    def _start(self, connection: _Connection, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        connection.tasks.add(task)

        def on_done(done: asyncio.Task[None]) -> None:
            connection.tasks.discard(done)
            if done.cancelled():
                return
            error = done.exception()
            if isinstance(error, MeshError):
                connection.broken.set()
            elif error is not None:
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "bug in this program: a task of the link to the mesh failed", "exception": error}
                )

        task.add_done_callback(on_done)

    # Requests
    async def _attach(self, connection: _Connection, address: str, handler: Handler) -> None:
        receiver = await connection.client.receiver(address, credit=AT_ONCE)
        self._start(connection, self._take_requests(connection, receiver, handler))

    async def _take_requests(self, connection: _Connection, receiver: Receiver, handler: Handler) -> None:
        places = asyncio.Semaphore(AT_ONCE)
        while True:
            receiver.top_up()
            await places.acquire()
            received = await receiver.receive()
            self._start(connection, self._answer(connection, receiver, received, handler, places))

    async def _answer(
        self,
        connection: _Connection,
        receiver: Receiver,
        received: Received,
        handler: Handler,
        places: asyncio.Semaphore,
    ) -> None:
        try:
            outcome = ACCEPTED
            try:
                request = _message(received)
                answer = await handler(request)
            except MalformedMessage as error:
                outcome, answer = rejected("amqp:decode-error", str(error)), None
            except Exception:
                receiver.settle(received, rejected("amqp:internal-error", "the observer failed to answer"))
                raise
            receiver.settle(received, outcome)
            if answer is not None and request.reply_to is not None:
                asked = request.correlation_id if request.correlation_id is not None else request.message_id
                about = answer.correlation_id if answer.correlation_id is not None else asked
                await self._send(connection, replace(answer, to=request.reply_to, correlation_id=about))
        finally:
            places.release()

    async def _take_answers(self, connection: _Connection) -> None:
        replies = connection.replies
        while True:
            replies.top_up()
            received = await replies.receive()
            replies.settle(received, ACCEPTED)
            with suppress(MalformedMessage):
                message = _message(received)
                answer = connection.waiting.get(str(message.correlation_id))
                if answer is not None and not answer.done():
                    answer.set_result(str(message.body))


def _message(received: Received) -> Message:
    message = decode(received.data)
    return message if received.body is None else replace(message, body=received.body)


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    ended = list(tasks)
    for task in ended:
        task.cancel()
    await asyncio.gather(*ended, return_exceptions=True)
