"""Which steps lead from one topology to another, and what do they cost?"""

from __future__ import annotations

import pytest

from mesh.change.change_class import ChangeClass
from mesh.change.observations import (
    NONE_OBSERVED,
    CountedConnection,
    CountedLink,
    CountedQueue,
    DriftedValue,
    Observations,
)
from mesh.change.plan import ChangePlan, plan
from mesh.change.step import ChangeStep
from mesh_tests.unit.mesh.change.topologies import SECRET, source_of

HEAD = """\
mesh: m
routers:
  r1: {listeners: [5672], connect: [r2]}
  r2: {listeners: [5682]}
brokers:
  b1: {data: ./b1}
"""
TWO_BROKERS = HEAD + "  b2: {data: ./b2}\n"
ADDRESSES = "addresses: {orders: queue, q.#: queue, news.#: topic, rpc: anycast}\n"
NODES = frozenset({"r1", "r2", "b1", "b2"})


def planned(before: str, after: str, observations: Observations = NONE_OBSERVED) -> ChangePlan:
    return plan(source_of(before), source_of(after), observations)


def classes(found: ChangePlan) -> dict[str, str]:
    return {step.id: step.change_class.value for step in found.steps}


def step(found: ChangePlan, id_: str) -> ChangeStep:
    return next(each for each in found.steps if each.id == id_)


def test_a_file_without_changes_has_no_steps() -> None:
    found = planned(HEAD + ADDRESSES, f"# a comment\n{HEAD}{ADDRESSES}")
    assert (found.is_empty, found.loss, found.kept) == (True, (), {})


def test_a_router_inserted_before_others_is_the_only_change() -> None:
    inserted = HEAD.replace("routers:\n", "routers:\n  r0: {listeners: [5662], connect: [r1]}\n")
    found = planned(HEAD, inserted)
    assert classes(found) == {"router r0": "LIVE"}
    assert found.steps[0].title == (
        "add router r0, with connection r0 - r1, attachment r0 - b1, listener r0 127.0.0.1:5662"
    )
    assert found.steps[0].precondition == "no process listens on 127.0.0.1:26673"
    assert found.kept == {"r0": 26673, "r1": 26671, "r2": 26672}


def test_the_first_user_turns_every_listener_to_a_login() -> None:
    seen = Observations(
        NODES,
        (CountedConnection("r1", "1"), CountedConnection("r1", "2"), CountedConnection("r2", "3", "carol")),
    )
    found = planned(HEAD + ADDRESSES, HEAD + ADDRESSES + "users: {alice: {send: [orders]}}\n", seen)
    assert classes(found) == {
        "user alice": "LIVE",
        "listener r1 127.0.0.1:5672": "TOLD",
        "listener r2 127.0.0.1:5682": "TOLD",
        "user anonymous": "TOLD",
    }
    listener = step(found, "listener r1 127.0.0.1:5672")
    assert listener.title == "change listener r1 127.0.0.1:5672: authentication none -> required (default)"
    assert listener.costs == ("closes 2 connections of clients at r1", "no delivery is released")
    assert step(found, "listener r2 127.0.0.1:5682").cost.connections_closed == 0


def test_a_second_broker_moves_nothing_if_the_first_stays_the_default() -> None:
    found = planned(HEAD + ADDRESSES, TWO_BROKERS + "default_broker: b1\n" + ADDRESSES)
    assert classes(found) == {"broker b2": "LIVE"}
    assert "attachment r1 - b2, attachment r2 - b2" in found.steps[0].title


def test_a_second_broker_that_is_the_default_moves_addresses_that_name_none() -> None:
    found = planned(HEAD + ADDRESSES, TWO_BROKERS + "default_broker: b2\n" + ADDRESSES)
    assert {name: each for name, each in classes(found).items() if name.startswith("address")} == {
        "address news.#": "MOVED",
        "address orders": "MOVED",
        "address q.#": "MOVED",
    }
    assert classes(found)["settings mesh"] == "LIVE"
    assert found.loss == ()


def test_an_exact_name_under_a_pattern_moves_the_messages_that_the_pattern_holds() -> None:
    seen = Observations(NODES, queues=(CountedQueue("b1", "q.a", 14_203, 3_100_000), CountedQueue("b1", "q.b", 5, 50)))
    after = TWO_BROKERS + "default_broker: b1\n" + ADDRESSES.replace("q.#", "q.a: {type: queue, broker: b2}, q.#")
    found = planned(TWO_BROKERS + "default_broker: b1\n" + ADDRESSES, after, seen)
    assert classes(found) == {"address q.# to q.a": "MOVED"}
    assert found.steps[0].costs == ("moves 14,203 messages (3.1 MB) q.a b1 -> b2", "no delivery is released")
    assert (found.cost.messages_moved, found.cost.bytes_moved) == (14_203, 3_100_000)


