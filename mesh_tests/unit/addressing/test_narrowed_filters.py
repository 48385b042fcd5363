"""Which filters of sets match an address, and is a filter read from its routing key as it was?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.address import Address
from addressing.filter_kinds import FilterKind
from addressing.narrowed_filters import NarrowedFilter, NarrowedTrees
from addressing.routing_keys import Key
from mesh_tests.unit.addressing.filters import ADDRESSES, FILTERS, MQTT_ADDRESSES, MQTT_FILTERS, NAIVE, naive_amqp

SPACES = st.sampled_from(["", "acme"])
NARROWED = st.builds(
    lambda space, source, kind, amqp, mqtt: NarrowedFilter(
        Address(space, source), kind, amqp if kind is FilterKind.AMQP else mqtt
    ),
    SPACES,
    FILTERS,
    st.sampled_from(FilterKind),
    FILTERS,
    MQTT_FILTERS.filter(bool),
)
PLACES = st.builds(Address, SPACES, ADDRESSES | MQTT_ADDRESSES.filter(bool))


def naive(filter_: NarrowedFilter, address: Address) -> bool:
    is_in_source = filter_.source.space == address.space and naive_amqp(filter_.source.name, address.name)
    return is_in_source and NAIVE[filter_.kind](filter_.text, address.name)


@given(st.sets(NARROWED, max_size=8), st.sets(NARROWED, max_size=4), st.lists(PLACES, min_size=1, max_size=8))
def test_the_filters_that_match_are_those_whose_source_and_text_match(
    kept: set[NarrowedFilter], removed: set[NarrowedFilter], addresses: list[Address]
) -> None:
    trees = NarrowedTrees((each, each) for each in sorted(kept | removed))
    for each in sorted(removed - kept):
        trees.remove(each, each)
    for address in addresses:
        assert set(trees.matching(address)) == {each for each in kept if naive(each, address)}
    for each in sorted(kept):
        trees.remove(each, each)
    assert not trees
    with pytest.raises(KeyError):
        trees.remove(
            NarrowedFilter(Address("", "a"), FilterKind.AMQP, "a"),
            NarrowedFilter(Address("", "a"), FilterKind.AMQP, "a"),
        )


@given(NARROWED)
def test_a_filter_is_read_from_its_key(filter_: NarrowedFilter) -> None:
    key = Key.parse(filter_.key)
    assert key is not None
    assert NarrowedFilter.of_key(key) == filter_


@given(st.sets(NARROWED, min_size=2, max_size=6))
def test_different_filters_have_different_keys(filters: set[NarrowedFilter]) -> None:
    assert len({each.key for each in filters}) == len(filters)


@given(NARROWED, PLACES)
def test_a_filter_with_one_match_matches_no_other_address(filter_: NarrowedFilter, address: Address) -> None:
    only = filter_.only_match
    if only is not None and address != only:
        assert not naive(filter_, address)


@pytest.mark.parametrize("name", ["a", "a amqp", "a xyz b", "a amqp b c", " amqp b", "a amqp ", "a  b"])
def test_a_name_of_another_form_is_no_filter(name: str) -> None:
    key = Key.parse(f"S0{name}")
    assert key is not None
    assert NarrowedFilter.of_key(key) is None
