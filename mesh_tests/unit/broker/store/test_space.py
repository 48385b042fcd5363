"""How much of a disk stays free, and when do producers wait for that?"""

import random

import pytest

from broker.store.space import Space, Watermark, default_wanted

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def space(free: int, reusable: int = 0, total: int = 1000 * GIB) -> Space:
    return Space("/data", total, free, reusable)


@pytest.mark.parametrize(
    ("total", "wanted"),
    [(1000 * GIB, 50 * GIB), (20 * GIB, GIB), (5 * GIB, GIB), (2 * GIB, 512 * MIB), (64 * MIB, 16 * MIB)],
)
def test_by_default_a_gibibyte_or_a_twentieth_is_wanted_and_of_a_small_disk_a_quarter(total: int, wanted: int) -> None:
    assert default_wanted(total) == wanted
    assert Watermark().wanted_of(space(0, total=total)) == wanted


def test_it_is_low_below_the_mark_and_fine_again_a_margin_above() -> None:
    mark = Watermark(GIB)
    seen = [(mark.on_space(space(free)), mark.is_low) for free in (GIB, GIB - 1, GIB, GIB + 128 * MIB - 1)]
    assert seen == [(False, False), (True, True), (False, True), (False, True)]
    assert mark.on_space(space(GIB + 128 * MIB))
    assert not mark.is_low
    assert not mark.on_space(space(GIB))


def test_the_margin_of_a_large_disk_is_not_as_large() -> None:
    mark = Watermark(50 * GIB)
    mark.on_space(space(0))
    mark.on_space(space(50 * GIB + 256 * MIB))
    assert not mark.is_low


def test_a_mark_of_zero_is_never_reached() -> None:
    mark = Watermark(0)
    assert not mark.on_space(space(0))
    assert not mark.is_low


def test_what_deleted_messages_left_in_the_tables_is_room() -> None:
    mark = Watermark(GIB)
    mark.on_space(space(GIB - MIB))
    assert mark.is_low, "the broker itself has filled the disk"
    mark.on_space(space(GIB - MIB, reusable=10 * GIB))
    assert not mark.is_low, "its queues were drained, and the disk has no more free than before"


def test_however_much_is_free_in_the_tables_a_disk_that_others_fill_is_low() -> None:
    mark = Watermark(GIB)
    mark.on_space(space(GIB // 4 - 1, reusable=10 * GIB))
    assert mark.is_low


def test_whatever_comes_it_is_low_when_there_is_less_than_wanted_and_never_with_a_margin_more() -> None:
    chance, mark = random.Random(1), Watermark(GIB)
    for _ in range(10_000):
        seen = space(chance.randrange(2 * GIB), chance.choice((0, chance.randrange(GIB))))
        was_low = mark.is_low
        assert mark.on_space(seen) == (mark.is_low != was_low)
        if seen.free_bytes + seen.reusable_bytes < GIB:
            assert mark.is_low
        if seen.free_bytes >= GIB + 128 * MIB:
            assert not mark.is_low
