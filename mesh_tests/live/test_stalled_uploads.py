"""Does a producer that stops in the middle of a large message stop others that send to the same brokers? Sockets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh
from wire.delivery import ACCEPTED
from wire.link import OutgoingLink
from wire.message import Message, encode

TOPOLOGY = """
mesh: stalled
node_tls: false
routers:
  r1: {connect: [r2], listeners: [{authentication: none}]}
  r2: {listeners: [{authentication: none}]}
brokers:
  b1: {routers: [r1]}
  b2: {routers: [r1]}
  b3: {routers: [r2]}
  b4: {routers: [r2]}
addresses:
  kept.r1: {type: queue, broker: b1}
  kept.r2: {type: queue, broker: b3}
  shards.r1: {type: queue, brokers: [b1, b2]}
  shards.r2: {type: queue, brokers: [b3, b4]}
  jobs.r1: {type: anycast, fallback: kept.r1}
  jobs.r2: {type: anycast, fallback: kept.r2}
"""
LARGE = encode(Message(body=bytes(200_000)))
HALF = len(LARGE) // 2


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


@pytest.mark.parametrize("kind", ["kept", "shards", "jobs"])
@pytest.mark.parametrize("keeper", ["r1", "r2"], ids=["1 router", "2 routers"])
def test_others_go_on_beside_stalled_uploads(mesh: RunningMesh, keeper: str, kind: str):
    with ExitStack() as stack:

        def client() -> WireClient:
            return stack.enter_context(WireClient(mesh.port("r1")))

        uploads = [begin(client(), f"{kind}.{keeper}") for _ in range(3)]
        small, large = client(), begin(client(), f"{kind}.{keeper}")
        link = small.sender(f"{kind}.{keeper}")
        for _ in range(20):
            assert small.wait_outcome(small.send_when_due(link)) == ACCEPTED
        for upload in [large, *uploads]:
            finish(*upload)


def begin(client: WireClient, address: str) -> tuple[WireClient, OutgoingLink, int]:
    """Half of a large message."""
    link = client.sender(address)
    client.wait(lambda: link.credit > 0, "credit")
    number = client.send_bytes(link, LARGE[:HALF], is_complete=False)
    client.step()
    return client, link, number


def finish(client: WireClient, link: OutgoingLink, number: int) -> None:
    link.send(LARGE[HALF:])
    link.finish()
    assert client.wait_outcome(number) == ACCEPTED