def test_a_pattern_that_shadows_another_moves_the_addresses_that_it_takes() -> None:
    seen = Observations(
        NODES,
        queues=(
            CountedQueue("b1", "q.a.x", 2, 20),
            CountedQueue("b1", "q.a.y", 1, 10),
            CountedQueue("b1", "q.b", 9, 90),
        ),
    )
    after = TWO_BROKERS + "default_broker: b1\n" + ADDRESSES.replace("q.#", "q.a.*: {type: queue, broker: b2}, q.#")
    found = planned(TWO_BROKERS + "default_broker: b1\n" + ADDRESSES, after, seen)
    assert classes(found) == {"address q.# to q.a.*": "MOVED"}
    assert [each.key[1] for each in found.steps[0].differences] == ["q.a.*", "q.a.x", "q.a.y"]
    assert found.steps[0].costs == ("moves 3 messages (30 B) of 3 addresses b1 -> b2", "no delivery is released")


def test_numbers_of_a_mesh_that_does_not_run_are_unknown() -> None:
    found = planned(HEAD + ADDRESSES, HEAD + "addresses: {orders: queue, q.#: queue, news.#: topic}\n")
    assert found.steps[0].costs == (
        "ends links of clients at all routers: how many is unknown, the mesh does not run",
        "no delivery is released",
    )
    assert found.cost.links_ended is None


def test_a_queue_that_is_removed_loses_messages_unless_it_is_empty() -> None:
    after = HEAD + ADDRESSES.replace("orders: queue, ", "")
    assert planned(HEAD + ADDRESSES, after).loss == ("orders",)
    seen = Observations(NODES, queues=(CountedQueue("b1", "orders", 3, 30),))
    assert planned(HEAD + ADDRESSES, after, seen).loss == ("orders",)
    assert "loses 3 messages" in planned(HEAD + ADDRESSES, after, seen).steps[0].costs
    assert planned(HEAD + ADDRESSES, after, Observations(NODES)).loss == ()


@pytest.mark.parametrize(
    ("before", "after", "change_class", "loss"),
    [
        ("a: anycast", "a: multicast", "REMADE", ()),
        ("a: anycast", "a: queue", "REMADE", ()),
        ("a: unavailable", "a: anycast", "LIVE", ()),
        ("a: anycast", "a: unavailable", "TOLD", ()),
        ("a: queue", "a: anycast", "MOVED", ("a",)),
        ("a: queue", "a: unavailable", "MOVED", ("a",)),
        ("a: queue", "a: topic", "MOVED", ("a",)),
        ("a: anycast", "a: {type: anycast, priority: 9}", "LIVE", ()),
        ("a: queue", "a: {type: queue, max_messages: 5}", "TOLD", ()),
        ("a: {type: queue, max_messages: 5}", "a: {type: queue, max_messages: 6}", "LIVE", ()),
        ("a: {type: queue, max_messages: 5}", "a: queue", "LIVE", ()),
        ("a: topic", "a: {type: topic, max_messages: 5}", "TOLD", ("a",)),
        ("a: topic", "a: {type: topic, subscription_expiry_s: 5}", "LIVE", ("a",)),
        ("a: {type: topic, subscription_expiry_s: 5}", "a: topic", "LIVE", ()),
        ("a: {type: queue, brokers: [b1]}", "a: {type: queue, brokers: [b1, b2]}", "MOVED", ()),
        ("a: queue", "a: {type: queue, broker_address: there}", "MOVED", ()),
        ("a: queue", "a: {type: queue, broker: b1}", None, ()),
    ],
)
def test_the_class_of_an_address_is_that_of_the_effect(
    before: str, after: str, change_class: str | None, loss: tuple[str, ...]
) -> None:
    head = TWO_BROKERS + "default_broker: b1\n"
    found = planned(f"{head}addresses: {{{before}}}\n", f"{head}addresses: {{{after}}}\n")
    assert [each.change_class.value for each in found.steps] == ([change_class] if change_class else [])
    assert found.loss == loss


