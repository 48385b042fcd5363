"""A TCP proxy in the place of a link: delays, slows down, loses or holds back bytes, or cuts connections.

The terms are Toxiproxy's. The proxy works above TCP, so no byte of a connection is missing unless the connection is
cut: bytes held back pass once the link is healed, and a lost packet delays the bytes behind it by TCP's retransmission
time.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

CHUNK_BYTES = 16 * 1024
HELD_BYTES = 64 * 1024
"""Bytes in flight on a slow link: the sender of more bytes has to wait, as on a real wire."""
PACKET_BYTES = 1448
RESEND_S = 0.2
"""TCP's shortest retransmission timeout on Linux, in seconds."""


@dataclass(slots=True)
class ProxyDirection:
    """One direction of the proxy in a link: the faults in force there, and counts of their effects."""

    latency_s: float = 0.0
    jitter_s: float = 0.0
    rate_bytes_per_s: float = 0.0
    """Limit of the bandwidth in bytes a second; 0 for no limit."""
    loss: float = 0.0
    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    """Not set while the bytes of this direction are held back, as in a black hole, until the fault is healed."""
    passed_bytes: int = 0
    delayed: int = 0
    """Number of chunks of bytes that were delayed by latency or by the limit of bandwidth."""
    lost_packets: int = 0
    held_bytes: int = 0
    """Number of bytes that arrived while this direction was held back."""

    def __post_init__(self) -> None:
        self.is_open.set()


class LinkProxy:
    """A proxy that listens on 127.0.0.1, and connects each accepted connection to the router at ``host`` and
    ``port``.
    """

    def __init__(self, host: str, port: int, chance: random.Random) -> None:
        self._target = (host, port)
        self._chance = chance
        self.forth = ProxyDirection()
        self.back = ProxyDirection()
        self.is_cut = False
        self.cut_count = 0
        """Number of connections that the proxy has reset."""
        self.refused_count = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self, port: int) -> None:
        listening = socket.create_server(("127.0.0.1", port))
        # The receive buffer of the connections is limited: by default the kernel would take megabytes, which a slow
        # link could not hold.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, HELD_BYTES)
        self._server = await asyncio.start_server(self._on_connection, sock=listening, limit=CHUNK_BYTES)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self.reset()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def reset(self) -> int:
        """Reset all connections through the proxy, and return their number."""
        count = len(self._writers) // 2
        for writer in self._writers:
            _reset(writer)
        self.cut_count += count
        return count

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            # If the router refused the connection, or the drill is over, the accepted connection is reset below.
            pass
        finally:
            self._serving.discard(task)
            _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            self.refused_count += 1
            return
        far_reader, far_writer = await asyncio.open_connection(*self._target, limit=CHUNK_BYTES)
        self._writers |= {writer, far_writer}
        ways = [
            asyncio.create_task(_Way(self.forth, reader, far_writer, self._chance).run()),
            asyncio.create_task(_Way(self.back, far_reader, writer, self._chance).run()),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._writers -= {writer, far_writer}
            far_writer.close()
            writer.close()


class _Way:
    """One direction of one connection: a reading task sets the time at which each chunk of bytes is due, a writing task
    sends the chunk at that time.
    """

    def __init__(
        self, lane: ProxyDirection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chance: random.Random
    ) -> None:
        self._lane = lane
        self._reader = reader
        self._writer = writer
        self._chance = chance
        self._waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(HELD_BYTES // CHUNK_BYTES)
        self._free_at = 0.0

    async def run(self) -> None:
        """Pass the bytes of this direction on until the reading end has closed, or the writing end is lost."""
        reading = asyncio.create_task(self._read())
        try:
            await self._write()
        except ConnectionError:
            return
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await self._reader.read(CHUNK_BYTES):
                if not self._lane.is_open.is_set():
                    self._lane.held_bytes += len(data)
                await self._waiting.put((self._due(loop.time(), len(data)), data))
        except ConnectionError:
            pass
        await self._waiting.put((0.0, b""))

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, data = await self._waiting.get()
            if due > loop.time():
                self._lane.delayed += 1
                await asyncio.sleep(due - loop.time())
            await self._lane.is_open.wait()
            if not data:
                return
            self._lane.passed_bytes += len(data)
            self._writer.write(data)
            await self._writer.drain()

    def _due(self, now: float, size: int) -> float:
        lane = self._lane
        due = max(now, self._free_at)
        if lane.rate_bytes_per_s:
            due += size / lane.rate_bytes_per_s
            # The limited link is busy with these bytes until this time; latency is added on top, and does not add up.
            self._free_at = due
        due += lane.latency_s + self._chance.uniform(-1, 1) * lane.jitter_s
        for _ in self._lost_of(size):
            lane.lost_packets += 1
            due += RESEND_S
            self._free_at = due
        return max(due, 0.0)

    def _lost_of(self, size: int) -> Iterator[int]:
        packets = -(-size // PACKET_BYTES)
        return (n for n in range(packets) if self._lane.loss and self._chance.random() < self._lane.loss)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with RST: its peer notices the loss at once, and bytes in flight do not arrive."""
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
