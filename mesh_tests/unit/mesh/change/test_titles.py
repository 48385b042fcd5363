"""Does the title of a step tell what was written in the file?"""

from __future__ import annotations

from random import Random

import pytest

from mesh.change.observations import NONE_OBSERVED, Absence, CountedQueue, Observations
from mesh.change.plan import plan
from mesh.change.resource import ResourceKind
from mesh.change.titles import told_changes
from mesh_tests.unit.mesh.change.test_random_plans import SEEDS, planned
from mesh_tests.unit.mesh.change.topologies import edited, random_data, source_of, source_of_data

HEAD = """\
mesh: m
routers:
  r1: {listeners: [5672], connect: [r2]}
  r2: {listeners: [5682]}
brokers:
  b1: {data: ./b1}
  b2: {data: ./b2}
default_broker: b1
"""
DERIVED = ("names_at_brokers", "prefixes", "shares_links", "subscription_broker", "is_embedded", "redact_")


def titles(before: str, after: str, observations: Observations = NONE_OBSERVED) -> list[str]:
    return [step.title for step in plan(source_of(before), source_of(after), observations).steps]


@pytest.mark.parametrize(
    ("before", "after", "title"),
    [
        ("a: anycast", "a: multicast", "change address a: type anycast -> multicast"),
        ("a: anycast", "a: queue", "change address a: type anycast -> queue"),
        ("a: queue", "a: topic", "change address a: type queue -> topic"),
        ("a: queue", "a: {type: queue, broker: b2}", "change address a: broker b1 -> b2"),
        ("a: {type: queue, broker: b2}", "a: queue", "change address a: broker b2 -> b1 (default)"),
        ("a: queue", "a: {type: queue, brokers: [b1, b2]}", "change address a: brokers [b1] -> [b1, b2]"),
        (
            "a: queue",
            "a: {type: queue, broker_address: there}",
            "change address a: name at the broker a -> there",
        ),
        ("a: {type: queue, max_messages: 5}", "a: queue", "change address a: max_messages 5 -> none"),
        (
            "a: {type: queue, max_messages: 5}",
            "a: anycast",
            "change address a: type queue -> anycast, max_messages 5 -> none",
        ),
        ("d: queue, a: queue", "d: queue, a: {type: queue, dead_letter: d}", "change address a: dead_letter none -> d"),
        ("a: anycast", "a: anycast, b: {type: queue, broker: b2}", "add address b: queue at b2"),
        ("a: anycast, b: topic", "a: anycast", "remove address b: topic at b1"),
    ],
)
def test_a_change_of_an_address_reads_as_in_the_file(before: str, after: str, title: str) -> None:
    assert titles(f"{HEAD}addresses: {{{before}}}\n", f"{HEAD}addresses: {{{after}}}\n") == [title]


@pytest.mark.parametrize(
    ("change", "title"),
    [
        (("link_logs: full", "link_logs: off"), "change link_logs settings: level full -> off"),
        (("hello_interval_s: 1", "hello_interval_s: 2"), "change mesh settings: hello_interval_s 1.0 -> 2.0"),
        (
            ("5672]", "{port: 5672, tls: {ca: other.pem}}]"),
            "change listener r1 127.0.0.1:5672: tls false -> true, tls.ca none -> other.pem",
        ),
        (("amqp://u:p@h1", "amqp://u:p@h2"), "change broker far: url amqp://u@h1:5672 -> amqp://u@h2:5672"),
        (("amqp://u:p@h1", "amqp://u:q@h1"), "change broker far: another password in url"),
        (("[r2]", "[{to: r2, cost: 3}]"), "change connection r1 - r2: cost 1 -> 3"),
    ],
)
def test_a_change_elsewhere_reads_as_in_the_file(change: tuple[str, str], title: str) -> None:
    head = HEAD.replace("  b2: {", '  far: {url: "amqp://u:p@h1"}\n  b2: {') + "link_logs: full\nhello_interval_s: 1\n"
    assert titles(head, head.replace(*change)) == [title]


def test_the_first_user_is_told_as_what_the_user_does_to_others() -> None:
    with_users = HEAD + "users: {alice: {send: [a, 'b.#']}}\n"
    assert titles(HEAD, with_users) == [
        "add user alice: send a, b.#",
        "change listener r1 127.0.0.1:5672: authentication none -> required (default)",
        "change listener r2 127.0.0.1:5682: authentication none -> required (default)",
        "require a right for everything, as the file has users now",
    ]
    assert "allow every client to use every address, as the file has no users any more" in titles(with_users, HEAD)


