"""What a process tells about its own memory, descriptors and objects."""

from __future__ import annotations

import os

from mesh.deploy.process_memory import process_memory

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
