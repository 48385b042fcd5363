"""A map with one text in it, written and read past proton's wrappers: is it what they would say and see?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from wire import data
from wire.codec.values import Symbol as symbol
from wire.engine import lib


@pytest.fixture
def held() -> Iterator[Any]:
    made = lib.pn_data(16)
    yield made
    lib.pn_data_free(made)


@pytest.mark.parametrize("text", ["", "b1", "schlüssel", "x" * 100_000, "a\0b"])
def test_what_is_written_is_read_again_by_either(held: Any, text: str) -> None:
    data.write_text(held, "key", text)
    assert data.read_map(held) == {"key": text}
    assert data.read_text(held, "key") == text
    data.write_map(held, {"other": 1, "key": text, "third": [1]})
    assert data.read_text(held, "key") == text


def test_writing_replaces_what_was_there(held: Any) -> None:
    data.write_map(held, {"a": [1, 2], "b": {"c": "d"}})
    data.write_text(held, "key", "value")
    assert data.read_map(held) == {"key": "value"}


@pytest.mark.parametrize(
    "value",
    [
        None,
        "key",
        ["key", "value"],
        {symbol("other"): "value"},
        {"key": "value"},
        {symbol("key"): 1},
        {symbol("key"): symbol("value")},
        {symbol("key"): ["value"]},
        {symbol("a"): {symbol("key"): "value"}},
        {},
    ],
    ids=repr,
)
def test_what_is_no_text_under_that_key_is_none(held: Any, value: Any) -> None:
    data.write(held, value)
    assert data.read_text(held, "key") is None
