import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.address import Address
from addressing.pattern import PatternSet
from broker.queueing.topic import SubscriptionTree, SubscriptionTrees


def _tree(*filters: str) -> SubscriptionTree[str]:
    tree: SubscriptionTree[str] = SubscriptionTree()
    for filter_ in filters:
        tree.add(filter_, filter_)
    return tree


@pytest.mark.parametrize(
    ("filter_", "address", "is_wanted"),
    [
        ("news.sport", "news.sport", True),
        ("news.sport", "news/sport", False),
        ("news.sport", "news", False),
        ("news.*", "news.sport", True),
        ("news.*", "news", False),
        ("news.*", "news.sport.football", False),
        ("news.#", "news", True),
        ("news.#", "news.sport/football", True),
        ("#.football", "news.sport.football", True),
        ("#.football", "football", True),
        ("#", "anything/at.all", True),
        ("a.#.z", "a.z", True),
        ("a.#.z", "a.b.c.z", True),
        ("a.#.z", "a.b.c", False),
        ("*.*", "a", False),
        ("/a/*", "/a/b", True),
    ],
)
def test_a_filter_takes_what_its_wildcards_stand_for(filter_: str, address: str, is_wanted: bool) -> None:
    assert (_tree(filter_).matching(address) == [filter_]) is is_wanted


def test_a_key_is_found_once_though_its_filter_matches_in_many_ways() -> None:
    assert _tree("#.#.a.#").matching("a.a.a") == ["#.#.a.#"]


def test_many_wildcards_over_a_long_address_take_no_time() -> None:
    assert _tree(".".join(["#", "a"] * 20 + ["b"])).matching(".".join(["a"] * 200)) == []


def test_a_removed_filter_leaves_nothing_behind() -> None:
    tree = _tree("a.b", "a.b.c")
    tree.remove("a.b.c", "a.b.c")
    assert tree.matching("a.b") == ["a.b"]
    tree.remove("a.b", "a.b")
    assert tree.matching("a.b") == []
    with pytest.raises(KeyError):
        tree.remove("a.b", "a.b")


def _joined(tokens: list[str]) -> st.SearchStrategy[str]:
    delimiters = st.lists(st.sampled_from("./"), min_size=len(tokens), max_size=len(tokens))
    return delimiters.map(lambda drawn: "".join(d + t for d, t in zip(drawn, tokens, strict=True))[1:])


_FILTERS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=5).flatmap(_joined)
_ADDRESSES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).flatmap(_joined)


@given(filters=st.lists(_FILTERS, unique=True, max_size=8), address=_ADDRESSES)
def test_a_filter_means_here_what_it_means_in_the_topology(filters: list[str], address: str) -> None:
    wanted = {filter_ for filter_ in filters if address in PatternSet([filter_])}
    assert set(_tree(*filters).matching(address)) == wanted


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
