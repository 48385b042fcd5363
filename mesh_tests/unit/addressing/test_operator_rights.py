"""Who may see and change what of a mesh."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.errors import TopologyErrors
from addressing.operator_rights import OWNER, Operator, OperatorRights, Right
from addressing.topology.loader import parse_topology

HEAD = "mesh: m\nrouters: {r1: }\naddresses: {'#': queue}\nbrokers: {b1: {data: ./b1, routers: [r1]}}\n"
OPEN = OperatorRights(parse_topology(HEAD))
CLOSED = OperatorRights(
    parse_topology(
        HEAD
        + """
users:
  alice: {view: "orders.#", browse: "${user}.#", manage: [orders.returns]}
  bob: {send: "#", receive: "#"}
  root: {manage: "#"}
  anonymous: {view: "public.*"}
"""
    )
)
NAMES = st.sampled_from(
    ["orders", "orders.eu", "orders.returns", "alice.inbox", "public.news", "_amqpmesh/probe/1", "#"]
)
USERS = st.sampled_from([None, "alice", "bob", "root", "nobody"])


def test_without_users_everybody_sees_all_and_changes_nothing() -> None:
    assert OPEN.may_view(None, "orders")
    assert OPEN.may_browse("somebody", "orders")
    assert OPEN.views_all(None)
    assert not OPEN.may_manage(None, "orders")
    assert not OPEN.manages_mesh("somebody")


def test_sending_and_receiving_give_no_right_to_see_or_change() -> None:
    assert not CLOSED.sees_mesh("bob")
    assert not CLOSED.may_view("bob", "orders")


def test_a_right_holds_for_the_addresses_of_its_patterns() -> None:
    assert CLOSED.may_view("alice", "amqp:/orders.eu")
    assert not CLOSED.may_browse("alice", "orders.eu")
    assert not CLOSED.may_manage("alice", "orders.eu")
    assert CLOSED.may_manage("alice", "orders.returns")
    assert not CLOSED.may_view("alice", "order")


def test_the_variable_stands_for_the_name_of_the_user() -> None:
    assert CLOSED.may_browse("alice", "alice.inbox")
    assert not CLOSED.may_browse("root", "root.inbox")


def test_a_filter_needs_a_pattern_that_covers_all_of_it() -> None:
    assert CLOSED.may_view("alice", "orders.*")
    assert not CLOSED.may_view("alice", "#")


def test_a_client_without_a_login_is_anonymous() -> None:
    assert CLOSED.may_view(None, "public.news")
    assert CLOSED.sees_mesh(None)
    assert not CLOSED.views_all(None)


def test_a_user_that_the_topology_does_not_name_has_no_right() -> None:
    assert not CLOSED.sees_mesh("mallory")


def test_what_belongs_to_the_mesh_needs_the_pattern_for_every_address() -> None:
    assert CLOSED.manages_mesh("root")
    assert CLOSED.may_view("root", "_amqpmesh/probe/1")
    assert not CLOSED.manages_mesh("alice")
    assert not CLOSED.may_view("alice", "_amqpmesh/probe/1")


@given(USERS, NAMES)
def test_whoever_may_browse_or_manage_may_view(user: str | None, address: str) -> None:
    for rights in (OPEN, CLOSED):
        if rights.may_browse(user, address) or rights.may_manage(user, address):
            assert rights.may_view(user, address)
            assert rights.sees_mesh(user)


@given(USERS, NAMES)
def test_a_right_for_every_address_is_a_right_for_each(user: str | None, address: str) -> None:
    for rights in (OPEN, CLOSED):
        assert not rights.views_all(user) or rights.may_view(user, address)
        assert not rights.manages_mesh(user) or rights.may_manage(user, address)


@given(NAMES)
def test_the_owner_may_do_everything(address: str) -> None:
    assert OWNER.may_view(address)
    assert OWNER.may_browse(address)
    assert OWNER.may_manage(address)
    assert OWNER.sees_mesh
    assert OWNER.manages_mesh


def test_who_has_no_pattern_has_no_right() -> None:
    nobody = Operator("nobody", dict.fromkeys(Right, ()))
    assert not nobody.sees_mesh
    assert not nobody.may_view("orders")


@pytest.mark.parametrize("right", ["view", "browse", "manage"])
def test_a_pattern_that_is_none_is_refused_with_its_place(right: str) -> None:
    with pytest.raises(TopologyErrors) as refused:
        parse_topology(HEAD + f"users: {{alice: {{{right}: ['a#']}}}}\n")
    assert f"user 'alice': {right}: 'a#'" in str(refused.value)
