"""The ledger of one address: what is lost, what came twice, and what came in another order."""

from __future__ import annotations

from mesh.client.journal import Journal


def journal(count: int, *, consumers: int = 1, is_competing: bool = True) -> Journal:
    """``count`` messages of one sender, one each second, all accepted."""
    made = Journal(consumers, is_competing)
    made.add_sender()
    for n in range(count):
        message, number = made.on_sent(0, float(n), n + 0.01)
        assert (message, number) == (n, n)
        made.on_outcome(message, "accepted")
    return made


def test_a_message_without_an_outcome_is_unknown():
    made = Journal(1, True)
    made.add_sender()
    message, _ = made.on_sent(0, 0.0, 0.0)
    assert (made.outcome(message), made.unanswered()) == ("unknown", 1)
    assert not made.is_complete()
    made.on_outcome(message, "unknown")
    assert (made.outcome(message), made.unanswered()) == ("unknown", 0)
    assert made.is_complete()


def test_lost_is_what_was_accepted_and_nobody_has():
    made = journal(3, consumers=2)
    made.on_outcome(1, "modified")
    made.on_arrival(1, 0, 0, 0.1)
    assert list(made.lost()) == [2]


def test_where_each_consumer_should_have_it_one_that_has_not_makes_it_lost():
    made = journal(2, consumers=2, is_competing=False)
    for consumer, number in ((0, 0), (1, 0), (0, 1)):
        made.on_arrival(consumer, 0, number, 2.0)
    assert list(made.lost()) == [1]


def test_a_second_arrival_is_a_duplicate_at_the_same_consumer_or_at_a_competing_one():
    for is_competing, expected in ((True, [1]), (False, [])):
        made = journal(1, consumers=2, is_competing=is_competing)
        made.on_arrival(0, 0, 0, 1.0)
        made.on_arrival(1, 0, 0, 2.0)
        assert [arrival.consumer for arrival in made.duplicated()] == expected
        assert len(list(made.firsts())) == 2 - len(expected)


def test_what_comes_behind_a_later_message_of_its_sender_is_reordered_and_a_duplicate_is_not():
    made = journal(4)
    for number in (0, 2, 1, 3, 2):
        made.on_arrival(0, 0, number, 5.0)
    assert [arrival.message for arrival in made.reordered()] == [1]
    assert [arrival.message for arrival in made.duplicated()] == [2]


def test_a_message_that_none_of_ours_sent_is_counted_as_foreign():
    made = journal(1)
    made.on_arrival(0, 7, 0, 1.0)
    made.on_arrival(0, 0, 99, 1.0)
    assert (made.foreign, made.arrivals) == (2, [])


def test_all_are_reached_once_each_consumer_has_something_unless_they_compete():
    for is_competing in (True, False):
        made = Journal(2, is_competing)
        made.add_sender()
        made.on_sent(0, 0.0, 0.0)
        assert not made.reaches_all()
        made.on_arrival(0, 0, 0, 0.1)
        assert made.reaches_all() is is_competing
        made.on_arrival(1, 0, 0, 0.1)
        assert made.reaches_all()
