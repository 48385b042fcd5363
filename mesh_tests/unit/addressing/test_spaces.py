"""Is the text of an address the address itself, in each space, and in the default space the bare name?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.address import DEFAULT_SPACE, SPACE_PREFIX, Address
from addressing.book import SpaceBooks
from addressing.errors import BadValue
from addressing.pattern import PatternError, check_pattern
from addressing.permissions import Permissions
from addressing.routing_keys import Key, fallback_keys, producer_key
from addressing.topology.model import Topology

SPACES = st.just(DEFAULT_SPACE) | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,5}", fullmatch=True)
NAMES = st.text() | st.builds(SPACE_PREFIX.__add__, st.text(alphabet="a/", max_size=4))
ADDRESSES = st.builds(Address, SPACES, NAMES)
TOPOLOGY = Topology.model_validate(
    {
        "mesh": "spaces",
        "routers": {"r1": {}},
        "brokers": {"b1": {"data": "b1"}, "b2": {"url": "amqp://elsewhere", "address_prefix": "/queues/"}},
        "addresses": {
            "rpc": {"type": "anycast", "fallback": "orders"},
            "prices": "multicast",
            "orders": {"type": "queue", "broker": "b1", "dead_letter": "dead"},
            "dead": {"type": "queue", "broker": "b1", "broker_address": "graveyard"},
            "far": {"type": "queue", "broker": "b2"},
            "q.*": {"type": "queue", "broker": "b1"},
        },
    }
)
_PREFIX = re.compile(r"SPACE_PREFIX|_amqpmesh/space/")
BOOKS = SpaceBooks(TOPOLOGY, {"acme": TOPOLOGY.addresses, "empty": {}})


@given(ADDRESSES)
def test_an_address_comes_back_from_its_text(address: Address) -> None:
    assert Address.parse(address.text) == address


@given(ADDRESSES, ADDRESSES)
def test_two_addresses_have_two_texts(one: Address, other: Address) -> None:
    assert (one.text == other.text) == (one == other)


@given(st.text())
def test_text_without_the_prefix_of_spaces_is_a_name_of_the_default_space(name: str) -> None:
    if not name.startswith(SPACE_PREFIX):
        assert Address.parse(name) == Address(DEFAULT_SPACE, name)
        assert Address(DEFAULT_SPACE, name).text == name


def test_an_address_of_another_space_has_the_space_in_its_text() -> None:
    assert Address("acme", "orders/eu").text == "_amqpmesh/space/acme/orders/eu"
    assert Address("", "_amqpmesh/space/acme/orders").text == "_amqpmesh/space//_amqpmesh/space/acme/orders"


@pytest.mark.parametrize("text", ["_amqpmesh/space/acme", SPACE_PREFIX])
def test_a_malformed_text_is_a_name_that_no_topology_declares(text: str) -> None:
    assert Address.parse(text) == Address(DEFAULT_SPACE, text)
    assert BOOKS.resolve(Address.parse(text)) is None


def test_no_client_of_the_default_space_reaches_another_space_by_a_name() -> None:
    name = Address("acme", "orders").text
    assert BOOKS.of(DEFAULT_SPACE).resolve(name) is None
    assert BOOKS.of(DEFAULT_SPACE).resolve(f"amqp:{name}") is None
    permissions = Permissions(TOPOLOGY)
    assert not permissions.may_send(None, name)
    assert not permissions.may_receive(None, name)
    with pytest.raises(PatternError):
        check_pattern(name)


def test_each_space_has_a_book_of_its_own() -> None:
    assert BOOKS.resolve(Address("empty", "orders")) is None
    assert BOOKS.resolve(Address("unknown", "orders")) is None
    assert [BOOKS.resolve(Address(space, "orders")).address.space for space in ("", "acme")] == ["", "acme"]  # type: ignore[union-attr]
    with pytest.raises(KeyError):
        BOOKS.of("unknown")


@pytest.mark.parametrize("name", ["", "a/b", "-a", "a b"])
def test_a_name_that_would_make_texts_ambiguous_is_no_space(name: str) -> None:
    with pytest.raises(BadValue, match="not a valid name"):
        SpaceBooks(TOPOLOGY, {name: {}})


@pytest.mark.parametrize(
    ("space", "name", "key", "at_broker"),
    [
        ("", "orders", "M0orders", "orders"),
        ("", "dead", "M0dead", "graveyard"),
        ("", "far", "M0far", "/queues/far"),
        ("acme", "orders", "M0_amqpmesh/space/acme/orders", "_amqpmesh/space/acme/orders"),
        ("acme", "dead", "M0_amqpmesh/space/acme/dead", "_amqpmesh/space/acme/graveyard"),
        ("acme", "far", "M0_amqpmesh/space/acme/far", "/queues/_amqpmesh/space/acme/far"),
    ],
)
def test_keys_and_names_at_brokers_are_those_of_the_space(space: str, name: str, key: str, at_broker: str) -> None:
    policy = BOOKS.resolve(Address(space, name))
    assert policy is not None
    assert policy.key(0).text == key
    assert Key.parse(key).address == policy.address  # type: ignore[union-attr]
    assert policy.at_broker(policy.brokers[0]) == at_broker
    assert BOOKS.of(space).name_in_mesh(policy.brokers[0], at_broker) == name


def test_keys_of_producers_and_fallbacks_are_those_of_the_space() -> None:
    found = [(producer_key(address), *fallback_keys(address)) for address in (Address("", "a"), Address("acme", "a"))]
    text = "_amqpmesh/space/acme/a"
    assert found == [("P0a", "F0a", "F1a"), (f"P0{text}", f"F0{text}", f"F1{text}")]


def test_queues_that_a_policy_names_are_in_the_same_space() -> None:
    for space in ("", "acme"):
        rpc, orders = (BOOKS.resolve(Address(space, name)) for name in ("rpc", "orders"))
        assert rpc is not None
        assert orders is not None
        assert rpc.fallback == orders.address
        assert orders.queue.dead_letter == Address(space, "graveyard")


def test_equal_patterns_of_two_spaces_have_limits_of_their_own() -> None:
    found = [BOOKS.pattern_policy(Address(space, "q.1")) for space in ("", "acme", "empty", "unknown")]
    assert [policy and policy.pattern for policy in found] == ["q.*", "_amqpmesh/space/acme/q.*", None, None]


def test_addresses_of_the_mesh_itself_are_in_the_default_space_only() -> None:
    for name in ("_amqpmesh/probe/1-r1", "_amqpmesh/broker/b1/probe-1"):
        assert BOOKS.resolve(Address("", name)) is not None
        assert BOOKS.resolve(Address("acme", name)) is None
    assert BOOKS.resolve(Address("acme", "_topo/0/r1/temp.1")) is not None


def test_an_address_of_another_space_is_not_the_meshs_own() -> None:
    assert not Address.parse("_amqpmesh/space/acme/orders").is_internal
    assert Address.parse("_amqpmesh/space/acme/_topo/0/r1/temp.1").is_internal
    assert Address.parse("_amqpmesh/probe/1-r1").is_internal


def test_no_other_module_formats_or_takes_apart_the_text_of_an_address() -> None:
    root = Path(__file__).parents[3]
    packages = ("addressing", "wire", "recording", "router", "broker", "linklogs", "mesh")
    files = [path for package in packages for path in (root / package).rglob("*.py*") if path.suffix in (".py", ".pyx")]
    found = {str(path.relative_to(root)) for path in files if _PREFIX.search(path.read_text())}
    # The expression is for Spark, which has no Address.
    assert found == {"addressing/address.py", "linklogs/replay/column_expressions.py"}
