"""A ring has room for far more records than are in use at once: how much of it is in the memory of a process?"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies

from linklogs.writer.ring import Ring
from mesh_tests.live.memory import mapped_bytes
from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sites import site
from recording import recorder as module
from recording import ring_format as layout
from recording.records import Recorder
from recording.ring_file import RingFile
from recording.ring_pages import LEAST_BYTES, RingPages

SIZE = 4 << 20
CAPACITY = layout.capacity_of(SIZE)
MOST_RESIDENT = LEAST_BYTES + 256 * 1024
"""The rest is for the pages that the system brings in around one that is touched."""


def fill(memory: mmap.mmap, first: int, count: int) -> None:
    """As a node does: slots from number ``first`` on, each with its number."""
    for number in range(first, first + count):
        at = layout.HEADER_BYTES + number % CAPACITY * layout.SLOT_BYTES
        struct.pack_into("<QQQQ", memory, at, number, number, number, number)


def numbers(memory: mmap.mmap, first: int, end: int) -> list[int]:
    """What ``fill`` has put into the slots from number ``first`` to before ``end``."""
    places = (layout.HEADER_BYTES + number % CAPACITY * layout.SLOT_BYTES for number in range(first, end))
    return [struct.unpack_from("<Q", memory, at)[0] for at in places]


@settings(max_examples=12, deadline=None)
@given(strategies.lists(strategies.integers(0, CAPACITY // 2), min_size=1, max_size=8), strategies.integers(0, 1 << 40))
def test_pages_that_were_let_go_keep_their_content_and_take_no_memory(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], begun_at: int
) -> None:
    path = tmp_path_factory.mktemp("rings") / "one.ring"
    with path.open("x+b") as file:
        os.posix_fallocate(file.fileno(), 0, SIZE)
        memory = mmap.mmap(file.fileno(), SIZE)
    with memory:
        pages, position = RingPages(memory, CAPACITY, begun_at), begun_at
        for count in counts:
            fill(memory, position, count)
            position += count
            pages.let_go(position)
            assert mapped_bytes(path) <= MOST_RESIDENT
        first = max(begun_at, position - CAPACITY)
        assert numbers(memory, first, position) == list(range(first, position))


def test_a_node_that_records_for_long_keeps_few_pages_of_its_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PERIOD_S", 0.001)
    ring = RingFile(tmp_path, "r1", 17, SIZE, {"node": "r1"})
    recorder = Recorder(ring.memory, "full")
    resident = list[int]()

    async def scenario() -> None:
        async with site() as server, module.seconds(recorder, server.driver, lambda now: None, lambda: (0, 0), ring):
            while recorder.written < 3 * CAPACITY:
                for _ in range(2000):
                    recorder.tell({"kind": "path", "egress": "r2"})
                struct.pack_into("<Q", ring.memory, layout.TAKEN_AT, recorder.written)
                written = recorder.written
                await asyncio.sleep(0.002)
                resident.append(mapped_bytes(tmp_path / "r1.17.ring"))
                # A record of the node's load may have come between.
                assert recorder.written - written < 10

    run(scenario)
    recorder.close()
    ring.close()
    assert max(resident) <= MOST_RESIDENT


def test_a_writer_that_takes_all_of_a_ring_keeps_few_of_its_pages(tmp_path: Path) -> None:
    ring = RingFile(tmp_path, "r1", 17, SIZE, {"node": "r1"})
    recorder = Recorder(ring.memory, "full")
    node = mapped_bytes(tmp_path / "r1.17.ring")
    taker = Ring(tmp_path / "r1.17.ring")
    taken = 0
    while taken < 3 * CAPACITY:
        for _ in range(1000):
            recorder.tell({"kind": "path", "egress": "r2"})
        ring.let_go_of_written()
        written = taker.look().written
        assert len(taker.read(taken, written - taken)) == written - taken
        taken = written
        taker.advance(taken)
        # Both are mapped in this process.
        assert mapped_bytes(tmp_path / "r1.17.ring") - node <= 2 * MOST_RESIDENT
    taker.close()
    recorder.close()
    ring.close()
