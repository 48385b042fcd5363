"""Whoever goes in the middle of an attach, at whatever step, leaves nothing behind at any node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.clients import SimClient
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.leftovers import QUIET_S, leftovers, timers
from wire.terminus import Durability, Expiry

MOST_STEPS = 200
PAUSE_S = 0.03
"""Between two clients: what the last one left under way is over by then, so that steps are those of one attach."""
Attach = Callable[[SimClient], Any]
LASTING = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "name": "sub"}
SHARED = {**LASTING, "name": "shared"}
ATTACHES: dict[str, Attach] = {
    "a consumer of a queue": lambda client: client.receiver("orders"),
    "a producer of a queue": lambda client: client.sender("orders"),
    "a browser": lambda client: client.receiver("orders", distribution_mode=1),
    "a subscriber": lambda client: client.receiver("news.a"),
    "a durable subscriber": lambda client: client.receiver("news.a", **LASTING),
    "a subscriber that shares": lambda client: client.receiver("news.a", capabilities=("shared",), **SHARED),
    "a refused consumer": lambda client: client.receiver("nowhere"),
    "a subscriber that its broker refuses": lambda client: client.receiver(
        "news.a", capabilities=("shared",), **LASTING
    ),
    "a recalled subscription": lambda client: client.receiver(None, name="sub"),
    "a consumer of a sharded queue": lambda client: client.receiver("sharded"),
    "a producer of a sharded queue": lambda client: client.sender("sharded"),
    "a consumer": lambda client: client.receiver("rpc"),
    "a producer": lambda client: client.sender("rpc"),
    "a producer to all": lambda client: client.sender("prices"),
    "a producer without an address": lambda client: client.sender(None),
    "a dynamic source": lambda client: client.receiver(None, dynamic=True),
    "a dynamic target": lambda client: client.sender(None, is_dynamic=True, capabilities=("temporary-queue",)),
    "several at once": lambda client: [
        (client.receiver("orders"), client.sender("orders"), client.receiver("news.a")) for _ in range(2)
    ],
}
ROUTES = [name for name in ATTACHES if "queue" in name or "subscri" in name or name == "several at once"]
POSITIONS = {"beside the broker": ("r1", "r1"), "two hops away": ("r1", "r3"), "at an edge": ("e1", "r3")}
CASES = [
    *((what, "at an edge") for what in ATTACHES),
    *((what, "beside the broker") for what in ROUTES),
    ("a consumer of a queue", "two hops away"),
]


def _links(client: SimClient) -> list[Any]:
    return [end.link for end in [*client.receivers, *client.senders]]


def _end_links(client: SimClient, *, closed: bool) -> None:
    for link in _links(client):
        link.close() if closed else link.detach()
    client.world.flush()


def _end(client: SimClient, *, closes: bool = False) -> None:
    client.begin().end()
    if closes:
        client.endpoint.close()
    client.world.flush()


def _close(client: SimClient) -> None:
    client.endpoint.close()
    client.world.flush()


WAYS: dict[str, Callable[[SimClient], None]] = {
    "its socket goes": lambda client: client.world.cut(client.pipe),
    "it closes": _close,
    "it ends its session": _end,
    "it ends its session and closes": lambda client: _end(client, closes=True),
    "it detaches": lambda client: _end_links(client, closed=False),
    "it closes its links": lambda client: _end_links(client, closed=True),
}


def _mesh(folder: Path, broker_at: str) -> SimMesh:
    """e1 - r1 - r2 - r3, and r1 - r4 - r3 at a higher cost."""
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {
                "r1": {"connect": ["r2", {"to": "r4", "cost": 5}]},
                "r2": {"connect": ["r3"]},
                "r3": {"connect": ["r4"]},
                "r4": {},
                "e1": {"mode": "edge", "connect": ["r1"]},
            },
            "brokers": {"b1": {"data": "b1", "routers": [broker_at]}, "b2": {"data": "b2", "routers": ["r2"]}},
            "addresses": {
                "orders": {"type": "queue", "broker": "b1"},
                "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
                "news.#": {"type": "topic", "broker": "b1"},
                "rpc": "anycast",
                "prices": "multicast",
            },
        },
        folder,
    )
    mesh.converge()
    _settle_down(mesh)
    return mesh


def _settle_down(mesh: SimMesh) -> None:
    mesh.converge()
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
    mesh.run(QUIET_S)


def _is_answered(client: SimClient) -> bool:
    return all(link.is_open or link.is_gone for link in _links(client))


def _steps_until_answered(mesh: SimMesh, client: SimClient, most: int) -> bool:
    """Let ``most`` things happen; True when the attach was answered before."""
    for _ in range(most):
        if _is_answered(client):
            return True
        mesh.step()
    return _is_answered(client)


def _prepare(mesh: SimMesh, router: str) -> None:
    """Somebody takes what is sent, so that circuits are made; the subscription that is to be recalled exists."""
    taker = mesh.client("r3", "taker")
    for address in ("rpc", "prices"):
        taker.receiver(address)
    subscriber = mesh.client(router, "c")
    ATTACHES["a durable subscriber"](subscriber)
    mesh.run_until(lambda: _is_answered(taker) and _is_answered(subscriber))
    mesh.cut(subscriber.pipe)
    mesh.run(0.1)


def _forget_clients(mesh: SimMesh) -> None:
    for client in [node for node in mesh.nodes if isinstance(node, SimClient)]:
        mesh.cut(client.pipe)
        mesh.remove(client)


def _assert_nothing_is_left(mesh: SimMesh, before: Counter[str], said: str) -> None:
    mesh.run(QUIET_S)
    assert [text for text in leftovers(mesh) if "has link" in text and " at c at " in text] == [], said
    _forget_clients(mesh)
    mesh.run(QUIET_S)
    assert leftovers(mesh) == [], said
    assert timers(mesh) <= before, said


@pytest.mark.parametrize(("what", "where"), CASES)
def test_a_client_that_goes_in_the_middle_of_an_attach_leaves_nothing_behind(tmp_path: Path, what: str, where: str):
    router, broker_at = POSITIONS[where]
    mesh = _mesh(tmp_path, broker_at)
    before = timers(mesh)
    assert leftovers(mesh) == []
    for way, leave in WAYS.items():
        _prepare(mesh, router)
        for steps in range(MOST_STEPS):
            client = mesh.client(router, "c")
            ATTACHES[what](client)
            is_answered = _steps_until_answered(mesh, client, steps)
            leave(client)
            mesh.run(PAUSE_S)
            if is_answered:
                break
        else:
            pytest.fail(f"not answered within {MOST_STEPS} steps")
        _assert_nothing_is_left(mesh, before, way)


def _kill_router(mesh: SimMesh, name: str) -> None:
    mesh.kill(name)
    mesh.run(0.3)
    mesh.start(name)
    for edge in mesh.topology.edges():
        if name in (edge.dialer, edge.to):
            mesh.link(edge.dialer, edge.to)


def _kill_broker(mesh: SimMesh, name: str) -> None:
    mesh.kill_broker(name)
    mesh.run(0.3)
    mesh.start_broker(name)


def _cut_trunk(mesh: SimMesh, one: str, other: str, *, silent_s: float = 0.0) -> None:
    pipe = mesh.trunks[frozenset({one, other})]
    if silent_s:
        mesh.cut(pipe, silently=True)
        mesh.run(silent_s)
    mesh.cut_trunk(one, other)
    mesh.run(0.3)
    mesh.link(one, other)


LOSSES: dict[str, Callable[[SimMesh], None]] = {
    "the transit router dies": lambda mesh: _kill_router(mesh, "r2"),
    "the egress router dies": lambda mesh: _kill_router(mesh, "r3"),
    "the broker dies": lambda mesh: _kill_broker(mesh, "b1"),
    "the first connection is cut": lambda mesh: _cut_trunk(mesh, "r1", "r2"),
    "the last connection falls silent": lambda mesh: _cut_trunk(mesh, "r2", "r3", silent_s=4.0),
}
LOSING = [
    "a consumer of a queue",
    "a producer of a queue",
    "a durable subscriber",
    "a recalled subscription",
    "a producer",
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("what", LOSING)
def test_what_is_lost_in_the_middle_of_an_attach_leaves_nothing_behind(tmp_path: Path, what: str, loss: str):
    """At each step; every other client gives up meanwhile, which must not bring back what ends."""
    mesh = _mesh(tmp_path, "r3")
    before = timers(mesh)
    for steps in range(MOST_STEPS):
        _prepare(mesh, "r1")
        client = mesh.client("r1", "c")
        ATTACHES[what](client)
        is_answered = _steps_until_answered(mesh, client, steps)
        if steps % 2:
            mesh.at(mesh.now + 0.005 * steps, lambda client=client: mesh.cut(client.pipe))
        LOSSES[loss](mesh)
        mesh.converge()
        mesh.run_until(lambda client=client: bool(client.closed) or _is_answered(client), 15)
        _forget_clients(mesh)
        mesh.run(PAUSE_S)
        if is_answered:
            break
    else:
        pytest.fail(f"not answered within {MOST_STEPS} steps")
    _settle_down(mesh)
    _assert_nothing_is_left(mesh, before, loss)
