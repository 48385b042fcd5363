"""The cache of addresses: what stays, what goes, and what an entry costs."""

from __future__ import annotations

import random
import tracemalloc

from wire.address_cache import LONGEST_BYTES, AddressCache

NAMES = [b"address %d" % number for number in range(30)]


def cache(most: int = 10) -> AddressCache:
    return AddressCache(lambda: None, most)


def test_an_address_in_use_stays_and_others_make_room() -> None:
    found = cache()
    for number, name in enumerate(NAMES):
        found.put(name, number)
        assert found.get(NAMES[0]) == 0
    assert found.get(NAMES[-1]) == len(NAMES) - 1
    assert found.get(NAMES[1]) is None
    assert len(found) <= 20


def test_addresses_within_the_bound_all_stay_however_they_are_used() -> None:
    found = cache(len(NAMES))
    for number, name in enumerate(NAMES):
        found.put(name, number)
    chance = random.Random(5)
    for _ in range(1_000):
        number = chance.randrange(len(NAMES))
        assert found.get(NAMES[number]) == number


def test_an_unused_address_is_forgotten_when_the_cache_ages_twice() -> None:
    found = cache()
    found.put(b"busy", 1)
    found.put(b"idle", 2)
    assert found.age()
    assert found.get(b"busy") == 1
    assert found.age()
    assert found.get(b"idle") is None
    assert found.get(b"busy") == 1
    assert found.age()
    assert not found.age()
    assert len(found) == 0


def test_the_owner_is_told_when_an_empty_cache_gets_an_entry_and_not_again() -> None:
    told: list[int] = []
    found = AddressCache(lambda: told.append(1), 10)
    for name in NAMES[:5]:
        found.put(name, 0)
    assert len(told) == 1
    found.clear()
    found.put(NAMES[0], 0)
    assert len(told) == 2


def test_a_very_long_address_is_not_kept() -> None:
    found = cache()
    found.put(b"x" * (LONGEST_BYTES + 1), 1)
    assert found.get(b"x" * (LONGEST_BYTES + 1)) is None


def test_a_hundred_thousand_addresses_cost_less_than_three_hundred_bytes_each() -> None:
    found, count = AddressCache(lambda: None), 100_000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(count):
            found.put(b"sensors.%d.temperature" % number, found)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(found) == count
    assert grown / count < 300
