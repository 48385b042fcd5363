"""Messages that go from one queue of a broker to another: all of them, once, in order, whatever happens meanwhile."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.operating import administration
from broker.operating.step_pace import FIRST_MESSAGES
from broker.queueing.message import QueueEntry
from broker.store.failpoints import StoreFailpoint
from broker.store.store_check import check
from mesh_tests.unit.broker.operating.test_administration import fill, left
from mesh_tests.unit.broker.operator import DURABLE, Operator, subscribe
from mesh_tests.unit.broker.rig import Rig, topology_with
from wire.delivery import ACCEPTED, MODIFIED_FAILED, rejected

THERE = "its-name-here"


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "PART_MESSAGES", 2)


class PowerLoss(Exception):
    pass


def test_what_waits_is_moved_in_order_and_counts_as_never_given(rig: Rig) -> None:
    fill(rig, 4)
    consumer = rig.client().consumer("orders", credit=2)
    consumer.received[1].give(MODIFIED_FAILED)
    assert Operator(rig).do("move", source="orders", target=THERE) == [{"messages": 3, "not_moved": 0}]
    assert rig.queue("orders").queue.departed_total["moved"] == 3
    moved = rig.client("another").consumer(THERE)
    assert moved.bodies == [1, 2, 3]
    assert moved.counts == [0, 0, 0]
    consumer.received[0].give(MODIFIED_FAILED)
    assert left(rig) == [0]


def test_what_was_moved_is_there_after_a_crash_and_a_sound_store_has_it(rig: Rig, small_steps: None) -> None:
    fill(rig, 5)
    fill(rig, 2, THERE)
    parts = Operator(rig).do("move", source="orders", target=THERE, count=3)
    assert [part["messages"] for part in parts] == [2, 1]
    rig.crash()
    assert left(rig) == [3, 4]
    assert sorted(left(rig, THERE)) == [0, 0, 1, 1, 2]


def test_a_large_message_keeps_its_file_when_it_is_moved(rig: Rig) -> None:
    body = bytes(range(256)) * 2000
    rig.client().producer("orders").send(body)
    Operator(rig).do("move", source="orders", target=THERE)
    rig.crash()
    consumer = rig.client().consumer(THERE)
    assert consumer.bodies == [body]
    consumer.received[0].give(ACCEPTED)
    assert list((rig.data / "large").iterdir()) == []


@pytest.mark.parametrize("steps", range(4))
def test_after_a_crash_between_steps_each_message_is_in_one_of_the_queues(
    rig: Rig, small_steps: None, steps: int
) -> None:
    fill(rig, 5)
    operator = Operator(rig)
    rig.is_disk_held = True
    operator.send(json.dumps({"op": "move", "source": "orders", "target": THERE}))
    for _ in range(steps):
        rig.node.on_time(rig.now)
        rig.commit()
    rig.node.on_time(rig.now)
    rig.crash()
    moved = min(5, 2 * steps)
    assert left(rig, THERE) == list(range(moved))
    assert left(rig) == list(range(moved, 5))


@pytest.mark.parametrize(
    ("failpoint", "is_moved"), [(StoreFailpoint.ROWS_WRITTEN, False), (StoreFailpoint.ROWS_COMMITTED, True)]
)
def test_a_crash_within_the_commit_moves_all_of_a_step_or_nothing(
    rig: Rig, failpoint: StoreFailpoint, is_moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(rig, FIRST_MESSAGES)
    operator = Operator(rig)
    rig.is_disk_held = True
    operator.send(json.dumps({"op": "move", "source": "orders", "target": THERE}))
    rig.node.on_time(rig.now)
    batch = rig.node.take_batch()
    assert batch is not None

    def pass_by(passed: StoreFailpoint) -> None:
        if passed is failpoint:
            raise PowerLoss

    monkeypatch.setattr(rig.store, "_passing", pass_by)
    with pytest.raises(PowerLoss):
        rig.store.commit(batch)
    rig.crash()
    counts = {queue.address: queue.queue.available_count for queue in rig.snapshot().queues}
    assert counts == ({"orders": 0, THERE: FIRST_MESSAGES} if is_moved else {"orders": FIRST_MESSAGES})


def test_nobody_is_given_a_moved_message_before_its_move_is_on_disk(rig: Rig) -> None:
    fill(rig, 1)
    fill(rig, 1, THERE)
    consumer = rig.client().consumer(THERE)
    consumer.received[0].give(ACCEPTED)
    operator = Operator(rig)
    rig.is_disk_held = True
    operator.send(json.dumps({"op": "move", "source": "orders", "target": THERE}))
    rig.node.on_time(rig.now)
    rig.run_now()
    assert len(consumer.received) == 1
    rig.is_disk_held = False
    rig.run()
    assert len(consumer.received) == 2
    rig.crash()
    assert rig.client().consumer(THERE).counts == [1]


def test_messages_of_a_subscription_are_moved_and_other_subscriptions_keep_theirs(rig: Rig) -> None:
    one, _ = subscribe(rig, "one"), subscribe(rig, "two")
    fill(rig, 3, "news.sport")
    Operator(rig).do("move", source="news.#", subscriber=one, target="orders")
    rig.crash()
    assert left(rig) == [0, 1, 2]
    assert rig.client("reader").consumer("news.#", name="two", **DURABLE).bodies == [0, 1, 2]


def test_what_the_target_has_already_stays_where_it_is(rig: Rig) -> None:
    one, two = subscribe(rig, "one"), subscribe(rig, "two")
    fill(rig, 3, "news.sport")
    operator = Operator(rig)
    operator.do("move", source="news.#", subscriber=one, target="orders", count=2)
    assert operator.do("move", source="news.#", subscriber=two, target="orders") == [{"messages": 1, "not_moved": 2}]
    rig.crash()
    assert left(rig) == [0, 1, 2]
    assert rig.client("reader").consumer("news.#", name="two", **DURABLE).bodies == [0, 1]


def test_two_moves_of_one_message_to_one_queue_at_once_move_it_once(rig: Rig) -> None:
    readers = [subscribe(rig, "one"), subscribe(rig, "two")]
    fill(rig, 1, "news.sport")
    operator = Operator(rig)
    rig.is_disk_held = True
    for reader in readers:
        operator.send(json.dumps({"op": "move", "source": "news.#", "subscriber": reader, "target": "orders"}))
        rig.node.on_time(rig.now)
    rig.is_disk_held = False
    rig.run()
    assert rig.queue("orders").queue.available_count == 1
    rig.crash()
    assert left(rig) == [0]
    assert rig.client("reader").consumer("news.#", name="two", **DURABLE).bodies == [0]


def test_a_message_that_leaves_the_target_in_the_same_batch_is_not_lost_by_coming_again(rig: Rig) -> None:
    one, two = subscribe(rig, "one"), subscribe(rig, "two")
    fill(rig, 1, "news.sport")
    operator = Operator(rig)
    operator.do("move", source="news.#", subscriber=one, target="orders")
    consumer = rig.client().consumer("orders")
    rig.is_disk_held = True
    consumer.received[0].give(ACCEPTED)
    operator.send(json.dumps({"op": "move", "source": "news.#", "subscriber": two, "target": "orders"}))
    rig.node.on_time(rig.now)
    rig.is_disk_held = False
    rig.run()
    rig.crash()
    assert [*left(rig), *rig.client("reader").consumer("news.#", name="two", **DURABLE).bodies] == [0]


def test_a_target_that_is_deleted_meanwhile_takes_nothing_more(rig: Rig, small_steps: None) -> None:
    producer = rig.client().producer("orders")
    for number in range(5):
        producer.send(bytes([number]) * 100_000)
    operator = Operator(rig)
    rig.is_disk_held = True
    operator.send(json.dumps({"op": "move", "source": "orders", "target": THERE}))
    rig.node.on_time(rig.now)
    operator.send(json.dumps({"op": "delete", "address": THERE, "force": True}))
    for _ in range(2):
        # One step of the deletion, and one of the move, before either is on disk.
        rig.node.on_time(rig.now)
        rig.node.on_time(rig.now)
        rig.commit()
    rig.is_disk_held = False
    rig.run()
    answers = [json.loads(received.message.body) for received in operator.answers.received]
    assert f"queue {THERE!r} was deleted while the operation went on" in [answer.get("error") for answer in answers]
    assert len(list((rig.data / "large").iterdir())) == 1
    rig.crash()
    assert [body[0] for body in left(rig)] == [4]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            {"source": "orders", "target": "orders"},
            "'orders' is both source and target: expected another queue as target",
        ),
        ({"source": "orders", "target": "elsewhere"}, "the topology has no queue 'elsewhere' on this broker"),
        ({"source": "orders", "target": "news.x"}, "'news.x' is a topic, expected a queue: subscribers make"),
        ({"source": "orders", "target": THERE, "count": 0}, "expected 1 or more as the count of messages, got 0"),
        ({"source": THERE, "target": "orders"}, f"there is no queue {THERE!r} yet"),
        ({"source": "news.#", "target": "orders"}, "no durable subscription to 'news.#' on this broker"),
    ],
)
def test_a_move_that_makes_no_sense_is_refused(rig: Rig, arguments: dict[str, Any], reason: str) -> None:
    fill(rig, 1)
    assert Operator(rig).refusal("move", **arguments).startswith(reason)
    assert left(rig) == [0]
    assert [queue.address for queue in rig.snapshot().queues if queue.is_durable] == ["orders"]


def test_what_is_in_memory_only_is_not_moved(rig: Rig) -> None:
    fill(rig, 1)
    operator = Operator(rig)
    for ends in ((operator.reply_to, "orders"), ("orders", operator.reply_to)):
        assert "is in memory only" in operator.refusal("move", source=ends[0], target=ends[1])


# Dead letters


def test_dead_letters_whose_origin_nobody_knows_go_where_the_operator_says(rig: Rig) -> None:
    fill(rig, 2, THERE)
    operator = Operator(rig)
    reason = operator.refusal("redrive", address=THERE)
    assert reason == (
        f"no message left in {THERE!r} can go back to a queue of origin on this broker: name the queue that they go to"
    )
    assert operator.do("redrive", address=THERE, to="orders") == [{"messages": 2, "not_moved": 0}]
    assert left(rig) == [0, 1]


def test_dead_letters_go_back_to_where_they_come_from(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    origins = {1: "orders", 2: "elsewhere", 3: None, 4: "orders"}

    def origin_of(entry: QueueEntry) -> str | None:
        return origins[entry.message_id]

    monkeypatch.setattr(administration, "origin_of", origin_of)
    fill(rig, 4, THERE)
    assert Operator(rig).do("redrive", address=THERE) == [{"messages": 2, "not_moved": 2, "without_queue": 2}]
    assert left(rig) == [0, 3]
    assert left(rig, THERE) == [1, 2]


@pytest.mark.usefixtures("small_steps")
def test_what_stays_after_a_first_step_is_no_error(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "origin_of", lambda entry: "orders" if entry.message_id <= 2 else None)
    fill(rig, 4, THERE)
    assert Operator(rig).do("redrive", address=THERE) == [
        {"messages": 2, "not_moved": 0},
        {"messages": 0, "not_moved": 2, "without_queue": 2},
    ]
    assert left(rig, THERE) == [2, 3]


DEAD = {"orders": {"type": "queue", "dead_letter": "dead"}, "dead": {"type": "queue"}, "parked": {"type": "queue"}}


@pytest.fixture
def with_dead_letters(tmp_path: Path) -> Rig:
    """Three messages that a consumer of orders rejected."""
    rig = Rig(tmp_path, topology_with(DEAD))
    fill(rig, 3)
    client = rig.client()
    consumer = client.consumer("orders")
    for received in consumer.received:
        received.give(rejected("amqp:decode-error", "no"))
    client.vanish()
    return rig


def test_dead_letters_that_were_parked_say_why_still_and_go_back_to_where_they_come_from(
    with_dead_letters: Rig,
) -> None:
    rig, operator = with_dead_letters, Operator(with_dead_letters)
    assert operator.do("move", source="dead", target="parked") == [{"messages": 3, "not_moved": 0}]
    rig.restart()
    operator = Operator(rig)
    (shown,) = operator.do("show", address="parked")[0]["queues"]
    assert [(each["reason"], each["origin"]) for each in shown["messages"]] == [("rejected", "orders")] * 3
    assert operator.do("redrive", address="parked") == [{"messages": 3, "not_moved": 0}]
    assert left(rig) == [0, 1, 2]


def test_what_was_moved_is_no_dead_letter(with_dead_letters: Rig) -> None:
    operator = Operator(with_dead_letters)
    operator.do("redrive", address="dead")
    assert "can go back to a queue of origin" in operator.refusal("redrive", address="orders")
    assert left(with_dead_letters) == [0, 1, 2]


def test_one_that_was_sent_there_keeps_no_dead_letter_from_going_back(with_dead_letters: Rig) -> None:
    operator = Operator(with_dead_letters)
    operator.do("move", source="dead", target="parked")
    fill(with_dead_letters, 1, "dead")
    operator.do("move", source="parked", target="dead")
    assert operator.do("redrive", address="dead") == [{"messages": 3, "not_moved": 1, "without_queue": 1}]


@pytest.mark.parametrize("when_full", ["block", "reject", "drop-oldest", "dead-letter"])
@pytest.mark.parametrize("limit", [{"max_messages": 4}, {"max_bytes": 60}])
def test_a_full_queue_takes_no_more_whatever_it_does_when_it_is_full(
    tmp_path: Path, when_full: str, limit: dict[str, int], small_steps: None
) -> None:
    small = {"type": "queue", "when_full": when_full, **limit, "dead_letter": "dead"}
    rig = Rig(tmp_path, topology_with({**DEAD, "small": small}))
    fill(rig, 9)
    *_, last = Operator(rig).do("move", source="orders", target="small")
    moved = rig.queue("small").queue.available_count
    assert 2 <= moved <= 6
    assert last == {"messages": last["messages"], "not_moved": 9 - moved, "for_full_queue": 9 - moved}
    assert left(rig) == list(range(moved, 9))


def test_dead_letters_for_a_full_queue_stay(tmp_path: Path) -> None:
    small = {"type": "queue", "when_full": "reject", "max_messages": 1, "dead_letter": "dead"}
    rig = Rig(tmp_path, topology_with({**DEAD, "small": small}))
    client = rig.client()
    consumer = client.consumer("small")
    producer = client.producer("small")
    for number in range(3):
        producer.send(number)
        consumer.received[-1].give(rejected("amqp:decode-error", "no"))
    consumer.close()
    rig.run()
    assert Operator(rig).do("redrive", address="dead") == [{"messages": 1, "not_moved": 2, "for_full_queue": 2}]


def test_the_files_of_a_store_say_of_a_moved_message_what_they_say_of_any_other(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "data")
    fill(rig, 600)
    Operator(rig).do("move", source="orders", target=THERE, count=400)
    rig.store.close()
    report = check(rig.data)
    assert report.is_sound
    assert {totals.row.address: totals.messages for totals in report.queues.values()} == {"orders": 200, THERE: 400}
