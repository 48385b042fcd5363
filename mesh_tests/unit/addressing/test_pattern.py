"""Which pattern matches best? Examples, and random walks against a slow and plain reference."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.pattern import PatternError, PatternMap, PatternSet, check_pattern, check_permission_pattern, is_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders", ["orders"], ["order", "orders.eu", "Orders", ""]),
        ("news.*", ["news.eu", "news."], ["news", "news.eu.paris", "news/eu"]),
        ("news.#", ["news", "news.eu", "news.eu.paris", "news.eu/paris"], ["new", "newsletter", "news/eu"]),
        ("#.news", ["news", "eu.news", "a/b.news"], ["eu/news", "xnews"]),
        ("a.#.z", ["a.z", "a.b.z", "a.b/c.z"], ["a", "z", "a/z", "a.b/z"]),
        ("*/queue", ["x/queue", "/queue"], ["queue", "x.queue"]),
        ("/queues/#", ["/queues", "/queues/a"], ["queues/a"]),
        ("#", ["a", "a.b/c", "/a"], []),
        ("#.*", ["a", "a.b"], ["a/b"]),
        ("*", ["a"], ["a.b", "/a"]),
    ],
)
def test_wildcards_stand_for_whole_tokens(pattern: str, matching: list[str], others: list[str]) -> None:
    patterns = PatternSet([pattern])
    assert [address for address in matching + others if address in patterns] == matching


@pytest.mark.parametrize(
    ("address", "best"),
    [
        ("a.b", "a.b"),
        ("a.c", "a.*"),
        ("a.c.d", "a.#"),
        ("x.b", "*.b"),
        ("x.y", "*.#"),
        ("/x.y", "#"),
        ("a", "a.#"),
        ("a.x.z", "a.#.z"),
        ("a.q.r", "a.*.r"),
        ("y", "*"),
    ],
)
def test_exact_is_better_than_star_and_star_better_than_hash(address: str, best: str) -> None:
    patterns = ["#", "a.#", "*.b", "a.*", "a.b", "a.#.z", "*", "*.#", "a.*.r"]
    assert PatternMap({p: p for p in patterns}).find(address) == best
    assert PatternMap({p: p for p in reversed(patterns)}).find(address) == best


TOKENS = st.sampled_from(["a", "b", "", "*", "#"])
WORDS = st.sampled_from(["a", "b", "c", ""])


def joined(tokens: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.lists(st.tuples(st.sampled_from("./"), tokens), max_size=4)
    return st.builds(lambda first, rest: first + "".join(d + t for d, t in rest), tokens, pairs)


@given(patterns=st.lists(joined(TOKENS), max_size=12, unique=True), address=joined(WORDS))
def test_the_best_of_many_patterns_is_the_one_the_reference_finds(patterns: list[str], address: str) -> None:
    by_precedence = sorted(patterns, key=precedence)
    expected = next((p for p in by_precedence if re.fullmatch(as_regex(p), address)), None)
    assert PatternMap({p: p for p in patterns}).find(address) == expected


def elements(pattern: str) -> list[str]:
    return re.findall(r"^[^./]*|[./][^./]*", pattern)


def precedence(pattern: str) -> list[tuple[int, str]]:
    ranks = {"*": 1, "#": 3}
    return [*((ranks.get(e.lstrip("./"), 0), e) for e in elements(pattern)), (2, "")]


def as_regex(pattern: str) -> str:
    return _as_regex(elements(pattern), at_start=True)


def _as_regex(rest: list[str], *, at_start: bool) -> str:
    if not rest:
        return ""
    token = rest[0].lstrip("./")
    delimiter = "" if at_start else re.escape(rest[0][0])
    after = _as_regex(rest[1:], at_start=False)
    if token == "#":
        nothing = _as_regex(rest[1:], at_start=at_start)
        return f"(?:{delimiter}[^./]*(?:[./][^./]*)*{after}|{nothing})"
    return delimiter + ("[^./]*" if token == "*" else re.escape(token)) + after


def test_no_address_makes_a_look_up_slow() -> None:
    # With backtracking this would take some 10^12 steps.
    patterns = PatternSet(["#.a.#.a.#.a.#.a.#.b"])
    begin = time.perf_counter()
    assert "a." * 500 not in patterns
    assert time.perf_counter() - begin < 0.5


def test_an_address_of_more_than_1024_characters_matches_no_wildcard() -> None:
    patterns = PatternSet(["#"])
    assert "x" * 1024 in patterns
    assert "x" * 1025 not in patterns


@pytest.mark.parametrize("pattern", ["a", "a.b/c", "/a", "a.*", "#", "*", "a..b", "$x", "ümlaut", "a:b"])
def test_these_patterns_are_well_formed(pattern: str) -> None:
    assert check_pattern(pattern) == pattern


@pytest.mark.parametrize(
    ("pattern", "code", "reason"),
    [
        ("", "AM401", "empty"),
        ("a" * 1025, "AM401", "at most 1024"),
        ("a b", "AM401", "white space"),
        ("a\x00", "AM401", "control"),
        ("ne*s", "AM401", "whole token"),
        ("news.##", "AM401", "whole token"),
        ("amqp:/x", "AM401", "without scheme"),
        ("x.${user}", "AM401", "only variable"),
        ("_topo/0/r1/x", "AM402", "mesh itself"),
        ("_amqpmesh/#", "AM402", "mesh itself"),
    ],
)
def test_a_malformed_pattern_is_refused_with_its_reason(pattern: str, code: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason) as caught:
        check_pattern(pattern)
    assert caught.value.code == code


def test_only_permissions_may_contain_the_user() -> None:
    assert check_permission_pattern("inbox.${user}.#") == "inbox.${user}.#"
    with pytest.raises(PatternError, match="only variable"):
        check_permission_pattern("inbox.${usr}")


def test_a_pattern_is_what_has_a_wildcard_token() -> None:
    assert is_pattern("a.*")
    assert is_pattern("#")
    assert not is_pattern("a.b")
