"""Whose is a subscription, and who may take it, end it, or steal its link?"""

from pathlib import Path
from typing import Any

import pytest

from addressing.topology.model import Topology
from broker.events import LinkRefused, SubscriptionEnded, SubscriptionOwned
from mesh_tests.unit.broker.rig import Consumer, Rig
from mesh_tests.unit.broker.store.format_4 import as_format_4
from wire.terminus import Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
SHARED: dict[str, Any] = {"capabilities": ("shared",), **DURABLE}
GLOBAL: dict[str, Any] = {"capabilities": ("shared", "global"), **DURABLE}
PASSING: dict[str, Any] = {"capabilities": ("shared",)}


def topology_of(users: dict[str, list[str]]) -> Topology:
    """With these rights to receive."""
    nodes = {"mesh": "rig", "routers": {"r1": {}}, "brokers": {"b1": {"data": "unused"}}}
    rights = {name: {"receive": patterns} for name, patterns in users.items()}
    topics = {"news.#": "topic", "sky": {"type": "topic", "broker_address": "weather"}}
    return Topology.model_validate({**nodes, "addresses": topics, "users": rights})


USERS = topology_of({"alice": ["news.#"], "bob": ["news.#"], "carol": ["orders"], "anonymous": ["news.#"]})


def users_rig(tmp_path: Path, topology: Topology = USERS) -> Rig:
    return Rig(tmp_path / "users", topology)


def condition(consumer: Consumer) -> str | None:
    if consumer.detached is None:
        return None
    assert consumer.detached[1] is not None
    return consumer.detached[1].condition


def subscribe(rig: Rig, user: str | None, name: str = "app|reader", **fields: Any) -> Consumer:
    return rig.client("rig").consumer("news.#", name=name, user=user, **(fields or DURABLE))


def kept(rig: Rig) -> list[str]:
    return [queue.address for queue in rig.snapshot().queues if queue.is_durable]


@pytest.mark.parametrize("kind", [DURABLE, SHARED, GLOBAL], ids=["own", "shared", "global"])
@pytest.mark.parametrize("is_owner_there", [True, False])
@pytest.mark.parametrize("does_restart", [True, False])
def test_another_user_gets_nothing_of_a_subscription_and_ends_nothing(
    tmp_path: Path, kind: dict[str, Any], is_owner_there: bool, does_restart: bool
) -> None:
    rig = users_rig(tmp_path)
    owner = subscribe(rig, "alice", **kind)
    if not is_owner_there:
        owner.detach()
        rig.client().producer("news.eu").send("for alice")
    if does_restart:
        rig.restart()
    rig.log.clear()
    unsubscribed_as = "reader|global" if kind is GLOBAL else "reader"
    for user in ("bob", "carol", "anonymous"):
        thief = subscribe(rig, user, **kind)
        assert (condition(thief), thief.bodies) == ("amqp:unauthorized-access", [])
        ender = rig.client("rig").consumer(None, name=f"app|{unsubscribed_as}", is_null=True, user=user)
        assert condition(ender) in ("amqp:unauthorized-access", "amqp:not-found")
    assert {event.user for event in rig.log if isinstance(event, LinkRefused)} == {"bob", "carol", "anonymous"}
    assert kept(rig) == ["news.#"]
    if not is_owner_there:
        assert subscribe(rig, "alice", **kind).bodies == ["for alice"]
    elif not does_restart:
        rig.client().producer("news.eu").send("for alice")
        assert (owner.detached, owner.bodies) == (None, ["for alice"])


def test_a_shared_subscription_that_lives_in_memory_is_its_first_users_too(tmp_path: Path) -> None:
    rig = users_rig(tmp_path)
    first = rig.client("rig").consumer("news.#", name="app%7Creader|r1/1/1", user="alice", **PASSING)
    second = rig.client("rig").consumer("news.#", name="app%7Creader|r1/1/2", user="bob", **PASSING)
    assert (condition(first), condition(second)) == (None, "amqp:unauthorized-access")


def test_a_subscription_to_another_filter_does_not_replace_that_of_another_user(tmp_path: Path) -> None:
    rig = users_rig(tmp_path)
    subscribe(rig, "alice").detach()
    other = rig.client("rig").consumer("news.eu", name="app|reader", user="bob", **DURABLE)
    assert condition(other) == "amqp:unauthorized-access"
    assert kept(rig) == ["news.#"]


def test_the_link_of_another_user_is_not_stolen(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "link")
    first = rig.client("rig").consumer("orders", name="app|worker", user="alice")
    second = rig.client("rig").consumer("orders", name="app|worker", user="bob")
    assert (condition(first), condition(second)) == (None, "amqp:unauthorized-access")
    again = rig.client("rig").consumer("orders", name="app|worker", user="alice")
    assert (condition(first), condition(again)) == ("amqp:link:stolen", None)


