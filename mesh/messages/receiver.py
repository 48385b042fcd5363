"""Runs `amqpmesh receive`: receives, shows and settles messages; with --unsubscribe, ends a durable subscription."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from pathlib import Path

from addressing.address import normalize
from addressing.pattern import is_pattern
from mesh.client.bodies import BodyFiles, BodySink, DroppedBody, FiledBody, HeldBody, cannot_write
from mesh.client.connect import connected
from mesh.client.links import LinkRefusedError, Received, Receiver
from mesh.client.server import Server
from mesh.deploy.server_lookup import find_server, tell_warning
from mesh.terminal.connection_options import ConnectionRequest
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.terminal.message_format import ReceivedMessage, body_text, format_message, message_map, shows_body
from mesh.terminal.output import Output
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, rejected
from wire.delivery_address import ADDRESS_ANNOTATION
from wire.message import MalformedMessage, Message, decode

OUTCOMES: dict[str, Outcome] = {
    "accept": ACCEPTED,
    "release": RELEASED,
    "reject": rejected("amqp:not-allowed", "rejected by amqpmesh receive --outcome reject"),
    "modify": MODIFIED_FAILED,
}
CONNECT_TIMEOUT_S = 10.0
TEMPLATE, ADDRESSED_TEMPLATE = "%b\n", "%a %b\n"
CLIENT_ID = "amqpmesh"
"""The default container-id of `receive` with a durable subscription, by which later runs find the same one."""


@dataclass(frozen=True, slots=True)
class ReceiveRequest:
    count: int | None = None
    timeout_s: float | None = None
    """`receive` stops after this time without any data; None: it waits without limit."""
    is_until_empty: bool = False
    is_browsing: bool = False
    selector: str | None = None
    credit: int = 100
    outcome: str = "accept"
    template: str | None = None
    """The format of a printed message; None: the body, after the message's address if the receiver has wildcards."""
    folder: Path | None = None
    subscription: str | None = None
    """The name of a durable subscription of a topic, which is kept for the next run; None: no durable subscription."""
    client_id: str | None = None
    ready_file: Path | None = None
    """A file or FIFO to which the address is written once the receiver is attached, for scripts that wait to send."""

    @property
    def container_id(self) -> str | None:
        return self.client_id or (None if self.subscription is None else CLIENT_ID)


def run(request: ConnectionRequest, order: ReceiveRequest, out: Output) -> int:
    server = find_server(request)
    tell_warning(server, out)
    received = asyncio.run(receive_all(server, request.url.address, order, out))
    out.say(f"received {received}")
    if order.count is not None and received < order.count and not order.is_until_empty:
        out.say(f"error: {order.count - received} of {order.count} messages did not come within {order.timeout_s:g} s")
        return ExitCode.TIMEOUT
    return ExitCode.OK


def run_unsubscribe(request: ConnectionRequest, order: ReceiveRequest, out: Output) -> int:
    server = find_server(request)
    tell_warning(server, out)
    asyncio.run(unsubscribe(server, request.url.address, order))
    out.say(f"ended the subscription {order.subscription} to {request.url.address}")
    return ExitCode.OK


async def unsubscribe(server: Server, address: str, order: ReceiveRequest) -> None:
    """End the durable subscription that ``order`` names.

    Raises LinkRefusedError if there is no such subscription, and CommandFailed if it is to another address.
    """
    assert order.subscription is not None
    async with connected(server, CONNECT_TIMEOUT_S, container_id=order.container_id) as client:
        try:
            receiver = await client.recall(order.subscription, address)
        except LinkRefusedError as refused:
            refused.fix = (
                "`amqpmesh broker list` shows all subscriptions, and `amqpmesh broker delete` ends any of them."
            )
            raise
        found = receiver.answered_address
        if found not in (None, normalize(address)):
            receiver.close()
            raise CommandFailed(
                f"cannot end the subscription {order.subscription} to {address}: it is to {found}",
                fix=f"to end that subscription, name {found}.",
            )
        await receiver.end()


