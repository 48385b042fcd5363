from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.address import Address
from addressing.filter_kinds import FilterKind
from addressing.pattern import PatternSet
from broker.queueing.filter_set import FilterSet
from broker.queueing.topic import FilterTree, MqttTree, SubscriptionTree, SubscriptionTrees


def _tree(*filters: str) -> SubscriptionTree[str]:
    tree: SubscriptionTree[str] = SubscriptionTree()
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


def _joined(tokens: list[str]) -> st.SearchStrategy[str]:
    delimiters = st.lists(st.sampled_from("./"), min_size=len(tokens), max_size=len(tokens))
    return delimiters.map(lambda drawn: "".join(d + t for d, t in zip(drawn, tokens, strict=True))[1:])


_FILTERS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=5).flatmap(_joined)
_ADDRESSES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).flatmap(_joined)


@given(filters=st.lists(_FILTERS, unique=True, max_size=8), address=_ADDRESSES)
def test_a_filter_means_here_what_it_means_in_the_topology(filters: list[str], address: str) -> None:
    wanted = {filter_ for filter_ in filters if address in PatternSet([filter_])}
    assert set(_tree(*filters).matching(address)) == wanted


def test_a_filter_matches_addresses_of_its_space_only() -> None:
    trees: SubscriptionTrees[str] = SubscriptionTrees()
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


def naive_amqp(filter_: str, address: str) -> bool:
    return address in PatternSet([filter_])


def naive_mqtt(filter_: str, address: str) -> bool:
    """The rules of MQTT as one regular expression for the filter."""
    if address.startswith("$") and filter_[0] in "+#":
        return False
    if filter_ == "#":
        return True
    head, is_open = (filter_[:-2], True) if filter_.endswith("/#") else (filter_, False)
    levels = "/".join("[^/]*" if level == "+" else re.escape(level) for level in head.split("/"))
    return re.fullmatch(levels + ("(/.*)?" if is_open else ""), address) is not None


def _mqtt(levels: list[str]) -> str:
    """A filter that ends at its first `#`."""
    return "/".join(levels[: levels.index("#") + 1] if "#" in levels else levels)


NAIVE: dict[FilterKind, Callable[[str, str], bool]] = {FilterKind.AMQP: naive_amqp, FilterKind.MQTT: naive_mqtt}
_MQTT_FILTERS = st.lists(st.sampled_from(["a", "b", "", "a.b", "$x", "+", "#"]), min_size=1, max_size=5).map(_mqtt)
_MQTT_ADDRESSES = st.lists(st.sampled_from(["a", "b", "", "a.b", "$x"]), min_size=1, max_size=5).map("/".join)
_ANY: dict[FilterKind, tuple[st.SearchStrategy[str], st.SearchStrategy[str]]] = {
    FilterKind.AMQP: (_FILTERS, _ADDRESSES),
    FilterKind.MQTT: (_MQTT_FILTERS.filter(bool), _MQTT_ADDRESSES.filter(bool)),
}


@given(filters=st.lists(_ANY[FilterKind.MQTT][0], unique=True, max_size=8), address=_ANY[FilterKind.MQTT][1])
def test_an_mqtt_filter_means_here_what_the_standard_says(filters: list[str], address: str) -> None:
    tree: MqttTree[str] = MqttTree()
    for filter_ in filters:
        tree.add(filter_, FilterKind.MQTT.check(filter_))
    assert set(tree.matching(address)) == {filter_ for filter_ in filters if naive_mqtt(filter_, address)}


@pytest.mark.parametrize("tree_type", [SubscriptionTree, MqttTree])
@given(data=st.data())
def test_a_tree_matches_what_was_added_and_not_removed(tree_type: type[FilterTree[str]], data: st.DataObject) -> None:
    kind = FilterKind.MQTT if tree_type is MqttTree else FilterKind.AMQP
    filters, addresses = _ANY[kind]
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


