"""What receivers have is told when it says something: of new links, and of those that stand still."""

from __future__ import annotations

from dataclasses import dataclass, field

from wire.receivers import STILL_S, Held, Receivers


@dataclass
class End:
    credit: int = 10
    unsettled_count: int = 0
    deliveries_out: int = 0
    is_moving: bool = False

    def take(self, count: int = 1) -> None:
        self.credit -= count
        self.unsettled_count += count
        self.deliveries_out += count

    def settle(self, count: int = 1) -> None:
        self.unsettled_count -= count


@dataclass
class Host:
    """Looks once a second; ``news`` takes what was told since."""

    now: float = 100.0
    most: int = 1000
    told: list[tuple[int, Held]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.receivers = Receivers(lambda link, held: self.told.append((link, held)))

    def link(self, number: int = 1, **numbers: int) -> End:
        end = End(**numbers)
        self.receivers.on_move(number, end)
        return end

    def pass_s(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.now += 1.0
            self.receivers.look(self.now, self.most)

    def news(self) -> list[tuple[int, Held]]:
        found, self.told = self.told, []
        return found


def test_a_new_link_is_told_of_within_a_second_and_not_again():
    host = Host()
    host.link(7, credit=3)
    host.pass_s(1)
    assert host.news() == [(7, Held(3, 0))]
    host.pass_s(60)
    assert host.news() == []


def test_what_stands_still_with_other_numbers_is_told_once():
    host = Host()
    end = host.link(credit=3)
    host.pass_s(1)
    host.news()
    end.take(2)
    host.receivers.on_move(1, end)
    host.pass_s(STILL_S)
    assert host.news() == []
    host.pass_s(STILL_S)
    assert host.news() == [(1, Held(1, 2))]
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
        host.receivers.on_move(1, end)
        host.pass_s(1)
    assert host.news() == []


def test_it_is_told_that_what_was_held_up_moves_again():
    host = Host()
    end = host.link(credit=2)
    end.take(2)
    host.pass_s(30)
    assert host.news() == [(1, Held(0, 0)), (1, Held(0, 2))]
    end.settle()
    end.credit += 1
    host.receivers.on_move(1, end)
    host.pass_s(1)
    assert host.news() == [(1, Held(1, 0))]
    host.pass_s(30)
    assert host.news() == [(1, Held(1, 1))]


def test_a_delivery_that_is_half_written_waits_for_no_outcome():
    host = Host()
    end = host.link()
    end.take(2)
    end.is_moving = True
    host.pass_s(30)
    assert host.news()[-1] == (1, Held(8, 1))


def test_nobody_has_less_than_no_credit():
    host = Host()
    host.link(credit=-3)
    host.pass_s(1)
    assert host.news() == [(1, Held(0, 0))]


def test_of_a_link_that_is_forgotten_nothing_is_told():
    host = Host()
    end = host.link(1)
    host.link(2)
    host.receivers.forget(1)
    host.receivers.forget(3)
    host.pass_s(30)
    assert [link for link, _ in host.news()] == [2]
    host.receivers.on_move(1, end)
    host.pass_s(1)
    assert [link for link, _ in host.news()] == [1]


def test_where_there_are_many_each_has_its_turn():
    host = Host(most=2)
    for number in range(5):
        host.link(number)
    host.pass_s(1)
    assert len(host.told) == 2
    host.pass_s(2)
    assert sorted(link for link, _ in host.news()) == [0, 1, 2, 3, 4]
