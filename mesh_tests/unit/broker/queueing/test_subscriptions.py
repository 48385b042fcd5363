"""Topics at a broker node: who gets a copy, what outlives a link, and who may take a link over."""

from typing import Any

from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.rig import Consumer, Rig
from wire.delivery import ACCEPTED
from wire.terminus import Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}


def test_every_subscription_gets_its_copy_and_none_from_before_it_was(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("news.sport")
    assert producer.outcomes[producer.send("nobody hears")] == ACCEPTED
    all_news = client.consumer("news.#", name="all")
    sport = client.consumer("news.sport", name="sport")
    other = client.consumer("news.*.football", name="football")
    producer.send("goal")
    assert (all_news.bodies, sport.bodies, other.bodies) == (["goal"], ["goal"], [])


def test_a_durable_subscription_collects_while_its_subscriber_is_away(rig: Rig) -> None:
    client = rig.client()
    consumer = client.consumer("news.#", name="reader", **DURABLE)
    consumer.detach()
    assert consumer.link.is_gone
    client.producer("news.sport").send("while you were out")
    rig.crash()
    assert rig.client().consumer("news.#", name="reader", **DURABLE).bodies == ["while you were out"]


def test_a_durable_subscription_is_on_disk_before_it_is_confirmed(rig: Rig) -> None:
    rig.is_disk_held = True
    consumer = rig.client().consumer("news.#", name="reader", **DURABLE)
    assert not consumer.is_established
    rig.is_disk_held = False
    rig.run()
    assert consumer.is_established


def test_a_consumer_may_grant_credit_before_its_subscription_is_on_disk(rig: Rig) -> None:
    client = rig.client()
    rig.is_disk_held = True
    consumer = client.consumer("news.#", credit=0, **DURABLE)
    consumer.link.grant(10)
    rig.run()
    assert not consumer.is_established
    rig.is_disk_held = False
    rig.run()
    client.producer("news.today").send("one")
    assert consumer.bodies == ["one"]


def test_two_durable_subscriptions_share_one_stored_body(rig: Rig) -> None:
    client = rig.client()
    for name in ("one", "two"):
        client.consumer("news.#", name=name, **DURABLE).detach()
    client.producer("news.sport").send("shared")
    inventory = held_by(rig.store.load())
    assert (len(inventory.messages), len(inventory.entries)) == (1, 2)
    client.consumer("news.#", name="one", **DURABLE).received[0].give(ACCEPTED)
    assert len(held_by(rig.store.load()).messages) == 1
    client.consumer("news.#", name="two", **DURABLE).received[0].give(ACCEPTED)
    assert held_by(rig.store.load()).messages == []


def test_closing_a_durable_subscription_deletes_it_and_then_answers(rig: Rig) -> None:
    client = rig.client()
    consumer = client.consumer("news.#", name="reader", **DURABLE)
    client.producer("news.sport").send("unread")
    rig.is_disk_held = True
    consumer.close()
    assert not consumer.link.is_gone
    rig.is_disk_held = False
    rig.run()
    assert held_by(rig.store.load()).queues == []
    assert held_by(rig.store.load()).messages == []


def test_a_durable_subscription_outlives_the_session_of_its_subscriber(rig: Rig) -> None:
    client = rig.client()
    client.consumer("news.#", name="reader", **DURABLE)
    client.session.end()
    rig.run()
    assert rig.queue("news.#").queue.consumer_count == 0


def test_a_subscription_is_ended_by_looking_it_up_and_closing_as_jms_does(rig: Rig) -> None:
    client = rig.client()
    client.consumer("news.#", name="reader", **DURABLE).detach()
    looked_up = client.consumer(None, name="reader", credit=0, is_null=True)
    assert looked_up.link.remote_source.address == "news.#"
    looked_up.close()
    assert held_by(rig.store.load()).queues == []
    again = client.consumer(None, name="reader", credit=0, is_null=True)
    assert again.detached is not None
    assert again.detached[1] is not None
    assert again.detached[1].condition == "amqp:not-found"


def test_a_subscriber_that_changes_its_filter_begins_anew(rig: Rig) -> None:
    client = rig.client()
    client.consumer("news.sport", name="reader", **DURABLE).detach()
    client.producer("news.sport").send("old interest")
    assert client.consumer("news.art", name="reader", **DURABLE).bodies == []
    assert [queue.address for queue in rig.snapshot().queues] == ["news.art"]


def test_a_second_attach_of_the_same_link_steals_it(rig: Rig) -> None:
    old = rig.client("mesh").consumer("news.#", name="app|reader", **DURABLE)
    rig.client("other").producer("news.sport").send("held")
    new = rig.client("mesh").consumer("news.#", name="app|reader", **DURABLE)
    assert old.detached is not None
    assert old.detached[1] is not None
    assert old.detached[1].condition == "amqp:link:stolen"
    assert new.counts == [1]


def test_a_copy_for_a_subscription_that_ends_with_its_link_is_not_written(rig: Rig) -> None:
    client = rig.client()
    subscriber = client.consumer("news.sport", name="here only")
    client.producer("news.sport").send("goal", durable=True)
    assert subscriber.bodies == ["goal"]
    assert held_by(rig.store.load()).messages == []


def test_a_large_copy_for_a_subscription_that_ends_with_its_link_goes_with_it(rig: Rig) -> None:
    client = rig.client()
    subscriber = client.consumer("news.sport", name="here only")
    client.producer("news.sport").send(bytes(200_000))
    assert subscriber.bodies == [bytes(200_000)]
    subscriber.received[0].give(ACCEPTED)
    assert list((rig.data / "large").iterdir()) == []


def test_a_message_for_durable_and_other_subscriptions_is_kept_for_the_durable(rig: Rig) -> None:
    client = rig.client()
    client.consumer("news.#", name="reader", **DURABLE).detach()
    passing = client.consumer("news.#", name="passing")
    client.producer("news.sport").send("goal")
    assert passing.bodies == ["goal"]
    passing.received[0].give(ACCEPTED)
    rig.crash()
    assert rig.client().consumer("news.#", name="reader", **DURABLE).bodies == ["goal"]


def _condition(consumer: Consumer) -> str | None:
    """What it was detached for, with its terminus kept."""
    assert consumer.detached is not None
    closed, error = consumer.detached
    assert not closed
    return error.condition if error is not None else None


def test_a_thief_gets_everything_in_order_and_what_the_old_link_was_given_counted(rig: Rig) -> None:
    old = rig.client("mesh").consumer("news.#", 2, name="app|reader", **DURABLE)
    producer = rig.client("other").producer("news.sport")
    for body in "abcd":
        producer.send(body)
    assert old.bodies == ["a", "b"]
    new = rig.client("mesh").consumer("news.#", name="app|reader", **DURABLE)
    assert _condition(old) == "amqp:link:stolen"
    assert new.bodies == ["a", "b", "c", "d"]
    assert new.counts == [1, 1, 0, 0]


def test_a_link_is_stolen_by_another_session_of_its_own_connection(rig: Rig) -> None:
    client = rig.client("mesh")
    old = client.consumer("news.#", name="app|reader", **DURABLE)
    rig.client("other").producer("news.sport").send("held")
    client.session = client.near.begin()
    new = client.consumer("news.#", name="app|reader", **DURABLE)
    assert _condition(old) == "amqp:link:stolen"
    assert new.counts == [1]


def test_whose_link_was_stolen_ends_no_subscription_by_closing_late(rig: Rig) -> None:
    client = rig.client("mesh")
    old = client.consumer("news.#", name="app|reader", **DURABLE)
    new = rig.client("mesh").consumer("news.#", name="app|reader", **DURABLE)
    assert _condition(old) == "amqp:link:stolen"
    client.vanish()
    rig.client("other").producer("news.sport").send("still there")
    assert new.bodies == ["still there"]


def test_who_steals_a_subscription_that_is_not_on_disk_yet_is_not_told_of_it_either(rig: Rig) -> None:
    rig.is_disk_held = True
    rig.client("mesh").consumer("news.#", name="app|reader", **DURABLE)
    thief = rig.client("mesh").consumer("news.#", name="app|reader", **DURABLE)
    assert not thief.is_established
    rig.is_disk_held = False
    rig.run()
    assert thief.is_established


def test_a_subscription_can_be_ended_though_an_old_link_of_it_still_seems_alive(rig: Rig) -> None:
    old = rig.client("mesh").consumer("news.#", name="app|reader", **DURABLE)
    rig.client("other").producer("news.sport").send("held")
    looked_up = rig.client("mesh").consumer(None, name="app|reader", credit=0, is_null=True)
    assert _condition(old) == "amqp:link:stolen"
    looked_up.close()
    assert held_by(rig.store.load()).queues == []
    assert held_by(rig.store.load()).messages == []


def test_a_subscription_that_is_looked_up_and_left_is_kept(rig: Rig) -> None:
    client = rig.client("mesh")
    client.consumer("news.#", name="app|reader", **DURABLE).detach()
    client.consumer(None, name="app|reader", credit=0, is_null=True).detach()
    client.producer("news.sport").send("kept")
    assert client.consumer("news.#", name="app|reader", **DURABLE).bodies == ["kept"]
