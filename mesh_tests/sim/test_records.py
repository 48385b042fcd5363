"""What does the recorder of deliveries hear? One record each, when it is settled."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from mesh_tests.sim.line import line
from router.forwarding.records import RECORD_BYTES, Recorder, record
from wire.delivery import Kind

RECORD = struct.Struct("<QIIIIBBH")


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    yield record(8)
    record(0)


def records(recorder: Recorder) -> list[tuple[int, ...]]:
    return list(RECORD.iter_unpack(recorder.take()))


def test_each_settled_delivery_leaves_a_record_with_size_time_and_outcome(recorder: Recorder):
    mesh = line(1)
    mesh.client("r1").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    for _ in range(5):
        mesh.send(sender, bytes(100))
    mesh.run_until(lambda: len(sender.outcomes) == 5)
    found = records(recorder)
    assert RECORD.size == RECORD_BYTES
    assert len(found) == 5
    assert {(size, outcome) for _, _, size, _, _, outcome, _, _ in found} == {(100, Kind.ACCEPTED)}
    # There and back to the consumer, 1 ms each way.
    assert all(1_000 <= took_us <= 5_000 for _, took_us, *_ in found)
    assert len({(incoming, outgoing) for _, _, _, incoming, outgoing, *_ in found}) == 1
    assert records(recorder) == []


def test_records_that_nobody_takes_are_overwritten_and_counted(recorder: Recorder):
    mesh = line(1)
    mesh.client("r1").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    for _ in range(11):
        mesh.send(sender, b"x")
    mesh.run_until(lambda: len(sender.outcomes) == 11)
    assert recorder.lost_count == 3
    assert len(records(recorder)) == 8
