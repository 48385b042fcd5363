"""Subscriptions with filter sets at a broker: attaches, changes over the control link, and what the receivers get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import proton
import pytest

from addressing import filter_set as limits
from mesh_tests.unit.broker.rig import Client, Consumer, Producer, Rig, topology_with
from wire.codec.values import Array, Described, Symbol
from wire.delivery import ACCEPTED, OutcomeCode
from wire.filter_change import CHANGE_BYTES
from wire.filter_set import CONTROL, FILTER_SET
from wire.message import Message, encode
from wire.terminus import Durability, Expiry

TOPICS = topology_with({"plant/#": "topic", "news.#": "topic", "one": "topic", "jobs": "queue"})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "data", TOPICS)


def set_of(kind: str, *filters: str) -> dict[str, Any]:
    return {"mine": Described(Symbol(FILTER_SET), [Symbol(kind), list(filters)])}


def subscribe(client: Client, *filters: str, kind: str = "mqtt", address: str = "plant/#", **fields: Any) -> Consumer:
    return client.consumer(address, name="mine", filter=set_of(kind, *filters), **fields)


def control_of(client: Client, address: str = "plant/#", **fields: Any) -> Producer:
    return client.producer(address, name="mine", capabilities=(CONTROL,), **fields)


def publish(rig: Rig, *addresses: str) -> None:
    sender = rig.client("publisher").producer(None)
    for address in addresses:
        sender.send(address, to=address)
    assert set(sender.outcomes.values()) == {ACCEPTED}


def change(control: Producer, serial: Any, add: Any = (), remove: Any = (), **more: Any) -> str:
    """Send a change; "" once it is accepted, else the sentence with which it was rejected."""
    body = {"serial": proton.uint(serial) if type(serial) is int else serial, "add": add, "remove": remove, **more}
    body = {key: list(value) if isinstance(value, tuple) else value for key, value in body.items()}
    return sentence_of(control, control.send(body))


def sentence_of(control: Producer, number: int) -> str:
    outcome = control.outcomes[number]
    assert outcome is not None
    if outcome == ACCEPTED:
        return ""
    assert outcome.kind is OutcomeCode.REJECTED
    assert outcome.error is not None
    return f"{outcome.error.condition}: {outcome.error.description}"


def told(consumer: Consumer) -> list[str]:
    """The addresses that the deliveries name, which are their bodies, too."""
    found = []
    for received in consumer.received:
        message = proton.Message()
        message.decode(received.data)
        assert message.instructions is not None
        assert message.instructions["x-opt-to"] == message.body
        found.append(str(message.body))
    return found


def refusal(link: Consumer | Producer) -> str:
    assert link.detached is not None
    assert link.detached[1] is not None
    return f"{link.detached[1].condition}: {link.detached[1].description}"


@pytest.mark.parametrize("kind", ["mqtt", "amqp"])
def test_a_message_comes_once_however_many_filters_match_with_its_address(rig: Rig, kind: str) -> None:
    one = "+" if kind == "mqtt" else "*"
    receiver = subscribe(rig.client(), f"plant/{one}/x", "plant/7/#", "plant/7/x", kind=kind)
    publish(rig, "plant/7/x", "plant/8/x", "plant/8/y", "plant/7", "plant/9")
    assert told(receiver) == ["plant/7/x", "plant/8/x", "plant/7"]


def test_the_answer_has_the_set_which_is_in_effect(rig: Rig) -> None:
    receiver = subscribe(rig.client(), "plant/a")
    assert receiver.link.remote_source.filter == set_of("mqtt", "plant/a")


def test_an_empty_set_gets_nothing_until_filters_come(rig: Rig) -> None:
    client = rig.client()
    for number, value in enumerate(([Symbol("mqtt")], ["mqtt", []], ["mqtt", Array(0xA1, ())])):
        address = f"plant/{number}/#"
        filter_ = {"f": Described(Symbol(FILTER_SET), value)}
        receiver = client.consumer(address, name=f"set{number}", filter=filter_)
        publish(rig, f"plant/{number}/x")
        assert (told(receiver), receiver.detached) == ([], None)


def test_a_filter_does_not_widen_the_source(rig: Rig) -> None:
    receiver = subscribe(rig.client(), "#", "news.#", "plant/#", kind="amqp", address="plant/7/#")
    publish(rig, "plant/7/x", "plant/8/x", "news.x")
    assert told(receiver) == ["plant/7/x"]


def test_changes_are_in_effect_once_they_are_accepted(rig: Rig) -> None:
    client = rig.client()
    receiver = subscribe(client, "plant/a")
    control = control_of(client)
    assert control.link.remote_target.capabilities == (CONTROL,)
    publish(rig, "plant/a", "plant/b")
    assert change(control, 1, add=["plant/b"]) == ""
    publish(rig, "plant/a", "plant/b")
    assert change(control, 2, remove=["plant/a"], add=["plant/+/c"]) == ""
    publish(rig, "plant/a", "plant/b", "plant/x/c")
    assert change(control, 3, remove=["plant/b", "plant/+/c"]) == ""
    publish(rig, "plant/a", "plant/b", "plant/x/c")
    assert told(receiver) == ["plant/a", "plant/a", "plant/b", "plant/b", "plant/x/c"]


def test_what_is_there_may_be_added_and_what_is_not_removed(rig: Rig) -> None:
    client = rig.client()
    receiver, control = subscribe(client, "plant/a", "plant/a"), control_of(client)
    assert change(control, 1, add=["plant/a", "plant/a"], remove=["plant/z"]) == ""
    publish(rig, "plant/a", "plant/z")
    assert change(control, 2, remove=["plant/a"]) == ""
    publish(rig, "plant/a")
    assert told(receiver) == ["plant/a"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"serial": 2}, "amqp:invalid-field: expected the serial 1 for the next change, got 2"),
        ({"serial": 0}, "amqp:invalid-field: expected the serial 1 for the next change, got 0"),
        ({}, "amqp:invalid-field: expected a whole number as the serial of a change, got None"),
        ({"serial": True}, "amqp:invalid-field: expected a whole number as the serial of a change, got True"),
        ({"serial": 1, "ad": []}, "amqp:invalid-field: unknown key 'ad' of a change: expected serial, add, remove"),
        (
            {"serial": 1, "add": "plant/b"},
            "amqp:invalid-field: add: expected the filters as a list or array of strings",
        ),
        ({"serial": 1, "add": [1]}, "amqp:invalid-field: add: expected the filters as a list or array of strings"),
        (
            {"serial": 1, "add": ["a+"]},
            "amqp:invalid-field: add: filter 'a+': the wildcard '+' must stand for a whole level",
        ),
        (
            {"serial": 1, "remove": [""]},
            "amqp:invalid-field: remove: expected a filter of at least one character, got an empty text",
        ),
        (
            {"serial": 1, "add": ["x"], "remove": ["x"]},
            "amqp:invalid-field: filter 'x' is both in add and in remove: expected each filter in one of them",
        ),
        (b"x", "amqp:decode-error: cannot read the change: expected an amqp-value section with a map such as"),
        (["x"], "amqp:decode-error: cannot read the change: expected an amqp-value section with a map such as"),
        (None, "amqp:decode-error: cannot read the change: expected an amqp-value section with a map such as"),
    ],
)
def test_a_wrong_change_is_rejected_with_a_sentence_and_changes_nothing(rig: Rig, body: Any, sentence: str) -> None:
    client = rig.client()
    receiver, control = subscribe(client, "plant/a"), control_of(client)
    assert sentence_of(control, control.send(body)).startswith(sentence)
    publish(rig, "plant/a", "plant/b")
    assert told(receiver) == ["plant/a"]
    assert change(control, 1, add=["plant/b"]) == ""


def test_what_is_no_message_is_rejected(rig: Rig) -> None:
    client = rig.client()
    subscribe(client, "plant/a")
    control = control_of(client)
    for data in (b"", b"x", b"\x00\x53\x77\xc1"):
        assert sentence_of(control, control.send_raw(data)).startswith("amqp:decode-error: ")
    assert change(control, 1) == ""


def test_changes_behind_a_rejected_one_are_rejected_too(rig: Rig) -> None:
    client = rig.client()
    subscribe(client, "plant/a")
    control = control_of(client)
    changes = enumerate(("x", "#x", "y"), 1)
    numbers = [control.send({"serial": serial, "add": [text]}, runs=False) for serial, text in changes]
    rig.run()
    first, second, third = (sentence_of(control, number) for number in numbers)
    assert first == ""
    assert "'#x'" in second
    assert "expected the serial 2" in third


def test_a_pre_settled_change_that_is_wrong_ends_the_control_link_with_the_sentence(rig: Rig) -> None:
    client = rig.client()
    receiver, control = subscribe(client, "plant/a"), control_of(client)
    control.send({"serial": 1, "add": ["plant/b"]}, is_settled=True)
    publish(rig, "plant/b")
    assert (told(receiver), control.detached) == (["plant/b"], None)
    control.send({"serial": 1}, is_settled=True)
    assert refusal(control) == "amqp:invalid-field: expected the serial 2 for the next change, got 1"
    assert receiver.detached is None
    assert change(control_of(client), 2, remove=["plant/b"]) == ""


def test_a_change_that_is_too_large_ends_the_control_link(rig: Rig) -> None:
    client = rig.client()
    receiver, control = subscribe(client, "plant/a"), control_of(client)
    assert control.link.remote_max_message_bytes == CHANGE_BYTES
    control.send("x" * CHANGE_BYTES)
    assert refusal(control).startswith("amqp:link:message-size-exceeded: the request is too large")
    assert receiver.detached is None


def test_a_set_has_a_limit_of_filters(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wire.filter_change.MAX_FILTERS", 3)
    assert limits.MAX_FILTERS == 100_000
    client = rig.client()
    subscribe(client, "plant/a")
    control = control_of(client)
    found = change(control, 1, add=["a", "b", "c"])
    assert found == "amqp:resource-limit-exceeded: the set would have 4 filters: expected at most 3"
    assert change(control, 1, add=["a", "b", "c"], remove=["plant/a"]) == ""


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("x", "expected a described list of a kind and filters"),
        ([], "expected a described list of a kind and filters"),
        (["mqtt", [], []], "expected a described list of a kind and filters"),
        (["stomp", []], "expected the kind amqp or mqtt, got 'stomp'"),
        ([None], "expected the kind amqp or mqtt, got None"),
        (["mqtt", "a"], "expected the filters as a list or array of strings"),
        (["mqtt", ["a/#/b"]], "filter 'a/#/b': the wildcard '#' must be the last level of an mqtt filter"),
        (["amqp", ["a*"]], "filter 'a*': the wildcard '*' must stand for a whole level"),
        (["mqtt", ["x" * 1025]], "expected a filter of at most 1024 characters, got 1025"),
        (["amqp", ["a b"]], "filter 'a b' contains ' ': expected no white space and no control characters"),
    ],
)
def test_a_set_that_is_not_valid_is_refused_with_a_sentence(rig: Rig, value: Any, sentence: str) -> None:
    receiver = rig.client().consumer("plant/#", filter={"f": Described(Symbol(FILTER_SET), value)})
    assert refusal(receiver) == f"amqp:invalid-field: filter set 'f': {sentence}"


def test_two_sets_in_one_source_are_refused(rig: Rig) -> None:
    both = {name: Described(Symbol(FILTER_SET), ["mqtt"]) for name in ("f", "g")}
    found = refusal(rig.client().consumer("plant/#", filter=both))
    assert found == "amqp:invalid-field: expected one filter set in a source, got 2: f, g"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER},
            "amqp:not-implemented: a durable subscription",
        ),
        ({"capabilities": ("shared",)}, "amqp:not-implemented: a shared subscription cannot have a filter set"),
        ({"address": "one"}, "amqp:invalid-field: a filter set narrows a source with wildcards: 'one' has none"),
    ],
)
def test_sources_that_cannot_have_a_set_are_refused(rig: Rig, fields: dict[str, Any], sentence: str) -> None:
    assert refusal(subscribe(rig.client(), "plant/a", **fields)).startswith(sentence)
    assert rig.snapshot().queues == ()


def test_a_queue_leaves_the_set_out_of_its_answer(rig: Rig) -> None:
    receiver = subscribe(rig.client(), "plant/a", address="jobs")
    assert (receiver.detached, receiver.link.remote_source.filter) == (None, {})


def test_a_control_link_needs_a_receiver_with_a_set_of_the_same_name_and_address(rig: Rig) -> None:
    client = rig.client()
    assert refusal(control_of(client)).startswith("amqp:not-found: no receiver of 'plant/#' with a filter set")
    client.consumer("plant/#", name="plain")
    assert refusal(client.producer("plant/#", name="plain", capabilities=(CONTROL,))).startswith("amqp:not-found")
    subscribe(client, "plant/a")
    assert refusal(control_of(client, "news.#")).startswith("amqp:not-found: no receiver of 'news.#'")
    assert refusal(control_of(client, "nowhere")).startswith("amqp:not-found: no queue or topic 'nowhere'")
    assert refusal(control_of(rig.client("another"))).startswith("amqp:not-found")
    assert control_of(client).detached is None


def test_an_ordinary_producer_may_have_the_name_of_the_receiver(rig: Rig) -> None:
    client = rig.client()
    receiver, sender = subscribe(client, "plant/a"), client.producer("plant/a", name="mine")
    sender.send("plant/a")
    assert told(receiver) == ["plant/a"]
    receiver.close()
    assert sender.detached is None
    sender.send("plant/a")
    assert sender.outcomes == {0: ACCEPTED, 1: ACCEPTED}


@pytest.mark.parametrize("closes", [True, False], ids=["closed", "detached"])
def test_the_control_link_ends_with_the_receiver(rig: Rig, closes: bool) -> None:
    client = rig.client()
    receiver, control = subscribe(client, "plant/a"), control_of(client)
    receiver.close() if closes else receiver.detach()
    assert refusal(control) == "amqp:resource-deleted: the receiver with the filter set has ended"
    assert rig.snapshot().queues == ()
    publish(rig, "plant/a")


def test_the_receiver_stays_without_its_control_link_and_serials_go_on(rig: Rig) -> None:
    client = rig.client()
    receiver, control = subscribe(client), control_of(client)
    assert change(control, 1, add=["plant/a"]) == ""
    control.link.close()
    rig.run()
    publish(rig, "plant/a")
    second = control_of(client)
    assert "expected the serial 2" in change(second, 1)
    assert change(second, 2, add=["plant/b"]) == ""
    publish(rig, "plant/b")
    assert told(receiver) == ["plant/a", "plant/b"]


def test_a_receiver_that_is_attached_again_begins_with_the_set_of_its_attach(rig: Rig) -> None:
    first = rig.client()
    control = (subscribe(first, "plant/a"), control_of(first))[1]
    assert change(control, 1, add=["plant/b"]) == ""
    again = rig.client()
    receiver = subscribe(again, "plant/c")
    assert refusal(control).startswith("amqp:resource-deleted")
    publish(rig, "plant/a", "plant/b", "plant/c")
    assert told(receiver) == ["plant/c"]
    assert change(control_of(again), 1, add=["plant/a"]) == ""


@pytest.mark.parametrize("size", [10, 200_000])
def test_a_remembered_topic_is_matched_again_after_a_change(rig: Rig, size: int) -> None:
    client = rig.client()
    receiver, control = subscribe(client), control_of(client)
    sender = rig.client("publisher").producer("plant/a")
    for serial in range(1, 5):
        assert change(control, serial, **{("remove", "add")[serial % 2]: ["plant/a"]}) == ""
        for _ in range(2):
            sender.send(b"x" * size)
    assert len(receiver.received) == 4


def test_a_lost_connection_leaves_nothing_behind(rig: Rig) -> None:
    client = rig.client()
    control = (subscribe(client, "plant/a"), control_of(client))[1]
    assert change(control, 1, add=[f"plant/{number}" for number in range(100)]) == ""
    client.vanish()
    assert rig.snapshot().link_count == 0
    assert rig.snapshot().queues == ()
    publish(rig, "plant/a")


def test_after_a_restart_of_the_broker_the_set_comes_with_the_new_attach(rig: Rig) -> None:
    client = rig.client()
    control = (subscribe(client, "plant/a"), control_of(client))[1]
    assert change(control, 1, add=["plant/b"]) == ""
    rig.crash()
    again = rig.client()
    assert refusal(control_of(again)).startswith("amqp:not-found")
    receiver = subscribe(again, "plant/c")
    assert change(control_of(again), 1, add=["plant/d"]) == ""
    publish(rig, "plant/a", "plant/b", "plant/c", "plant/d")
    assert told(receiver) == ["plant/c", "plant/d"]


def test_sets_and_plain_subscriptions_do_not_disturb_each_other(rig: Rig) -> None:
    client = rig.client()
    sets = [
        client.consumer(source, name=f"{source}{filter_}", filter=set_of("amqp", filter_))
        for source in ("plant/#", "plant/a/*")
        for filter_ in ("plant/a/*", "plant/*/x")
    ]
    plain = client.consumer("plant/a/*", name="plain")
    exact = client.consumer("plant/a/x", name="exact")
    publish(rig, "plant/a/x", "plant/b/x", "plant/a/y")
    assert [told(each) for each in sets] == [
        ["plant/a/x", "plant/a/y"],
        ["plant/a/x", "plant/b/x"],
        ["plant/a/x", "plant/a/y"],
        ["plant/a/x"],
    ]
    assert told(plain) == ["plant/a/x", "plant/a/y"]
    assert exact.bodies == ["plant/a/x"]
    sets[0].close()
    publish(rig, "plant/a/x")
    assert [len(each.received) for each in (*sets, plain)] == [2, 3, 3, 2, 3]


def test_a_set_and_no_local_narrow_a_source_together(rig: Rig) -> None:
    client = rig.client()
    no_local = {"no-local": Described(Symbol("apache.org:no-local-filter:list"), [])}
    receiver = client.consumer("plant/#", name="mine", filter={**set_of("mqtt", "plant/a"), **no_local})
    assert set(receiver.link.remote_source.filter) == {"mine", "no-local"}
    own = client.producer("plant/a")
    own.send_raw(encode(Message(body="plant/a")))
    publish(rig, "plant/a", "plant/b")
    assert told(receiver) == ["plant/a"]


def test_a_large_set_that_ends_is_removed_in_turns_until_the_broker_is_at_rest(rig: Rig) -> None:
    client = rig.client()
    receiver, control = subscribe(client), control_of(client)
    for serial in range(1, 4):
        assert change(control, serial, add=[f"plant/{serial}/{number}" for number in range(1500)]) == ""
    receiver.link.close()
    rig.run_now()
    turns = 0
    while rig.node.next_deadline() == rig.now:
        rig.node.on_time(rig.now)
        turns += 1
    assert turns == 4
    publish(rig, "plant/1/1", "plant/3/1499")
    assert receiver.bodies == []