@pytest.mark.parametrize(
    ("before", "after", "change_class"),
    [
        ("send: [a]", "send: [a, b]", "LIVE"),
        ("send: [a.b]", "send: ['a.#']", "LIVE"),
        ("send: ['a.#']", "send: [a.b]", "TOLD"),
        ("receive: [a]", "", "TOLD"),
        ("view: [a]", "", "LIVE"),
        ("", "max_connections: 5", "TOLD"),
        ("max_connections: 5", "max_connections: 6", "LIVE"),
    ],
)
def test_rights_are_widened_live_and_narrowed_with_notice(before: str, after: str, change_class: str) -> None:
    found = planned(f"{HEAD}users: {{u: {{{before}}}}}\n", f"{HEAD}users: {{u: {{{after}}}}}\n")
    assert classes(found) == {"user u": change_class}


def test_a_right_that_is_narrowed_ends_the_links_that_lost_it() -> None:
    links = (
        CountedLink("r1", "1", "bob", True, "a.b"),
        CountedLink("r1", "1", "bob", True, "a.c"),
        CountedLink("r1", "1", "bob", False, "a.c"),
        CountedLink("r2", "2", "alice", True, "a.c"),
        CountedLink("r2", "2", "bob", True, None),
    )
    rights = "send: ['a.#'], receive: ['a.#']"
    users = HEAD + "users: {alice: {send: ['#']}, bob: {%s}}\n"
    narrowed = users % rights.replace("send: ['a.#']", "send: [a.b]")
    found = planned(users % rights, narrowed, Observations(NODES, links=links))
    assert found.steps[0].costs == ("ends 1 link of user bob at all routers", "no delivery is released")


def test_a_user_who_is_removed_loses_his_connections() -> None:
    seen = Observations(NODES, tuple(CountedConnection("r2", str(i), "bob") for i in range(3)))
    users = HEAD + "users: {alice: {send: ['#']}, bob: {send: ['#']}}\n"
    found = planned(users, users.replace(", bob: {send: ['#']}", ""), seen)
    assert found.steps[0].costs == ("closes 3 connections of user bob at all routers", "no delivery is released")


def test_a_port_that_changes_hands_is_free_before_it_is_taken() -> None:
    after = HEAD.replace("5672", "5692").replace("5682", "5672")
    found = planned(HEAD, after)
    ids = [each.id for each in found.steps]
    assert step(found, "listener r2 127.0.0.1:5672").after == ("listener r1 127.0.0.1:5672",)
    assert ids.index("listener r1 127.0.0.1:5672") < ids.index("listener r2 127.0.0.1:5672")


def test_two_routers_cannot_swap_their_ports() -> None:
    before = HEAD.replace("r1: {", "r1: {port: 30001, ").replace("r2: {", "r2: {port: 30002, ")
    after = before.replace("30001", "30003").replace("30002", "30001").replace("30003", "30002")
    found = planned(before, after)
    assert [each.id for each in found.refused] == ["router r1", "router r2"]
    assert found.refused[0].fix == (
        "let one of them use a port that nobody has in a first change, and give it the other's in a second one."
    )


@pytest.mark.parametrize(
    ("before", "after", "id_"),
    [
        (HEAD, HEAD.replace("mesh: m", "mesh: other"), "settings mesh"),
        (HEAD, HEAD.replace("data: ./b1", "url: amqp://h"), "broker b1"),
        (HEAD, HEAD.replace("r1", "s1").replace("r2", "s2"), "partition"),
        (HEAD, HEAD.replace(", connect: [r2]", ""), "partition"),
    ],
)
def test_what_a_running_mesh_cannot_do_is_refused_with_a_fix(before: str, after: str, id_: str) -> None:
    refused = planned(before, after).refused
    assert [each.id for each in refused] == [id_]
    assert refused[0].fix.endswith(".")


def test_a_broker_that_is_removed_loses_what_no_declaration_has_there() -> None:
    before = f"{TWO_BROKERS}default_broker: b2\naddresses: {{orders: {{type: queue, broker: b2}}}}\n"
    after = before.replace("  b1: {data: ./b1}\n", "")

    def removed(messages: int, *nodes: str) -> tuple[tuple[str, ...], int | None]:
        queues = (CountedQueue("b1", "orders", messages, 10, is_subscription=False),)
        found = planned(before, after, Observations(frozenset(nodes), queues=queues if "b1" in nodes else ()))
        return found.loss, step(found, "broker b1").cost.messages_lost

    assert removed(0, "r1", "r2", "b1", "b2") == ((), 0)
    assert removed(5, "r1", "r2", "b1", "b2") == (("b1",), 5)
    assert removed(5, "r1", "r2", "b2") == (("b1",), None)


