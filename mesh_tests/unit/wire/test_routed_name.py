"""Names of links over connections that clients share: apart on the connection, and known by their own names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wire import routed_name

TEXTS = st.text(alphabet="ab|%27C5/()[]", max_size=8)
CLIENTS = st.sampled_from(["r1/17/1", "r1/17/11", "r2/17/1"])
SPACES = st.sampled_from(["", "acme"])


@given(TEXTS, TEXTS, SPACES, CLIENTS, CLIENTS)
def test_two_clients_have_two_names_on_a_connection_for_the_same_link(
    container_id: str, link: str, space: str, one: str, other: str
) -> None:
    name = routed_name.lasting(container_id, link, space=space)
    names = routed_name.apart(name, one), routed_name.apart(name, other)
    assert (names[0] == names[1]) == (one == other)
    assert [routed_name.known(each) for each in names] == [name, name]
    assert [routed_name.client(each) for each in names] == [one, other]


@given(TEXTS, TEXTS, SPACES, CLIENTS)
def test_a_name_that_ends_with_the_client_stays_as_it_is(container_id: str, link: str, space: str, client: str) -> None:
    passing = routed_name.passing(container_id, link, client, space=space)
    shared = [
        routed_name.sharing(container_id, link, client, is_global=is_global, space=space) for is_global in (True, False)
    ]
    for name in (passing, *shared):
        assert routed_name.apart(name, client) == routed_name.known(name) == name
        assert routed_name.client(name) == client


def test_a_link_that_no_router_named_is_of_no_client() -> None:
    assert routed_name.client("mine") is None
    assert routed_name.known("mine") == "mine"
