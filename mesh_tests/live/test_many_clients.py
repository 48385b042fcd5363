"""May a thousand clients have a link to a queue each, over a few connections to the broker, and keep it?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: crowd
node_tls: false
routers:
  r1: {connect: [r2], listeners: [{max_connections: 2000}]}
  r2:
brokers:
  b1: {routers: [r1]}
addresses:
  q.#: {type: queue, broker: b1}
"""
CLIENTS = 1000
BASE = 1
"""The router's own connection to the broker."""
BUSY_S = 60.0
pytestmark = pytest.mark.timeout(6 * BUSY_S)


def at_broker(mesh: RunningMesh, what: str) -> int:
    found = mesh.snapshot("b1")
    return -1 if found is None else int(found["node"][what])


@pytest.fixture
def clients() -> Iterator[list[WireClient]]:
    made: list[WireClient] = []
    yield made
    for client in made:
        client.kill()


def step_all(clients: list[WireClient], condition: Callable[[], object], what: str) -> None:
    """Let all clients read and write, heartbeats too, until ``condition`` holds."""
    until = time.monotonic() + BUSY_S
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {BUSY_S:g} s"
        for client in clients:
            client.step()


def test_a_thousand_clients_share_few_connections_to_the_broker_and_keep_their_links_after_its_kill(
    start_module_mesh: Callable[[str], RunningMesh], clients: list[WireClient]
) -> None:
    mesh = start_module_mesh(TOPOLOGY)
    # The connections of the probe by which `amqpmesh up` knows that the mesh is ready end after a while.
    wait_until(
        lambda: at_broker(mesh, "connection_count") == BASE, BUSY_S, "only the router's own connection to be left"
    )
    links = at_broker(mesh, "link_count")
    for number in range(CLIENTS):
        clients.append(WireClient(mesh.port("r1"), container_id=f"client-{number}", idle_timeout_s=0))
        clients[-1].receiver(f"q.{number}", 10)
        if number % 200 == 199:
            for client in clients:
                client.step()
    assert at_broker(mesh, "link_count") == links + CLIENTS
    assert at_broker(mesh, "connection_count") <= BASE + 3
    mesh.kill("b1")
    step_all(clients, lambda: at_broker(mesh, "link_count") == links + CLIENTS, "all links are there again")
    assert at_broker(mesh, "connection_count") <= BASE + 3
    some = clients[::50]
    with WireClient(mesh.port("r2"), container_id="sender") as sender:
        for number in range(0, CLIENTS, 50):
            sender.wait_outcome(sender.send_when_due(sender.sender(f"q.{number}"), "still there"))
    step_all(clients, lambda: all(client.arrived for client in some), "a message for each of some clients")
    assert [len(client.arrived) for client in some] == [1] * len(some)
    # No client saw a detach, nor the end of a session or connection: only the answers to its attach and open.
    assert {type(event).__name__ for client in clients for event in client.events} == {"Opened", "LinkEstablished"}
    # Nobody waited for so long that its neighbor took it for lost.
    losses = [each["reason"] for node in ("r1", "r2") for each in mesh.log(node) if each["event"] == "neighbor_down"]
    assert not [reason for reason in losses if "silent" in reason]
    for client in clients:
        client.endpoint.close()
        client.step()
    wait_until(lambda: at_broker(mesh, "link_count") == links, BUSY_S, "the links to end with their clients")
    wait_until(lambda: at_broker(mesh, "connection_count") == BASE, BUSY_S, "the shared connections to end")
