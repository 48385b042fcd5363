"""The proxy that stands in for a bad link, over loopback: what passes, what is held, what breaks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from mesh.drills.proxy import LinkProxy
from mesh_tests.ports import free_port

PATIENCE_S = 10.0


@dataclass
class Line:
    """A client that is connected to an echo through the proxy."""

    proxy: LinkProxy
    port: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def echoed(self, data: bytes) -> float:
        """Seconds until all of it is back."""
        began = time.monotonic()
        self.writer.write(data)
        async with asyncio.timeout(PATIENCE_S):
            assert await self.reader.readexactly(len(data)) == data
        return time.monotonic() - began

    async def read_end(self) -> bytes:
        """What comes until the connection ends."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b"reset"


@asynccontextmanager
async def line() -> AsyncIterator[Line]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    target, port = free_port(), free_port()
    server = await asyncio.start_server(echo, "127.0.0.1", target)
    proxy = LinkProxy("127.0.0.1", target, random.Random(1))
    await proxy.start(port)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Line(proxy, port, reader, writer)
    finally:
        writer.close()
        await proxy.stop()
        server.close()


def run(check: Callable[[Line], Awaitable[None]]) -> None:
    async def main() -> None:
        async with line() as there:
            await check(there)

    asyncio.run(main())


def test_a_link_that_is_well_passes_everything_as_it_is():
    async def check(there: Line) -> None:
        await there.echoed(random.Random(2).randbytes(3_000_000))
        assert there.proxy.forth.passed_bytes == there.proxy.back.passed_bytes == 3_000_000

    run(check)


def test_latency_is_added_once_however_much_passes():
    async def check(there: Line) -> None:
        there.proxy.forth.latency_s = 0.2
        assert 0.2 <= await there.echoed(b"x") < 0.6
        # Chunks are on their way at the same time, as on a wire.
        assert 0.2 <= await there.echoed(bytes(200_000)) < 2.0
        there.proxy.forth.latency_s = 0.0
        assert await there.echoed(b"x") < 0.2

    run(check)


def test_a_narrow_link_takes_its_time_and_loses_nothing():
    async def check(there: Line) -> None:
        there.proxy.back.rate_bytes_per_s = 100_000
        assert await there.echoed(random.Random(3).randbytes(50_000)) > 0.4
        assert there.proxy.back.delayed > 0

    run(check)


def test_a_lost_packet_holds_up_what_is_behind_it_in_order():
    async def check(there: Line) -> None:
        there.proxy.forth.loss = 0.05
        assert await there.echoed(random.Random(4).randbytes(100_000)) > 0.2
        assert there.proxy.forth.lost_packets > 0

    run(check)


@pytest.mark.parametrize("direction", ["forth", "back"])
def test_a_black_hole_holds_what_comes_and_lets_it_go_when_it_is_healed(direction: str):
    async def check(there: Line) -> None:
        await there.echoed(b"before")
        lane = getattr(there.proxy, direction)
        lane.is_open.clear()
        there.writer.write(b"meanwhile")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(there.reader.read(1), 0.3)
        assert lane.held_bytes == len(b"meanwhile")
        lane.is_open.set()
        assert await asyncio.wait_for(there.reader.readexactly(9), PATIENCE_S) == b"meanwhile"

    run(check)


def test_a_cut_resets_what_there_is_and_refuses_what_comes():
    async def check(there: Line) -> None:
        await there.echoed(b"before")
        there.proxy.is_cut = True
        assert there.proxy.reset() == 1
        assert await there.read_end() == b"reset"
        there.reader, there.writer = await asyncio.open_connection("127.0.0.1", there.port)
        assert await there.read_end() in (b"", b"reset")
        assert (there.proxy.cut_count, there.proxy.refused_count) == (1, 1)
        there.proxy.is_cut = False
        there.reader, there.writer = await asyncio.open_connection("127.0.0.1", there.port)
        await there.echoed(b"after")

    run(check)
