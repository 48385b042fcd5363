"""Nodes leave in order when they are asked to, and come back by themselves when they are killed."""

from __future__ import annotations

import os
import signal

import pytest

from mesh.deploy.workdir import SUPERVISOR
from mesh_tests.live.ledger import Ledger
from mesh_tests.live.wire_client import WireClient
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED, OutcomeCode

STOPPED_S = 20.0
WHOLE_S = 20.0
DONE_S = 60.0

TOPOLOGY = """
mesh: shutdown
routers:
  r1: {connect: [r2]}
  r2: {connect: [r3]}
  r3:
brokers:
  b1: {routers: [r3]}
addresses:
  work.#: anycast
  stored.#: queue
"""

NODES = ("r1", "r2", "r3", "b1")


@pytest.fixture
def mesh(start_mesh):
    return start_mesh(TOPOLOGY)


def _exchange(mesh, address):
    with WireClient(mesh.port("r1")) as producer, WireClient(mesh.port("r3")) as consumer:
        consumer.receiver(address, credit=1)
        sender = producer.sender(address)
        producer.wait(lambda: sender.credit > 0, "credit", WHOLE_S)
        number = producer.send(sender, "hello")
        producer.step()
        consumer.wait_arrived(1, WHOLE_S).pop().settle(ACCEPTED)
        consumer.step()
        assert producer.wait_outcome(number) == ACCEPTED


def _deaths(mesh, node):
    return [line for line in mesh.log(SUPERVISOR) if line["event"] == "node_died" and line["died"] == node]


def _wait_started_again(mesh, node, pid):
    wait_until(lambda: mesh.pid(node) != pid and mesh.is_up(node), STOPPED_S, f"{node} to be started again")


@pytest.mark.parametrize("node", ["r1", "r2", "b1"])
def test_sigterm_ends_a_node_in_order(mesh, node):
    with WireClient(mesh.port("r1")) as producer, WireClient(mesh.port("r3")) as consumer:
        consumer.receiver("stored.word", credit=10)
        producer.sender("stored.word")
        pid = mesh.pid(node)
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: _deaths(mesh, node), STOPPED_S, f"{node} to end")
        if node == "r1":
            assert producer.wait_closed().error.condition == "amqp:connection:forced"
    assert _deaths(mesh, node)[0]["exit_code"] == 0
    assert any(line["event"] == "node_stopped" for line in mesh.log(node))
    _wait_started_again(mesh, node, pid)
    _exchange(mesh, "work.again")
    _exchange(mesh, "stored.again")


def test_down_tells_clients_and_stops_every_process(mesh):
    pids = [mesh.pid(node) for node in NODES]
    client = WireClient(mesh.port("r1"))
    client.sender("work.down")
    mesh.down()
    assert client.wait_closed().error.condition == "amqp:connection:forced"
    client.kill()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    for node in NODES:
        assert [line for line in mesh.log(node) if line["level"] == "error"] == []
        assert mesh.log(node)[-1]["event"] == "node_stopped"


@pytest.mark.parametrize("node", ["r2", "b1"])
def test_a_node_that_is_killed_is_started_again_as_soon_each_time_and_the_mesh_is_whole_again(mesh, node):
    for _ in range(2):
        before = mesh.pid(node)
        mesh.kill(node)
        _wait_started_again(mesh, node, before)
        _exchange(mesh, "work.whole")
        _exchange(mesh, "stored.whole")
    first, second = _deaths(mesh, node)
    assert first["exit_code"] == -signal.SIGKILL
    assert second["restart_in_s"] == first["restart_in_s"]


def test_clients_that_send_while_a_router_is_killed_go_on_without_losing_what_was_accepted(mesh):
    with WireClient(mesh.port("r1")) as producer, WireClient(mesh.port("r3")) as consumer:
        receiver = consumer.receiver("work.killed", credit=50)
        ledger = Ledger(producer, producer.sender("work.killed"), consumer, receiver)
        ledger.run(lambda ledger: len(ledger.accepted) >= 200, DONE_S)
        mesh.kill("r2")
        before = len(ledger.accepted)
        ledger.run(lambda ledger: len(ledger.accepted) > before + 500, DONE_S)
        assert not ledger.missing
        assert set(ledger.outcomes) <= {OutcomeCode.ACCEPTED, OutcomeCode.MODIFIED, OutcomeCode.RELEASED}
