"""A peer stops, and heartbeats: does anybody else wait for it? Through real sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import RunningMesh

STALL_S = 2
FRAME_BYTES = 16384
HALF_BYTES = 200_000
TOPOLOGY = f"""
mesh: stopped
node_tls: false
routers:
  r1: {{connect: [r2], listeners: [{{sender_stall_timeout_s: {STALL_S}}}]}}
  r2: {{listeners: [{{}}]}}
addresses: {{work: anycast, news: multicast}}
"""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    running = RunningMesh(TOPOLOGY, tmp_path_factory.mktemp("stopped"))
    yield running
    running.down()


def test_a_producer_that_stops_in_the_middle_of_a_message_stops_others_for_a_while_only(mesh: RunningMesh) -> None:
    with (
        WireClient(mesh.port("r1"), container_id="halfway") as halfway,
        WireClient(mesh.port("r1"), container_id="others") as others,
        WireClient(mesh.port("r2"), container_id="consumer") as consumer,
    ):
        clients = (halfway, others, consumer)
        receivers = [consumer.receiver(address, credit=10) for address in ("work", "news")]
        begun = [halfway.sender(address) for address in ("work", "news")]
        wait_with(clients, lambda: all(sender.credit > 0 for sender in begun), "credit")
        for sender in begun:
            halfway.send_bytes(sender, bytes(HALF_BYTES), is_complete=False)
        wait_with(clients, lambda: all(map(consumer.partial_bytes, receivers)), "the beginning of the messages")
        what = "the end of the links"
        wait_with(clients, lambda: all(map(halfway.detached, begun)), what, outlasts_detach=True)
        errors = [detached.error for sender in begun if (detached := halfway.detached(sender)) is not None]
        assert {error.condition for error in errors if error} == {"amqp:link:detach-forced"}
        clients = (others, consumer)
        senders = [others.sender(address) for address in ("work", "news")]
        wait_with(clients, lambda: all(sender.credit > 0 for sender in senders), "credit of others")
        for sender in senders:
            others.send(sender, "small")
        wait_with(clients, lambda: len(consumer.arrived) == len(senders), "the messages of others")
        assert consumer.aborted == len(begun)
        halfway.step(0.1)


def test_what_waits_for_a_consumer_with_a_shut_window_comes_to_one_that_reads(mesh: RunningMesh) -> None:
    body, count = bytes(FRAME_BYTES // 2), 40
    with (
        WireClient(mesh.port("r1"), container_id="producer") as producer,
        WireClient(mesh.port("r2"), container_id="still", window_frames=1) as still,
        WireClient(mesh.port("r1"), container_id="moving") as moving,
    ):
        receiver = still.receiver("work", credit=100)
        still.reads = False
        moving.receiver("work", credit=100)
        sender = producer.sender("work")
        numbers: list[int] = []

        def are_sent() -> bool:
            moving.settle_all()
            while sender.credit > 0 and len(numbers) < count:
                numbers.append(producer.send(sender, body))
            return len(numbers) == count and sum(number in producer.outcomes for number in numbers) >= count - 2

        wait_with((producer, still, moving), are_sent, "all but what the window has room for", 30)
        assert receiver.queued <= 2
        still.resume(receiver)
        still.settle_all()
