"""Clients that leave before their attach is answered, a thousand of them, cost router and broker nothing for good."""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Callable

import pytest

from mesh_tests.live.descriptors import descriptors_at_rest, wait_for_descriptors
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh
from wire.delivery import ACCEPTED
from wire.endpoint import Endpoint, EndpointSettings
from wire.terminus import source, target

TOPOLOGY = """
mesh: impatient
node_tls: false
routers:
  r1: {connect: [r2], listeners: [{authentication: none}]}
  r2: {}
brokers:
  b1: {routers: [r1]}
  b2: {routers: [r2]}
addresses:
  beside: {type: queue, broker: b1}
  behind: {type: queue, broker: b2}
  rpc: anycast
"""
ROUNDS = 1_000
BACKLOG_S = 120.0
SETTLED_S = 20.0
"""A frozen broker's connections are given up 7 s after nobody claims them any more."""
CLOSE = bytes.fromhex("0000000c02000000 005318 45")
ROUTERS = ("r1", "r2")
NODES = (*ROUTERS, "b1", "b2")


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


def attach_bytes(address: str, *, closes: bool) -> bytes:
    """All that a client says that opens a connection and attaches a consumer, in one piece."""
    endpoint = Endpoint(EndpointSettings("impatient"))
    endpoint.open()
    link = endpoint.begin().receiver("r")
    link.set_source(source(address))
    link.set_target(target(None))
    link.open()
    link.grant(10)
    data = endpoint.output()
    endpoint.free()
    return data + CLOSE if closes else data


def come_and_go(mesh: RunningMesh, address: str, *, resets: bool, closes: bool = False) -> None:
    with socket.create_connection(("127.0.0.1", mesh.port("r1"))) as sock:
        sock.sendall(attach_bytes(address, closes=closes))
        if resets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def wait_until_served(mesh: RunningMesh) -> None:
    """The router has dealt with all clients that came before, in order of arrival."""
    with socket.create_connection(("127.0.0.1", mesh.port("r1"))) as sock:
        sock.settimeout(BACKLOG_S)
        sock.sendall(attach_bytes("rpc", closes=False))
        assert sock.recv(8), "the router closed the socket without a word"


def assert_works(mesh: RunningMesh, address: str) -> None:
    with WireClient(mesh.port("r1")) as client:
        link = client.sender(address)
        assert client.wait_outcome(client.send_when_due(link)) == ACCEPTED


@pytest.mark.parametrize("address", ["beside", "behind"])
def test_a_thousand_clients_that_leave_at_once_cost_no_descriptor_for_good(mesh: RunningMesh, address: str):
    before = descriptors_at_rest(mesh, NODES)
    for number in range(ROUNDS):
        come_and_go(mesh, address, resets=number % 3 == 0, closes=number % 3 == 1)
    wait_until_served(mesh)
    wait_for_descriptors(mesh, before, SETTLED_S)
    assert_works(mesh, address)


@pytest.mark.parametrize(("address", "broker"), [("beside", "b1"), ("behind", "b2")])
def test_clients_that_leave_while_their_broker_is_frozen_leave_no_connection_to_it(
    mesh: RunningMesh, address: str, broker: str
):
    before, pid = descriptors_at_rest(mesh, NODES), mesh.pid(broker)
    os.kill(pid, signal.SIGSTOP)
    try:
        for number in range(40):
            come_and_go(mesh, address, resets=number % 2 == 0)
        # The router gives the connections up without an answer of the broker.
        wait_until_served(mesh)
        wait_for_descriptors(mesh, {router: before[router] for router in ROUTERS}, SETTLED_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for_descriptors(mesh, before, SETTLED_S)
    assert_works(mesh, address)
