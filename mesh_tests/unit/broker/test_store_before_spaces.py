"""Does a broker find in a store of before all that it would have found before addresses had a space?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mesh_tests.unit.broker.rig import Rig
from mesh_tests.unit.broker.store.store_before_spaces import leave_store
from wire.terminus import Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
SHARED: dict[str, Any] = {**DURABLE, "capabilities": ("shared",)}
ANYBODYS: dict[str, Any] = {**DURABLE, "capabilities": ("shared", "global")}
FOUND = {
    ("orders", None, 1),
    ("its-name-here", None, 1),
    ("news.#", "rig|app|own", 1),
    ("news.eu", "app|both (shared)", 1),
    ("news.eu", "all (shared, global)", 1),
}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    leave_store(tmp_path)
    return Rig(tmp_path)


def queues(rig: Rig) -> set[tuple[str, str | None, int]]:
    return {(queue.address, queue.subscriber, queue.queue.available_count) for queue in rig.snapshot().queues}


def test_all_queues_and_messages_are_there(rig: Rig) -> None:
    assert queues(rig) == FOUND
    assert rig.inventory.damages == []
    rig.restart()
    assert queues(rig) == FOUND


@pytest.mark.parametrize("address", ["orders", "its-name-here"])
def test_a_consumer_gets_the_messages_of_a_queue(rig: Rig, address: str) -> None:
    assert rig.client("rig").consumer(address).bodies == [f"to {address}"]


@pytest.mark.parametrize(
    ("filter_", "name", "terminus"),
    [
        ("news.#", "app|own", {**DURABLE, "user": "alice"}),
        ("news.eu", "app%7Cboth|7|r9/9/9", SHARED),
        ("news.eu", "all|global7|r9/9/9", ANYBODYS),
    ],
)
def test_a_subscriber_resumes_its_subscription(rig: Rig, filter_: str, name: str, terminus: dict[str, Any]) -> None:
    assert rig.client("rig").consumer(filter_, name=name, **terminus).bodies == ["to news.eu"]
    assert len(rig.snapshot().queues) == len(FOUND)


def test_a_subscription_still_belongs_to_its_user(rig: Rig) -> None:
    other = rig.client("rig").consumer("news.#", name="app|own", user="bob", **DURABLE)
    assert other.detached is not None
    assert other.detached[1].condition == "amqp:unauthorized-access"


def test_a_new_message_finds_the_subscriptions(rig: Rig) -> None:
    rig.client("rig").producer("news.eu").send("new")
    counts = {subscriber: count for _, subscriber, count in queues(rig) if subscriber is not None}
    assert counts == {"rig|app|own": 2, "app|both (shared)": 2, "all (shared, global)": 2}
