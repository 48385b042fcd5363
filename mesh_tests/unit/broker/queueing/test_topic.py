from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.address import Address
from addressing.filter_kinds import FilterKind
from addressing.filter_set import FilterSet
from broker.queueing.topic import SubscriptionTrees
from mesh_tests.unit.addressing.filters import ADDRESSES, ANY, FILTERS, MQTT_ADDRESSES, NAIVE, naive_amqp


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


Sets = dict[str, tuple[str, FilterSet | None]]


@given(data=st.data())
def test_a_set_narrows_the_address_of_its_source_whatever_changes(data: st.DataObject) -> None:
    trees: SubscriptionTrees[str] = SubscriptionTrees()
    kinds: Sets = {}
    for number in range(data.draw(st.integers(0, 5))):
        kind = data.draw(st.sampled_from([None, *FilterKind]))
        filters = data.draw(st.lists(ANY[kind][0], max_size=6)) if kind else ()
        filter_set = FilterSet(kind, filters) if kind else None
        kinds[f"s{number}"] = data.draw(FILTERS), filter_set
        trees.add(Address("", kinds[f"s{number}"][0]), f"s{number}", filter_set)
    for _ in range(data.draw(st.integers(0, 6))):
        _check(trees, kinds, data.draw(ADDRESSES | MQTT_ADDRESSES.filter(bool)))
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
    drawn: Iterable[str] = data.draw(st.lists(ANY[filter_set.kind][0], max_size=4, unique=True))
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
