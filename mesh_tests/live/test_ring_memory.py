"""Does the memory of a node, and of the writer, stay as it is while the node records to a ring of full size?"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh.deploy.workdir import WRITER
from mesh_tests.live.memory import mapped_bytes
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until
from recording.ring_format import SLOT_BYTES

TOPOLOGY = """
mesh: recorded
routers: {r1: {listeners: [{authentication: none}]}}
addresses: {jobs: anycast}
link_logs: full
"""
MESSAGES = 150_000
MOST_BYTES = MESSAGES * SLOT_BYTES // 4


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[RunningMesh]:
    started = RunningMesh(TOPOLOGY, tmp_path)
    yield started
    started.down()


def test_records_that_were_written_and_taken_leave_the_memory_of_node_and_writer(mesh: RunningMesh) -> None:
    command = (AMQPMESH, "bench", "forward", "--url", f"{mesh.url('r1')}/jobs", "-c", str(MESSAGES), "-n", "1")
    subprocess.run((*command, "--mode", "presettled", "--body", "100"), check=True, capture_output=True, timeout=120)
    (ring,) = (mesh.topology_file.parent / ".amqpmesh" / "recorded" / "rings").glob("*.ring")
    for name in ("r1", WRITER):
        pid = mesh.pid(name)
        assert mapped_bytes(ring, pid) > 0
        wait_until(lambda pid=pid: mapped_bytes(ring, pid) < MOST_BYTES, 30.0, f"{name} to let go of written pages")
