"""Does a queue catch what an anycast address cannot deliver, and is each producer's order kept?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from broker.queueing.queue import QueueSnapshot
from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED

PATH_WAIT_S = 2.0


LINE: dict[str, Any] = {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}}


def mesh_of(
    folder: Path,
    keepers: list[str],
    routers: dict[str, Any] = LINE,
    make: Callable[[dict[str, Any], Path], SimMesh] = SimMesh,
    **more: Any,
) -> SimMesh:
    """``keepers`` are connected to b1, which has the fallback of rpc."""
    mesh = make(
        {
            "mesh": "fallback",
            "node_tls": False,
            "routers": routers,
            "brokers": {"b1": {"data": "b1", "routers": keepers}},
            "addresses": {"rpc": {"type": "anycast", "fallback": "rpc.kept"}, "rpc.kept": "queue"},
            **more,
        },
        folder,
    )
    mesh.converge()
    wait_for_brokers(mesh)
    return mesh


def wait_for_brokers(mesh: SimMesh) -> None:
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
    mesh.run(0.2)


def body(text: str) -> bytes:
    """An AMQP message whose body is this text."""
    data = text.encode()
    return b"\x00\x53\x75\xa0" + bytes([len(data)]) + data


def text_of(message: bytes) -> str:
    start = message.index(b"\x00\x53\x75\xa0")
    return message[start + 5 :].decode()


def texts(receiver: SimReceiver) -> list[str]:
    return [text_of(message) for message in receiver.messages]


def send(mesh: SimMesh, sender: SimSender, *names: str) -> None:
    for name in names:
        mesh.send(sender, body(name))


def decoded(message: bytes) -> Message:
    found = Message()
    found.decode(message)
    return found


def body_of(message: bytes) -> bytes:
    found = decoded(message)
    return bytes(found.body)


def numbered(prefix: str, count: int, first: int = 1) -> list[str]:
    return [f"{prefix}{n}" for n in range(first, first + count)]


def is_falling_back(mesh: SimMesh, router: str) -> bool:
    return any(each.is_falling_back for each in mesh.routers[router].snapshot().addresses if each.address == "rpc")


def kept(mesh: SimMesh) -> QueueSnapshot:
    """What the queue holds."""
    return next(each.queue for each in mesh.brokers["b1"].snapshot().queues if each.address == "rpc.kept")


@pytest.fixture(params=["r1", "r2", "r3"], ids=["keeper r1", "keeper r2", "keeper r3"])
def keeper(request: pytest.FixtureRequest) -> str:
    return request.param


def test_what_nobody_takes_is_accepted_once_the_queue_has_it(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 5))
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys(range(1, 6), ACCEPTED), 1.0)
    assert kept(mesh).available_count == 5


def test_a_taker_gets_the_backlog_first_and_then_what_is_sent(tmp_path: Path, keeper: str, egress: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 20))
    mesh.run_until(lambda: len(sender.outcomes) == 20)
    receiver = mesh.client(egress, "c").receiver("rpc", credit=5)
    send(mesh, sender, *numbered("m", 20, first=21))
    mesh.run_until(lambda: len(receiver.messages) == 40)
    assert texts(receiver) == numbered("m", 40)
    mesh.run_until(lambda: not is_falling_back(mesh, "r1"), 1.0)
    stored = kept(mesh).enqueued_total
    send(mesh, sender, "direct")
    mesh.run_until(lambda: texts(receiver)[40:] == ["direct"])
    assert kept(mesh).enqueued_total == stored


# Producers
def test_producers_have_credit_without_a_taker_as_far_as_the_queue_gives_it(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 100, 0.5)


@pytest.mark.parametrize("second", ["r1", "r2", "r3"])
def test_producers_at_two_routers_each_keep_their_order(tmp_path: Path, keeper: str, second: str):
    mesh = mesh_of(tmp_path, [keeper])
    senders = {"a": mesh.client("r1", "a").sender("rpc"), "b": mesh.client(second, "b").sender("rpc")}
    for n in range(1, 31):
        for name, sender in senders.items():
            send(mesh, sender, f"{name}{n}")
        if n == 10:
            receiver = mesh.client("r3", "c").receiver("rpc", credit=3)
    mesh.run_until(lambda: len(receiver.messages) == 60)
    for name in senders:
        assert [text for text in texts(receiver) if text.startswith(name)] == numbered(name, 30)


def test_an_anonymous_producer_falls_back_too(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender(None)
    for n in range(1, 11):
        mesh.send(sender, Message(address="rpc", body=f"m{n}").encode())
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys(range(1, 11), ACCEPTED), 1.0)
    receiver = mesh.client("r3", "c").receiver("rpc", credit=3)
    for n in range(11, 21):
        mesh.send(sender, Message(address="rpc", body=f"m{n}").encode())
    mesh.run_until(lambda: len(receiver.messages) == 20)
    assert [decoded(message).body for message in receiver.messages] == numbered("m", 20)


def test_large_messages_fall_back_and_keep_their_place(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    sent = [b"%d" % n + bytes(200_000 if n % 3 == 0 else 10) for n in range(12)]
    for data in sent[:8]:
        mesh.send(sender, Message(body=data).encode())
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys(range(1, 9), ACCEPTED))
    receiver = mesh.client("r3", "c").receiver("rpc", credit=3)
    for data in sent[8:]:
        mesh.send(sender, Message(body=data).encode())
    mesh.run_until(lambda: len(receiver.messages) == 12)
    assert [body_of(message) for message in receiver.messages] == sent


def test_what_a_producer_sends_settled_falls_back_too(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    for name in numbered("m", 5):
        mesh.send(sender, body(name), settled=True)
    mesh.run(0.5)
    receiver = mesh.client("r3", "c").receiver("rpc")
    mesh.run_until(lambda: texts(receiver) == numbered("m", 5))


# Nobody to send to
def test_without_taker_and_broker_a_delivery_is_released_after_the_path_wait(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.kill_broker("b1")
    sender.send(body("m1"))
    mesh.run(PATH_WAIT_S - 0.2)
    assert sender.outcomes == {}
    assert sender.link.credit == 0
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, 2 * PATH_WAIT_S)


def test_a_producer_goes_on_when_the_broker_is_back(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.kill_broker("b1")
    mesh.run(10)
    assert sender.link.credit == 0
    mesh.start_broker("b1")
    send(mesh, sender, "m1")
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, 1.0)


def test_an_address_whose_broker_is_down_works_as_one_without_a_fallback(tmp_path: Path, keeper: str, egress: str):
    mesh = mesh_of(tmp_path, [keeper])
    mesh.kill_broker("b1")
    mesh.run(PATH_WAIT_S + 0.1)
    receiver = mesh.client(egress, "c").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 5))
    mesh.run_until(lambda: texts(receiver) == numbered("m", 5), 0.5)


def test_a_backlog_whose_broker_is_gone_does_not_stop_the_address(tmp_path: Path, keeper: str, egress: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 5))
    mesh.run_until(lambda: len(sender.outcomes) == 5)
    mesh.kill_broker("b1")
    receiver = mesh.client(egress, "c").receiver("rpc", credit=20)
    mesh.run(2 * PATH_WAIT_S + 0.5)
    send(mesh, sender, *numbered("m", 5, first=6))
    mesh.run_until(lambda: texts(receiver) == numbered("m", 5, first=6), 1.0)
    mesh.start_broker("b1")
    mesh.run_until(lambda: texts(receiver)[5:] == numbered("m", 5), 3.0)


# Takers come and go
def test_a_taker_that_leaves_makes_producers_fall_back_at_once(tmp_path: Path, keeper: str, egress: str):
    mesh = mesh_of(tmp_path, [keeper])
    client = mesh.client(egress, "c")
    receiver = client.receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, "direct")
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    mesh.run_until(lambda: not is_falling_back(mesh, "r1"))
    receiver.link.close()
    mesh.flush()
    mesh.run(0.1)
    send(mesh, sender, "kept")
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys((1, 2), ACCEPTED), 0.5)
    assert kept(mesh).available_count == 1


def test_what_a_lost_taker_never_got_falls_back_in_order(tmp_path: Path, keeper: str, egress: str):
    mesh = mesh_of(tmp_path, [keeper])
    client = mesh.client(egress, "c")
    receiver = client.receiver("rpc", credit=2)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0 and not is_falling_back(mesh, "r1"))
    mesh.run(0.2)
    for name in numbered("m", 6):
        if sender.link.credit > 0:
            sender.send(body(name))
            mesh.run(0.05)
    mesh.run_until(lambda: len(receiver.held) == 2)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: len(sender.outcomes) == sender.count, 2 * PATH_WAIT_S)
    assert [sender.outcomes[n] for n in (1, 2)] == [MODIFIED_FAILED] * 2
    again = mesh.client(egress, "d").receiver("rpc")
    send(mesh, sender, "last")
    accepted = [f"m{n}" for n, outcome in sender.outcomes.items() if outcome == ACCEPTED]
    assert accepted
    mesh.run_until(lambda: texts(again) == [*accepted, "last"])


def test_what_was_fetched_for_a_taker_that_leaves_is_back_in_the_queue_in_its_place(
    tmp_path: Path, keeper: str, egress: str
):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 10))
    mesh.run_until(lambda: len(sender.outcomes) == 10)
    client = mesh.client(egress, "c")
    receiver = client.receiver("rpc", credit=3)
    receiver.accepts = False
    mesh.run_until(lambda: len(receiver.held) == 3)
    mesh.run(0.2)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: kept(mesh).available_count == 10, 1.0)
    again = mesh.client("r2", "d").receiver("rpc")
    mesh.run_until(lambda: texts(again) == numbered("m", 10))
    assert [decoded(message).delivery_count for message in again.messages] == [1, 1, 1] + [0] * 7


def test_what_comes_from_the_queue_never_goes_into_it_again(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 10))
    for n in range(4):
        client = mesh.client("r3", f"c{n}")
        receiver = client.receiver("rpc", credit=2)
        receiver.accepts = False
        mesh.run_until(lambda receiver=receiver: len(receiver.held) == 2)
        receiver.settle(RELEASED)
        mesh.flush()
        mesh.run(0.05)
        mesh.cut(client.pipe)
        mesh.run(0.5)
    assert (kept(mesh).available_count, kept(mesh).enqueued_total) == (10, 10)


def test_what_is_sent_to_the_queue_itself_goes_to_takers_too(tmp_path: Path, keeper: str, egress: str):
    mesh = mesh_of(tmp_path, [keeper])
    receiver = mesh.client(egress, "c").receiver("rpc")
    mesh.run(1.0)
    sender = mesh.client("r2", "p").sender("rpc.kept")
    send(mesh, sender, "m1")
    mesh.run_until(lambda: texts(receiver) == ["m1"], 1.0)


# Steady traffic
def test_under_steady_traffic_an_address_goes_back_to_its_takers(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 100))
    receiver = mesh.client("r3", "c").receiver("rpc", credit=50)
    count = 100
    for _ in range(2000):
        if sender.link.credit > 0:
            count += 1
            sender.send(body(f"m{count}"))
        mesh.run(0.001)
    assert not is_falling_back(mesh, "r1")
    mesh.run_until(lambda: len(receiver.messages) == count)
    assert texts(receiver) == numbered("m", count)
    assert kept(mesh).enqueued_total < count / 2


def test_what_the_only_taker_releases_is_told_to_its_producer_at_once(tmp_path: Path, keeper: str, egress: str):
    mesh = mesh_of(tmp_path, [keeper])
    receiver = mesh.client(egress).receiver("rpc", credit=1)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    send(mesh, sender, "m1")
    mesh.run_until(lambda: len(receiver.held) == 1)
    receiver.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, 0.2)


def test_credit_that_producers_have_at_the_queue_takes_none_from_its_backlog(tmp_path: Path):
    mesh = mesh_of(tmp_path, ["r1"])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 300))
    mesh.run_until(lambda: len(sender.outcomes) == 300)
    receiver = mesh.client("r1").receiver("rpc", credit=100)
    receiver.tops_up = False
    mesh.run_until(lambda: bool(receiver.messages))
    mesh.run(0.02)
    assert len(receiver.messages) == 100
