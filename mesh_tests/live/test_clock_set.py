"""Do messages keep their deadlines when the machine's clock is set between two runs of their broker?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from broker.wall_clock import NOTE, read_clocks
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh
from wire.message import Message, encode

YEAR_S = 365 * 86400.0
TOPOLOGY = """
mesh: clock
routers: {r1: }
brokers: {b1: {data: b1, routers: [r1]}}
addresses: {orders: queue}
"""


@pytest.fixture
def mesh_of_last_year(tmp_path: Path) -> Iterator[RunningMesh]:
    """Its broker goes by a clock that has been set forward by a year since it began."""
    data = tmp_path / "b1"
    data.mkdir(mode=0o700)
    now = read_clocks()
    (data / NOTE).write_text(json.dumps(asdict(replace(now, wall_s=now.wall_s - YEAR_S))))
    mesh = RunningMesh(TOPOLOGY, tmp_path)
    yield mesh
    mesh.down()


def test_what_has_time_still_is_not_over_because_the_clock_was_set_forward(mesh_of_last_year: RunningMesh):
    mesh = mesh_of_last_year
    with WireClient(mesh.port("r1")) as client:
        sender = client.sender("orders")
        client.wait(lambda: sender.credit > 0, "credit")
        client.wait_outcome(client.send_bytes(sender, encode(Message(body="in time", ttl_s=3600.0))))
        mesh.kill("b1")
        client.receiver("orders", credit=1)
        assert [each.body for each in client.wait_arrived(1)] == ["in time"]
    (by_s, *_) = [line["by_s"] for line in mesh.log("b1") if line["event"] == "clock_was_set"]
    assert by_s == pytest.approx(YEAR_S, abs=60.0)
