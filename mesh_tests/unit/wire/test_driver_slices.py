"""A storm of attaches on one connection, over real sockets: other connections have turns between its slices."""

from __future__ import annotations

import asyncio
import itertools
import socket
from typing import Any

import pytest

from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sites import LOOPBACK, Site, exchange, plain_client_bytes, reset_on_close, site
from mesh_tests.unit.wire.test_input_slices import storm
from wire.amqp_connection import FEW_CHANGES, MOST_CHANGES
from wire.codec import table
from wire.codec.frames import AmqpFrame, CompositeValue, encode_frame
from wire.endpoint import Endpoint
from wire.link import Link
from wire.log_events import ConnectionClosed, ConnectionLost

pytestmark = pytest.mark.usefixtures("every_loop")

LINKS = 500


def note_links(server: Site) -> list[str]:
    """Return the names of the links that the server's node gets from now on, as they come."""
    names: list[str] = []

    def take(link: Link) -> None:
        names.append(link.name)
        link.accept_as_proposed()

    server.node.on_link = take
    return names


def all_links() -> list[str]:
    return [f"link-{number}" for number in range(LINKS)]


def storm_to_the_close() -> bytes:
    """Return the bytes of a client that attaches LINKS links and closes the connection, without any answer."""
    return storm(LINKS)[1] + encode_frame(AmqpFrame(0, CompositeValue(table.CLOSE, {})))


def test_the_links_of_a_storm_come_in_order_and_are_all_answered() -> None:
    async def scenario() -> None:
        async with site() as server:
            names = note_links(server)
            await exchange(server.port, storm_to_the_close())
            assert names == all_links()
            await server.log.wait_for(ConnectionClosed)

    run(scenario)


def test_another_connection_is_served_between_the_slices_of_a_storm() -> None:
    async def scenario() -> None:
        async with site() as server:
            names = note_links(server)
            _reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
            writer.write(plain_client_bytes())
            await server.node.wait(lambda: server.node.opened)
            storming = asyncio.create_task(exchange(server.port, storm_to_the_close()))
            await server.node.wait(lambda: names)
            # The bystander's next input comes while most of the storm, read in one go, still waits.
            bystander = server.node.endpoints[0]
            heard = bystander.bytes_in
            writer.write(b"\x00\x00\x00\x08\x02\x00\x00\x00")
            await server.node.wait(lambda: bystander.bytes_in > heard)
            assert 0 < len(names) < LINKS
            await storming
            assert names == all_links()
            writer.close()
            await server.node.wait(lambda: len(server.node.disconnected) == 2)

    run(scenario)


def test_two_storms_have_their_turns_by_turns() -> None:
    async def scenario() -> None:
        async with site() as server:
            turns: list[Endpoint] = []

            def take(link: Any) -> None:
                turns.append(link.endpoint)
                link.accept_as_proposed()

            server.node.on_link = take
            # A clock that jumps gives each turn of the event loop one slice.
            ticks = itertools.count()
            server.driver.now = lambda: next(ticks) / 200  # type: ignore[method-assign]
            await asyncio.gather(*(exchange(server.port, storm_to_the_close()) for _ in range(2)))
            one, other = server.node.endpoints
            assert turns.count(one) == turns.count(other) == LINKS
            both = [place for place, endpoint in enumerate(turns) if endpoint is other]
            overlap = turns[both[0] : len(turns) - turns[::-1].index(one)]
            runs = [overlap[at : at + MOST_CHANGES] for at in range(0, len(overlap), MOST_CHANGES)]
            assert len(runs) > 4
            assert one in overlap
            assert other in overlap
            changes = sum(a is not b for a, b in itertools.pairwise(overlap))
            assert changes >= len(runs) - 2

    run(scenario)


