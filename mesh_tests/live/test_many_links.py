"""May one client connection have 10,000 links to queues of an embedded broker two routers away, and keep them?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mesh_tests.live.many_links import ManyLinks
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: many
node_tls: false
routers:
  r1: {connect: [r2]}
  r2:
brokers:
  b1: {routers: [r2]}
addresses:
  q.#: {type: queue, broker: b1}
"""
SENDERS = 5000
LINKS = 2 * SENDERS
ADDRESSES = [f"q.{number % 500}" for number in range(SENDERS)]
"""Each has ten senders and ten receivers: a broker with thousands of queues would take longer to come back."""
SOME = range(0, SENDERS, 50)
BUSY_S = 120.0
# Ten thousand links keep a core busy for a minute; with less than half of a core their client loses its heartbeats.
pytestmark = [pytest.mark.quiet, pytest.mark.timeout(4 * BUSY_S)]


def links_at_broker(mesh: RunningMesh) -> int:
    return int(mesh.snapshot("b1")["node"]["link_count"])


def test_all_links_of_one_client_open_carry_messages_and_come_back_after_a_kill_of_the_broker(
    start_module_mesh: Callable[[str], RunningMesh],
):
    mesh = start_module_mesh(TOPOLOGY)
    others = links_at_broker(mesh)
    client = ManyLinks(mesh.url("r1"), ADDRESSES)
    wait_until(lambda: len(client.attached) == LINKS or client.ended, BUSY_S, "all links to be attached")
    assert not client.ended
    assert links_at_broker(mesh) == others + LINKS
    client.send(SOME)
    wait_until(lambda: client.arrived.total() == client.accepted.total() == len(SOME), BUSY_S, "some messages")
    client.arrived.clear()
    client.accepted.clear()
    mesh.kill("b1")
    client.send(range(SENDERS))
    wait_until(lambda: client.ended or _have_all(client), BUSY_S, "a message of each sender")
    assert not client.ended
    assert links_at_broker(mesh) == others + LINKS
    assert not client.others
    # The client's router went on saying HELLO while all links were attached again.
    losses = [each["reason"] for each in mesh.log("r2") if each["event"] == "neighbor_down"]
    assert not [reason for reason in losses if "silent" in reason]
    client.close()
    wait_until(lambda: links_at_broker(mesh) == others, BUSY_S, "the links to end with their client")


def _have_all(client: ManyLinks) -> bool:
    return len(client.accepted) == len(client.arrived) == SENDERS
