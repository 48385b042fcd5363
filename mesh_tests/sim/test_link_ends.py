"""What stays at the broker when a link ends: each way to end x each terminus x 0 to 3 routers in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimClient, SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from wire.delivery import ACCEPTED
from wire.endpoint import Peer
from wire.terminus import DistributionMode, Durability, Expiry

COUNT = 3
SHORTLY_S = 0.5
"""Nobody waits for a timer: whatever a client held is free at once."""
LASTING: dict[str, dict[str, Any]] = {
    "durable, never expires": {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER},
    "durable in its configuration": {"durability": Durability.CONFIGURATION, "expiry": Expiry.NEVER},
    "durable, says no more": {"durability": Durability.UNSETTLED_STATE},
    "durable, with its connection": {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.CONNECTION_CLOSE},
    "durable, with its link": {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.LINK_DETACH},
    "never expires": {"expiry": Expiry.NEVER},
    "durable and shared": {
        "durability": Durability.UNSETTLED_STATE,
        "expiry": Expiry.NEVER,
        "capabilities": ("shared",),
    },
    "durable, shared by all": {
        "durability": Durability.UNSETTLED_STATE,
        "expiry": Expiry.NEVER,
        "capabilities": ("shared", "global"),
    },
}
PASSING: dict[str, dict[str, Any]] = {
    "of a session": {},
    "of a connection": {"expiry": Expiry.CONNECTION_CLOSE},
    "of a link": {"expiry": Expiry.LINK_DETACH},
    "shared for a while": {"capabilities": ("shared",)},
}
ROUTERS = ("r1", "r2", "r3")


def _detach(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.detach()


def _close_link(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.close()


def _end(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.session.end()


def _close(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.endpoint.close()


def _end_and_close(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.session.end()
    receiver.link.endpoint.close()


def _detach_end_and_close(mesh: SimMesh, receiver: SimReceiver) -> None:
    receiver.link.detach()
    _end_and_close(mesh, receiver)


def _close_link_end_and_close(mesh: SimMesh, receiver: SimReceiver) -> None:
    """As most libraries do when they unsubscribe and go."""
    receiver.link.close()
    _end_and_close(mesh, receiver)


def _cut(mesh: SimMesh, receiver: SimReceiver) -> None:
    mesh.cut(next(pipe for pipe in mesh.pipes if receiver.link.endpoint in (end for _, end in pipe.ends)))


def _kill_broker(mesh: SimMesh, receiver: SimReceiver) -> None:
    _cut(mesh, receiver)
    mesh.kill_broker("b1")
    mesh.run(SHORTLY_S)
    mesh.start_broker("b1")


def _kill_router(mesh: SimMesh, receiver: SimReceiver) -> None:
    """The one that the client is at."""
    mesh.kill("r1")
    mesh.start("r1")
    mesh.link("r1", "r2")


Way = Callable[[SimMesh, SimReceiver], None]
KEEPING: dict[str, Way] = {
    "detach": _detach,
    "end": _end,
    "close": _close,
    "end and close": _end_and_close,
    "detach, end and close": _detach_end_and_close,
    "its socket goes": _cut,
    "its router dies": _kill_router,
    "its broker dies": _kill_broker,
}
ENDING: dict[str, Way] = {
    "detach with closed": _close_link,
    "detach with closed, end and close": _close_link_end_and_close,
}


def _mesh(folder: Path, distance: int) -> SimMesh:
    """r1 - r2 - r3; the broker is as many routers away as ``distance`` says, 0: clients go to its own port."""
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
            "brokers": {"b1": {"data": "b1", "routers": [ROUTERS[max(distance, 1) - 1]]}},
            "addresses": {
                "orders": {"type": "queue", "broker": "b1"},
                "news.#": {"type": "topic", "broker": "b1"},
                "rpc": "anycast",
            },
        },
        folder,
    )
    _come_up(mesh)
    return mesh


def _come_up(mesh: SimMesh) -> None:
    mesh.converge()
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
    mesh.run(0.2)


def _client(mesh: SimMesh, distance: int, container_id: str, router: str = "r1") -> SimClient:
    if distance:
        return mesh.client(router, container_id)
    client, broker = SimClient(mesh, container_id), mesh.brokers["b1"]
    mesh.add(client)
    client.pipe = mesh.join(
        (client, client.endpoint), (broker, broker.on_accepted("nodes", Peer(is_mesh=True), mesh.now))
    )
    return client


def _publish(mesh: SimMesh, distance: int, address: str, count: int = COUNT) -> None:
    sender = _client(mesh, distance, "publisher", "r3").sender(address)
    for _ in range(count):
        mesh.send(sender, Message(body="x").encode())
    mesh.run_until(lambda: list(sender.outcomes.values()) == [ACCEPTED] * count)


def _subscribe(mesh: SimMesh, distance: int, terminus: dict[str, Any], router: str = "r1") -> SimReceiver:
    receiver = _client(mesh, distance, "me", router).receiver("news.a", credit=10, name="sub", **terminus)
    mesh.run_until(lambda: receiver.link.is_open)
    return receiver


def _subscriptions(mesh: SimMesh) -> list[str]:
    return [queue.address for queue in mesh.brokers["b1"].snapshot().queues if queue.address.startswith("news")]


@pytest.mark.parametrize("distance", range(4))
@pytest.mark.parametrize("terminus", LASTING)
def test_a_subscription_that_outlives_its_link_stays_unless_the_link_is_closed(
    tmp_path: Path, terminus: str, distance: int
):
    mesh = _mesh(tmp_path, distance)
    kept = {}
    for way, leave in {**KEEPING, **ENDING}.items():
        if leave is _kill_router and not distance:
            continue
        leave(mesh, _subscribe(mesh, distance, LASTING[terminus]))
        mesh.run(SHORTLY_S)
        _come_up(mesh)
        _publish(mesh, distance, "news.a")
        again = _subscribe(mesh, distance, LASTING[terminus], "r2")
        mesh.run(SHORTLY_S)
        kept[way] = len(again.messages)
        again.link.close()
        mesh.run(SHORTLY_S)
        assert _subscriptions(mesh) == []
    assert kept == {way: COUNT if way in KEEPING else 0 for way in kept}


@pytest.mark.parametrize("distance", range(4))
@pytest.mark.parametrize("terminus", PASSING)
def test_a_subscription_that_goes_with_its_link_goes_however_the_link_ends(
    tmp_path: Path, terminus: str, distance: int
):
    mesh = _mesh(tmp_path, distance)
    for way, leave in {**KEEPING, **ENDING}.items():
        if leave is _kill_router and not distance:
            continue
        leave(mesh, _subscribe(mesh, distance, PASSING[terminus]))
        mesh.run(SHORTLY_S)
        assert _subscriptions(mesh) == [], way
        _come_up(mesh)


@pytest.mark.parametrize("distance", range(4))
def test_a_subscription_that_was_asked_for_by_its_name_alone_ends_by_a_close_of_the_link_only(
    tmp_path: Path, distance: int
):
    mesh = _mesh(tmp_path, distance)
    lasting = LASTING["durable, never expires"]
    for way, leave in {**KEEPING, **ENDING}.items():
        if leave is _kill_router and not distance:
            continue
        _detach(mesh, _subscribe(mesh, distance, lasting))
        mesh.run(SHORTLY_S)
        recalled = _client(mesh, distance, "me").receiver(None, name="sub")
        mesh.run_until(lambda recalled=recalled: recalled.link.is_open)
        leave(mesh, recalled)
        mesh.run(SHORTLY_S)
        _come_up(mesh)
        assert _subscriptions(mesh) == ["news.a"] * (way in KEEPING), way


@pytest.mark.parametrize("distance", range(4))
@pytest.mark.parametrize("mode", [DistributionMode.MOVE, DistributionMode.COPY], ids=["consumer", "browser"])
def test_what_a_consumer_held_is_there_for_the_next_at_once_however_its_link_ended(
    tmp_path: Path, mode: DistributionMode, distance: int
):
    mesh = _mesh(tmp_path, distance)
    for way, leave in {**KEEPING, **ENDING}.items():
        if leave is _kill_router and not distance:
            continue
        _publish(mesh, distance, "orders", 1)
        holder = _client(mesh, distance, "me").receiver("orders", credit=10, distribution_mode=mode)
        holder.accepts = False
        mesh.run_until(lambda holder=holder: len(holder.messages) == 1)
        leave(mesh, holder)
        mesh.run(SHORTLY_S)
        _come_up(mesh)
        following = _client(mesh, distance, "next", "r2").receiver("orders")
        mesh.run(SHORTLY_S)
        assert len(following.messages) == 1, way
        mesh.cut(mesh.pipes_of(next(node for node in mesh.nodes if following in getattr(node, "receivers", ())))[0])


@pytest.mark.parametrize("address", ["rpc", None], ids=["anycast", "dynamic"])
def test_what_a_consumer_of_a_router_held_is_given_back_at_once_however_its_link_ended(
    tmp_path: Path, address: str | None
):
    mesh = _mesh(tmp_path, 1)
    for way, leave in {**KEEPING, **ENDING}.items():
        if leave in (_kill_router, _kill_broker):
            continue
        holder = mesh.client("r1", "me").receiver(address, dynamic=address is None)
        holder.accepts = False
        mesh.run_until(lambda holder=holder: holder.link.is_open)
        sender = mesh.client("r2", "p").sender(address or holder.link.remote_source.address)
        mesh.send(sender)
        mesh.run_until(lambda holder=holder: len(holder.messages) == 1)
        leave(mesh, holder)
        mesh.run(SHORTLY_S)
        assert len(sender.outcomes) == 1, way
        mesh.run(5)
