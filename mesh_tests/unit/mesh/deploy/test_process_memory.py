"""What a process tells about its own memory, descriptors and objects."""

from __future__ import annotations

import gc
import os

from mesh.deploy.process_memory import answer_memory, process_memory

COUNT = 20_000
OBJECT_BYTES = 64
NOISE = 500


def test_descriptors_are_those_that_are_open() -> None:
    before = process_memory().descriptors
    pipe = os.pipe()
    assert process_memory().descriptors == before + 2
    for each in pipe:
        os.close(each)
    assert process_memory().descriptors == before


def test_blocks_grow_with_objects_and_shrink_with_them() -> None:
    before = process_memory()
    objects = [bytes(OBJECT_BYTES) + number.to_bytes(8) for number in range(COUNT)]
    after = process_memory()
    assert after.python_blocks - before.python_blocks >= COUNT - NOISE
    assert after.resident_bytes > len(objects) * OBJECT_BYTES
    del objects
    assert process_memory().python_blocks - before.python_blocks < NOISE


class Knot:
    def __init__(self) -> None:
        self.itself = self


def test_objects_in_cycles_are_collected_if_the_request_asks_for_it() -> None:
    gc.collect()
    gc.disable()
    try:
        before = process_memory().python_blocks
        for _ in range(COUNT):
            Knot()
        assert answer_memory({"op": "memory"}).python_blocks - before >= COUNT
        assert answer_memory({"op": "memory", "collect": True}).python_blocks - before < NOISE
    finally:
        gc.enable()
