"""An operator purges, removes, moves and sends back the messages that a page showed, and no others."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.operating import administration
from broker.operating.control import ARGUMENTS
from mesh_tests.unit.broker.operator import DURABLE, Operator, subscribe
from mesh_tests.unit.broker.rig import Rig, topology_with
from wire.delivery import ACCEPTED, OutcomeCode, rejected

ADDRESSES = {"orders": {"type": "queue", "dead_letter": "dead"}, "dead": "queue", "parked": "queue", "news.#": "topic"}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, topology_with(ADDRESSES))


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "FIRST_NUMBERS", 2)


def fill(rig: Rig, bodies: str, address: str = "orders") -> None:
    client = rig.client("filler")
    producer = client.producer(address)
    for body in bodies:
        producer.send(body)
    client.vanish()


def reject_all(rig: Rig, address: str = "orders") -> None:
    client = rig.client("refuser")
    for received in client.consumer(address).received:
        received.give(rejected("amqp:internal-error", "no"))
    client.vanish()


def page(rig: Rig, address: str = "orders", **arguments: Any) -> dict[str, Any]:
    operator = Operator(rig, "browsing")
    (found,) = operator.do("browse", address=address, bodies=True, **arguments)
    operator.client.vanish()
    return found


def shown(rig: Rig, address: str = "orders", **arguments: Any) -> dict[str, int]:
    """Numbers by body."""
    return {each["body"]["text"]: each["number"] for each in page(rig, address, **arguments)["messages"]}


def bodies(rig: Rig, address: str = "orders", **arguments: Any) -> str:
    return "".join(shown(rig, address, **arguments))


# Purge


def test_a_purge_drops_nothing_that_came_after_what_was_shown(rig: Rig) -> None:
    fill(rig, "abc")
    last = page(rig)["last"]
    fill(rig, "de")
    assert Operator(rig).count("purge", address="orders", up_to=last) == 3
    assert bodies(rig) == "de"


def test_a_purge_drops_no_message_that_was_moved_there_later(rig: Rig) -> None:
    fill(rig, "old", "parked")
    fill(rig, "ab")
    last = page(rig)["last"]
    operator = Operator(rig)
    operator.do("move", source="parked", target="orders")
    assert operator.count("purge", address="orders", up_to=last) == 2
    assert bodies(rig) == "old"


def test_a_purge_of_what_was_shown_before_a_restart_drops_nothing(rig: Rig) -> None:
    fill(rig, "abc")
    last = page(rig)["last"]
    Operator(rig).count("purge", address="orders")
    rig.restart()
    fill(rig, "de")
    assert Operator(rig).count("purge", address="orders", up_to=last) == 0
    assert bodies(rig) == "de"


def test_a_purge_of_what_was_shown_in_a_deleted_queue_drops_nothing(rig: Rig) -> None:
    fill(rig, "abc")
    last = page(rig)["last"]
    operator = Operator(rig)
    operator.do("delete", address="orders", force=True)
    fill(rig, "de")
    assert operator.count("purge", address="orders", up_to=last) == 0
    assert bodies(rig) == "de"


# Remove


@pytest.mark.usefixtures("small_steps")
def test_the_numbered_messages_are_removed_and_the_others_stay(rig: Rig) -> None:
    fill(rig, "abcdef")
    client = rig.client("holder")
    client.consumer("orders", credit=1)
    numbers = shown(rig)
    (found,) = Operator(rig).do("remove", address="orders", numbers=[numbers[each] for each in "aceb"] + [999_999])
    assert found == {"messages": 3, "missing": [999_999], "locked": [numbers["a"]]}
    assert bodies(rig) == "adf"
    rig.crash()
    assert bodies(rig) == "adf"


def test_a_message_in_several_subscriptions_is_removed_from_one(rig: Rig) -> None:
    one, two = subscribe(rig, "one"), subscribe(rig, "two")
    fill(rig, "ab", "news.sport")
    numbers = shown(rig, "news.#", subscriber=one)
    operator = Operator(rig)
    (found,) = operator.do("remove", address="news.#", subscriber=one, numbers=[numbers["a"]])
    assert found["messages"] == 1
    assert bodies(rig, "news.#", subscriber=one) == "b"
    assert bodies(rig, "news.#", subscriber=two) == "ab"
    rig.crash()
    reader = rig.client("reader")
    assert reader.consumer("news.#", name="one", **DURABLE).bodies == ["b"]
    assert reader.consumer("news.#", name="two", **DURABLE).bodies == ["a", "b"]


# Move and redrive


@pytest.mark.usefixtures("small_steps")
def test_the_numbered_messages_are_moved_in_order(rig: Rig) -> None:
    fill(rig, "abcde")
    client = rig.client("holder")
    consumer = client.consumer("orders", credit=1)
    numbers = shown(rig)
    (found,) = Operator(rig).do(
        "move", source="orders", target="parked", numbers=[numbers[each] for each in "edba"] + [999_999]
    )
    assert found == {"messages": 3, "missing": [999_999], "locked": [numbers["a"]], "not_moved": 0}
    assert (bodies(rig), bodies(rig, "parked")) == ("ac", "bde")
    consumer.received[0].give(ACCEPTED)
    rig.crash()
    assert (bodies(rig), bodies(rig, "parked")) == ("c", "bde")


def test_a_move_up_to_a_number_leaves_what_came_later(rig: Rig) -> None:
    fill(rig, "abc")
    last = page(rig)["last"]
    fill(rig, "de")
    (found,) = Operator(rig).do("move", source="orders", target="parked", up_to=last)
    assert found == {"messages": 3, "not_moved": 0}
    assert (bodies(rig), bodies(rig, "parked")) == ("de", "abc")


def test_numbered_dead_letters_go_back(rig: Rig) -> None:
    fill(rig, "abc")
    reject_all(rig)
    fill(rig, "x", "dead")
    numbers = shown(rig, "dead")
    operator = Operator(rig)
    (found,) = operator.do("redrive", address="dead", numbers=[numbers["b"], numbers["x"]])
    assert found == {"messages": 1, "missing": [], "locked": [], "not_moved": 1, "without_queue": 1}
    assert (bodies(rig), bodies(rig, "dead")) == ("b", "acx")
    assert page(rig)["messages"][0]["attempts"] == 0


def test_a_dead_letter_that_is_moved_keeps_its_reason(rig: Rig) -> None:
    fill(rig, "ab")
    reject_all(rig)
    operator = Operator(rig)
    operator.do("move", source="dead", target="parked", numbers=[shown(rig, "dead")["a"]])
    (message,) = page(rig, "parked")["messages"]
    assert (message["reason"], message["origin"]) == ("rejected", "orders")
    operator.do("redrive", address="parked")
    assert bodies(rig) == "a"


def test_a_numbered_message_that_has_no_room_stays(tmp_path: Path) -> None:
    rig = Rig(tmp_path, topology_with({"orders": "queue", "small": {"type": "queue", "max_messages": 1}}))
    fill(rig, "abc")
    (found,) = Operator(rig).do("move", source="orders", target="small", numbers=list(shown(rig).values()))
    assert found == {"messages": 1, "missing": [], "locked": [], "not_moved": 2, "for_full_queue": 2}
    assert (bodies(rig), bodies(rig, "small")) == ("bc", "a")


@pytest.mark.parametrize(
    ("op", "arguments", "words"),
    [
        ("remove", {"address": "orders", "numbers": []}, "expected 1 to 1,000 numbers of messages, got 0"),
        ("remove", {"address": "orders", "numbers": list(range(1001))}, "got 1,001"),
        ("remove", {"address": "orders", "numbers": [-1]}, "as the number of a message, got -1"),
        ("remove", {"address": "news.#", "numbers": [1]}, "no durable subscription to 'news.#'"),
        ("purge", {"address": "orders", "up_to": 2**63}, "as the number of a message"),
        ("move", {"source": "orders", "target": "parked", "numbers": [1], "count": 1}, "got both"),
        ("move", {"source": "orders", "target": "parked", "numbers": [1], "up_to": 1}, "got both"),
        ("move", {"source": "orders", "target": "orders", "numbers": [1]}, "is both source and target"),
        ("redrive", {"address": "orders", "count": 2**80}, "expected 1 or more as the count of messages"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(rig: Rig, op: str, arguments: dict[str, Any], words: str) -> None:
    fill(rig, "a")
    assert words in Operator(rig).refusal(op, **arguments)
    assert bodies(rig) == "a"


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(
    op=st.sampled_from([op for op in ARGUMENTS if op not in ("list", "create")]),
    data=st.data(),
)
def test_any_arguments_are_answered_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, op: str, data: st.DataObject
) -> None:
    rig = _shared_rig(tmp_path_factory)
    names = [*ARGUMENTS[op], "colour"]
    arguments = data.draw(st.dictionaries(st.sampled_from(names), _ANY | st.sampled_from(["orders", "dead", 1, [1]])))
    operator = Operator(rig)
    seen = len(operator.answers.received)
    outcome = operator.send(json.dumps({"op": op, **arguments}))
    assert outcome is not None
    if outcome.kind is OutcomeCode.REJECTED:
        assert outcome.error is not None
        said = outcome.error.description
    else:
        (*_, last) = operator.answers.received[seen:]
        answer = json.loads(last.message.body)
        said = "" if answer["ok"] else answer["error"]
    operator.client.vanish()
    assert len(said) < 1000
    assert "Traceback" not in said


_RIGS: list[Rig] = []


def _shared_rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    if not _RIGS:
        _RIGS.append(Rig(tmp_path_factory.mktemp("rig"), topology_with(ADDRESSES)))
        fill(_RIGS[0], "abc")
    return _RIGS[0]
