"""An ordinary client, and `amqpmesh receive`, read the address of each delivery of a topic, through two routers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from proton import Message, symbol
from proton.reactor import DurableSubscription
from proton.utils import BlockingConnection

from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

WAIT_S = 60.0
TOPOLOGY = """
mesh: addresses
routers:
  r1: {connect: [r2]}
  r2:
brokers:
  b1: {routers: [r2]}
addresses:
  dev/#: topic
  told/#: {type: topic, fill_to: true}
"""
BODIES = {"dev/a": "small", "dev/b/c": "x" * 200_000}


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


@pytest.fixture
def connection(mesh: RunningMesh) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(mesh.url("r1"), timeout=WAIT_S)
    connection.container.container_id = "reader"
    yield connection
    connection.close()


def publish(connection: BlockingConnection, address: str, **fields: object) -> None:
    sender = connection.create_sender(address)
    sender.send(Message(**fields), timeout=WAIT_S)
    sender.close()


def test_a_client_reads_the_address_of_each_delivery(connection: BlockingConnection) -> None:
    many, exact = connection.create_receiver("dev/#", credit=10), connection.create_receiver("dev/a", credit=10)
    for address, body in BODIES.items():
        publish(connection, address, body=body, instructions={symbol("x-opt-more"): 1})
    for address, body in BODIES.items():
        message = many.receive(timeout=WAIT_S)
        assert message.instructions == {"x-opt-more": 1, "x-opt-to": address}
        assert (message.body, message.address) == (body, None)
        many.accept()
    message = exact.receive(timeout=WAIT_S)
    assert (message.instructions, message.body) == ({"x-opt-more": 1}, "small")
    exact.accept()


def test_a_client_without_delivery_annotations_reads_to_where_the_topology_fills_it_in(
    connection: BlockingConnection,
) -> None:
    receiver = connection.create_receiver("told/#", credit=10)
    publish(connection, "told/you", body="so")
    message = receiver.receive(timeout=WAIT_S)
    assert (message.address, message.body) == ("told/you", "so")
    receiver.accept()


def test_a_durable_subscription_has_the_addresses_after_the_broker_was_killed(
    mesh: RunningMesh, connection: BlockingConnection
) -> None:
    receiver = connection.create_receiver("dev/#", name="kept", credit=0, options=DurableSubscription())
    for address, body in BODIES.items():
        publish(connection, address, body=body)
    before = mesh.pid("b1")
    mesh.kill("b1")
    wait_until(lambda: mesh.pid("b1") != before, WAIT_S, "another process of b1")
    receiver.flow(10)
    for address, body in BODIES.items():
        message = receiver.receive(timeout=WAIT_S)
        assert (message.instructions, message.body) == ({"x-opt-to": address}, body)
        receiver.accept()
    receiver.close()


@pytest.mark.parametrize("is_json", [False, True], ids=["text", "json"])
def test_receive_shows_the_address_of_each_message(mesh: RunningMesh, tmp_path: Path, is_json: bool) -> None:
    ready = tmp_path / "ready"
    receiver = subprocess.Popen(
        [AMQPMESH, "receive", f"{mesh.url('r1')}/dev/%23", "-c", "2", "-W", "60s", "--ready-file", str(ready)]
        + ["--json"] * is_json,
        cwd=mesh.topology_file.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(ready.exists, WAIT_S, "the receiver to be attached")
    for address in ("dev/a", "dev/b"):
        mesh.run("send", address, "-m", f"of {address}")
    output, talk = receiver.communicate(timeout=WAIT_S)
    assert receiver.returncode == 0, talk
    lines = output.splitlines()
    if is_json:
        shown = [(document["address"], document["body"]) for document in map(json.loads, lines)]
        assert shown == [("dev/a", "of dev/a"), ("dev/b", "of dev/b")]
    else:
        assert lines == ["dev/a of dev/a", "dev/b of dev/b"]
