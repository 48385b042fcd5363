"""Shares of the tests, of which each revision runs another one."""

from __future__ import annotations

import argparse

import pytest

from mesh_tests.share import Share

NAMES = [f"mesh_tests/unit/test_{number}.py::test_it" for number in range(1000)]


def taken(text: str) -> set[str]:
    share = Share.parse(text)
    return {name for name in NAMES if share.has(name)}


def test_a_share_has_about_as_many_tests_as_it_says_and_always_the_same() -> None:
    assert 150 < len(taken("5/a")) < 250
    assert taken("5/a") == taken("5/a")
    assert taken("1/a") == set(NAMES)


def test_another_word_takes_other_tests_until_all_had_their_turn() -> None:
    assert len(taken("5/a") & taken("5/b")) < 100
    assert set().union(*(taken(f"5/{word}") for word in range(60))) == set(NAMES)


@pytest.mark.parametrize("text", ["", "5", "5/", "0/a", "-1/a", "a/5"])
def test_what_is_not_a_share_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected a count and a word"):
        Share.parse(text)
