"""AMQP values as JSON and back: the same value, whatever its type."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_tests.unit.wire.codec.strategies import values
from wire.codec.values import Char, Decimal64, Pairs, Symbol, Timestamp, ULong, decode, encode
from wire.value_json import ValueJsonError, from_json, texts_of, to_json


def through_ecmascript(form: Any) -> Any:
    """As an editor in a browser hands it back: each number is a double."""
    return json.loads(json.dumps(form, ensure_ascii=False), parse_int=lambda text: _as_double(float(text)))


def _as_double(number: float) -> int:
    assert number.is_integer()
    return int(number)


@given(values)
def test_a_value_comes_back_from_its_form_with_its_type(value: Any) -> None:
    # `values` are in the form of their decoding: pairs for maps that a dict would change.
    encoded = encode(value)
    form = through_ecmascript(to_json(decode(encoded)))
    json.dumps(form, ensure_ascii=False).encode()
    assert encode(from_json(form)) == encoded


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (2**53 - 1, 2**53 - 1),
        (2**53, {"$long": "9007199254740992"}),
        (ULong(5), {"$ulong": 5}),
        (1.0, {"$double": "1.0"}),
        (0.5, 0.5),
        (float("nan"), {"$double": "NaN"}),
        (Timestamp(0), {"$timestamp": "1970-01-01T00:00:00.000Z"}),
        (Timestamp(-(2**63)), {"$timestamp": "-9223372036854775808"}),
        (b"\x00", {"$binary": "AA=="}),
        (Symbol("a"), {"$symbol": "a"}),
        (Char("\U0001f600"), {"$char": "\U0001f600"}),
        (Decimal64(b"12345678"), {"$decimal64": "3132333435363738"}),
        ({"a": 1}, {"a": 1}),
        ({"$a": 1}, {"$map": [["$a", 1]]}),
        ({1: 2}, {"$map": [[1, 2]]}),
        (Pairs(((1, 2), (True, 3))), {"$map": [[1, 2], [True, 3]]}),
    ],
)
def test_the_form_of_a_value_is_as_documented(value: Any, form: Any) -> None:
    assert to_json(value) == form
    assert encode(from_json(form)) == encode(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text()
            | st.sampled_from(
                ["$map", "$array", "$described", "$ulong", "$char", "$timestamp", "$uuid", "$cut", "$binary", "$float"]
            ),
            inner,
            max_size=2,
        )
    ),
)


@given(json_values)
def test_any_json_is_a_value_that_can_be_encoded_or_is_refused_in_a_sentence(form: Any) -> None:
    why = "the value"
    try:
        encode(from_json(form, "the value"))
    except ValueJsonError as error:
        why = str(error)
    assert why.startswith("the value")


def test_values_nested_without_end_are_refused() -> None:
    form: Any = 1
    for _ in range(1000):
        form = [form]
    with pytest.raises(ValueJsonError, match="levels"):
        from_json(form)


def test_a_cut_value_cannot_be_turned_back() -> None:
    with pytest.raises(ValueJsonError, match="cut"):
        from_json({"$cut": {"type": "string", "bytes": 5, "start": "a"}})


def test_texts_of_a_form_are_what_people_read() -> None:
    form = {"name": [{"$symbol": "s"}, 5, {"$uuid": "u"}, {"$binary": "AAAA"}, True, None]}
    assert list(texts_of(form)) == ["name", "s", "5", "u"]
