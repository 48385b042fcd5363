"""Who may send to and receive from what."""

import pytest

from addressing.address import dynamic_address
from addressing.permissions import Permissions
from addressing.topology.loader import parse_topology

HEAD = "mesh: m\nrouters: {r1: }\naddresses: {'#': anycast}\n"
OPEN = Permissions(parse_topology(HEAD))
CLOSED = Permissions(
    parse_topology(
        HEAD
        + """
users:
  alice: {send: [orders, "news.#"], receive: ["${user}.#"]}
  bob: {send: "#", receive: "#"}
  dora: {send: "#", receive: []}
  anonymous: {receive: ["public.*", "news.#"]}
"""
    )
)


def test_without_users_everybody_may_use_every_declared_address() -> None:
    assert OPEN.may_send(None, "orders")
    assert OPEN.may_receive("somebody", "orders")


def test_with_users_what_is_not_allowed_is_denied() -> None:
    assert CLOSED.may_send("alice", "orders")
    assert CLOSED.may_send("alice", "amqp:/news.eu")
    assert not CLOSED.may_receive("alice", "orders")
    assert not CLOSED.may_send("alice", "order")
    assert not CLOSED.may_send("carol", "orders")


def test_user_variable_stands_for_the_name_of_the_user() -> None:
    assert CLOSED.may_receive("alice", "alice.inbox")
    assert not CLOSED.may_receive("alice", "bob.inbox")
    assert not CLOSED.may_receive("alice", "${user}.inbox")


def test_who_did_not_say_who_he_is_has_the_permissions_of_anonymous() -> None:
    assert CLOSED.may_receive(None, "public.news")
    assert not CLOSED.may_send(None, "public.news")


@pytest.mark.parametrize("permissions", [OPEN, CLOSED])
def test_everybody_may_reply_but_nobody_may_listen_to_replies(permissions: Permissions) -> None:
    address = dynamic_address("r1", "x")
    assert permissions.may_send(None, address)
    assert permissions.may_send("alice", address)
    assert not permissions.may_receive("bob", address)


@pytest.mark.parametrize("permissions", [OPEN, CLOSED])
@pytest.mark.parametrize("address", ["_amqpmesh/probe/1", "_amqpmesh/broker/b1/x", "_topo/0/r1/$management"])
def test_internal_addresses_are_for_nodes_and_operators_only(permissions: Permissions, address: str) -> None:
    for user in (None, "bob"):
        assert not permissions.may_send(user, address)
        assert not permissions.may_receive(user, address)
    assert permissions.may_send(None, address, is_mesh=True)
    assert permissions.may_receive(None, address, is_mesh=True)


def test_operators_may_do_everything() -> None:
    assert CLOSED.may_send("unheard-of", "orders", is_mesh=True)


@pytest.mark.parametrize(("user", "may"), [("alice", True), ("dora", False), (None, True), ("nobody", False)])
def test_who_may_receive_from_nothing_attaches_to_no_subscription_either(user: str | None, may: bool) -> None:
    assert CLOSED.may_receive_any(user) is may
    assert CLOSED.may_receive_any(user, is_mesh=True)
    assert OPEN.may_receive_any(user)


@pytest.mark.parametrize("filter_", ["news.#", "news.*", "news.*.eu", "public.*"])
def test_a_filter_that_a_pattern_covers_may_be_received_from(filter_: str) -> None:
    assert CLOSED.may_receive(None, filter_)
    assert CLOSED.may_receive("bob", filter_)
    assert OPEN.may_receive(None, filter_)


@pytest.mark.parametrize("filter_", ["public.#", "#", "*.eu", "*", "orders.*"])
def test_a_filter_that_matches_more_than_a_pattern_may_not(filter_: str) -> None:
    assert not CLOSED.may_receive(None, filter_)
    assert not CLOSED.may_receive("carol", filter_)


def test_patterns_that_cover_a_filter_only_together_do_not_count() -> None:
    both = Permissions(parse_topology(HEAD + 'users: {eve: {receive: ["a", "a.*.#"]}}\n'))
    assert both.may_receive("eve", "a")
    assert both.may_receive("eve", "a.b")
    assert not both.may_receive("eve", "a.#")
