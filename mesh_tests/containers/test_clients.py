"""Do clients that are not ours go on when the host of a router between them and the broker is lost?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh_tests.containers.container_mesh import ContainerMesh
from mesh_tests.containers.losses import Loss, disconnected, paused
from mesh_tests.containers.ring import OVER_R2, OVER_R4, takes
from mesh_tests.interop.clients.client import Client, Container
from mesh_tests.interop.losses import assert_nothing_lost
from mesh_tests.waiting import wait_until

COUNT, BEFORE = 300, 30
ALL_OF_THEM = set(range(1, COUNT + 1))
PAUSE_MS = "5"
WAIT_S = 30.0


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    client = Container(tmp_path)
    yield client
    client.stop()


@pytest.mark.parametrize("lost", [paused, disconnected])
def test_queue_clients_of_proton_get_all_messages(ring: ContainerMesh, client: Client, lost: Loss) -> None:
    address = f"queue.{lost.__name__}.clients"
    receiver = client.receive(ring.url("r1"), address, COUNT)
    sender = client.send(ring.url("r1"), address, COUNT, pause_ms=PAUSE_MS)
    receiver.wait_sequences(BEFORE)
    with lost(ring.hosts["r2"]):
        wait_until(lambda: takes(ring, OVER_R4), WAIT_S, f"r1 and r3 to take {OVER_R4}")
        assert set(sender.sequences()) == ALL_OF_THEM
        assert_nothing_lost(ALL_OF_THEM, receiver, lambda: client.receive(ring.url("r1"), address, 1))
    wait_until(lambda: takes(ring, OVER_R2), WAIT_S, f"r1 and r3 to take {OVER_R2} again")