def test_what_came_before_a_reset_is_handled_before_the_node_hears_of_the_end() -> None:
    async def scenario() -> None:
        async with site() as server:
            names = note_links(server)
            at_end: list[int] = []
            server.node.on_gone = lambda: at_end.append(len(names))
            loop = asyncio.get_running_loop()
            with socket.create_connection((LOOPBACK, server.port)) as sock:
                sock.setblocking(False)
                await loop.sock_sendall(sock, storm(LINKS)[1])
                await server.node.wait(lambda: names)
                server.driver._by_endpoint[server.node.endpoints[0]].transport.abort("lost")
                reset_on_close(sock)
            await server.node.wait(lambda: server.node.disconnected)
            assert names == all_links()
            assert at_end == [LINKS]
            await server.log.wait_for(ConnectionLost)
            assert len(server.node.disconnected) == 1
            assert server.driver.snapshot().connection_count == 0

    run(scenario)


def test_an_end_of_the_stream_behind_a_storm_is_judged_behind_it() -> None:
    async def scenario() -> None:
        async with site() as server:
            names = note_links(server)
            await exchange(server.port, storm(LINKS)[1], closes=True)
            await server.node.wait(lambda: server.node.disconnected)
            assert names == all_links()
            (lost,) = await server.log.wait_for(ConnectionLost)
            assert lost.reason == "the peer closed the socket without closing the connection"

    run(scenario)


def test_nothing_more_is_read_while_input_waits() -> None:
    async def scenario() -> None:
        async with site() as server:
            paused: list[bool] = []

            def take(link: Any) -> None:
                connection = server.driver._by_endpoint[link.endpoint]
                if link.endpoint.has_rest:
                    paused.append(not connection.transport._transport.is_reading())  # type: ignore[attr-defined]
                link.accept_as_proposed()

            server.node.on_link = take
            await exchange(server.port, storm_to_the_close())
            assert len(paused) > LINKS / 2
            assert all(paused)

    run(scenario)


def test_a_shutdown_in_the_midst_of_a_storm_tells_the_node_of_the_end() -> None:
    async def scenario() -> None:
        async with site() as server:
            names = note_links(server)
            storming = asyncio.create_task(exchange(server.port, storm(LINKS)[1]))
            await server.node.wait(lambda: names)
            await server.driver.close(grace_s=1.0)
            await storming
            assert len(server.node.disconnected) == 1

    run(scenario)


def test_a_fault_of_the_node_in_a_slice_does_not_stop_the_rest() -> None:
    from wire.errors import AmqpError

    async def scenario() -> None:
        async with site() as server:
            names: list[str] = []

            def stumble(link: Any) -> None:
                names.append(link.name)
                raise AmqpError("amqp:not-allowed", "stumbled")

            server.node.on_link = stumble
            answer = await exchange(server.port, storm_to_the_close())
            assert b"stumbled" in answer
            await server.node.wait(lambda: server.node.disconnected)
            assert names[0] == "link-0"

    run(scenario)


def test_many_storms_in_one_turn_of_the_event_loop_begin_with_small_slices() -> None:
    async def scenario() -> None:
        async with site() as server:
            turns: list[Endpoint] = []

            def take(link: Any) -> None:
                turns.append(link.endpoint)
                link.accept_as_proposed()

            server.node.on_link = take
            loop = asyncio.get_running_loop()
            socks = [socket.create_connection((LOOPBACK, server.port)) for _ in range(4)]
            for sock in socks:
                sock.setblocking(False)
                await loop.sock_sendall(sock, storm_to_the_close())
            await server.node.wait(lambda: len(set(turns)) == len(socks))
            firsts = [len(list(run)) for _, run in itertools.groupby(turns)]
            # A begin goes before the attaches: 15 links of the first storm, then one of each other.
            assert firsts[0] >= MOST_CHANGES - 1
            assert FEW_CHANGES - 1 in firsts
            await server.node.wait(lambda: len(turns) == len(socks) * LINKS)
            for sock in socks:
                sock.close()
            await server.node.wait(lambda: len(server.node.disconnected) == len(socks))

    run(scenario)