def test_another_virtual_host_of_an_existing_broker_has_to_be_allowed_by_name() -> None:
    head = HEAD + "  there: {url: amqp://h, hostname: 'vhost:a'}\ndefault_broker: b1\n"
    assert planned(head, head.replace("vhost:a", "vhost:b")).loss == ("there",)


@pytest.mark.parametrize(("messages", "lost"), [(5, 0), (6, None)])
def test_a_move_into_brokers_that_drop_the_oldest_may_lose_what_has_no_room(messages: int, lost: int | None) -> None:
    head = f"{TWO_BROKERS}default_broker: b1\n"
    queue = "max_messages: 10, when_full: drop-oldest"
    before = f"{head}addresses: {{a: {{type: queue, brokers: [b1, b2], {queue}}}}}\n"
    after = f"{head}addresses: {{a: {{type: queue, broker: b1, {queue}}}}}\n"
    queues = (
        CountedQueue("b1", "a", 5, 10, is_subscription=False),
        CountedQueue("b2", "a", messages, 10, is_subscription=False),
    )
    found = planned(before, after, Observations(NODES, queues=queues))
    assert step(found, "address a").cost.messages_lost == lost
    assert found.loss == (() if lost == 0 else ("a",))


def test_a_move_to_an_existing_broker_has_to_be_allowed_by_name() -> None:
    head = HEAD + "  there: {url: amqp://h}\ndefault_broker: b1\n"
    found = planned(f"{head}addresses: {{a: queue}}\n", f"{head}addresses: {{a: {{type: queue, broker: there}}}}\n")
    assert (classes(found), found.loss) == ({"address a": "MOVED"}, ("a",))


@pytest.mark.parametrize(
    ("change", "change_class", "restarts"),
    [
        (("mesh: m", "mesh: m\nnode_tls: false"), "RESTARTED", 3),
        (("mesh: m", "mesh: m\nlink_logs: {ring_bytes: 1048576}"), "RESTARTED", 3),
        (("mesh: m", "mesh: m\nlink_logs: 'off'"), "RESTARTED", 3),
        (("mesh: m", "mesh: m\nlink_logs: full"), "LIVE", 0),
        (("r1: {", "r1: {port: 30000, "), "RESTARTED", 1),
        (("data: ./b1", "data: ./other"), "RESTARTED", 1),
        (("data: ./b1", "data: ./b1, disk_free_min_bytes: 5"), "LIVE", 0),
        (("connect: [r2]", "connect: [{to: r2, cost: 5}]"), "LIVE", 0),
        (("connect: [r2]", "connect: [{to: r2, port: 5}]"), "REMADE", 0),
    ],
)
def test_a_restart_is_only_for_values_that_a_process_begins_with(
    change: tuple[str, str], change_class: str, restarts: int
) -> None:
    found = planned(HEAD, HEAD.replace(*change), Observations(NODES))
    assert [each.change_class.value for each in found.steps] == [change_class]
    assert found.cost.processes_restarted == restarts


def test_a_secret_is_in_no_text_of_a_plan() -> None:
    users = HEAD + '  there: {url: "amqp://u:OLD@h"}\nusers: {u: {password: "' + SECRET + '"}}\n'
    found = planned(users, users.replace("OLD", "NEW").replace("MDEyMzQ1Njc4OWFiY2RlZg==", "ZmVkY2JhOTg3NjU0MzIxMA=="))
    assert classes(found) == {"broker there": "REMADE", "user u": "LIVE"}
    text = repr(found.to_map())
    assert "another password" in text
    assert "another password in url" in text
    assert not any(
        each in text for each in ("OLD", "NEW", "MDEyMzQ1Njc4OWFiY2RlZg==", "ZmVkY2JhOTg3NjU0MzIxMA==", "SCRAM")
    )


def test_drift_is_told_beside_the_steps() -> None:
    drift = (DriftedValue("r2 - r1: cost", "1", "5", "amqpmesh cost r1 r2 1"),)
    found = planned(HEAD, HEAD, Observations(NODES, drift=drift))
    assert (found.is_empty, found.drift) == (True, drift)


def test_classes_are_ordered_by_what_clients_notice() -> None:
    assert [each.rank for each in ChangeClass] == list(range(6))
