"""Do small and large messages of one producer arrive in the order in which it sent them, whatever it settled?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mesh.simulation.clients import SimClient, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line, ring
from wire import delivery as deliveries

LARGE_BYTES = 300_000
PIECE_BYTES = 100_000
COUNT = 24

Settles = Callable[[int], bool]
SETTLES: dict[str, Settles] = {
    "settled": lambda _: True,
    "unsettled": lambda _: False,
    "mixed": lambda number: number % 3 != 0,
}
PATTERNS: dict[str, Settles] = {
    "in turn": lambda number: number % 2 == 1,
    "in bursts": lambda number: number % 8 > 5,
}
"""Which are large."""
SLOW = {"window_frames": 4, "max_frame_bytes": 512}


def message_of(number: int, *, is_large: bool) -> bytes:
    return number.to_bytes(4) + bytes(LARGE_BYTES if is_large else 1)


def numbers_of(messages: list[bytes]) -> list[int]:
    return [int.from_bytes(message[:4]) for message in messages]


def send_large(mesh: SimMesh, sender: SimSender, message: bytes, *, settled: bool) -> None:
    """Piece by piece, so that it cannot be complete at the ingress."""
    delivery = sender.begin()
    for start in range(0, len(message), PIECE_BYTES):
        sender.link.send(message[start : start + PIECE_BYTES])
        mesh.run(0.0012)
    sender.link.finish()
    if settled:
        del sender.open[delivery]
        deliveries.settle(delivery)


def send_small(mesh: SimMesh, sender: SimSender, count: int) -> None:
    """Settled, one after the other."""
    for number in range(count):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(message_of(number, is_large=False), settled=True)
        mesh.run(0.1)


def send_all(mesh: SimMesh, sender: SimSender, *, settles: Settles, is_large: Settles) -> None:
    for number in range(COUNT):
        mesh.run_until(lambda: sender.link.credit > 0)
        message = message_of(number, is_large=is_large(number))
        if is_large(number):
            send_large(mesh, sender, message, settled=settles(number))
        else:
            sender.send(message, settled=settles(number))
        mesh.flush()


def client_at(mesh: SimMesh, router: str, *, is_slow: bool) -> SimClient:
    return mesh.client(router, **(SLOW if is_slow else {}))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("settled", SETTLES)
@pytest.mark.parametrize("routers", [2, 3])
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_small_and_large_messages_arrive_in_order(address: str, routers: int, settled: str, pattern: str) -> None:
    for is_slow in (False, True):
        mesh = line(routers)
        receiver = client_at(mesh, f"r{routers}", is_slow=is_slow).receiver(address, credit=1000)
        sender = mesh.client("r1").sender(address)
        send_all(mesh, sender, settles=SETTLES[settled], is_large=PATTERNS[pattern])
        mesh.run(5.0)
        assert numbers_of(receiver.messages) == list(range(COUNT)), f"slow: {is_slow}"
        assert receiver.came_settled == [SETTLES[settled](number) for number in range(COUNT)]


@pytest.mark.parametrize("routers", [2, 3])
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_those_that_their_sender_settles_before_the_outcome_do_too(address: str, routers: int) -> None:
    mesh = line(routers)
    receiver = client_at(mesh, f"r{routers}", is_slow=True).receiver(address, credit=1000)
    receiver.accepts = False
    sender = mesh.client("r1").sender(address)
    for number in range(COUNT):
        mesh.run_until(lambda: sender.link.credit > 0)
        message, is_large = message_of(number, is_large=number % 8 > 5), number % 8 > 5
        if is_large:
            send_large(mesh, sender, message, settled=False)
        else:
            sender.send(message)
        mesh.run(0.0002)
        sender.settle(number + 1)
        mesh.flush()
    mesh.run(5.0)
    assert numbers_of(receiver.messages) == list(range(COUNT))


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_consumer_without_credit_has_them_in_order_when_it_gives_some(address: str) -> None:
    mesh = line(3)
    receiver = mesh.client("r3").receiver(address, credit=2)
    receiver.accepts = False
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    for number in range(3):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(message_of(number, is_large=False), settled=True)
        mesh.flush()
    send_large(mesh, sender, message_of(3, is_large=True), settled=False)
    mesh.run(0.03)
    assert numbers_of(receiver.messages) == [0, 1]
    receiver.link.grant(10)
    mesh.run(1.0)
    assert numbers_of(receiver.messages) == [0, 1, 2, 3]
    receiver.settle()
    mesh.run(0.1)
    assert sender.open == {}


def test_a_stuck_consumer_elsewhere_stops_no_large_message() -> None:
    mesh = line(3)
    receivers = [mesh.client(router).receiver("rpc", credit=1) for router in ("r1", "r3")]
    for receiver in receivers:
        receiver.tops_up = False
    sender = mesh.client("r2").sender("rpc")
    send_small(mesh, sender, 4)
    assert sorted(map(len, (receiver.messages for receiver in receivers))) == [1, 1], "and one waits for each"
    receivers[0].link.grant(10)
    mesh.run(0.1)
    send_large(mesh, sender, message_of(9, is_large=True), settled=True)
    mesh.run(1.0)
    assert (numbers_of(receivers[0].messages)[-1], len(receivers[1].messages)) == (9, 1)


@pytest.mark.parametrize("transit", ["r2", "r4"])
def test_a_large_message_does_not_wait_for_what_a_lost_circuit_had(transit: str) -> None:
    mesh = ring()
    receiver = mesh.client("r3").receiver("rpc", credit=1)
    receiver.tops_up = False
    sender = mesh.client("r1").sender("rpc")
    send_small(mesh, sender, 2)
    send_large(mesh, sender, message_of(9, is_large=True), settled=False)
    mesh.kill(transit)
    mesh.run(0.1)
    receiver.link.grant(10)
    mesh.run(10.0)
    assert numbers_of(receiver.messages)[-1] == 9
    assert sender.outcomes == {3: deliveries.ACCEPTED}


def test_one_that_waits_for_a_stalled_reader_is_in_nobodys_way() -> None:
    """What comes behind the barrier is read ahead like what came before it."""
    mesh = line(3)
    client = mesh.client("r3", "stalled", window_frames=4, max_frame_bytes=16384)
    stalled = client.receiver("work.stalled", credit=1000)
    stalled.reads = False
    mixed, small = (mesh.client("r1").sender("work.stalled") for _ in range(2))
    for sender in (mixed, small):
        for number in range(100):
            mesh.run_until(lambda sender=sender: sender.link.credit > 0)
            sender.send(number.to_bytes(4).ljust(60_000), settled=sender is mixed)
            mesh.run(0.001)
        if sender is mixed:
            send_large(mesh, mixed, message_of(100, is_large=True), settled=True)
    receiver = mesh.client("r3").receiver("work.moving", credit=100)
    other = mesh.client("r1").sender("work.moving")
    mesh.run_until(lambda: other.link.credit > 0)
    other.send(b"x")
    mesh.run_until(lambda: receiver.messages == [b"x"], 1)
    client.resume(stalled)
    mesh.run_until(lambda: len(stalled.messages) == 201 and len(small.outcomes) == 100)
    numbers = numbers_of(stalled.messages)
    assert numbers[:100] == list(range(100))
    assert numbers.index(100) >= 100


@pytest.mark.parametrize("kind", ["work", "prices"])
@pytest.mark.parametrize("is_large", PATTERNS.values(), ids=PATTERNS)
def test_all_come_in_order_to_a_consumer_that_settles_none_until_it_has_all(egress: str, kind: str, is_large: Settles):
    """As one does that acknowledges in batches: an outcome is not what the next may wait for."""
    mesh = line()
    receiver = mesh.client(egress).receiver(kind, credit=COUNT)
    receiver.accepts = False
    sender = mesh.client("r1").sender(kind)
    send_all(mesh, sender, settles=SETTLES["unsettled"], is_large=is_large)
    mesh.run_until(lambda: len(receiver.messages) == COUNT)
    assert numbers_of(receiver.messages) == list(range(COUNT))
    assert not sender.outcomes


def test_large_ones_do_not_wait_for_a_small_one_that_waits_elsewhere():
    mesh = line()
    slow, quick = mesh.client("r2").receiver("work", credit=1), mesh.client("r3").receiver("work", credit=COUNT)
    slow.accepts = quick.accepts = slow.tops_up = False
    sender = mesh.client("r1").sender("work")
    send_all(mesh, sender, settles=SETTLES["unsettled"], is_large=PATTERNS["in turn"])
    mesh.run_until(lambda: len(slow.messages) + len(quick.messages) >= COUNT - 1)
    assert numbers_of(quick.messages) == sorted(numbers_of(quick.messages))
