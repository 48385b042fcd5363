"""Durable subscriptions without a consumer: when are they deleted?"""

from dataclasses import dataclass, field
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.events import SubscriptionExpired
from broker.queueing.expired_subscriptions import ExpiredSubscriptions
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.rig import Rig
from wire.delivery import ACCEPTED
from wire.terminus import Durability, Expiry

KEPT: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
SHARED: dict[str, Any] = {"capabilities": ("topic", "shared")}
EXPIRY_S = 3600
EMPTY = SimpleNamespace(available_count=0, size_bytes=0)


def _expired(rig: Rig) -> list[SubscriptionExpired]:
    return [event for event in rig.log if isinstance(event, SubscriptionExpired)]


def _are_kept(rig: Rig) -> list[str]:
    return [row.address for row in held_by(rig.store.load()).queues]


@pytest.mark.parametrize("kind", [{}, SHARED], ids=["of one link", "shared"])
def test_a_durable_subscription_without_a_consumer_is_deleted_with_its_messages_and_logged(
    rig: Rig, kind: dict[str, Any]
) -> None:
    client = rig.client("app")
    client.consumer("alerts.#", name="reader", **kind, **KEPT).detach()
    client.producer("alerts.water").send("unread")
    size_bytes = rig.queue("alerts.#").queue.size_bytes
    rig.advance(EXPIRY_S - 2)
    assert _are_kept(rig) == ["alerts.#"]
    rig.advance(3)
    assert held_by(rig.store.load()).queues == []
    assert held_by(rig.store.load()).messages == []
    (event,) = _expired(rig)
    subscriber = "app|reader (shared)" if kind else "app|reader"
    assert (event.address, event.subscriber, event.message_count) == ("alerts.#", subscriber, 1)
    assert (event.size_bytes, round(event.unused_s)) == (size_bytes, EXPIRY_S + 1)


def test_a_subscription_with_a_consumer_does_not_expire_and_the_clock_starts_when_the_last_leaves(rig: Rig) -> None:
    client = rig.client("app")
    one, two = [client.consumer("alerts.#", name=f"work|{n}", **SHARED, **KEPT) for n in range(2)]
    rig.advance(2 * EXPIRY_S)
    one.detach()
    rig.advance(2 * EXPIRY_S)
    assert _are_kept(rig) == ["alerts.#"]
    two.detach()
    rig.advance(EXPIRY_S - 1)
    assert _are_kept(rig) == ["alerts.#"]
    rig.advance(2)
    assert _are_kept(rig) == []


def test_a_subscriber_that_comes_back_in_time_starts_anew(rig: Rig) -> None:
    client = rig.client("app")
    for _ in range(3):
        client.consumer("alerts.#", name="reader", **KEPT).detach()
        rig.advance(EXPIRY_S - 1)
    assert _are_kept(rig) == ["alerts.#"]
    client.consumer("alerts.#", name="reader", **KEPT)
    rig.advance(EXPIRY_S + 1)
    assert (_are_kept(rig), _expired(rig)) == (["alerts.#"], [])


def test_a_consumer_that_comes_and_goes_leaves_no_memory_of_it(rig: Rig) -> None:
    client = rig.client("app")
    client.consumer("alerts.#", name="due first", **KEPT).detach()
    for _ in range(300):
        client.consumer("alerts.#", name="reader", **KEPT).detach()
    assert len(rig.node._abandoned._due) < 110


@dataclass(eq=False)
class Held:
    """What `ExpiredSubscriptions` asks of a subscription."""

    address: str
    is_deleted: bool = False
    key: None = None
    queue: Any = field(default_factory=lambda: SimpleNamespace(snapshot=lambda: EMPTY))


