"""When a node gives memory back to the system, and that it goes there."""

from __future__ import annotations

from mesh.deploy.memory_return import (
    CALM_SHARE,
    GROWTH_BYTES,
    LEAST_WORK_RATIO,
    LEAST_WORK_S,
    LOOK_S,
    MOST_WORK_RATIO,
    PRESSING_BYTES,
    MemoryReturn,
    give_back,
)
from recording.process_load import resident_bytes

START_BYTES = 50 << 20
SEARCH_S = 0.1
"""The CPU time of giving back; ten times that is more than ``LEAST_WORK_S``."""


class Process:
    """A process whose memory and CPU time the test sets; giving back frees what the test says is free."""

    def __init__(self) -> None:
        self.bytes = START_BYTES
        self.free_bytes = 0
        self.search_s = SEARCH_S
        self.cpu_s = 1.0
        self.given_back = 0
        self.memory = MemoryReturn(lambda: self.bytes, lambda: self.cpu_s, self.give_back)

    def give_back(self) -> None:
        self.given_back += 1
        self.cpu_s += self.search_s
        self.bytes -= self.free_bytes
        self.free_bytes = 0

    def look(self, share: float = 0.0) -> bool:
        self.cpu_s += share * LOOK_S
        return self.memory.look()

    def attach(self) -> None:
        self.bytes += 4 * GROWTH_BYTES

    def detach(self) -> None:
        """The memory of links that have come is free, but not yet given back."""
        self.free_bytes = 4 * GROWTH_BYTES

    def work_until_next(self) -> float:
        """Let the process work little by little; return its CPU time until memory is given back again."""
        start_s = self.cpu_s
        while not self.look(CALM_SHARE / 2):
            assert self.cpu_s < start_s + 1000
        return self.cpu_s - start_s


def test_a_process_that_did_not_grow_does_nothing() -> None:
    process = Process()
    process.bytes += GROWTH_BYTES - 1
    assert not process.look()


def test_a_process_that_grew_waits_until_it_is_calm() -> None:
    process = Process()
    process.attach()
    assert not process.look(CALM_SHARE)
    assert not process.look(1.0)
    assert process.look(CALM_SHARE / 2)


def test_a_process_that_is_never_calm_gives_memory_back_when_it_has_grown_by_much() -> None:
    process = Process()
    process.bytes += PRESSING_BYTES - 1
    assert not process.look(1.0)
    process.bytes += 1
    process.free_bytes = PRESSING_BYTES
    assert process.look(1.0)
    process.bytes = 10 * PRESSING_BYTES
    assert process.look(1.0)
    process.bytes += 4 * PRESSING_BYTES
    assert not process.look(1.0)
    process.bytes += PRESSING_BYTES
    assert process.look(1.0)


def test_links_that_go_long_after_they_came_give_their_memory_back() -> None:
    process = Process()
    process.attach()
    assert process.look()
    process.detach()
    assert not process.look(1.0)
    assert process.look()
    assert process.bytes == START_BYTES


def test_a_process_without_work_does_not_search_again() -> None:
    process = Process()
    process.attach()
    assert [process.look() for _ in range(100)] == [True] + 99 * [False]


def test_a_search_in_vain_takes_ever_less_of_the_time() -> None:
    process = Process()
    process.attach()
    process.look()
    shares = [process.work_until_next() / SEARCH_S for _ in range(8)]
    assert min(shares) > LEAST_WORK_RATIO
    assert shares[0] < shares[1] < shares[2]
    assert MOST_WORK_RATIO < shares[-1] < MOST_WORK_RATIO + 10


def test_a_success_makes_the_next_search_soon_again() -> None:
    process = Process()
    process.attach()
    process.look()
    for _ in range(6):
        process.work_until_next()
    process.detach()
    process.work_until_next()
    process.attach()
    process.detach()
    assert process.work_until_next() / SEARCH_S < 2 * LEAST_WORK_RATIO


def test_a_quick_search_needs_some_work_before_the_next() -> None:
    process = Process()
    process.search_s = 0.0
    process.attach()
    process.look()
    assert process.work_until_next() >= LEAST_WORK_S


class Knot:
    """An object that refers to itself, as what a link leaves behind does."""

    def __init__(self) -> None:
        self.itself = self
        self.data = bytearray(1000)


def test_what_only_refers_to_itself_goes_back_to_the_system() -> None:
    give_back()
    before = resident_bytes()
    knots = [Knot() for _ in range(50_000)]
    most = resident_bytes()
    # One object at the end of the memory keeps the allocator from shrinking its heap by itself.
    last = Knot()
    knots.clear()
    give_back()
    assert most - before > 40 << 20
    assert resident_bytes() - before < (most - before) // 4
    assert last.itself is last
