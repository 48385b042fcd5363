"""May declarations be added to a book that is in use, and is the book then that of the whole new file?"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from addressing.additions import conflicts
from addressing.address import Address
from addressing.book import AddressBook, SpaceBooks
from addressing.topology.loader import parse_topology
from addressing.topology.model import DeclaredAddress, Topology
from mesh_tests.unit.mesh.change.topologies import Data, random_data, source_of_data

TOKENS = ("orders", "q", "a", "b", "c", "rpc", "prices", "news", "dead", "*", "#")
ENTRIES: tuple[Any, ...] = (
    "anycast",
    "multicast",
    "queue",
    "topic",
    "unavailable",
    {"type": "queue", "dead_letter": "dead"},
    {"type": "queue", "dead_letter": "q.a"},
    {"type": "anycast", "fallback": "q.b"},
    {"type": "queue", "broker_address": "elsewhere"},
    {"type": "queue", "broker_address": "q.a"},
    {"type": "queue", "max_queues": 7},
)


def random_name(random: Random) -> str:
    return ".".join(random.choice(TOKENS) for _ in range(random.randint(1, 3)))


def with_more(random: Random, data: Data) -> Data:
    """The data with further addresses; those of ``data`` keep their places and settings."""
    wanted = {random_name(random): random.choice(ENTRIES) for _ in range(random.randint(1, 3))}
    return {**data, "addresses": {**wanted, **(data.get("addresses") or {})}}


def added_of(before: Topology, after: Topology) -> dict[str, DeclaredAddress]:
    return {name: entry for name, entry in after.addresses.items() if name not in before.addresses}


def pairs(seed: int, count: int) -> list[tuple[Topology, Topology]]:
    """Pairs of valid topologies, of which the second has further addresses."""
    random, found = Random(seed), []
    while len(found) < count:
        data = random_data(random)
        before, after = source_of_data(data), source_of_data(with_more(random, data))
        if before is not None and after is not None and added_of(before.topology, after.topology):
            found.append((before.topology, after.topology))
    return found


def answers(book: AddressBook, name: str) -> tuple[Any, ...]:
    """All that nodes ask a book about a name."""
    policy = book.resolve(name)
    return (
        policy,
        book.resolve_filter(name),
        book.shared_pattern(name),
        book.pattern_policy(name),
        book.overlaps(name),
        policy is not None and book.has_filter_sets(policy),
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_book_that_was_extended_is_the_book_of_the_new_file_and_keeps_what_it_said(seed: int) -> None:
    random, free = Random(seed), 0
    for before, after in pairs(seed, 25):
        book, added, fresh = AddressBook(before), added_of(before, after), AddressBook(after)
        if list(conflicts(book, added)):
            continue
        free += 1
        names = [*added, *after.addresses, *(random_name(random) for _ in range(60))]
        said = {name: answers(book, name)[:4] for name in names}
        extended = book.extended(added)
        assert {name: answers(book, name)[:4] for name in names} == said, "the book itself must not change yet"
        for name in names:
            assert answers(extended, name) == answers(fresh, name), name
            if said[name][0] is not None:
                assert answers(extended, name)[0] == said[name][0], f"{name} has a new meaning"
                assert answers(extended, name)[3] == said[name][3], f"{name} has new limits"
        assert set(extended.with_fallback()) == set(fresh.with_fallback())
        for broker in after.brokers:
            assert sorted(map(str, extended.renamed_at(broker))) == sorted(map(str, fresh.renamed_at(broker)))
            for name in names:
                policy = said[name][0]
                if policy is not None and broker in policy.brokers:
                    there = policy.at_broker(broker)
                    assert extended.name_in_mesh(broker, there) == book.name_in_mesh(broker, there)
    assert free > 5, "too few pairs without a conflict to say anything"


BASE = """
mesh: m
routers: {r1: }
brokers: {b1: {data: b1}}
addresses:
  orders.#: queue
  news.*: topic
  prices.eu: multicast
  rpc: anycast
  sold: {type: queue, broker_address: sales}
"""


def found(extra: str) -> list[str]:
    before = parse_topology(BASE)
    after = parse_topology(BASE + extra)
    return list(conflicts(AddressBook(before), added_of(before, after)))


@pytest.mark.parametrize(
    "extra",
    [
        "  invoices: queue\n",
        "  jobs.#: anycast\n",
        "  prices.us: multicast\n",
        "  other.#: {type: queue, dead_letter: dead}\n  dead: queue\n",
        "  ask: {type: anycast, fallback: asked}\n  asked: queue\n",
    ],
)
def test_an_address_that_no_declaration_covers_may_be_added(extra: str) -> None:
    assert found(extra) == []


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("  orders.eu: queue\n", "orders.eu has the settings of orders.# now"),
        ("  orders.*: queue\n", "orders.* has the settings of orders.# now"),
        ("  prices.*: multicast\n", "prices.* as a filter of multicast"),
        ("  news.#: topic\n", "news.# has the settings of news.* now"),
        ("  fails: {type: queue, dead_letter: orders.dead}\n", "limits of queues under orders.#"),
        ("  sales: queue\n", "the queue or topic of another address"),
        ("  more: {type: queue, broker_address: orders.x}\n", "which is the address orders.x there now"),
    ],
)
def test_an_address_that_takes_others_over_is_named_with_what_would_change(extra: str, words: str) -> None:
    assert any(words in sentence for sentence in found(extra)), found(extra)


def test_a_pattern_that_others_beat_for_all_their_addresses_may_be_added_and_takes_nothing() -> None:
    before = parse_topology(BASE)
    after = parse_topology(BASE + "  '#.z': queue\n")
    assert list(conflicts(AddressBook(before), added_of(before, after))) == []
    book = AddressBook(before).extended(added_of(before, after))
    assert [getattr(book.resolve(name), "pattern", None) for name in ("orders.z", "other.z")] == ["orders.#", "#.z"]


def test_all_who_hold_a_book_look_up_in_what_it_adopts() -> None:
    before, after = parse_topology(BASE), parse_topology(BASE + "  invoices: queue\n")
    books = SpaceBooks(before)
    held = books.of("")
    assert held.resolve("invoices") is None
    extended = books.extended(added_of(before, after))
    assert (held.resolve("invoices"), books.resolve(Address("", "invoices"))) == (None, None)
    books.adopt(extended)
    assert books.of("") is held
    assert held.resolve("invoices") == AddressBook(after).resolve("invoices")
    assert books.resolve(Address("", "invoices")) is not None