@pytest.mark.parametrize("seed", range(5))
def test_each_is_deleted_in_its_time_though_others_come_and_go(seed: int) -> None:
    random, deleted = Random(seed), list[Held]()
    abandoned: Any = ExpiredSubscriptions(
        cast(Any, SimpleNamespace(delete=deleted.append)), lambda _: inf, lambda _: None
    )
    due: dict[Held, float] = {}
    subscriptions = [Held(f"news.{number}") for number in range(200)]
    for now, deadline in enumerate(random.sample(range(3000, 30_000), 3000)):
        held = random.choice(subscriptions)
        due[held] = deadline
        abandoned.on_left(held, due[held] - now, now)
    assert len(abandoned._due) < 2 * len(due) + 100, "it has been pruned"
    for held, deadline in sorted(due.items(), key=lambda item: item[1]):
        assert abandoned.next_deadline() == deadline
        abandoned.on_time(deadline)
        assert deleted[-1].address == held.address


def test_the_clock_starts_when_the_broker_starts(rig: Rig) -> None:
    rig.client("app").consumer("alerts.#", name="reader", **KEPT).detach()
    rig.advance(EXPIRY_S - 1)
    rig.restart()
    rig.advance(EXPIRY_S - 1)
    assert _are_kept(rig) == ["alerts.#"]
    rig.advance(2)
    assert _are_kept(rig) == []


def test_a_connection_that_is_lost_starts_the_clock_too(rig: Rig) -> None:
    client = rig.client("app")
    client.consumer("alerts.#", name="reader", **KEPT)
    client.vanish()
    rig.advance(EXPIRY_S + 1)
    assert _are_kept(rig) == []


def test_a_filter_expires_as_the_entry_says_that_it_falls_under_itself(rig: Rig) -> None:
    client = rig.client("app")
    for number, address in enumerate(("news.#", "alerts.#", "alerts.*", "fire")):
        client.consumer(address, name=f"reader {number}", **KEPT).detach()
    rig.advance(61)
    assert _are_kept(rig) == ["news.#", "alerts.#", "alerts.*"]
    rig.advance(EXPIRY_S)
    assert _are_kept(rig) == ["news.#"]


TIMEOUTS = [
    ({"expiry": Expiry.LINK_DETACH, "timeout_s": 20}, 20),
    ({"expiry": Expiry.SESSION_END, "timeout_s": 20}, 20),
    ({"expiry": Expiry.CONNECTION_CLOSE, "timeout_s": 2 * EXPIRY_S}, EXPIRY_S),
    ({"expiry": Expiry.NEVER, "timeout_s": 20}, EXPIRY_S),
    ({"expiry": Expiry.SESSION_END}, EXPIRY_S),
]


@pytest.mark.parametrize(("asked", "kept_s"), TIMEOUTS)
def test_a_source_may_ask_for_less_and_an_expiry_of_never_is_subject_to_the_topology(
    rig: Rig, asked: dict[str, Any], kept_s: float
) -> None:
    consumer = rig.client("app").consumer("alerts.#", name="reader", durability=Durability.CONFIGURATION, **asked)
    consumer.detach()
    rig.advance(kept_s - 1)
    assert _are_kept(rig) == ["alerts.#"]
    rig.advance(2)
    assert _are_kept(rig) == []


def test_a_timeout_of_a_source_counts_where_the_topology_has_none(rig: Rig) -> None:
    lasting = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.LINK_DETACH, "timeout_s": 20}
    rig.client("app").consumer("news.#", name="reader", **lasting).detach()
    rig.advance(21)
    assert _are_kept(rig) == []


def test_an_unsubscribed_or_replaced_subscription_is_not_deleted_again(rig: Rig) -> None:
    client = rig.client("app")
    client.consumer("alerts.#", name="reader", **KEPT).detach()
    client.consumer("alerts.*", name="reader", **KEPT).detach()
    client.consumer(None, name="reader", credit=0, is_null=True).close()
    rig.advance(2 * EXPIRY_S)
    assert _expired(rig) == []


def test_what_others_still_need_survives_the_subscription_that_expires(rig: Rig) -> None:
    client = rig.client("app")
    client.consumer("alerts.#", name="gone", **KEPT).detach()
    reader = client.consumer("alerts.#", name="reader", credit=0, **KEPT)
    client.producer("alerts.water").send("rising")
    rig.advance(EXPIRY_S + 1)
    assert [row.link_name for row in held_by(rig.store.load()).queues] == ["reader"]
    reader.link.grant(1)
    rig.run()
    reader.received[0].give(ACCEPTED)
    assert held_by(rig.store.load()).messages == []
