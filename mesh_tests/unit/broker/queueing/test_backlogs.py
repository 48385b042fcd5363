"""What becomes of thousands of messages that wait, most of them packed (`broker.queueing.packed`)?"""

import gc
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from broker.queueing.body_cache import BodyCache
from broker.queueing.message import QueueEntry
from broker.queueing.queue import FRONT_ENTRIES
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.operator import DURABLE, subscribe
from mesh_tests.unit.broker.rig import Client, Consumer, Rig, topology_with
from wire.delivery import ACCEPTED, rejected
from wire.terminus import DistributionMode

MANY = FRONT_ENTRIES + 4000
AT_ONCE = 100
TTL_S = 50.0


@pytest.fixture
def short_of_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rig:
    """Bodies leave the memory soon."""
    monkeypatch.setattr("broker.node.BodyCache", partial(BodyCache, 100_000))
    return Rig(tmp_path)


def fill(
    client: Client, count: int, fields_of: Callable[[int], dict[str, Any]] = lambda number: {}, address: str = "orders"
) -> None:
    """Messages whose bodies are their numbers, unless ``fields_of`` says something else of it."""
    producer = client.producer(address)
    for number in range(count):
        producer.send(**{"body": number, **fields_of(number)}, runs=False)
        if producer.link.credit < AT_ONCE:
            client.rig.run()
    client.rig.run()
    producer.link.close()
    client.rig.run()


def take(consumer: Consumer, count: int) -> list[Any]:
    """The bodies of the next so many."""
    taken: list[Any] = []
    while len(taken) < count:
        consumer.link.set_credit(min(AT_ONCE, count - len(taken)))
        consumer.rig.run()
        received, consumer.received = consumer.received, []
        assert received, f"{len(taken)} of {count} came"
        for each in received:
            each.give(ACCEPTED, runs=False)
        consumer.rig.run()
        taken += [each.message.body for each in received]
    return taken


def entry_count() -> int:
    gc.collect()
    return sum(type(each) is QueueEntry for each in gc.get_objects())


def test_what_waits_far_behind_takes_little_memory_and_comes_in_order(short_of_memory: Rig) -> None:
    client = short_of_memory.client()
    before = entry_count()
    fill(client, MANY)
    assert entry_count() - before < MANY - 3000
    assert take(client.consumer("orders", credit=0), MANY) == list(range(MANY))
    assert held_by(short_of_memory.store.load()).entries == []


def test_what_was_packed_expires(short_of_memory: Rig) -> None:
    client = short_of_memory.client()
    fill(client, MANY, lambda number: {"ttl_s": TTL_S if number % 3 else 0})
    short_of_memory.advance(TTL_S + 1)
    short_of_memory.advance(1.0)
    left = [number for number in range(MANY) if not number % 3]
    assert short_of_memory.queue("orders").queue.available_count == len(left)
    assert take(client.consumer("orders", credit=0), len(left)) == left


def test_when_thousands_expire_at_once_others_have_their_turn(rig: Rig) -> None:
    count = 15_000
    fill(rig.client(), count, lambda number: {"ttl_s": TTL_S})
    rig.now += TTL_S + 1
    rig.node.on_time(rig.now)
    assert count - 12_000 < rig.queue("orders").queue.available_count < count - 9_000
    rig.run()
    assert rig.queue("orders").queue.available_count == 0
    assert held_by(rig.store.load()).entries == []


def test_after_a_crash_the_most_urgent_come_first_and_only_what_was_given_is_counted(rig: Rig) -> None:
    client = rig.client()
    fill(client, 3000, lambda number: {"priority": number % 4})
    in_order = sorted(range(3000), key=lambda number: -(number % 4))
    assert take(client.consumer("orders", credit=0), 200) == in_order[:200]
    rig.crash()
    consumer = rig.client().consumer("orders", credit=2800)
    assert consumer.bodies == in_order[200:]
    seen = {priority: sum(each.message.delivery_count for each in group) for priority, group in by_priority(consumer)}
    assert seen[3] > 0
    assert seen[0] == 0


def by_priority(consumer: Consumer) -> Any:
    return groupby(consumer.received, key=lambda each: each.message.priority)


def test_after_a_crash_large_ones_are_where_they_were_and_deadlines_hold(rig: Rig) -> None:
    client = rig.client()
    large = "x" * 100_000
    fill(client, 999, lambda number: {700: {"body": large}, 5: {"ttl_s": TTL_S}}.get(number, {}))
    rig.crash()
    rig.advance(TTL_S + 1)
    bodies = take(rig.client().consumer("orders", credit=0), 998)
    assert bodies == [large if number == 700 else number for number in range(999) if number != 5]


