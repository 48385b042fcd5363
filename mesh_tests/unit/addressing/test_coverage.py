"""A pattern that covers a filter matches every address that the filter matches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from addressing.coverage import covers, may_overlap
from addressing.pattern import PatternSet

TOKENS = ["a", "b", "*", "#"]


def _joined(tokens: list[str]) -> st.SearchStrategy[str]:
    delimiters = st.lists(st.sampled_from("./"), min_size=len(tokens), max_size=len(tokens))
    return delimiters.map(lambda drawn: "".join(d + t for d, t in zip(drawn, tokens, strict=True))[1:])


def _texts(tokens: list[str], most: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(tokens), min_size=1, max_size=most).flatmap(_joined)


@pytest.mark.parametrize(
    ("pattern", "filter_", "is_covered"),
    [
        ("#", "#", True),
        ("#", "*/a", True),
        ("news.#", "news.#", True),
        ("news.#", "news.*.eu", True),
        ("news.#", "news", True),
        ("news.*", "news.*", True),
        ("*.eu", "news.eu", True),
        ("news.#", "news.#.#", True),
        ("#.eu", "#.eu", True),
        ("news.*", "news.#", False),
        ("news.eu", "news.*", False),
        ("news.#", "#", False),
        ("*", "#", False),
        ("news.#", "news/#", False),
        ("news.#", "news.#/eu", False),
        ("news.*.#", "news.#", False),
        ("news.#.eu", "news.#", False),
    ],
)
def test_a_pattern_covers_what_it_matches_altogether(pattern: str, filter_: str, is_covered: bool) -> None:
    assert covers(pattern, filter_) is is_covered


@settings(max_examples=300, deadline=None)
@given(pattern=_texts(TOKENS, 4), filter_=_texts(TOKENS, 4), address=_texts(["a", "b", "c"], 5))
def test_no_address_of_a_covered_filter_is_outside_of_the_pattern(pattern: str, filter_: str, address: str) -> None:
    if covers(pattern, filter_) and address in PatternSet([filter_]):
        assert address in PatternSet([pattern])


@given(pattern=_texts(TOKENS, 4))
def test_a_pattern_covers_itself_and_all_of_its_addresses(pattern: str) -> None:
    assert covers(pattern, pattern)
    assert covers("#", pattern)


@given(pattern=_texts(TOKENS, 4), address=_texts(["a", "b", "c"], 5))
def test_a_pattern_covers_an_address_that_it_matches_and_no_other(pattern: str, address: str) -> None:
    assert covers(pattern, address) is (address in PatternSet([pattern]))


def test_a_long_filter_takes_no_time() -> None:
    assert not covers(".".join(["#", "*"] * 200), ".".join(["#", "a"] * 200 + ["#/b"]))


@pytest.mark.parametrize(
    ("one", "other", "overlaps"),
    [
        ("#", "news.#", True),
        ("*.eu", "news.#", True),
        ("*/a", "news.#", False),
        ("*/a", "news/#", True),
        ("news.#", "news", True),
        ("news.#", "prices.#", False),
        ("*.eu", "prices.*", True),
        ("*.eu", "prices.*.eu", False),
        ("#.eu", "prices.*.eu", True),
        ("a.b", "a/b", False),
    ],
)
def test_patterns_overlap_if_an_address_matches_both(one: str, other: str, overlaps: bool) -> None:
    assert may_overlap(one, other) is overlaps
    assert may_overlap(other, one) is overlaps


@settings(max_examples=300, deadline=None)
@given(one=_texts(TOKENS, 4), other=_texts(TOKENS, 4), address=_texts(["a", "b", "c"], 5))
def test_patterns_that_match_one_address_overlap(one: str, other: str, address: str) -> None:
    if address in PatternSet([one]) and address in PatternSet([other]):
        assert may_overlap(one, other)
