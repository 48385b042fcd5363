import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.topic import SubscriptionTree, has_wildcard


def _tree(*filters: str) -> SubscriptionTree[str]:
    tree: SubscriptionTree[str] = SubscriptionTree()
    for filter_ in filters:
        tree.add(filter_, filter_)
    return tree


@pytest.mark.parametrize(
    ("filter_", "address", "is_wanted"),
    [
        ("news.sport", "news.sport", True),
        ("news.sport", "news/sport", True),
        ("news.sport", "/news/sport", True),
        ("news.sport", "news", False),
        ("news.*", "news.sport", True),
        ("news.*", "news", False),
        ("news.*", "news.sport.football", False),
        ("news.#", "news", True),
        ("news.#", "news.sport.football", True),
        ("#.football", "news.sport.football", True),
        ("#", "anything.at.all", True),
        ("a.#.z", "a.z", True),
        ("a.#.z", "a.b.c.z", True),
        ("a.#.z", "a.b.c", False),
        ("*.*", "a", False),
    ],
)
def test_a_filter_takes_what_its_wildcards_stand_for(filter_: str, address: str, is_wanted: bool) -> None:
    assert (_tree(filter_).matching(address) == [filter_]) is is_wanted


def test_a_key_is_found_once_though_its_filter_matches_in_many_ways() -> None:
    assert _tree("#.#.a.#").matching("a.a.a") == ["#.#.a.#"]


def test_a_removed_filter_leaves_nothing_behind() -> None:
    tree = _tree("a.b", "a.b.c")
    tree.remove("a.b.c", "a.b.c")
    assert tree.matching("a.b") == ["a.b"]
    tree.remove("a.b", "a.b")
    assert tree.matching("a.b") == []
    with pytest.raises(KeyError):
        tree.remove("a.b", "a.b")


def test_wildcards_are_whole_tokens() -> None:
    assert has_wildcard("a.*")
    assert has_wildcard("#")
    assert not has_wildcard("a*.b#")


def _as_expression(filter_: str) -> re.Pattern[str]:
    """The same meaning said another way: over an address written as `.a.b`."""
    parts = {"*": r"\.[^.]+", "#": r"(\.[^.]+)*"}
    return re.compile("".join(parts.get(token, rf"\.{re.escape(token)}") for token in filter_.split(".")))


_FILTERS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=5).map(".".join)
_ADDRESSES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).map(".".join)


@given(filters=st.lists(_FILTERS, unique=True, max_size=8), address=_ADDRESSES)
def test_the_tree_agrees_with_regular_expressions(filters: list[str], address: str) -> None:
    wanted = {filter_ for filter_ in filters if _as_expression(filter_).fullmatch(f".{address}")}
    assert set(_tree(*filters).matching(address)) == wanted
