"""A message of 256 MiB goes through three routers in bounded memory, and arrives as it was."""

from __future__ import annotations

import threading
from collections import deque

import pytest

from mesh_tests.live.big_message import BigReceiver, BigSender, digest_of
from mesh_tests.live.memory import MemoryWatch, resident_bytes
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED

pytestmark = pytest.mark.quiet

MIB = 1 << 20
BIG_BYTES = 256 * MIB
MOST_GROWTH_BYTES = 16 * MIB
MANY = 10
EACH_BYTES = 24 * MIB
MOST_GROWTH_OF_MANY_BYTES = 64 * MIB
"""All of them are 240 MiB."""
MOST_WAIT_S = 2.0
"""Of a small message, while clients and routers share two cores."""
DONE_S = 90.0
ROUTERS = ("r1", "r2", "r3")

TOPOLOGY = """
mesh: big-message
node_tls: {node_tls}
routers:
  r1: {{connect: [r2]}}
  r2: {{connect: [r3]}}
  r3:
brokers:
  b1: {{routers: [r3]}}
addresses:
  files: anycast
  small: anycast
  copies: multicast
  stored: queue
"""


@pytest.fixture(scope="module", params=["true", "false"], ids=["TLS between nodes", "plain text between nodes"])
def mesh(request, start_module_mesh):
    return start_module_mesh(TOPOLOGY.format(node_tls=request.param))


@pytest.fixture(scope="module")
def idle_bytes(mesh):
    """Once for all tests on a mesh: what one big message leaves behind counts as growth in the next test."""
    _warm_up(mesh)
    return {name: resident_bytes(mesh.pid(name)) for name in ROUTERS}


def _warm_up(mesh):
    """Idle size: with code loaded and links made once."""
    for address in ("files", "copies", "stored"):
        with WireClient(mesh.port("r3")) as taker, WireClient(mesh.port("r1")) as maker:
            taker.receiver(address, credit=1)
            sender = maker.sender(address)
            maker.wait(lambda link=sender: link.credit > 0, "credit")
            number = maker.send(sender, "small")
            maker.step()
            taker.wait_arrived(1)[0].settle(ACCEPTED)
            taker.step()
            assert maker.wait_outcome(number) == ACCEPTED


class _Taking(threading.Thread):
    """Receives in a thread of its own: sender and receiver wait for each other."""

    def __init__(self, port, address):
        super().__init__()
        self.receiver = BigReceiver(port, address)
        self.error = None
        self.start()

    def run(self):
        try:
            self.receiver.wait(lambda: self.receiver.is_complete, "the end of the message", DONE_S)
            self.receiver.__exit__(None, None, None)
        except BaseException as error:  # noqa: BLE001 - told to the thread of the test
            self.error = error

    def result(self):
        self.join(DONE_S)
        assert self.error is None, self.error
        return self.receiver.digest


@pytest.mark.parametrize("address", ["files", "copies"])
def test_a_router_holds_little_of_a_big_message_that_passes(mesh, idle_bytes, address):
    with MemoryWatch({name: mesh.pid(name) for name in ROUTERS}, idle_bytes) as memory:
        taking = _Taking(mesh.port("r3"), address)
        _send(mesh, address)
        digest = taking.result()
    _assert_whole(digest)
    _assert_small(memory)


def test_a_router_holds_little_of_a_big_message_that_a_broker_stores(mesh, idle_bytes):
    with MemoryWatch({name: mesh.pid(name) for name in ROUTERS}, idle_bytes) as memory:
        _send(mesh, "stored")
        taking = _Taking(mesh.port("r1"), "stored")
        digest = taking.result()
    _assert_whole(digest)
    _assert_small(memory)


def test_a_router_holds_little_of_a_big_message_whose_receiver_reads_slowly(mesh, idle_bytes):
    receiver = BigReceiver(mesh.port("r3"), "files")
    with MemoryWatch({name: mesh.pid(name) for name in ROUTERS}, idle_bytes) as memory:
        sending = threading.Thread(target=_send, args=(mesh, "files"))
        sending.start()
        # Nobody reads: the message comes to a stand when windows and sockets are full.
        _wait_standstill(mesh)
        receiver.wait(lambda: receiver.is_complete, "the end of the message", DONE_S)
        sending.join(DONE_S)
    _assert_whole(receiver.digest)
    receiver.__exit__(None, None, None)
    _assert_small(memory)


def test_a_router_holds_little_of_many_big_messages_at_once_and_small_ones_pass_all_the_while(mesh, idle_bytes):
    """Of the small ones each is sent when the one before was accepted."""
    with (
        WireClient(mesh.port("r1"), idle_timeout_s=0) as producer,
        WireClient(mesh.port("r3"), idle_timeout_s=0) as consumer,
        MemoryWatch({name: mesh.pid(name) for name in ROUTERS}, idle_bytes) as memory,
    ):
        consumer.receiver("small", credit=1000)
        sender = producer.sender("small")
        taking = [_Taking(mesh.port("r3"), "files") for _ in range(MANY)]
        sending = [threading.Thread(target=_send, args=(mesh, "files", EACH_BYTES)) for _ in range(MANY)]
        for thread in sending:
            thread.start()
        passed = 0
        while any(thread.is_alive() for thread in taking):
            number = producer.send_when_due(sender, "small")
            wait_with((producer, consumer), lambda: consumer.arrived, "a small message", MOST_WAIT_S)
            consumer.settle_all()
            producer.wait_outcome(number, MOST_WAIT_S)
            passed += 1
        for thread in sending:
            thread.join(DONE_S)
    for each in taking:
        _assert_whole(each.result(), EACH_BYTES)
    assert passed > MANY
    _assert_small(memory, MOST_GROWTH_OF_MANY_BYTES)


def _wait_standstill(mesh):
    """Until what the routers received has not grown by a MiB in 25 looks."""
    seen = deque(maxlen=25)

    def stands():
        seen.append(_mib_received(mesh))
        return len(seen) == seen.maxlen and 0 < seen[0] == seen[-1]

    wait_until(stands, DONE_S, "the message to stand still")


def _mib_received(mesh):
    return sum(each["bytes_in"] for name in ROUTERS for each in mesh.snapshot(name)["node"]["connections"]) // MIB


def _send(mesh, address, size=BIG_BYTES):
    with BigSender(mesh.port("r1"), address) as sender:
        number = sender.send_big(size)
        assert sender.wait_outcome(number, DONE_S) == ACCEPTED


def _assert_whole(digest, size=BIG_BYTES):
    assert digest.bytes_seen == size + 8
    assert digest.value() == digest_of(size).value()


def _assert_small(memory, most_bytes=MOST_GROWTH_BYTES):
    growth = memory.growth_bytes()
    assert all(grown <= most_bytes for grown in growth.values()), growth
