"""An ordinary client changes the filters of its receiver of multicast addresses; producers are at other routers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from proton import ConnectionException, Message
from proton.utils import BlockingConnection, LinkDetached, SendException

from mesh_tests.live.test_filter_sets import WAIT_S, Subscriber
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: sets
routers:
  r1: {connect: [r2, r3]}
  r2: {connect: [r3]}
  r3:
  e1: {mode: edge, connect: [r3]}
addresses:
  plant/#: multicast
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


@pytest.fixture
def connection(mesh: RunningMesh) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(mesh.url("r1"), timeout=WAIT_S)
    yield connection
    connection.close()


class Producers:
    """Send messages one by one from given routers, in a thread of their own: a receiver settles them meanwhile."""

    def __init__(self, mesh: RunningMesh, *routers: str) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._connections: list[BlockingConnection] = self._pool.submit(
            lambda: [BlockingConnection(mesh.url(router), timeout=WAIT_S) for router in routers]
        ).result()

    def publish(self, *addresses: str) -> Future[None]:
        return self._pool.submit(self._publish, addresses)

    def _publish(self, addresses: tuple[str, ...]) -> None:
        for address in addresses:
            for connection in self._connections:
                sender = connection.create_sender(None)
                sender.send(Message(address=address, body=address), timeout=WAIT_S)
                sender.close()

    def close(self) -> None:
        self._pool.submit(lambda: [each.close() for each in self._connections]).result()
        self._pool.shutdown()


def test_a_set_changes_while_its_receiver_lives(mesh: RunningMesh, connection: BlockingConnection) -> None:
    producers = Producers(mesh, "r1", "r2", "r3", "e1")
    subscriber = Subscriber(connection, {"plant/a", "plant/+"})

    def comes(address: str) -> bool:
        # The last of the four is settled at the peer by the next call that waits.
        producers.publish(address)
        return subscriber.take(4) == [address] * 4

    assert comes("plant/a")
    subscriber.change({"plant/b/#"}, {"plant/+"})
    assert comes("plant/b/c")
    with pytest.raises(SendException):
        subscriber.change({"plant/b+"})
    subscriber.change({f"plant/{number}" for number in range(3000)}, {"plant/a"})
    assert comes("plant/2999")
    subscriber.change()
    with pytest.raises(SendException):
        producers.publish("plant/a").result()
    producers.close()


def test_after_its_router_was_killed_a_client_attaches_again_with_the_whole_set(mesh: RunningMesh) -> None:
    subscriber = Subscriber(BlockingConnection(mesh.url("r2"), timeout=WAIT_S), {"plant/x"})
    subscriber.change({"plant/y"}, {"plant/x"})
    before = mesh.pid("r2")
    mesh.kill("r2")
    with pytest.raises((LinkDetached, ConnectionException)):
        subscriber.take(1)
    wait_until(lambda: mesh.pid("r2") != before and mesh.is_up("r2"), WAIT_S, "another process of r2")
    mesh.wait_linked()
    again = Subscriber(BlockingConnection(mesh.url("r2"), timeout=WAIT_S), subscriber.wanted)
    again.change({"plant/z"})
    producers = Producers(mesh, "e1")
    sent = producers.publish("plant/y", "plant/z")
    assert again.take(2) == ["plant/y", "plant/z"]
    again.change()
    sent.result()
    producers.close()
    again.connection.close()
