"""An ordinary client changes the filters of its subscription through two routers, also after its broker was killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from proton import ConnectionException, Described, Link, Message, symbol, uint
from proton.reactor import Filter, LinkOption
from proton.utils import BlockingConnection, BlockingReceiver, BlockingSender, LinkDetached, SendException

from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

WAIT_S = 60.0
TOPOLOGY = """
mesh: filters
routers:
  r1: {connect: [r2]}
  r2:
brokers:
  b1: {routers: [r2]}
addresses:
  plant/#: topic
  rpc/#: anycast
"""
PAGE = Path(__file__).parents[2] / "docs/reference/filter-sets.md"
SET = symbol("amqpmesh:filter-set:list")
CONTROL = symbol("amqpmesh:filter-set")


class Control(LinkOption):
    def apply(self, link: Link) -> None:
        link.target.capabilities.put_object(CONTROL)


class Subscriber:
    """A client as the reference describes it: it keeps the set that it wants."""

    def __init__(self, connection: BlockingConnection, wanted: set[str], address: str = "plant/#") -> None:
        self.connection = connection
        self.address = address
        self.wanted = set(wanted)
        self.attach()

    def attach(self) -> None:
        described = Described(SET, [symbol("mqtt"), sorted(self.wanted)])
        filters = Filter({symbol("plants"): described})
        self.receiver: BlockingReceiver = self.connection.create_receiver(
            self.address, name="mine", credit=100, options=filters
        )
        answered = self.receiver.link.remote_source.filter
        answered.rewind()
        assert answered.next()
        assert answered.get_dict() == {symbol("plants"): described}
        self.control: BlockingSender = self.connection.create_sender(self.address, name="mine", options=Control())
        self.serial = 0

    def change(self, add: set[str] = frozenset(), remove: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        change = {"serial": uint(self.serial + 1), "add": sorted(add), "remove": sorted(remove)}
        self.control.send(Message(change), timeout=WAIT_S)
        self.serial += 1
        self.wanted = (self.wanted | add) - remove

    def take(self, count: int) -> list[str]:
        found = []
        for _ in range(count):
            message = self.receiver.receive(timeout=WAIT_S)
            assert message.instructions["x-opt-to"] == message.body
            found.append(message.body)
            self.receiver.accept()
        return found


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


@pytest.fixture
def connection(mesh: RunningMesh) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(mesh.url("r1"), timeout=WAIT_S)
    yield connection
    connection.close()


def publish(mesh: RunningMesh, *addresses: str) -> None:
    connection = BlockingConnection(mesh.url("r2"), timeout=WAIT_S)
    sender = connection.create_sender(None)
    for address in addresses:
        sender.send(Message(address=address, body=address), timeout=WAIT_S)
    connection.close()


def test_a_set_changes_while_its_subscription_lives(mesh: RunningMesh, connection: BlockingConnection) -> None:
    subscriber = Subscriber(connection, {"plant/a", "plant/+"})
    publish(mesh, "plant/a", "plant/b/c", "plant/x")
    subscriber.change({"plant/b/#"}, {"plant/+"})
    publish(mesh, "plant/a", "plant/b/c", "plant/x", "plant/b")
    assert subscriber.take(5) == ["plant/a", "plant/x", "plant/a", "plant/b/c", "plant/b"]
    with pytest.raises(SendException):
        subscriber.change({"plant/b+"})
    subscriber.change({f"plant/{number}" for number in range(5000)})
    publish(mesh, "plant/5000", "plant/4999")
    assert subscriber.take(1) == ["plant/4999"]


def test_after_its_broker_was_killed_a_client_attaches_again_with_the_whole_set(
    mesh: RunningMesh, connection: BlockingConnection
) -> None:
    subscriber = Subscriber(connection, {"plant/a"})
    subscriber.change({"plant/b"}, {"plant/a"})
    before = mesh.pid("b1")
    mesh.kill("b1")
    with pytest.raises(LinkDetached, match="attach again, with the whole filter set"):
        subscriber.take(1)
    with pytest.raises((LinkDetached, ConnectionException)):
        subscriber.control.send(Message({"serial": uint(2)}), timeout=WAIT_S)
    wait_until(lambda: mesh.pid("b1") != before, WAIT_S, "another process of b1")
    subscriber.attach()
    publish(mesh, "plant/a", "plant/b")
    assert subscriber.take(1) == ["plant/b"]
    subscriber.change({"plant/a"})
    publish(mesh, "plant/a")
    assert subscriber.take(1) == ["plant/a"]


def test_a_control_link_to_another_kind_of_address_is_refused(connection: BlockingConnection) -> None:
    with pytest.raises(LinkDetached, match="'rpc/a' has no filter sets"):
        connection.create_sender("rpc/a", name="mine", options=Control())


def test_the_program_of_the_reference_works(mesh: RunningMesh) -> None:
    program = PAGE.read_text().partition("```python\n")[2].partition("```")[0]
    assert "localhost:5672" in program
    program = program.replace("localhost:5672", mesh.url("r1"))
    client = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )

    def has_ended() -> bool:
        publish(mesh, "plant/7", "plant/8/state")
        return client.poll() is not None

    wait_until(has_ended, WAIT_S, "the program to have received a message")
    assert client.communicate()[0].splitlines()[-1] in ("plant/8/state plant/8/state", "plant/7 plant/7")
