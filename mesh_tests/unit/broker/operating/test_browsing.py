"""An operator browses a queue: pages of messages that stay where they are."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.operating import browsing
from mesh_tests.unit.broker.operator import DURABLE, Operator, subscribe
from mesh_tests.unit.broker.rig import Rig, topology_with
from wire.delivery import ACCEPTED, MODIFIED_FAILED, rejected
from wire.message import Message, encode


def page(operator: Operator, address: str = "orders", **arguments: Any) -> dict[str, Any]:
    (found,) = operator.do("browse", address=address, **arguments)
    return found


def browse(operator: Operator, address: str = "orders", **arguments: Any) -> list[dict[str, Any]]:
    """All pages."""
    messages, after = [], None
    while True:
        found = page(operator, address, after=after, **arguments)
        messages += found["messages"]
        if found["next"] is None:
            return messages
        assert after is None or found["next"] > after
        after = found["next"]


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["body"]["text"] for message in messages]


def test_a_page_shows_fields_properties_and_bodies(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send(
        "hello", message_id="m1", subject="greeting", durable=True, ttl_s=100, properties={"colour": "red", "n": 5}
    )
    found = page(Operator(rig), bodies=True)
    (message,) = found["messages"]
    expected = {
        "number": 1,
        "priority": 4,
        "durable": True,
        "attempts": 0,
        "message_id": "m1",
        "subject": "greeting",
        "correlation_id": None,
        "properties": {"colour": "red", "n": 5},
        "annotations": {},
        "is_locked": False,
        "why": None,
        "left_out": [],
        "body": {"kind": "text", "section": "value", "text": "hello", "bytes": 5, "is_cut": False, "why": None},
    }
    assert {name: message[name] for name in expected} == expected
    assert message["expires_at"].startswith("2023-11-14T22:31:40")
    assert (found["next"], found["last"], found["scanned"]) == (None, 1, 1)


def test_a_page_without_bodies_has_none(rig: Rig) -> None:
    rig.client().producer("orders").send("hello")
    (message,) = page(Operator(rig))["messages"]
    assert "body" not in message


def test_messages_come_page_by_page_in_order_of_arrival_and_stay(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    for number in range(7):
        producer.send(str(number), priority=number)
    operator = Operator(rig)
    first = page(operator, limit=3, bodies=True)
    assert texts(first["messages"]) == ["0", "1", "2"]
    assert first["next"] == first["messages"][-1]["number"]
    assert first["last"] == 7
    assert texts(browse(operator, limit=2, bodies=True)) == [str(number) for number in range(7)]
    assert len(rig.client().consumer("orders").received) == 7


def test_messages_with_a_consumer_are_shown_as_locked_and_expired_ones_not(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send("short", ttl_s=10)
    for body in "abc":
        producer.send(body)
    consumer = client.consumer("orders", credit=3)
    consumer.received[2].give(MODIFIED_FAILED)
    rig.now += 11  # nothing was told of the time yet
    shown = page(Operator(rig), bodies=True)["messages"]
    assert [(message["body"]["text"], message["is_locked"], message["attempts"]) for message in shown] == [
        ("a", True, 0),
        ("b", False, 1),
        ("c", False, 0),
    ]


def test_a_page_ends_before_an_answer_is_too_long(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    for number in range(8):
        producer.send(str(number) + "\x00" * 60_000)
    operator = Operator(rig)
    found = page(operator, bodies=True, body_bytes=65536)
    assert 1 <= len(found["messages"]) < 8
    assert found["next"] == found["messages"][-1]["number"]
    shown = browse(operator, bodies=True, body_bytes=65536)
    assert [text[0] for text in texts(shown)] == list("01234567")


def test_bodies_are_cut_and_large_ones_are_read_in_part(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    producer.send(b"x" * 300_000, properties={"kind": "large"})
    (message,) = page(Operator(rig), bodies=True, body_bytes=10)["messages"]
    assert message["properties"] == {"kind": "large"}
    assert message["body"]["text"] == "x" * 10
    assert (message["body"]["bytes"], message["body"]["is_cut"]) == (300_000, True)


def test_bodies_are_read_from_the_disk_after_a_restart_and_numbers_go_on(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    for number in range(5):
        producer.send(f"body {number}")
    before = browse(Operator(rig), bodies=True)
    rig.crash()
    after = browse(Operator(rig), bodies=True, limit=2)
    assert texts(after) == [f"body {number}" for number in range(5)]
    assert min(message["number"] for message in after) > max(message["number"] for message in before)
    assert all(message["stored_at"] is None for message in after)
    assert len(rig.client().consumer("orders").received) == 5


def test_a_message_that_is_consumed_while_its_body_is_read_is_no_error(rig: Rig) -> None:
    rig.client().producer("orders").send("a")
    rig.crash()
    operator = Operator(rig)
    operator._requests.send(json.dumps({"op": "browse", "address": "orders"}), runs=False, reply_to=operator.reply_to)
    client = rig.client()
    received = client.consumer("orders").received
    for each in received:
        each.give(ACCEPTED)
    rig.run()
    answers = [json.loads(answer.message.body) for answer in operator.answers.received]
    assert answers[0]["ok"]
    assert browse(operator) == []
    assert rig.log == []


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("GREEN", ["a"]),
        ("colour", ["a", "b"]),
        ("42", ["b"]),
        ("subject-c", ["c"]),
        ("nothing of the kind", []),
        ("secret", []),
    ],
)
def test_a_search_finds_fields_and_properties_in_any_case(rig: Rig, search: str, found: list[str]) -> None:
    producer = rig.client().producer("orders")
    producer.send("secret", message_id="a", properties={"Colour": "Green"})
    producer.send("secret", message_id="b", properties={"colour": "red", "n": 42})
    producer.send("secret", message_id="c", subject="Subject-C")
    assert [message["message_id"] for message in browse(Operator(rig), search=search)] == found


def test_a_search_with_bodies_finds_bodies(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    producer.send("The Secret", message_id="a")
    producer.send(b"no", message_id="b")
    assert [message["message_id"] for message in browse(Operator(rig), search="secret", bodies=True)] == ["a"]


def test_a_long_search_stops_and_goes_on(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "SCANNED_MESSAGES", 5)
    monkeypatch.setattr(browsing, "LOOK_MESSAGES", 2)
    producer = rig.client().producer("orders")
    for number in range(12):
        producer.send(subject="hit" if number == 11 else "miss")
    operator = Operator(rig)
    first = page(operator, search="hit")
    assert (first["messages"], first["scanned"], first["next"]) == ([], 5, 5)
    assert [message["subject"] for message in browse(operator, search="hit")] == ["hit"]


def test_a_dead_letter_says_where_it_comes_from(tmp_path: Any) -> None:
    rig = Rig(tmp_path, topology_with({"orders": {"type": "queue", "dead_letter": "dead"}, "dead": "queue"}))
    client = rig.client()
    client.producer("orders").send("a", ttl_s=1000)
    client.consumer("orders").received[0].give(rejected("x", "y"))
    (message,) = page(Operator(rig), "dead")["messages"]
    assert (message["reason"], message["origin"], message["expires_at"]) == ("rejected", "orders", None)
    assert message["stored_at"].startswith("2023-11-14T22:30:00")


def test_each_subscription_shows_its_messages(rig: Rig) -> None:
    one, two = subscribe(rig, "one"), subscribe(rig, "two")
    rig.client().producer("news.sport").send("goal")
    reader = rig.client("reader").consumer("news.#", name="two", **DURABLE)
    reader.received[0].give(ACCEPTED)
    operator = Operator(rig)
    assert texts(page(operator, "news.#", subscriber=one, bodies=True)["messages"]) == ["goal"]
    assert page(operator, "news.#", subscriber=two)["messages"] == []


HOSTILE = {
    "no message": b"\xff\xfe",
    "not UTF-8": b"\x00\x53\x77\xa1\x02\xff\xfe",
    "nested": b"\x00\x53\x77" + b"\xc0\x02\x01" * 50 + b"\x40",
    "huge map": encode(Message("x", properties={f"k{number}": number for number in range(3000)})),
    "64 KiB key": encode(Message("x", properties={"k" * 60_000: 1})),
    "markup": encode(Message("<script>\u202e\x00", subject="<b>\u202e\x00", properties={"<i>": "\x00"})),
    "a cut section": b"\x00\x53\x74\xd1\xff\xff\xff\xff",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_message_never_breaks_a_page(rig: Rig, name: str) -> None:
    producer = rig.client().producer("orders")
    producer.send("before")
    producer.send_raw(HOSTILE[name])
    producer.send("after")
    shown = browse(Operator(rig), bodies=True)
    bodies = [message["body"].get("text") for message in shown]
    assert (bodies[0], bodies[-1]) == ("before", "after")
    for message in shown[1:-1]:
        readable = name in ("markup", "huge map", "64 KiB key")
        assert readable or message["why"] or message["body"]["why"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"limit": 0}, "expected 1 to 100 messages to a page, got 0"),
        ({"limit": 101}, "got 101"),
        ({"body_bytes": 65537}, "expected 0 to 65,536 bytes of a body to show"),
        ({"after": -1}, "as the number of a message, got -1"),
        ({"after": 2**70}, "as the number of a message"),
        ({"search": ""}, "expected 1 to 256 characters to search for, got 0"),
        ({"search": "x" * 257}, "got 257"),
        ({"address": "nowhere"}, "no queue or subscription 'nowhere'"),
        ({"subscriber": "nobody"}, "no subscription of 'nobody'"),
    ],
)
def test_a_browse_that_makes_no_sense_is_refused(rig: Rig, arguments: dict[str, Any], words: str) -> None:
    rig.client().producer("orders").send()
    assert words in Operator(rig).refusal("browse", **{"address": "orders", **arguments})


def test_a_queue_deleted_while_it_is_browsed_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "LOOK_MESSAGES", 1)
    client = rig.client()
    producer = client.producer("orders")
    for _ in range(5):
        producer.send()
    client.consumer("orders")
    operator = Operator(rig)
    operator._requests.send(
        json.dumps({"op": "browse", "address": "orders", "search": "x"}), runs=False, reply_to=operator.reply_to
    )
    operator._requests.send(
        json.dumps({"op": "delete", "address": "orders", "force": True}), runs=False, reply_to=operator.reply_to
    )
    rig.run()
    answers = [json.loads(answer.message.body) for answer in operator.answers.received]
    assert answers[-1] == {
        "ok": False,
        "error": "queue 'orders' was deleted while the operation went on",
        "more": False,
    }


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_pages_of_any_size_show_all_messages_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rig = Rig(tmp_path_factory.mktemp("rig"))
    client = rig.client()
    producer = client.producer("orders")
    priorities = data.draw(st.lists(st.integers(0, 9), max_size=20))
    for number, priority in enumerate(priorities):
        producer.send(str(number), priority=priority)
    if data.draw(st.booleans()):
        rig.crash()
        client = rig.client()
    consumer = client.consumer("orders", credit=data.draw(st.integers(0, 5)))
    left = {str(number): False for number in range(len(priorities))}
    for received in consumer.received:
        if data.draw(st.booleans()):
            received.give(ACCEPTED)
        else:
            left[received.message.body] = True
    for body in [received.message.body for received in consumer.received if received.is_given]:
        del left[body]
    shown = browse(Operator(rig), limit=data.draw(st.integers(1, 7)), bodies=True)
    assert [message["body"]["text"] for message in shown] == list(left)
    assert {message["body"]["text"]: message["is_locked"] for message in shown if message["is_locked"]} == {
        body: True for body, is_locked in left.items() if is_locked and body in left
    }
    rig.store.close()


def test_numbers_go_on_above_the_noted_one_after_a_clock_that_was_set_far_back(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    for number in range(3):
        producer.send(f"body {number}")
    rig.restart()
    before = page(Operator(rig))["messages"][-1]["number"]
    rig.least_number = before + 1_000
    rig.wall_offset_s -= 365 * 86_400.0
    rig.restart()
    numbers = [each["number"] for each in page(Operator(rig))["messages"]]
    assert numbers == [before + 1_000, before + 1_001, before + 1_002]
