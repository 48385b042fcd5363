"""Names of links as Qpid JMS makes them, and the keys that the store has for them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.queueing.subscribers import Subscribers, SubscriptionKey
from wire import routed_name

MESH = "shop"
SUBSCRIBERS = Subscribers(MESH)
TEXTS = st.text(alphabet="ab|%27C5/", max_size=6)


def _shared(container_id: str, link_name: str, *, is_global: bool = False, is_durable: bool = True) -> SubscriptionKey:
    return SUBSCRIBERS.shared(container_id, link_name, is_global=is_global, is_durable=is_durable)


@pytest.mark.parametrize("link_name", ["sub", "sub|2", "sub|17"])
def test_links_of_a_jms_client_with_an_id_share_within_it(link_name: str) -> None:
    assert _shared("id", link_name) == ("|shared|id", "sub")
    assert _shared("other", link_name) != _shared("id", link_name)


@pytest.mark.parametrize("link_name", ["sub|global", "sub|global2"])
def test_links_of_jms_clients_without_an_id_share_with_all(link_name: str) -> None:
    assert _shared("one", link_name, is_global=True) == _shared("two", "sub|global", is_global=True)


def test_volatile_ones_are_apart() -> None:
    keys = {
        _shared("id", "sub|volatile1", is_durable=False),
        _shared("id", "sub"),
        _shared("id", "sub|global-volatile1", is_global=True, is_durable=False),
        _shared("id", "sub|global", is_global=True),
        SUBSCRIBERS.own("id", "sub"),
    }
    assert len(keys) == 5


@given(container_id=TEXTS, name=TEXTS, connection=TEXTS, is_global=st.booleans())
def test_a_routed_link_shares_with_the_same_clients_direct_one(
    container_id: str, name: str, connection: str, *, is_global: bool
) -> None:
    routed = routed_name.sharing(container_id, name, connection, is_global=is_global)
    if container_id != MESH:
        assert _shared(MESH, routed, is_global=is_global) == _shared(container_id, name, is_global=is_global)


@given(one=st.tuples(TEXTS, TEXTS, TEXTS), two=st.tuples(TEXTS, TEXTS, TEXTS))
def test_links_of_different_clients_and_names_have_different_names_at_a_broker(
    one: tuple[str, str, str], two: tuple[str, str, str]
) -> None:
    assert (routed_name.lasting(*one[:2]) == routed_name.lasting(*two[:2])) == (one[:2] == two[:2])
    assert routed_name.read_lasting(routed_name.lasting(*one[:2])) == one[:2]
    scope, name = one[0], routed_name.subscription_of(one[1])
    assert routed_name.read_sharing(routed_name.sharing(*one, is_global=False)) == (scope, name)


@given(
    one=st.tuples(TEXTS, TEXTS, TEXTS, TEXTS),
    two=st.tuples(TEXTS, TEXTS, TEXTS, TEXTS),
    are_global=st.tuples(st.booleans(), st.booleans()),
)
def test_by_user_no_link_of_a_user_has_the_name_of_another_users(
    one: tuple[str, str, str, str], two: tuple[str, str, str, str], are_global: tuple[bool, bool]
) -> None:
    names = [
        {
            routed_name.lasting(container_id, link_name, user),
            routed_name.passing(container_id, link_name, connection, user),
            routed_name.subscription_of(
                routed_name.sharing(container_id, link_name, connection, is_global=is_global, user=user)
            ),
        }
        for (user, container_id, link_name, connection), is_global in zip((one, two), are_global, strict=True)
    ]
    if one[0] != two[0]:
        assert names[0].isdisjoint(names[1])
    assert (routed_name.lasting(one[1], one[2], one[0]) == routed_name.lasting(two[1], two[2], two[0])) == (
        one[:3] == two[:3]
    )


CONTAINERS = st.one_of(
    TEXTS, st.sampled_from(["|shared", "|shared|", "|shared|a", "||shared|a", "|volatile|a", "|volatile", "|"])
)


@given(one=st.tuples(CONTAINERS, TEXTS), two=st.tuples(CONTAINERS, TEXTS), is_global=st.booleans())
def test_no_container_id_makes_a_link_of_its_own_look_shared(
    one: tuple[str, str], two: tuple[str, str], *, is_global: bool
) -> None:
    assert (SUBSCRIBERS.own(*one) == SUBSCRIBERS.own(*two)) == (one == two)
    assert SUBSCRIBERS.own(*one) != _shared(*two, is_global=is_global)
    assert SUBSCRIBERS.own(*one) != _shared(*two, is_global=is_global, is_durable=False)


@given(container_id=TEXTS, link_name=TEXTS, is_routed=st.booleans())
def test_a_link_and_the_shared_subscription_of_its_name_know_each_other(
    container_id: str, link_name: str, *, is_routed: bool
) -> None:
    name = routed_name.subscription_of(link_name)
    key = _shared(container_id, name)
    link = (MESH, routed_name.lasting(container_id, name)) if is_routed else (container_id, name)
    assert key in SUBSCRIBERS.shared_alike(*link)
    assert SUBSCRIBERS.own(*link) in SUBSCRIBERS.own_alike(key)
    assert SUBSCRIBERS.recalled(*link) == (SUBSCRIBERS.own(*link), key)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (SUBSCRIBERS.own("shop", "app|reader"), "shop|app|reader"),
        (SUBSCRIBERS.own("|odd", "reader"), "|odd|reader"),
        (_shared("app", "work|2"), "app|work (shared)"),
        (_shared("app", "work|global", is_global=True), "work (shared, global)"),
        (_shared("app", "work", is_durable=False), "app|work (shared, not durable)"),
    ],
)
def test_a_key_reads_well(key: SubscriptionKey, text: str) -> None:
    assert key.text == text


SPACES = st.sampled_from(("", "a", "b.7"))
CLIENTS = st.tuples(SPACES, st.text(alphabet="ab|%()7C5", max_size=8), st.text(alphabet="ab|%()7C5", max_size=8))


@settings(deadline=None)
@given(one=CLIENTS, two=CLIENTS, are_global=st.tuples(st.booleans(), st.booleans()), is_durable=st.booleans())
def test_links_of_two_spaces_have_neither_equal_names_at_a_broker_nor_equal_keys(
    one: tuple[str, str, str], two: tuple[str, str, str], are_global: tuple[bool, bool], *, is_durable: bool
) -> None:
    names, keys = [], []
    for (space, container_id, link_name), is_global in zip((one, two), are_global, strict=True):
        lasting = routed_name.lasting(container_id, link_name, space=space)
        shared = routed_name.sharing(container_id, link_name, "r1/5/1", is_global=is_global, space=space)
        names.append({lasting, routed_name.subscription_of(shared)})
        keys.append(
            {
                SUBSCRIBERS.own(MESH, lasting),
                SUBSCRIBERS.shared(MESH, shared, is_global=is_global, is_durable=is_durable),
                *SUBSCRIBERS.recalled(MESH, lasting),
                *SUBSCRIBERS.shared_alike(MESH, lasting),
                *SUBSCRIBERS.own_alike(SUBSCRIBERS.shared(MESH, shared, is_global=is_global, is_durable=True)),
            }
        )
    if one[0] != two[0]:
        assert names[0].isdisjoint(names[1])
        assert keys[0].isdisjoint(keys[1])


@given(client=CLIENTS)
def test_a_subscription_of_a_space_is_found_by_its_unsubscribe(client: tuple[str, str, str]) -> None:
    space, container_id, link_name = client
    name = routed_name.subscription_of(link_name)
    routed = routed_name.sharing(container_id, link_name, "r1/5/1", is_global=False, space=space)
    end = routed_name.lasting(container_id, name, space=space)
    shared = SUBSCRIBERS.shared(MESH, routed, is_global=False, is_durable=True)
    assert shared in SUBSCRIBERS.recalled(MESH, end)
    assert SUBSCRIBERS.own(MESH, end) in SUBSCRIBERS.own_alike(shared)
    assert SUBSCRIBERS.shared_alike(MESH, end) == (shared,)


def test_keys_of_a_space_name_the_space() -> None:
    routed = routed_name.sharing("app", "work", "r1/5/1", is_global=False, space="acme")
    key = SUBSCRIBERS.shared(MESH, routed, is_global=False, is_durable=True)
    assert (key, key.text) == (("|shared(acme)|app", "work"), "app|work (shared, space acme)")
    own = SUBSCRIBERS.own(MESH, routed_name.lasting("app", "work", space="acme"))
    assert (own, own.text) == ((MESH, "%(acme)app|work"), "shop|%(acme)app|work")