def test_a_long_list_is_told_by_what_it_gets_and_loses() -> None:
    users = HEAD + "users: {u: {send: [%s]}}\n"
    before, after = ", ".join(f"a{i}" for i in range(9)), ", ".join(f"a{i}" for i in range(1, 10))
    assert titles(users % before, users % after) == ["change user u: send gets a9 and loses a0"]


def test_a_node_with_a_lot_beside_it_is_told_in_numbers() -> None:
    listeners = ", ".join(str(port) for port in range(6000, 6009))
    found = titles(HEAD, HEAD.replace("brokers:", f"  r3: {{connect: [r1], listeners: [{listeners}]}}\nbrokers:"))
    assert found == ["add router r3, with 1 connection, 2 attachments, 9 listeners"]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_title_tells_a_value_that_another_told_value_explains(seed: int) -> None:
    for step in planned(seed).steps:
        assert not any(word in step.title for word in DERIVED), step.title
        assert "None" not in step.title
        if step.differences and not (step.differences[0].is_added or step.differences[0].is_removed):
            main = step.differences[0]
            told = {change.name for change in told_changes(main)}
            assert told
            if main.key[0] is ResourceKind.ADDRESS and main.change_of("type"):
                assert all(
                    main.before.is_written(name) or main.after.is_written(name)
                    for name in told - {"type", "declared_by"}
                    if main.before is not None and main.after is not None
                ), step.title


@pytest.mark.parametrize("seed", range(80))
def test_a_title_tells_what_the_author_changed(seed: int) -> None:
    """Each key of an address, a user or a connection that differs in the file is told, up to the longest title."""
    random = Random(seed)
    before = random_data(random)
    after = edited(random, before)
    one, other = source_of_data(before), source_of_data(after)
    assert one is not None
    assert other is not None
    steps = {step.differences[0].key: step for step in plan(one, other).steps if step.differences}
    for name in set(before["addresses"]) & set(after["addresses"]):
        old, new = before["addresses"][name], after["addresses"][name]
        if old["type"] != new["type"]:
            title = steps[ResourceKind.ADDRESS, name].title
            assert title.split(": ", 1)[1].startswith(f"type {old['type']} -> {new['type']}")


def test_an_unknown_number_names_the_nodes_that_are_missing_for_it() -> None:
    before = HEAD + "addresses: {a: queue, b: {type: queue, broker: b2}}\n"
    after = before.replace("a: queue", "a: anycast").replace("b: {type: queue, broker: b2}", "b: anycast")
    absent = {"b1": Absence.DOWN, "r2": Absence.ELSEWHERE}
    seen = Observations(frozenset({"r1", "b2"}), queues=(CountedQueue("b2", "b", 3, 30),), absent=absent)
    found = plan(source_of(before), source_of(after), seen)
    costs = {step.id: step.costs[0] for step in found.steps}
    assert costs == {
        "address a": "loses messages: how many is unknown, b1 does not run",
        "address b": "loses 3 messages",
    }
    removed = before.replace("b: {type: queue, broker: b2}", "c: anycast").replace("c: anycast", "")
    step = next(each for each in plan(source_of(before), source_of(removed), seen).steps if each.id == "address b")
    assert step.costs[0].endswith("how many is unknown, r2 is on another host by the file")


def test_a_number_that_no_node_counts_is_not_blamed_on_a_node() -> None:
    before = HEAD + "addresses: {a: topic}\n"
    after = HEAD + "addresses: {a: {type: topic, subscription_expiry_s: 5}}\n"
    queue = CountedQueue("b1", "a", 3, 30, is_subscription=True)
    seen = Observations(frozenset({"r1", "r2", "b1", "b2"}), queues=(queue,))
    (step,) = plan(source_of(before), source_of(after), seen).steps
    assert step.costs[0] == "loses messages: how many is unknown, no node counts that beforehand"


def test_what_a_queue_names_moves_with_the_queue_as_one_set() -> None:
    queues = "{a: {type: queue, broker: %s, dead_letter: d, expiry: e}, d: {type: queue, broker: %s}, "
    queues = f"{HEAD}addresses: {queues}e: {{type: queue, broker: %s}}}}\n"
    found = plan(source_of(queues % (("b1",) * 3)), source_of(queues % (("b2",) * 3)))
    told = {step.id: [cost for cost in step.costs if cost.startswith("one set")] for step in found.steps}
    assert told == {
        "address a": ["one set, to be moved together: a, d (dead_letter), e (expiry)"],
        "address d": [],
        "address e": [],
    }
