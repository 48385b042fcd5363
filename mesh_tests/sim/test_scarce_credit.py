"""Does everybody get their turn when credit is scarce?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from mesh_tests.sim.test_broker_routes import bodies, mesh_of, send_all
from router.forwarding.credit import PERIOD_S
from wire.delivery import ACCEPTED

INGRESSES = [f"r{n}" for n in range(1, 11)]
SHARDS = {f"b{n}": [f"r{n}"] for n in range(1, 5)}


def star() -> SimMesh:
    """r0 in the middle; r1 to r11 around it."""
    routers: dict[str, Any] = {"r0": {}, **{f"r{n}": {"connect": ["r0"]} for n in range(1, 12)}}
    mesh = SimMesh({"mesh": "star", "node_tls": False, "routers": routers, "addresses": {"rpc": "anycast"}})
    mesh.converge()
    return mesh


def send_until(mesh: SimMesh, senders: list[SimSender], count: int, seconds: float) -> None:
    """All send whatever credit allows, until ``count`` deliveries of each are settled."""

    def is_done() -> bool:
        for sender in senders:
            while sender.link.credit > 0:
                sender.send(b"x")
        return min(len(sender.outcomes) for sender in senders) >= count

    mesh.run_until(is_done, seconds)


@pytest.mark.parametrize("at", ["r0", "r1", "r11"], ids=["in the middle", "at one of them", "behind the middle"])
def test_a_hundred_producers_at_ten_routers_share_a_consumer_with_credit_one(at: str):
    mesh = star()
    receiver = mesh.client(at).receiver("rpc", credit=1)
    clients = [mesh.client(router) for router in INGRESSES]
    senders = [client.sender("rpc") for client in clients for _ in range(10)]
    send_until(mesh, senders, 5, seconds=30)
    shares = [len(sender.outcomes) for sender in senders]
    assert max(shares) <= 4 * min(shares)
    mesh.run_until(lambda: not any(sender.open for sender in senders))
    assert len(receiver.messages) == sum(sender.count for sender in senders)
    assert all(set(sender.outcomes.values()) == {ACCEPTED} for sender in senders)


def test_producers_that_come_and_go_leave_no_credit_behind(egress: str):
    mesh = line()
    mesh.client(egress).receiver("rpc", credit=1)
    for _ in range(20):
        clients = [mesh.client(router) for router in ("r1", "r2", "r3")]
        senders = [client.sender("rpc") for client in clients]
        send_until(mesh, senders, 1, seconds=5)
        for client in clients:
            mesh.cut(client.pipe)


def test_what_an_idle_producer_holds_is_given_to_one_that_is_short_of_it_at_the_end_of_the_period(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=100)
    receiver.accepts = False  # so that nothing but the end of the period can move credit
    idle = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: idle.link.credit > 90)
    short = mesh.client("r1").sender("rpc")
    end = mesh.now + 10 * PERIOD_S
    while mesh.now < end:
        while short.link.credit > 0:
            short.send(b"x")
        mesh.run(PERIOD_S / 10)
    assert idle.link.credit == 1
    assert len(receiver.held) > 50


# Sharded queues
@pytest.mark.parametrize("router", ["r1", "r2", "r3", "r4"])
@pytest.mark.parametrize("full", ["b1", "b3"])
def test_a_consumer_with_credit_one_empties_the_one_shard_of_four_that_has_messages(
    tmp_path: Path, router: str, full: str
):
    mesh = mesh_of(tmp_path, **SHARDS)
    empty = [broker for broker in SHARDS if broker != full]
    for broker in empty:
        mesh.kill_broker(broker)
    send_all(mesh, mesh.client("r1", "p").sender("sharded"), 20)
    for broker in empty:
        mesh.start_broker(broker)
    mesh.run(1)
    receiver = mesh.client(router, "c").receiver("sharded", credit=1)
    mesh.run_until(lambda: bodies(receiver) == list(range(20)), 10)


@pytest.mark.parametrize("router", ["r1", "r2", "r3", "r4"])
def test_a_consumer_with_credit_one_that_waits_gets_what_comes_to_any_shard(tmp_path: Path, router: str):
    mesh = mesh_of(tmp_path, **SHARDS)
    receiver = mesh.client(router, "c").receiver("sharded", credit=1)
    sender = mesh.client("r1", "p").sender("sharded")
    mesh.run(1)
    for number in range(40):
        mesh.send(sender, Message(body=str(number)).encode())
        mesh.run_until(lambda count=number + 1: len(receiver.messages) == count, 2)
    assert sorted(bodies(receiver)) == list(range(40))
