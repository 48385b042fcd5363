"""Does what a producer sent and settled go on when it leaves at once? Through real sockets; one to three routers."""

from __future__ import annotations

import socket

import pytest

from mesh_tests.live.row_mesh import RowMesh, new_address
from mesh_tests.live.wire_client import WireClient, wait_with

SIZES = [(100, 10), (200_000, 1), (3_000_000, 1)]


def leave(producer: WireClient, address: str, size: int, count: int, *, detaches: bool) -> None:
    """Its goodbye is in the same breath as what it sends."""
    sender = producer.sender(address)
    producer.wait(lambda: sender.credit >= count, "credit")
    for _ in range(count):
        producer.send(sender, bytes(size), is_settled=True)
    sender.close() if detaches else producer.endpoint.close()


@pytest.mark.parametrize("detaches", [True, False], ids=["detaches", "closes"])
@pytest.mark.parametrize(("size", "count"), SIZES, ids=[f"{count} x {size}" for size, count in SIZES])
@pytest.mark.parametrize("kind", ["work", "news"])
def test_consumers_get_what_it_sent(
    rows: RowMesh, consumer: WireClient, kind: str, size: int, count: int, detaches: bool
) -> None:
    address = new_address(kind)
    consumer.receiver(address, credit=100)
    with WireClient(rows.port("r1"), container_id="leaver") as producer:
        leave(producer, address, size, count, detaches=detaches)
        wait_with(
            (producer, consumer),
            lambda: producer.has_ended or len(consumer.arrived) == count,
            "either has what it wants",
        )
    consumer.wait_arrived(count)
    assert [len(each.body) for each in consumer.arrived] == [size] * count


@pytest.mark.parametrize("detaches", [True, False], ids=["detaches", "closes"])
@pytest.mark.parametrize(("size", "count"), SIZES, ids=[f"{count} x {size}" for size, count in SIZES])
def test_queues_get_what_it_sent(
    rows: RowMesh, consumer: WireClient, egress: str, size: int, count: int, detaches: bool
) -> None:
    address = new_address(f"queue.{egress}")
    with WireClient(rows.port("r1"), container_id="leaver") as producer:
        leave(producer, address, size, count, detaches=detaches)
    consumer.receiver(address, credit=100)
    arrived = consumer.wait_arrived(count)
    assert [len(each.body) for each in arrived] == [size] * count


@pytest.mark.parametrize("half", [True, False], ids=["half", "whole"])
@pytest.mark.parametrize("kind", ["work", "news"])
def test_a_consumer_gets_what_came_from_one_that_shut_its_socket_behind_its_close(
    rows: RowMesh, consumer: WireClient, kind: str, half: bool
) -> None:
    """It waits here for the consumer's credit when the end of the socket is seen."""
    address = new_address(kind)
    receiver = consumer.receiver(address)
    producer = WireClient(rows.port("r1"), container_id="leaver")
    leave(producer, address, 100, 1, detaches=False)
    producer.step()
    if half:
        producer.socket.shutdown(socket.SHUT_WR)
    else:
        producer.socket.close()
    with WireClient(rows.port("r1"), container_id="witness"):
        pass  # its router answered what came after the end of that socket
    receiver.grant(1)
    consumer.wait_arrived(1)
    assert [len(each.body) for each in consumer.arrived] == [100]
    if half:
        producer.wait_closed()
    producer.kill()
