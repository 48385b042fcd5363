"""When a node gives memory back to the system, and that it goes there."""

from __future__ import annotations

from mesh.deploy.memory_return import CALM_SHARE, GROWTH_BYTES, LOOK_S, MemoryReturn, give_back, resident_bytes

START_BYTES = 50 << 20


class Process:
    """A process whose memory and CPU time the test sets; half of its growth is free memory."""

    def __init__(self) -> None:
        self.bytes = START_BYTES
        self.cpu_s = 1.0
        self.given_back = 0
        self.memory = MemoryReturn(lambda: self.bytes, lambda: self.cpu_s, self.give_back)

    def give_back(self) -> None:
        self.given_back += 1
        self.bytes -= (self.bytes - START_BYTES) // 2

    def look(self, share: float = 0.0) -> bool:
        self.cpu_s += share * LOOK_S
        return self.memory.look()


def test_a_process_that_did_not_grow_does_nothing() -> None:
    process = Process()
    process.bytes += GROWTH_BYTES - 1
    assert not process.look()


def test_a_process_that_grew_waits_until_it_is_calm() -> None:
    process = Process()
    process.bytes += 4 * GROWTH_BYTES
    assert not process.look(CALM_SHARE)
    assert not process.look(1.0)
    assert process.look(CALM_SHARE / 2)


def test_memory_in_use_is_looked_through_once() -> None:
    process = Process()
    process.bytes += 8 * GROWTH_BYTES
    assert [process.look() for _ in range(3)] == [True, False, False]
    process.bytes += GROWTH_BYTES
    assert process.look()
    assert process.given_back == 2


def test_memory_that_went_by_itself_counts_as_growth_when_it_comes_again() -> None:
    process = Process()
    process.bytes += GROWTH_BYTES // 2
    process.look()
    process.bytes = START_BYTES - GROWTH_BYTES // 2
    assert not process.look()
    process.bytes = START_BYTES + GROWTH_BYTES // 2
    assert process.look()


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
