"""How many user instructions does a router take for a request to `$management`?

`python -m mesh_tests.bench.management --help`. A router runs under valgrind's callgrind, as in
`mesh_tests.bench.instructions`. This process is the observer, which answers over `MeshLink` as the real one does, and
the clients: each client has a link for requests and a dynamic address for answers, and asks again once it has the
answer. The observer's own instructions do not count.
"""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import click

from addressing.management import REQUESTS_ADDRESS
from mesh.client.client import Client
from mesh.client.connect import connected
from mesh.client.links import Receiver, Sender
from mesh.client.server import Server
from mesh.watch.mesh_link import MeshLink
from mesh_tests.bench.instructions import Router, running_router
from router.clients.management import REQUEST_S
from wire.delivery import ACCEPTED
from wire.message import Message, decode, encode

HOST = "127.0.0.1"
LONG_S = 60.0
SMALL_BYTES, LARGE_BYTES = 1_000, 300_000


class Asking:
    """A client that asks for answers of ``size`` bytes."""

    def __init__(self, requests: Sender, replies: Receiver) -> None:
        self._requests, self._replies = requests, replies

    @classmethod
    async def attach(cls, client: Client) -> Asking:
        return cls(await client.sender("$management"), await client.receiver(None))

    async def ask(self, size: int) -> None:
        self._replies.top_up()
        await self._requests.send(encode(Message(str(size), reply_to=self._replies.answered_address)))
        received = await self._replies.receive()
        self._replies.settle(received, ACCEPTED)


@asynccontextmanager
async def observer(router: Router) -> AsyncIterator[None]:
    """Answer each request by as many bytes as the request says."""
    link = MeshLink(lambda: [Server(HOST, router.node_port, sasl=None)], "observer-r1")
    answers: set[asyncio.Task[Any]] = set()

    async def on_request(outer: Message) -> None:
        assert isinstance(outer.body, bytes)
        assert outer.reply_to is not None
        size = int(str(decode(outer.body).body))
        answer = asyncio.create_task(link.deliver(outer.reply_to, encode(Message("x" * size)), LONG_S))
        answers.add(answer)
        answer.add_done_callback(answers.discard)

    await link.serve(REQUESTS_ADDRESS, on_request)
    stopping = asyncio.Event()
    running = asyncio.create_task(link.run(stopping))
    try:
        async with asyncio.timeout(LONG_S):
            while not link.is_up:  # noqa: ASYNC110 (the link has no event for it)
                await asyncio.sleep(0.1)
        yield
    finally:
        stopping.set()
        await running


async def measure(router: Router, requests: int, repeat: int) -> dict[str, list[float]]:
    """Return the instructions of the router for a request, by row, in each repetition."""
    found: dict[str, list[float]] = {}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(observer(router))
        client = await stack.enter_async_context(connected(Server(HOST, router.port), LONG_S))
        asking = await Asking.attach(client)

        async def again(size: int) -> None:
            await asking.ask(size)

        async def once(size: int) -> None:
            async with connected(Server(HOST, router.port), LONG_S) as other:
                await (await Asking.attach(other)).ask(size)

        async def no_request(size: int) -> None:
            async with connected(Server(HOST, router.port), LONG_S) as other:
                await Asking.attach(other)

        rows: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "request of a client that asks again": lambda: again(SMALL_BYTES),
            "the same, an answer of 300 KB": lambda: again(LARGE_BYTES),
            "request of a client that connects for it": lambda: once(SMALL_BYTES),
            "a client that connects and does not ask": lambda: no_request(SMALL_BYTES),
        }
        for name, work in rows.items():
            await _times(work, requests)
            found[name] = [await _counted(router, work, requests) / requests for _ in range(repeat)]
    return found


async def _times(work: Callable[[], Coroutine[Any, Any, None]], requests: int) -> None:
    for _ in range(requests):
        await work()


async def _counted(router: Router, work: Callable[[], Coroutine[Any, Any, None]], requests: int) -> int:
    # The router lets so many requests pass at once, and none of them waits for its turn while they are counted.
    await asyncio.sleep(requests * REQUEST_S)
    return await router.count_awaited(lambda: _times(work, requests))


@click.command()
@click.option("--requests", default=25, show_default=True, help="Requests of each repetition.")
@click.option("--repeat", default=5, show_default=True)
@click.option("--json", "is_json", is_flag=True, help="Print JSON: median, least and most of each row.")
def main(requests: int, repeat: int, is_json: bool) -> None:
    """Count the user instructions of a router for a request to `$management`, and its answer."""
    with running_router(None) as router:
        found = asyncio.run(measure(router, requests, repeat))
    rows = {
        name: {"median": statistics.median(each), "least": min(each), "most": max(each)} for name, each in found.items()
    }
    if is_json:
        click.echo(json.dumps(rows))
        return
    for name, row in rows.items():
        click.echo(f"{name}: {row['median']:,.0f} ({row['least']:,.0f} to {row['most']:,.0f})")


if __name__ == "__main__":
    main()
