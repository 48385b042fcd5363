"""A benchmark of nodes that record: they do record, and their rings are empty in time."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from addressing.records import Level
from addressing.topology.model import Topology
from mesh.bench.loopback_mesh import LoopbackPlan, topology_of
from mesh.bench.recorded_router import emptied
from mesh_tests.waiting import wait_until
from recording import ring_format as layout
from recording.records import Recorder
from recording.ring_file import RingFile


@pytest.mark.parametrize("has_records", [True, False])
def test_nodes_record_every_delivery_if_the_benchmark_asks_for_records(has_records: bool) -> None:
    topology = Topology.model_validate(topology_of(LoopbackPlan(1, has_records=has_records)))
    assert (topology.link_logs.level is Level.FULL) == has_records


def test_what_nodes_record_is_taken_from_their_rings_again_and_again(tmp_path: Path) -> None:
    rings = [RingFile(tmp_path, name, 1, 1 << 20, {}) for name in ("r1", "r2")]
    recorders = [Recorder(ring.memory, "full") for ring in rings]

    def is_empty() -> bool:
        counts = [struct.unpack_from("<Q", ring.memory, layout.TAKEN_AT)[0] for ring in rings]
        return counts == [recorder.written for recorder in recorders]

    with emptied(tmp_path):
        for _ in range(3):
            for recorder in recorders:
                assert recorder.tell({"kind": "path", "egress": "r2"})
            wait_until(is_empty, 10.0, "the rings to be emptied")
    for ring in rings:
        ring.close()
