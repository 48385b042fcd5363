"""What links have is told when it says something: of new ones, and of those that stand still."""

from __future__ import annotations

from dataclasses import dataclass, field

from recording.standstill import STILL_S, LinkCounts, Standstill


@dataclass
class End:
    """Of an outgoing link unless ``kept_count`` is None."""

    credit: int = 10
    kept_count: int | None = 0
    moved_count: int = 0

    def take(self, count: int = 1) -> None:
        assert self.kept_count is not None
        self.credit -= count
        self.kept_count += count
        self.moved_count += count

    def settle(self, count: int = 1) -> None:
        assert self.kept_count is not None
        self.kept_count -= count


@dataclass
class Host:
    """Looks once a second; ``news`` takes what was told since."""

    now: float = 100.0
    most: int = 1000
    told: list[tuple[int, LinkCounts]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.standstill = Standstill(lambda link, has: self.told.append((link, has)))

    def link(self, number: int = 1, **numbers: int | None) -> End:
        end = End(**numbers)  # type: ignore[arg-type]
        self.standstill.on_move(number, end)
        return end

    def pass_s(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.now += 1.0
            self.standstill.look(self.now, self.most)

    def news(self) -> list[tuple[int, LinkCounts]]:
        found, self.told = self.told, []
        return found


def test_a_new_link_is_told_of_within_a_second_and_not_again():
    host = Host()
    host.link(7, credit=3)
    host.pass_s(1)
    assert host.news() == [(7, LinkCounts(3, 0))]
    host.pass_s(60)
    assert host.news() == []


def test_what_stands_still_with_other_numbers_is_told_once():
    host = Host()
    end = host.link(credit=3)
    host.pass_s(1)
    host.news()
    end.take(2)
    host.standstill.on_move(1, end)
    host.pass_s(STILL_S)
    assert host.news() == []
    host.pass_s(STILL_S)
    assert host.news() == [(1, LinkCounts(1, 2))]
    host.pass_s(60)
    assert host.news() == []


def test_what_moves_all_the_time_is_not_told_of():
    host = Host()
    end = host.link()
    host.pass_s(1)
    host.news()
    for _ in range(60):
        end.take()
        end.settle()
        end.credit += 1
        host.standstill.on_move(1, end)
        host.pass_s(1)
    assert host.news() == []


def test_it_is_told_that_what_was_held_up_moves_again():
    host = Host()
    end = host.link(credit=2)
    end.take(2)
    host.pass_s(30)
    assert host.news() == [(1, LinkCounts(0, 0)), (1, LinkCounts(0, 2))]
    end.settle()
    end.credit += 1
    host.standstill.on_move(1, end)
    host.pass_s(1)
    assert host.news() == [(1, LinkCounts(1, 0))]
    host.pass_s(30)
    assert host.news() == [(1, LinkCounts(1, 1))]


def test_it_is_told_that_what_kept_deliveries_beside_credit_moves_again():
    host = Host()
    end = host.link(credit=9)
    end.take(2)
    host.pass_s(30)
    assert host.news()[-1] == (1, LinkCounts(7, 2))
    end.settle()
    host.standstill.on_move(1, end)
    host.pass_s(1)
    assert host.news() == [(1, LinkCounts(7, 0))]


def test_one_delivery_for_each_that_is_settled_is_no_standstill():
    host = Host()
    end = host.link(credit=5, kept_count=3)
    host.pass_s(1)
    host.news()
    for _ in range(40):
        end.moved_count += 1
        host.pass_s(1)
    assert host.news() == []


def test_it_is_told_that_what_had_no_credit_moves_again():
    host = Host()
    end = host.link(credit=0)
    host.pass_s(1)
    assert host.news() == [(1, LinkCounts(0, 0))]
    end.credit = 7
    host.standstill.on_move(1, end)
    host.pass_s(1)
    assert host.news() == [(1, LinkCounts(7, 0))]


def test_an_incoming_link_is_told_of_with_its_credit_alone_when_it_stands_still():
    host = Host()
    end = host.link(credit=10, kept_count=None)
    host.pass_s(1)
    assert host.news() == [(1, LinkCounts(10, None))]
    end.credit = 3
    host.standstill.on_move(1, end)
    host.pass_s(STILL_S)
    assert host.news() == []
    host.pass_s(STILL_S)
    assert host.news() == [(1, LinkCounts(3, None))]


def test_what_another_record_said_of_an_incoming_link_is_not_said_again():
    host = Host()
    end = host.link(credit=0, kept_count=None)
    host.standstill.on_told(1, 0)
    host.standstill.on_told(2, 0)
    host.pass_s(30)
    assert host.news() == []
    end.credit = 4
    host.standstill.on_move(1, end)
    host.standstill.on_told(1, 4)
    host.pass_s(30)
    assert host.news() == []


def test_nobody_has_less_than_no_credit():
    host = Host()
    host.link(credit=-3)
    host.pass_s(1)
    assert host.news() == [(1, LinkCounts(0, 0))]


def test_of_a_link_that_is_forgotten_nothing_is_told():
    host = Host()
    end = host.link(1)
    host.link(2)
    host.standstill.forget(1)
    host.standstill.forget(3)
    host.pass_s(30)
    assert [link for link, _ in host.news()] == [2]
    host.standstill.on_move(1, end)
    host.pass_s(1)
    assert [link for link, _ in host.news()] == [1]


def test_nothing_is_kept_of_a_link_that_is_forgotten():
    host = Host()
    for number in range(20):
        host.link(number)
    host.pass_s(5)
    for number in range(19):
        host.standstill.forget(number)
    assert len(host.standstill) == 1


def test_where_there_are_many_each_has_its_turn():
    host = Host(most=2)
    for number in range(5):
        host.link(number)
    host.pass_s(1)
    assert len(host.told) == 2
    host.pass_s(2)
    assert sorted(link for link, _ in host.news()) == [0, 1, 2, 3, 4]
