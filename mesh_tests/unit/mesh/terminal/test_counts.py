"""Counts with their nouns."""

from __future__ import annotations

import pytest

from mesh.terminal.counts import number_of


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 messages"), (1, "1 message"), (2, "2 messages"), (12_345, "12,345 messages")]
)
def test_one_is_singular_and_nothing_else(count: int, text: str) -> None:
    assert number_of(count, "message") == text
