from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.address import Address
from addressing.filter_kinds import FilterKind
from addressing.filter_tree import AmqpTree, FilterTree, FilterTrees, MqttTree
from addressing.pattern import PatternSet
from mesh_tests.unit.addressing.filters import ADDRESSES, ANY, FILTERS, NAIVE, naive_mqtt


def _tree(*filters: str) -> AmqpTree[str]:
    tree: AmqpTree[str] = AmqpTree()
    for filter_ in filters:
        tree.add(filter_, filter_)
    return tree


@pytest.mark.parametrize(
    ("filter_", "address", "is_wanted"),
    [
        ("news.sport", "news.sport", True),
        ("news.sport", "news/sport", False),
        ("news.sport", "news", False),
        ("news.*", "news.sport", True),
        ("news.*", "news", False),
        ("news.*", "news.sport.football", False),
        ("news.#", "news", True),
        ("news.#", "news.sport/football", True),
        ("#.football", "news.sport.football", True),
        ("#.football", "football", True),
        ("#", "anything/at.all", True),
        ("a.#.z", "a.z", True),
        ("a.#.z", "a.b.c.z", True),
        ("a.#.z", "a.b.c", False),
        ("*.*", "a", False),
        ("/a/*", "/a/b", True),
    ],
)
def test_a_filter_takes_what_its_wildcards_stand_for(filter_: str, address: str, is_wanted: bool) -> None:
    assert (_tree(filter_).matching(address) == [filter_]) is is_wanted


def test_a_key_is_found_once_though_its_filter_matches_in_many_ways() -> None:
    assert _tree("#.#.a.#").matching("a.a.a") == ["#.#.a.#"]


def test_many_wildcards_over_a_long_address_take_no_time() -> None:
    assert _tree(".".join(["#", "a"] * 20 + ["b"])).matching(".".join(["a"] * 200)) == []


def test_a_removed_filter_leaves_nothing_behind() -> None:
    tree = _tree("a.b", "a.b.c")
    tree.remove("a.b.c", "a.b.c")
    assert tree.matching("a.b") == ["a.b"]
    tree.remove("a.b", "a.b")
    assert tree.matching("a.b") == []
    with pytest.raises(KeyError):
        tree.remove("a.b", "a.b")


@given(filters=st.lists(FILTERS, unique=True, max_size=8), address=ADDRESSES)
def test_a_filter_means_here_what_it_means_in_the_topology(filters: list[str], address: str) -> None:
    wanted = {filter_ for filter_ in filters if address in PatternSet([filter_])}
    assert set(_tree(*filters).matching(address)) == wanted


def test_a_filter_matches_addresses_of_its_space_only() -> None:
    trees: FilterTrees[str] = FilterTrees()
    for space in ("", "acme"):
        trees.add(Address(space, "#"), f"all of {space}")
        trees.add(Address(space, "a.*"), f"some of {space}")
    for space in ("", "acme"):
        assert set(trees.matching(Address(space, "a.b"))) == {f"all of {space}", f"some of {space}"}
    trees.remove(Address("acme", "#"), "all of acme")
    assert trees.matching(Address("acme", "x")) == []
    assert trees.matching(Address("", "x")) == ["all of "]
    assert trees.matching(Address("other", "a.b")) == []


@pytest.mark.parametrize(
    ("filter_", "address", "is_wanted"),
    [
        ("sport/tennis/#", "sport/tennis", True),
        ("sport/tennis/#", "sport/tennis/a/b", True),
        ("sport/tennis/#", "sport", False),
        ("sport/+", "sport/tennis", True),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("sport/+", "sport/a/b", False),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("+", "a.b", True),
        ("a/+", "a.b", False),
        ("a/+/#", "a", False),
        ("a/+/#", "a/b", True),
        ("#", "a/b", True),
        ("#", "$SYS", False),
        ("#", "$SYS/a", False),
        ("+/a", "$SYS/a", False),
        ("$SYS/#", "$SYS/a", True),
        ("$SYS/#", "$SYS", True),
        ("$SYS/+", "$SYS/a", True),
        ("a/#", "a/$b", True),
        ("a/+", "a/$b", True),
        ("*", "a", False),
        ("+", "+", True),
        ("a", "a", True),
    ],
)
def test_an_mqtt_filter_takes_what_its_wildcards_stand_for(filter_: str, address: str, is_wanted: bool) -> None:
    tree: MqttTree[str] = MqttTree()
    tree.add(filter_, filter_)
    assert (tree.matching(address) == [filter_]) is is_wanted


@given(filters=st.lists(ANY[FilterKind.MQTT][0], unique=True, max_size=8), address=ANY[FilterKind.MQTT][1])
def test_an_mqtt_filter_means_here_what_the_standard_says(filters: list[str], address: str) -> None:
    tree: MqttTree[str] = MqttTree()
    for filter_ in filters:
        tree.add(filter_, FilterKind.MQTT.check(filter_))
    assert set(tree.matching(address)) == {filter_ for filter_ in filters if naive_mqtt(filter_, address)}


@pytest.mark.parametrize("tree_type", [AmqpTree, MqttTree])
@given(data=st.data())
def test_a_tree_matches_what_was_added_and_not_removed(tree_type: type[FilterTree[str]], data: st.DataObject) -> None:
    kind = FilterKind.MQTT if tree_type is MqttTree else FilterKind.AMQP
    filters, addresses = ANY[kind]
    tree, there = tree_type(), set()
    for filter_ in data.draw(st.lists(filters, max_size=20)):
        if filter_ in there:
            there.discard(filter_)
            tree.remove(filter_, filter_)
        else:
            there.add(filter_)
            tree.add(filter_, filter_)
    for address in data.draw(st.lists(addresses, max_size=5)):
        assert set(tree.matching(address)) == {each for each in there if NAIVE[kind](each, address)}
    for filter_ in there:
        tree.remove(filter_, filter_)
    assert not tree
