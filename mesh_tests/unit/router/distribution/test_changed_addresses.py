"""Which address is looked at next?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from addressing.address import Address
from router.distribution.changed_addresses import ChangedAddresses


@dataclass
class FakeGroup:
    address: Address
    phase: int = 0


@dataclass
class FakePolicy:
    priority: int


@dataclass(eq=False)
class FakeEntry:
    policy: FakePolicy
    group: FakeGroup


def entry(name: str, priority: int = 4, phase: int = 0, space: str = "") -> Any:
    return cast("Any", FakeEntry(FakePolicy(priority), FakeGroup(Address(space, name), phase)))


def taken(changed: ChangedAddresses) -> list[str]:
    found = []
    while changed:
        found.append(changed.pop().group.address.text)
    return found


def test_the_higher_priority_comes_first_and_then_the_first_that_changed() -> None:
    changed = ChangedAddresses()
    for each in (entry("a"), entry("b", 9), entry("c"), entry("d", 9), entry("e", 0)):
        changed.add(each)
    assert taken(changed) == ["b", "d", "a", "c", "e"]
    with pytest.raises(ValueError, match="empty"):
        changed.pop()


def test_each_is_there_once_and_keeps_its_place() -> None:
    changed = ChangedAddresses()
    first, second = entry("a"), entry("a", phase=1)
    for each in (first, entry("b"), first, second):
        changed.add(each)
    assert taken(changed) == ["a", "b", "a"]


def test_one_that_was_looked_at_is_not_there_any_more() -> None:
    changed = ChangedAddresses()
    known = entry("a"), entry("b", 9)
    for each in known:
        changed.add(each)
        changed.discard(each)
        changed.discard(each)
    assert not changed
    changed.discard(entry("c"))
    assert taken(changed) == []


def test_an_entry_that_is_gone_takes_no_place_of_the_entry_of_the_same_address() -> None:
    changed = ChangedAddresses()
    now, before = entry("a"), entry("a")
    changed.add(now)
    changed.add(before)
    changed.discard(before)
    assert changed.pop() is now


def test_equal_names_of_two_spaces_are_two_addresses() -> None:
    changed = ChangedAddresses()
    both = [entry("a"), entry("a", space="acme")]
    for each in both:
        changed.add(each)
    changed.discard(both[0])
    assert taken(changed) == ["_amqpmesh/space/acme/a"]
