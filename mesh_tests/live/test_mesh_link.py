"""The observers' links to a running mesh: requests over two routers, a router that is killed, a peer that is nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from addressing.address import OBSERVER_PREFIX, OBSERVERS
from addressing.topology.loader import load_topology
from mesh.client.connect import connected
from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh.client.server import Server
from mesh.deploy.operator import servers_for_programs
from mesh.deploy.polling import wait_until
from mesh.watch.mesh_link import MeshLink
from mesh_tests.conftest import StartMesh
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh
from wire.delivery import ACCEPTED, OutcomeCode
from wire.message import Message, decode, encode

TOPOLOGY = """
mesh: linked
routers: {r1: {connect: [r2]}, r2: , e1: {mode: edge, connect: [r2]}}
"""
LONG_S = 30.0
HERE, THERE = OBSERVER_PREFIX + "here", OBSERVER_PREFIX + "there"


@pytest.fixture
def mesh(start_mesh: StartMesh) -> RunningMesh:
    return start_mesh(TOPOLOGY)


def link_to(mesh: RunningMesh, *routers: str) -> MeshLink:
    topology = load_topology(mesh.topology_file)

    def servers() -> Iterator[Server]:
        for router in routers:
            yield from servers_for_programs(topology, router)

    return MeshLink(servers, f"observer of {routers[0]}")


@asynccontextmanager
async def running(*links: MeshLink) -> AsyncIterator[None]:
    stopping = asyncio.Event()
    tasks = [asyncio.create_task(link.run(stopping)) for link in links]
    try:
        for link in links:
            await until(lambda link=link: link.is_up)  # type: ignore[misc]
        yield
    finally:
        stopping.set()
        await asyncio.gather(*tasks)


async def until(holds: Callable[[], Any]) -> None:
    async def look() -> bool:
        return bool(holds())

    async with asyncio.timeout(LONG_S):
        await wait_until(look)


async def told(request: Message) -> Message:
    return Message(f"told {len(request.body)}: {request.body[-10:]}")


async def answer_of(link: MeshLink, address: str, body: str) -> str:
    """The answer once the routers know the address."""
    async with asyncio.timeout(LONG_S):
        while True:
            try:
                return await link.ask(address, body, 2.0)
            except MeshError:
                await asyncio.sleep(0.05)


def test_two_observers_ask_each_other_over_two_routers_whatever_the_size(mesh: RunningMesh) -> None:
    async def run() -> None:
        here, there = link_to(mesh, "r1"), link_to(mesh, "r2")
        await there.serve(THERE, told)
        async with running(here, there):
            assert await answer_of(here, THERE, "question") == "told 8: question"
            connections = mesh.snapshot("r1")["node"]["connections"]
            assert sorted(each["kind"] for each in connections) == ["inter-router", "operator"]
            long = "x" * 3_000_000
            assert await here.ask(THERE, long, LONG_S) == f"told 3000000: {'x' * 10}"
            answers = await asyncio.gather(*(here.ask(THERE, f"number {each}", LONG_S) for each in range(200)))
            assert answers == [f"told {len(f'number {each}')}: {f'number {each}'[-10:]}" for each in range(200)]
            # An address that is served once the connection is there.
            await here.serve(HERE, told)
            assert await answer_of(there, HERE, "back") == "told 4: back"

    asyncio.run(run())


def test_what_is_said_to_all_observers_comes_to_each_of_them(mesh: RunningMesh) -> None:
    async def run() -> None:
        here, there = link_to(mesh, "r1"), link_to(mesh, "r2")
        heard: list[str] = []

        def hearing(who: str) -> Any:
            async def hear(message: Message) -> None:
                heard.append(f"{who}: {message.body}")

            return hear

        await here.serve(OBSERVERS, hearing("here"))
        await there.serve(OBSERVERS, hearing("there"))
        async with running(here, there):
            for number in range(1000):
                await here.send(Message(f"{number}", to=OBSERVERS))
                await asyncio.sleep(0.02)
                if {f"here: {number}", f"there: {number}"} <= set(heard):
                    return
            raise AssertionError(f"expected a message to come to both, got {heard[-3:]}")

    asyncio.run(run())


def test_an_address_that_nobody_serves_is_told_at_once_and_one_that_hangs_after_the_timeout(mesh: RunningMesh) -> None:
    async def hang(_: Message) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        link = link_to(mesh, "r1")
        with pytest.raises(Unreachable, match="has no connection to a router: no router was tried yet"):
            await link.ask(THERE, "question", 5.0)
        await link.serve(HERE, hang)
        async with running(link):
            with pytest.raises(Unreachable, match=f"nobody answers at {THERE}"):
                await link.ask(THERE, "question", LONG_S)
            with pytest.raises(TimedOut, match=rf"no answer from {HERE} within 0\.2 s"):
                await link.ask(HERE, "question", 0.2)

    asyncio.run(run())


def test_a_link_takes_another_router_after_a_kill_and_serves_again(mesh: RunningMesh) -> None:
    async def run() -> None:
        here, there = link_to(mesh, "r1", "r2"), link_to(mesh, "r2")
        await here.serve(HERE, told)
        async with running(here, there):
            await answer_of(there, HERE, "before")
            mesh.kill("r1")
            await until(lambda: not here.is_up)
            assert "lost" in here.reason or "refused" in here.reason
            assert await answer_of(there, HERE, "after") == "told 5: after"

    asyncio.run(run())


def test_a_link_without_any_router_says_why_and_connects_once_one_is_there(mesh: RunningMesh) -> None:
    async def run() -> None:
        topology = load_topology(mesh.topology_file)
        good = next(servers_for_programs(topology, "r1"))
        wanted = [Server("127.0.0.1", 1, sasl=None)]
        link = MeshLink(lambda: wanted, "observer")
        stopping = asyncio.Event()
        task = asyncio.create_task(link.run(stopping))
        await until(lambda: "refused" in link.reason)
        assert not link.is_up
        wanted.append(good)
        await until(lambda: link.is_up)
        stopping.set()
        await task

    asyncio.run(run())


def test_no_client_may_hear_or_ask_observers(mesh: RunningMesh) -> None:
    with WireClient(mesh.port("r1")) as client:
        for address in (OBSERVERS, HERE):
            for link in (client.receiver(address, is_awaited=False), client.sender(address, is_awaited=False)):
                error = client.wait_detached(link).error
                assert error is not None
                assert error.condition == "amqp:unauthorized-access"


def test_answers_come_to_dynamic_addresses_at_every_router_and_one_of_a_client_that_went_is_not_taken(
    mesh: RunningMesh,
) -> None:
    async def run() -> None:
        link = link_to(mesh, "r1")
        async with running(link):
            for router in ("r1", "r2", "e1"):
                async with connected(Server("127.0.0.1", mesh.port(router)), LONG_S) as client:
                    replies = await client.receiver(None)
                    address = replies.answered_address or ""
                    replies.top_up()
                    for body in ("first", "second" * 100_000, "third"):
                        answer = asyncio.create_task(link.deliver(address, encode(Message(body)), LONG_S))
                        received = await asyncio.wait_for(replies.receive(), LONG_S)
                        assert decode(received.data).body == body
                        replies.settle(received, ACCEPTED)
                        assert await answer == ACCEPTED
                gone = asyncio.create_task(link.deliver(address, encode(Message("late")), 1.0))
                [outcome] = await asyncio.gather(gone, return_exceptions=True)
                assert isinstance(outcome, MeshError) or outcome.kind is OutcomeCode.RELEASED, outcome

    asyncio.run(run())


def test_a_large_answer_to_a_client_that_reads_nothing_holds_up_no_other_answer(mesh: RunningMesh) -> None:
    async def run() -> None:
        link = link_to(mesh, "r1")
        with WireClient(mesh.port("r1")) as stalled:
            stalled.reads = False
            silent = stalled.receiver(None, credit=1, is_dynamic=True)
            async with running(link), connected(Server("127.0.0.1", mesh.port("r1")), LONG_S) as client:
                to_silent = silent.remote_source.address or ""
                large = asyncio.create_task(link.deliver(to_silent, encode(Message(bytes(20_000_000))), LONG_S))
                replies = await client.receiver(None)
                for number in range(20):
                    replies.top_up()
                    small = asyncio.create_task(
                        link.deliver(replies.answered_address or "", encode(Message(number)), LONG_S)
                    )
                    received = await asyncio.wait_for(replies.receive(), LONG_S)
                    replies.settle(received, ACCEPTED)
                    assert await small == ACCEPTED
                    await asyncio.sleep(0.05)
                assert not large.done()
                large.cancel()

    asyncio.run(run())