Sets = dict[str, tuple[str, FilterSet | None]]


@given(data=st.data())
def test_a_set_narrows_the_address_of_its_source_whatever_changes(data: st.DataObject) -> None:
    trees: SubscriptionTrees[str] = SubscriptionTrees()
    kinds: Sets = {}
    for number in range(data.draw(st.integers(0, 5))):
        kind = data.draw(st.sampled_from([None, *FilterKind]))
        filters = data.draw(st.lists(_ANY[kind][0], max_size=6)) if kind else ()
        filter_set = FilterSet(kind, filters) if kind else None
        kinds[f"s{number}"] = data.draw(_FILTERS), filter_set
        trees.add(Address("", kinds[f"s{number}"][0]), f"s{number}", filter_set)
    for _ in range(data.draw(st.integers(0, 6))):
        _check(trees, kinds, data.draw(_ADDRESSES | _MQTT_ADDRESSES.filter(bool)))
        _change(trees, kinds, data)
    for key, (source, filter_set) in kinds.items():
        trees.remove(Address("", source), key, filter_set)
    assert trees.matching(Address("", "a")) == []


def _check(trees: SubscriptionTrees[str], kinds: Sets, address: str) -> None:
    def is_wanted(source: str, filter_set: FilterSet | None) -> bool:
        if not naive_amqp(source, address):
            return False
        return filter_set is None or any(NAIVE[filter_set.kind](each, address) for each in filter_set.filters)

    found = trees.matching(Address("", address))
    assert sorted(found) == sorted(key for key, kept in kinds.items() if is_wanted(*kept))
    assert trees.matching(Address("acme", address)) == []


def _change(trees: SubscriptionTrees[str], kinds: Sets, data: st.DataObject) -> None:
    narrowed = {key: kept for key, kept in kinds.items() if kept[1] is not None}
    if not narrowed:
        return
    key = data.draw(st.sampled_from(sorted(narrowed)))
    source, filter_set = narrowed[key]
    assert filter_set is not None
    drawn: Iterable[str] = data.draw(st.lists(_ANY[filter_set.kind][0], max_size=4, unique=True))
    added, removed = set(drawn) - filter_set.filters, set(drawn) & filter_set.filters
    trees.change(Address("", source), key, filter_set.kind, added, removed)
    filter_set.filters ^= set(drawn)


def test_two_subscriptions_with_one_source_keep_it_until_both_are_gone() -> None:
    trees: SubscriptionTrees[str] = SubscriptionTrees()
    place, filter_set = Address("", "a.#"), FilterSet(FilterKind.AMQP, ["a.b"])
    trees.add(place, "first", filter_set)
    trees.add(place, "second", filter_set)
    trees.remove(place, "first", filter_set)
    assert trees.matching(Address("", "a.b")) == ["second"]
    trees.remove(place, "second", filter_set)
    with pytest.raises(KeyError):
        trees.remove(place, "second", filter_set)


@pytest.mark.parametrize("kind", list(FilterKind))
def test_a_large_set_that_ended_is_ignored_at_once_and_leaves_its_tree_some_filters_at_a_time(kind: FilterKind) -> None:
    trees: SubscriptionTrees[str] = SubscriptionTrees()
    place, filters = Address("", "a/#"), [f"a/{number}" for number in range(2500)]
    large, small = FilterSet(kind, filters), FilterSet(kind, filters[:3])
    trees.add(place, "large", large)
    trees.add(place, "small", small)
    trees.add(place, "stays", FilterSet(kind, filters[:3]))
    trees.remove(place, "large", large)
    trees.remove(place, "small", small)
    steps = 0
    while trees.has_ended:
        for number in (0, 2, 1000, 2499):
            assert trees.matching(Address("", f"a/{number}")) == ["stays"] * (number < 3)
        trees.drop_some()
        steps += 1
    assert steps == 1
    assert trees.matching(Address("", "a/1")) == ["stays"]