async def receive_all(server: Server, address: str, order: ReceiveRequest, out: Output) -> int:
    number = 0
    remove_old(order.ready_file)
    files = None if order.folder is None else BodyFiles.behind(order.folder)
    template = order.template
    if template is None:
        template = ADDRESSED_TEMPLATE if is_pattern(address) else TEMPLATE
    async with connected(server, CONNECT_TIMEOUT_S, container_id=order.container_id) as client:
        receiver = await client.receiver(
            address or None,
            credit=order.credit,
            is_browsing=order.is_browsing,
            selector=order.selector,
            subscription=order.subscription,
            keep_body=body_keeper(files, is_printed=out.is_json or shows_body(template)),
        )
        if not address:
            out.say(f"receiving from {receiver.answered_address}")
        shown_address = address or receiver.answered_address or ""
        try:
            if order.subscription is not None and not receiver.is_durable:
                raise CommandFailed(
                    f"{address} cannot have durable subscriptions",
                    fix="only topics have durable subscriptions; leave out --durable.",
                )
            await tell_ready(receiver, order, shown_address)
            async for received in incoming(receiver, order):
                number += 1
                message = read(received)
                told = address_of(message, shown_address)
                show(ReceivedMessage(message, told, number, datetime.now().astimezone()), template, files, out)
                receiver.settle(received, OUTCOMES[order.outcome])
        finally:
            receiver.close()
    return number


def remove_old(ready_file: Path | None) -> None:
    """Remove the ready file of an earlier run, which would tell a script too early that this run is attached.

    A FIFO stays, since its reader waits for this run.
    """
    if ready_file is not None and ready_file.is_file():
        ready_file.unlink()


async def tell_ready(receiver: Receiver, order: ReceiveRequest, address: str) -> None:
    if order.ready_file is None:
        return
    if not order.is_until_empty:
        receiver.top_up(order.count)
        # A turn of the event loop sends the credit to the server before the ready file is written.
        await asyncio.sleep(0)
    # The ready file is written in a thread: opening a FIFO blocks until a reader has opened it, too.
    await asyncio.to_thread(order.ready_file.write_text, f"{address}\n")


def body_keeper(files: BodyFiles | None, *, is_printed: bool) -> Callable[[], BodySink]:
    """Return the function that makes, for each large message received, the place for its body.

    The place is a file if ``files`` is given, else memory if bodies are printed; else the body is dropped.
    """
    if files is None:
        return HeldBody if is_printed else DroppedBody
    numbers = count(1)
    return lambda: FiledBody(files.partial_path(next(numbers)))


async def incoming(receiver: Receiver, order: ReceiveRequest) -> AsyncIterator[Received]:
    """Yield deliveries until ``order.count`` is reached, or until ``order.timeout_s`` passes without any data.

    With ``order.is_until_empty``, also end as soon as the source is empty.
    """
    taken = 0
    while order.count is None or taken < order.count:
        bound = None if order.count is None else order.count - taken
        try:
            received = await take_in_time(receiver, order, bound)
        except TimeoutError:
            return
        if received is None:
            return
        taken += 1
        yield received


async def take_in_time(receiver: Receiver, order: ReceiveRequest, bound: int | None) -> Received | None:
    """Return the next delivery; None if the source is empty, and ``order.is_until_empty`` asks for that.

    Raises TimeoutError if not even a part of a message arrives within ``order.timeout_s``.
    """
    if order.timeout_s is None:
        return await take(receiver, order, bound)
    timeout_s, clock = order.timeout_s, asyncio.get_running_loop().time
    async with asyncio.timeout(timeout_s) as limit:
        receiver.on_moved = lambda: limit.reschedule(clock() + timeout_s)
        try:
            return await take(receiver, order, bound)
        finally:
            receiver.on_moved = lambda: None


async def take(receiver: Receiver, order: ReceiveRequest, bound: int | None) -> Received | None:
    if order.is_until_empty:
        return await receiver.receive_until_empty(bound)
    receiver.top_up(bound)
    return await receiver.receive()


def read(received: Received) -> Message:
    """Decode a delivery's message; a malformed message becomes a message whose body is all its bytes, to be shown."""
    try:
        message = decode(received.data)
    except MalformedMessage:
        return Message(received.data)
    return message if received.body is None else replace(message, body=received.body)


def address_of(message: Message, received_from: str) -> str:
    """Return the address of a message: as the broker says, if ``received_from`` has wildcards, else that address."""
    told = message.delivery_annotations.get(ADDRESS_ANNOTATION) if is_pattern(received_from) else None
    return told if isinstance(told, str) else received_from


def show(shown: ReceivedMessage, template: str, files: BodyFiles | None, out: Output) -> None:
    file = None if files is None else write_body(shown, files)
    if out.is_json:
        out.document(message_map(shown, file))
    elif file is None:
        out.raw(format_message(template, shown))


def write_body(shown: ReceivedMessage, files: BodyFiles) -> Path:
    body, path = shown.message.body, files.path(shown.number)
    try:
        files.folder.mkdir(parents=True, exist_ok=True)
        if isinstance(body, Path):
            body.replace(path)
        else:
            path.write_bytes(body if isinstance(body, bytes) else body_text(body).encode())
    except OSError as error:
        raise cannot_write(error, path) from None
    return path
