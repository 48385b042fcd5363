"""A subscription belongs to the user who made it, however many routers are between the user and the broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from broker.events import LinkRefused
from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from wire.routed_name import USER
from wire.terminus import Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
SHARED: dict[str, Any] = {"capabilities": ("shared",), **DURABLE}
WAYS = pytest.mark.parametrize("router", ["r1", "r2", "r3", "e1"])
"""The broker is at r1; e1 is an edge of r3."""


def mesh_of(folder: Path, users: dict[str, Any] | None = None) -> SimMesh:
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {
                "r1": {},
                "r2": {"connect": ["r1"]},
                "r3": {"connect": ["r2"]},
                "e1": {"mode": "edge", "connect": ["r3"]},
            },
            "brokers": {"b1": {"data": "b1", "routers": ["r1"]}},
            "addresses": {"news.#": "topic", "orders": "queue"},
            "users": users
            or {
                "alice": {"receive": ["news.#"], "send": ["news.#"]},
                "bob": {"receive": ["news.#"]},
                "carol": {"send": ["orders"]},
                "anonymous": {"receive": ["orders"]},
            },
        },
        folder,
    )
    mesh.converge()
    mesh.run(0.5)
    return mesh


def subscribe(mesh: SimMesh, router: str, user: str | None, **fields: Any) -> SimReceiver:
    receiver = mesh.client(router, "app", user=user).receiver("news.#", name="reader", **(fields or DURABLE))
    mesh.run_until(lambda: receiver.link.is_open or receiver.error)
    return receiver


def end(mesh: SimMesh, router: str, user: str | None, **fields: Any) -> SimReceiver:
    """As JMS does it: the link is named, and its source is not."""
    receiver = mesh.client(router, "app", user=user).receiver(None, name="reader", **fields)
    mesh.run_until(lambda: receiver.link.is_open or receiver.error)
    if not receiver.error:
        receiver.link.close()
        mesh.run(0.5)
    return receiver


def kept(mesh: SimMesh) -> list[tuple[str, int]]:
    return [
        (queue.address, queue.queue.available_count)
        for queue in mesh.brokers["b1"].snapshot().queues
        if queue.is_subscription
    ]


def publish(mesh: SimMesh) -> None:
    sender = mesh.client("r2", "publisher", user="alice").sender("news.eu")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(body="for alice").encode())
    mesh.run_until(lambda: len(sender.open) == 0)


@WAYS
@pytest.mark.parametrize("kind", [DURABLE, SHARED], ids=["own", "shared"])
def test_another_user_neither_takes_nor_ends_a_subscription(tmp_path: Path, router: str, kind: dict[str, Any]) -> None:
    mesh = mesh_of(tmp_path)
    subscribe(mesh, "r2", "alice", **kind).link.detach()
    mesh.run(0.5)
    publish(mesh)
    assert kept(mesh) == [("news.#", 1)]
    thief = subscribe(mesh, router, "bob", **kind)
    assert (thief.error.condition, thief.messages) == ("amqp:unauthorized-access", [])
    for user in ("bob", "carol", None):
        ender = end(mesh, router, user)
        assert ender.error.condition == "amqp:unauthorized-access"
        assert repr(user or "anonymous") in ender.error.description or "an anonymous client" in ender.error.description
    assert kept(mesh) == [("news.#", 1)]
    again = subscribe(mesh, router, "alice", **kind)
    mesh.run_until(lambda: len(again.messages) == 1)


@WAYS
def test_a_consumer_is_not_thrown_out_by_somebody_elses_unsubscribe(tmp_path: Path, router: str) -> None:
    mesh = mesh_of(tmp_path)
    owner = subscribe(mesh, "r3", "alice")
    for user in ("bob", "carol", None):
        assert end(mesh, router, user).error.condition == "amqp:unauthorized-access"
    publish(mesh)
    mesh.run_until(lambda: len(owner.messages) == 1)
    assert owner.error is None


@WAYS
def test_an_owner_ends_a_subscription_from_any_router(tmp_path: Path, router: str) -> None:
    mesh = mesh_of(tmp_path)
    subscribe(mesh, "r2", "alice").link.detach()
    mesh.run(0.5)
    assert end(mesh, router, "alice").error is None
    assert kept(mesh) == []


@WAYS
def test_what_a_client_says_its_user_is_counts_for_nothing(tmp_path: Path, router: str) -> None:
    mesh = mesh_of(tmp_path)
    subscribe(mesh, "r2", "alice").link.detach()
    mesh.run(0.5)
    said = (USER, "alice")
    for user in ("bob", None):
        assert (
            subscribe(mesh, router, user, link_property=said, **DURABLE).error.condition == "amqp:unauthorized-access"
        )
        assert end(mesh, router, user, link_property=said).error.condition == "amqp:unauthorized-access"
    refused = {event.user for _, _, event in mesh.log if isinstance(event, LinkRefused)}
    assert "alice" not in refused
    assert kept(mesh) == [("news.#", 0)]


def test_clients_that_do_not_say_who_they_are_share_what_is_anonymous(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path, {"alice": {"receive": ["news.#"]}, "anonymous": {"receive": ["news.#"]}})
    subscribe(mesh, "r2", None).link.detach()
    mesh.run(0.5)
    assert subscribe(mesh, "r3", "alice").error.condition == "amqp:unauthorized-access"
    assert subscribe(mesh, "r3", None).error is None
