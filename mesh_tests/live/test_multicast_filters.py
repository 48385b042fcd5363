"""An ordinary client receives from a filter of multicast addresses, at a router and at an edge router."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from proton import Message, symbol
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

from mesh_tests.running_mesh import AMQPMESH, RunningMesh

WAIT_S = 60.0
TOPOLOGY = """
mesh: filters
routers:
  r1: {connect: [r2]}
  r2:
  e1: {mode: edge, connect: [r2]}
addresses:
  prices.#: multicast
  told.#: {type: multicast, fill_to: true}
"""
BODIES = {"prices.tea": "small", "prices.oil.eu": "x" * 200_000}


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


@pytest.fixture
def connect(mesh: RunningMesh) -> Iterator[Callable[[str], BlockingConnection]]:
    opened: list[BlockingConnection] = []

    def to(router: str) -> BlockingConnection:
        opened.append(BlockingConnection(mesh.url(router), timeout=WAIT_S))
        return opened[-1]

    yield to
    for connection in opened:
        connection.close()


def publish(connection: BlockingConnection, address: str, **fields: object) -> None:
    """Pre-settled: a client that waits for the outcome cannot accept its own message."""
    sender = connection.create_sender(address, options=AtMostOnce())
    connection.wait(lambda: sender.link.credit > 0, timeout=WAIT_S)
    sender.send(Message(**fields), timeout=WAIT_S)
    sender.close()


@pytest.mark.parametrize("router", ["r1", "r2", "e1"])
def test_a_client_reads_the_address_of_each_delivery(connect: Callable[[str], BlockingConnection], router: str) -> None:
    connection, publisher = connect(router), connect("r1")
    # A producer that is there first: the answers to the attaches wait until its router knows of the consumers.
    first = publisher.create_sender("prices.tea", name="first")
    exact = connection.create_receiver("prices.tea", credit=10)
    many = connection.create_receiver("prices.#", credit=10)
    for address, body in BODIES.items():
        # In a thread: a consumer that reads nothing for a second would miss a large pre-settled message.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(publish, publisher, address, body=body, instructions={symbol("x-opt-more"): 1})
            message = many.receive(timeout=WAIT_S)
        assert message.instructions == {"x-opt-more": 1, "x-opt-to": address}
        assert (message.body, message.address) == (body, None)
    message = exact.receive(timeout=WAIT_S)
    assert (message.instructions, message.body) == ({"x-opt-more": 1}, "small")
    first.close()


def test_a_client_without_delivery_annotations_reads_to_where_the_topology_fills_it_in(
    connect: Callable[[str], BlockingConnection],
) -> None:
    connection = connect("r1")
    exact, many = connection.create_receiver("told.you", credit=10), connection.create_receiver("told.#", credit=10)
    publish(connection, "told.you", body="so")
    message = many.receive(timeout=WAIT_S)
    assert (message.address, message.body) == ("told.you", "so")
    assert exact.receive(timeout=WAIT_S).address is None


def test_receive_prints_the_address_before_each_body(
    mesh: RunningMesh, connect: Callable[[str], BlockingConnection]
) -> None:
    publisher = connect("r1")
    sender = publisher.create_sender("prices.tea")
    command = [str(AMQPMESH), "receive", f"{mesh.url('r1')}/prices.#", "-c", "1", "-W", "60s", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiving:
        sender.send(Message(body="4.20"), timeout=WAIT_S)
        output, _ = receiving.communicate(timeout=WAIT_S)
    found = json.loads(output.splitlines()[0])
    assert (found["address"], found["body"]) == ("prices.tea", "4.20")
