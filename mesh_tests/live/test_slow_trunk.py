"""A trunk that is full in both directions, with fast timers: does any router take its neighbor for dead?"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from mesh_tests.live.trunk import Trunk
from mesh_tests.live.wire_client import WireClient
from mesh_tests.ports import free_port
from mesh_tests.running_mesh import RunningMesh
from wire.link import OutgoingLink

RATE = 1_000_000
BODY = bytes(50_000)
SATURATED_S = 12.0
UNDER_WAY = 100
TOPOLOGY = """
mesh: slow
node_tls: {tls}
hello_interval_s: 0.1
routers:
  r1: {{connect: [{{to: r2, port: {trunk}}}]}}
  r2: {{port: {port}}}
addresses:
  "#": anycast
"""


class Stream:
    """Messages from one router to the other, as fast as they go."""

    def __init__(self, mesh: RunningMesh, start: str, end: str) -> None:
        self.consumer = WireClient(mesh.port(end), container_id=f"consumer at {end}")
        self.consumer.receiver(f"to.{end}", credit=10_000)
        self.producer = WireClient(mesh.port(start), container_id=f"producer at {start}")
        self.sender: OutgoingLink = self.producer.sender(f"to.{end}")
        self.came_bytes = self.sent = 0

    def end(self) -> None:
        for client in (self.producer, self.consumer):
            client.kill()

    def step(self) -> None:
        if self.sender.credit > 0 and self.sent < len(self.producer.outcomes) + UNDER_WAY:
            self.sent += 1
            self.producer.send_bytes(self.sender, b"\x00\x53\x75\xb0" + len(BODY).to_bytes(4, "big") + BODY)
        for client in (self.producer, self.consumer):
            client.step()
        self.came_bytes += sum(len(each.data) for each in self.consumer.settle_all())


@pytest.mark.quiet
@pytest.mark.parametrize("tls", ["false", "true"], ids=["plain", "tls"])
def test_a_full_trunk_is_no_dead_neighbor(tmp_path: Path, tls: str) -> None:
    port = free_port()
    with ExitStack() as cleanup:
        trunk = cleanup.enter_context(Trunk(port, RATE))
        mesh = RunningMesh(TOPOLOGY.format(tls=tls, trunk=trunk.port, port=port), tmp_path)
        cleanup.callback(mesh.down)
        streams = [Stream(mesh, "r1", "r2"), Stream(mesh, "r2", "r1")]
        for stream in streams:
            cleanup.callback(stream.end)
        end = time.monotonic() + SATURATED_S
        while time.monotonic() < end:
            for stream in streams:
                stream.step()
        for stream in streams:
            # It is full: else it would show nothing.
            assert 0.5 * RATE * SATURATED_S < stream.came_bytes < 1.1 * RATE * SATURATED_S
        lost = [line for router in ("r1", "r2") for line in mesh.log(router) if line["event"] == "neighbor_expired"]
        assert lost == []
