"""Holds dialogues at real ports, at a steady rate, from a process of its own: `python -m mesh_tests.fuzz.peers --help`.

A process of its own, so that its work does not slow the bystander whose latencies a test measures.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import struct

from mesh_tests.fuzz.dialogues import Dialogue, dialogue
from mesh_tests.fuzz.neighbors import CLIENT, EDGE, ROUTER

VOICES = {"client": CLIENT, "router": ROUTER, "edge": EDGE}
PAUSE_S = 0.01
ANSWER_S = 1.0
ABORT = struct.pack("ii", 1, 0)
"""SO_LINGER that makes a close a reset."""


async def hold(port: int, said: Dialogue) -> None:
    """One dialogue; whatever the other side does to the connection is its right."""
    with contextlib.suppress(OSError, TimeoutError):
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), ANSWER_S)
        try:
            await _say(reader, writer, said)
        finally:
            await _leave(reader, writer, said.ending)


async def _say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: Dialogue) -> None:
    for number, chunk in enumerate(said.chunks):
        writer.write(chunk)
        if number in said.pauses:
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                if not await asyncio.wait_for(reader.read(65_536), PAUSE_S):
                    return
    await writer.drain()


async def _leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ending: str) -> None:
    handle: socket.socket = writer.get_extra_info("socket")
    if ending == "half-close" and not writer.is_closing():
        writer.write_eof()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reader.read(-1), PAUSE_S)
    elif ending == "reset":
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    writer.close()


async def hold_all(ports: list[tuple[int, str]], first: int, count: int, rate: float, *, is_hostile: bool) -> None:
    """``ports``: each with the voice that speaks there, in turns. ``rate``: dialogues that begin in a second."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    running: set[asyncio.Task[None]] = set()
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / rate - loop.time()))
        port, voice = ports[number % len(ports)]
        task = asyncio.create_task(hold(port, dialogue(first + number, is_hostile=is_hostile, voice=VOICES[voice])))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ports", nargs="+", help="PORT:VOICE, of the voices client, router and edge")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first dialogue")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=200.0, help="dialogues in a second")
    parser.add_argument("--well-formed", action="store_true", help="the same dialogues without a hostile frame")
    given = parser.parse_args()
    ports = [(int(port), voice) for port, _, voice in (each.partition(":") for each in given.ports)]
    asyncio.run(hold_all(ports, given.first, given.count, given.rate, is_hostile=not given.well_formed))


if __name__ == "__main__":
    main()
