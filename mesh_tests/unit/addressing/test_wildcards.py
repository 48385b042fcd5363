"""Clients that name a pattern: which of them are refused, and with which sentence."""

import pytest

from addressing.book import AddressBook, AddressPolicy
from addressing.topology.loader import parse_topology
from addressing.wildcards import example_of, why_refused, why_uncovered

BOOK = AddressBook(
    parse_topology("""
mesh: m
routers: {r1: }
brokers: {b1: {data: b1}, b2: {data: b2}}
default_broker: b1
addresses:
  rpc.#: anycast
  prices.#: multicast
  jobs.*: queue
  sharded.*: {type: queue, brokers: [b1, b2]}
  news.#: topic
""")
)
PATTERNS = ["rpc.#", "prices.#", "jobs.*", "sharded.*", "news.#"]


def policy(address: str) -> AddressPolicy:
    found = BOOK.resolve(address)
    assert found is not None
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_sender_to_a_pattern_is_refused_with_an_address_that_works(pattern: str) -> None:
    sentence = why_refused(policy(pattern), sends=True)
    example = pattern[:-1] + "example"
    assert sentence == f"{pattern!r} has wildcards: expected one address that {pattern!r} matches, such as {example!r}"
    assert why_refused(policy(example), sends=True) is None


@pytest.mark.parametrize("pattern", ["rpc.#", "jobs.*", "sharded.*"])
def test_a_receiver_of_a_pattern_that_nobody_copies_is_refused_with_an_address_that_works(pattern: str) -> None:
    sentence = why_refused(policy(pattern), sends=False)
    assert sentence is not None
    start = (
        f"{pattern!r} has wildcards, and only topics and multicast addresses have receivers with wildcards: expected"
    )
    assert sentence.startswith(start)
    assert why_refused(policy(example_of(pattern)), sends=False) is None


def test_the_sentence_names_the_declared_pattern_and_an_example_of_the_narrower_one() -> None:
    sentence = why_refused(policy("rpc.*.eu"), sends=False)
    assert sentence is not None
    assert sentence.endswith("expected one address that 'rpc.#' matches, such as 'rpc.example.eu'")


@pytest.mark.parametrize("filter_", ["news.#", "news.*", "news.*.paris", "prices.#", "prices.*.eu"])
def test_a_receiver_of_a_topic_or_multicast_may_name_a_pattern(filter_: str) -> None:
    assert why_refused(policy(filter_), sends=False) is None


@pytest.mark.parametrize("address", ["rpc.a*", "rpc.c#", "rpc.*b"])
@pytest.mark.parametrize("sends", [False, True])
def test_a_star_or_hash_within_a_token_is_no_wildcard(address: str, sends: bool) -> None:
    assert why_refused(policy(address), sends=sends) is None


@pytest.mark.parametrize(
    ("pattern", "example"),
    [("#", "example"), ("*/a.#", "example/a.example"), ("a.*.*", "a.example.example"), ("a*.#b", "a*.#b")],
)
def test_an_example_has_a_word_for_each_wildcard(pattern: str, example: str) -> None:
    assert example_of(pattern) == example


MANY = AddressBook(
    parse_topology("""
mesh: m
routers: {r1: }
brokers: {b1: {data: b1}}
addresses:
  prices.#: multicast
  wind/*: multicast
  alarm: multicast
  news.#: topic
  rpc.#: anycast
""")
)


@pytest.mark.parametrize("filter_", ["*/a", "*/*", "wind/#", "prices.*.eu"])
def test_a_filter_of_multicast_addresses_alone_needs_no_entry_that_covers_it(filter_: str) -> None:
    found = MANY.resolve_filter(filter_)
    assert found is not None
    assert found.kind.is_copied_by_routers
    assert why_refused(found, sends=False) is None


def test_a_sender_or_an_exact_receiver_needs_an_entry() -> None:
    assert MANY.resolve("*/a") is None
    assert MANY.resolve_filter("x/a") is None


@pytest.mark.parametrize("filter_", ["#", "*.eu", "#.eu", "*"])
def test_a_filter_that_matches_topics_too_is_refused_with_filters_that_work(filter_: str) -> None:
    assert MANY.resolve_filter(filter_) is None
    sentence = why_uncovered(filter_, MANY.overlaps(filter_))
    assert sentence is not None
    assert "'news.#' of type topic" in sentence
    for example in ("news.#", "prices.#"):
        found = MANY.resolve_filter(example)
        assert found is not None
        assert why_refused(found, sends=False) is None


@pytest.mark.parametrize("filter_", ["other.#", "x.*.other/x", "rpc/*", "_amqpmesh/#"])
def test_a_filter_that_matches_nothing_declared_is_unknown(filter_: str) -> None:
    book = AddressBook(parse_topology("mesh: m\nrouters: {r1: }\naddresses: {prices.*: multicast, rpc.#: anycast}"))
    assert book.resolve_filter(filter_) is None
    assert why_uncovered(filter_, book.overlaps(filter_)) is None


def _book(addresses: str) -> AddressBook:
    return AddressBook(parse_topology(f"mesh: m\nrouters: {{r1: }}\naddresses: {{{addresses}}}"))


@pytest.mark.parametrize("filter_", ["orders.#", "#", "*"])
def test_a_receiver_with_wildcards_where_only_exact_addresses_are_declared_is_told_that(filter_: str) -> None:
    book = _book("orders: anycast, secret.#: unavailable")
    sentence = why_uncovered(filter_, book.overlaps(filter_))
    assert sentence == (
        f"{filter_!r} has wildcards, and only topics and multicast addresses have receivers with wildcards: "
        "expected one address, such as 'orders'"
    )


@pytest.mark.parametrize("pattern", ["#", "*.tea", "prices/#"])
def test_a_sender_with_wildcards_that_no_entry_covers_is_told_to_name_one_address(pattern: str) -> None:
    book = _book("prices.*: multicast, prices/x: anycast")
    sentence = why_uncovered(pattern, book.overlaps(pattern), sends=True)
    assert sentence is not None
    assert sentence.startswith(f"{pattern!r} has wildcards: expected one address, such as 'prices")
    assert "*" not in sentence.partition(" has ")[2]


def test_what_is_only_unavailable_counts_as_undeclared() -> None:
    assert (
        why_uncovered("secret.*", _book("secret.#: unavailable, a: anycast").overlaps("secret.*"), sends=True) is None
    )