def test_an_owner_ends_a_subscription_and_the_log_says_who_did(tmp_path: Path) -> None:
    rig = users_rig(tmp_path)
    subscribe(rig, "alice").detach()
    rig.client().producer("news.eu").send("unread")
    rig.client("rig").consumer(None, name="app|reader", is_null=True, user="alice").close()
    assert kept(rig) == []
    (event,) = [event for event in rig.log if isinstance(event, SubscriptionEnded)]
    assert (event.address, event.subscriber, event.owner, event.user, event.message_count) == (
        "news.#",
        "rig|app|reader",
        "alice",
        "alice",
        1,
    )


def test_the_log_says_that_a_subscription_gave_way_to_one_to_another_filter(tmp_path: Path) -> None:
    rig = users_rig(tmp_path)
    subscribe(rig, "alice").detach()
    rig.client("rig").consumer("news.eu", name="app|reader", user="alice", **DURABLE)
    (event,) = [event for event in rig.log if isinstance(event, SubscriptionEnded)]
    assert (event.address, event.new_filter, event.user) == ("news.#", "news.eu", "alice")


def test_an_owner_without_the_right_any_more_is_refused(tmp_path: Path) -> None:
    rig = users_rig(tmp_path)
    subscribe(rig, "alice").detach()
    rig.topology = topology_of({"alice": ["orders"]})
    rig.restart()
    ender = rig.client("rig").consumer(None, name="app|reader", is_null=True, user="alice")
    assert condition(ender) == "amqp:unauthorized-access"
    assert kept(rig) == ["news.#"]


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_a_subscription_from_before_belongs_to_the_first_user_with_the_right(tmp_path: Path, user: str) -> None:
    rig = users_rig(tmp_path)
    subscribe(rig, "alice").detach()
    rig.client().producer("news.eu").send("from before")
    rig.crash(lambda: as_format_4(rig.data))
    ender = rig.client("rig").consumer(None, name="app|reader", is_null=True, user="carol")
    assert condition(ender) == "amqp:unauthorized-access"
    assert subscribe(rig, user).bodies == ["from before"]
    (event,) = [event for event in rig.log if isinstance(event, SubscriptionOwned)]
    assert (event.subscriber, event.owner) == ("rig|app|reader", user)
    rig.restart()
    others = {"alice", "bob", "anonymous"} - {user}
    assert {condition(subscribe(rig, other)) for other in others} == {"amqp:unauthorized-access"}


def test_what_was_anonymous_before_there_were_users_belongs_to_the_first_user_who_takes_it(tmp_path: Path) -> None:
    rig = users_rig(tmp_path, topology_of({}))
    subscribe(rig, "anonymous").detach()
    rig.topology = topology_of({"alice": ["news.#"], "bob": ["news.#"]})
    rig.restart()
    taken = subscribe(rig, "alice")
    assert condition(taken) is None
    assert condition(subscribe(rig, "bob")) == "amqp:unauthorized-access"


def test_an_anonymous_subscription_belongs_to_the_anonymous_user(tmp_path: Path) -> None:
    rig = users_rig(tmp_path)
    subscribe(rig, "anonymous").detach()
    assert condition(subscribe(rig, "alice")) == "amqp:unauthorized-access"
    assert condition(subscribe(rig, "anonymous")) is None


def test_a_subscription_belongs_to_its_owner_where_nobody_may_be_anonymous(tmp_path: Path) -> None:
    rig = users_rig(tmp_path, topology_of({"alice": ["news.#"], "bob": ["news.#"]}))
    subscribe(rig, "alice").detach()
    assert condition(subscribe(rig, "bob")) == "amqp:unauthorized-access"
    assert condition(subscribe(rig, "alice")) is None


def test_the_right_is_that_to_the_address_as_the_mesh_calls_it(tmp_path: Path) -> None:
    rig = users_rig(tmp_path, topology_of({"alice": ["sky"], "bob": ["weather"]}))
    rig.client("rig").consumer("weather", name="app|reader", **DURABLE).detach()
    enders = [rig.client("rig").consumer(None, name="app|reader", is_null=True, user=user) for user in ("bob", "alice")]
    assert [condition(ender) for ender in enders] == ["amqp:unauthorized-access", None]


def test_nodes_and_operators_take_and_end_what_is_anybodys(tmp_path: Path) -> None:
    rig = users_rig(tmp_path)
    subscribe(rig, "alice").detach()
    rig.client().producer("news.eu").send("seen by an operator")
    assert subscribe(rig, None).bodies == ["seen by an operator"]
    assert condition(subscribe(rig, "bob")) == "amqp:unauthorized-access"
    rig.client("rig").consumer(None, name="app|reader", is_null=True).close()
    assert kept(rig) == []