def test_dead_letters_do_not_keep_others_from_being_packed(tmp_path: Path) -> None:
    rig = Rig(tmp_path, topology_with({"orders": {"type": "queue", "dead_letter": "dead"}, "dead": {"type": "queue"}}))
    before, client = entry_count(), rig.client()
    fill(client, 1500)
    consumer = client.consumer("orders", credit=100)
    for received in consumer.received[::10]:
        received.give(rejected("amqp:decode-error", "not wanted"))
    rig.restart()
    assert entry_count() - before <= 10
    assert [rig.queue(name).queue.available_count for name in ("orders", "dead")] == [1490, 10]
    client = rig.client()
    dead = take(client.consumer("dead", credit=0, name="dead"), 10)
    assert dead == list(range(0, 100, 10))
    assert sorted([*dead, *take(client.consumer("orders", credit=0), 1490)]) == list(range(1500))


def test_a_browser_sees_what_is_packed_and_takes_nothing_of_it(rig: Rig) -> None:
    fill(rig.client(), 1500)
    rig.crash()
    client = rig.client()
    before = entry_count()
    browser = client.consumer("orders", credit=0, name="browser", distribution_mode=DistributionMode.COPY)
    assert take(browser, 1500) == list(range(1500))
    assert entry_count() - before < 500, "what it has passed is packed again"
    assert take(client.consumer("orders", credit=0), 1500) == list(range(1500))


def test_what_is_taken_while_a_browser_looks_is_not_shown_any_more(rig: Rig) -> None:
    fill(rig.client(), 1500)
    rig.crash()
    client = rig.client()
    browser = client.consumer("orders", credit=300, name="browser", distribution_mode=DistributionMode.COPY)
    take(client.consumer("orders", credit=0), 1000)
    browser.link.grant(1500)
    rig.run()
    assert browser.bodies == [*range(300), *range(1000, 1500)]


def test_a_backlog_of_many_subscriptions_takes_little_memory_and_each_gets_all(short_of_memory: Rig) -> None:
    rig, count = short_of_memory, 10
    for number in range(count):
        subscribe(rig, f"sub-{number}")
    before = entry_count()
    fill(rig.client(), MANY, address="news.today")
    assert entry_count() - before < count * (MANY - 3000)
    for name in ("sub-0", "sub-1"):
        consumer = rig.client("reader").consumer("news.#", credit=0, name=name, **DURABLE)
        assert take(consumer, MANY) == list(range(MANY))
        rig.restart()
    assert take(rig.client("reader").consumer("news.#", credit=0, name="sub-9", **DURABLE), MANY) == list(range(MANY))


def test_what_is_shared_and_what_is_not_is_packed_together_after_a_restart(rig: Rig) -> None:
    subscribe(rig, "all")
    subscribe(rig, "some", "news.sport")
    before, client = entry_count(), rig.client()
    for number in range(1000):
        producer = client.producer("news.sport" if number % 2 else "news.today", name=str(number))
        producer.send(number)
        producer.link.close()
    rig.restart()
    assert entry_count() - before < 600
    for name, filter_, expected in (("all", "news.#", range(1000)), ("some", "news.sport", range(1, 1000, 2))):
        consumer = rig.client("reader").consumer(filter_, credit=0, name=name, **DURABLE)
        assert take(consumer, len(expected)) == list(expected)


def begin_to_delete(rig: Rig) -> None:
    """A subscription with a backlog ends, and the disk has not said yet that it has that."""
    subscribe(rig, "mine")
    fill(rig.client(), 5000, address="news.today")
    rig.is_disk_held = True
    rig.client("reader").consumer("news.#", credit=0, name="mine", **DURABLE).close()
    rig.commit()


def assert_nothing_is_left(rig: Rig) -> None:
    held = held_by(rig.store.load())
    assert (held.messages, [row for row in held.queues if row.address == "news.#"]) == ([], [])


def test_a_backlog_that_is_deleted_goes_step_by_step(rig: Rig) -> None:
    begin_to_delete(rig)
    rig.run_now()
    assert rig.node.next_deadline() == rig.now, "there is more to forget"
    rig.is_disk_held = False
    rig.run()
    assert_nothing_is_left(rig)


def test_a_crash_while_a_backlog_is_deleted_leaves_nothing_of_it(rig: Rig) -> None:
    begin_to_delete(rig)
    rig.crash()
    assert_nothing_is_left(rig)
