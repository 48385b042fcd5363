"""Whatever a client writes into a set or a change, the broker reads it, or refuses it with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.filter_kinds import FilterError, FilterKind
from wire.codec.values import Array, Described, Symbol, UInt, ULong
from wire.errors import LinkError
from wire.filter_change import parse
from wire.filter_set import FILTER_SET, filter_set_of, read_filter_set
from wire.terminus import source

T = TypeVar("T")
E = TypeVar("E", bound=Exception)
_SIMPLE = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.binary(max_size=5)
    | st.text(max_size=5)
    | st.sampled_from(["amqp", "mqtt", "a/b", "a/#", Symbol("mqtt"), UInt(1), ULong(1)])
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SIMPLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(lambda items: Array(0xA1, tuple(items)))
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | inner.map(lambda value: Described(Symbol("x"), value))
    ),
    max_leaves=8,
)
_KEYS = st.sampled_from(["serial", "add", "remove"]) | st.text(max_size=3) | st.integers() | st.binary(max_size=3)


@given(value=_VALUES)
def test_any_value_of_a_set_is_read_or_refused(value: Any) -> None:
    found = filter_set_of(source("a.#", filter={"f": Described(Symbol(FILTER_SET), value)}))
    read = _tried(lambda: read_filter_set(found), LinkError)
    if isinstance(read, LinkError):
        assert read.condition == "amqp:invalid-field"
        assert read.description.startswith("filter set 'f': ")
    else:
        kind, filters = read
        assert [kind.check(each) for each in filters] == filters


@given(kind=st.sampled_from(FilterKind), body=st.dictionaries(_KEYS, _VALUES, max_size=4))
def test_any_map_of_a_change_is_read_or_refused(kind: FilterKind, body: dict[Any, Any]) -> None:
    read = _tried(lambda: parse(body, kind), FilterError)
    if isinstance(read, FilterError):
        assert len(str(read)) > 10
    else:
        assert set(body) <= {"serial", "add", "remove"}
        assert read.serial == body["serial"]
        for each in (*read.added, *read.removed):
            assert kind.check(each) == each


def _tried(read: Callable[[], T], refusal: type[E]) -> T | E:
    try:
        return read()
    except refusal as error:
        return error


@pytest.mark.parametrize("form", [list, tuple, lambda items: Array(0xA1, tuple(items))])
def test_filters_come_as_lists_or_arrays_of_strings_or_symbols(form: Any) -> None:
    items = form(["a/+", Symbol("b")])
    assert read_filter_set({"f": Described(Symbol(FILTER_SET), ["mqtt", items])}) == (FilterKind.MQTT, ["a/+", "b"])
    change = parse({"serial": ULong(7), "add": items}, FilterKind.MQTT)
    assert (change.serial, change.added, change.removed) == (7, ("a/+", "b"), ())
