"""What a journal says about a span of time."""

from __future__ import annotations

import pytest

from mesh.client.journal import Journal, Stall
from mesh.drills import figures

RATE = 100.0
BEFORE = (0.0, 5.0)


def steady(length_s: float, *, silent: tuple[float, float] = (0.0, 0.0), late_s: float = 0.002) -> Journal:
    """100 messages a second; those due in ``silent`` arrive at its end, in a burst."""
    made = Journal(1, True)
    made.add_sender()
    for n in range(int(length_s * RATE)):
        due = n / RATE
        message, number = made.on_sent(0, due, due)
        made.on_outcome(message, "accepted")
        at = due + late_s if not silent[0] <= due < silent[1] else silent[1] + 0.0001 * (n - silent[0] * RATE)
        made.on_arrival(0, 0, number, at)
    return made


def test_an_outage_is_the_longest_time_in_which_nothing_came():
    assert figures.outage_s(steady(10, silent=(6.0, 6.5)), (6.0, 10.0), 10.0) == pytest.approx(0.5, abs=0.01)
    assert figures.outage_s(steady(10), (6.0, 10.0), 10.0) == pytest.approx(0.01, abs=0.001)
    assert figures.outage_s(Journal(1, True), (0.0, 1.0), 1.0) is None


def test_the_pause_between_two_messages_in_which_the_next_fault_begins_is_no_outage_of_the_one_before():
    stands_still = steady(15, silent=(8.005, 11.0))
    one, next_one = (6.0, 8.005), (8.005, 15.0)
    assert figures.outage_s(stands_still, one, 15.0, usual_s=0.02) == pytest.approx(0.01, abs=0.006)
    assert figures.outage_s(stands_still, next_one, 15.0, usual_s=0.02) == pytest.approx(3.0, abs=0.01)


def test_an_outage_lasts_to_the_end_of_the_span_when_nothing_came_any_more():
    assert figures.outage_s(steady(5), (4.0, 9.0), 9.0) == pytest.approx(4.0, abs=0.02)


def test_of_consumers_that_should_each_have_all_the_worst_counts():
    made = Journal(2, False)
    made.add_sender()
    for n in range(100):
        made.on_sent(0, n / 10, n / 10)
        for consumer in range(2 if not 40 <= n < 60 else 1):
            made.on_arrival(consumer, 0, n, n / 10)
    assert figures.outage_s(made, (0.0, 9.9), 9.9) == pytest.approx(2.1, abs=0.01)


def test_recovery_is_when_a_full_second_of_fresh_messages_begins():
    recovered = figures.recovery_s(steady(15, silent=(6.0, 7.5)), (6.0, 15.0), BEFORE)
    # The burst at 7.5 has messages that are older than what was usual.
    assert recovered == pytest.approx(1.5, abs=0.12)


def test_who_never_stood_still_has_recovered_at_once():
    assert figures.recovery_s(steady(15), (6.0, 15.0), BEFORE) == 0.0


def test_what_comes_at_half_the_rate_has_not_recovered():
    made = steady(6)
    for n in range(600, 1200, 2):
        made.on_sent(0, n / RATE, n / RATE)
        made.on_arrival(0, 0, 600 + (n - 600) // 2, n / RATE + 0.002)
    assert figures.recovery_s(made, (6.0, 12.0), BEFORE) is None


def test_what_came_late_is_not_recovered_though_its_rate_is_full():
    made = steady(6)
    for n in range(600, 1200):
        made.on_sent(0, n / RATE, n / RATE)
        made.on_arrival(0, 0, n, n / RATE + 1.0)
    assert figures.recovery_s(made, (6.0, 12.0), BEFORE) is None


def test_the_first_delivery_is_that_of_a_message_sent_after_the_fault():
    made = steady(10, silent=(6.0, 6.5))
    assert figures.first_delivery_s(made, (6.0, 10.0)) == pytest.approx(0.5, abs=0.01)
    assert figures.first_delivery_s(made, (10.0, 12.0)) is None


def test_latency_is_that_of_first_arrivals_in_the_span():
    made = steady(10)
    made.on_arrival(0, 0, 0, 9.0)
    latency = figures.latency_of(made, (0.0, 10.0))
    assert (latency.p50_ms, latency.max_ms) == (pytest.approx(2.0), pytest.approx(2.0))
    assert figures.latency_of(made, (20.0, 30.0)).p99_ms is None


def test_counts_are_of_the_messages_that_were_due_in_the_span():
    made = steady(2)
    made.on_outcome(150, "rejected")
    made.on_arrival(0, 0, 160, 3.0)
    counts = figures.counts_of(made, (1.0, 2.0))
    assert (counts.attempted, counts.accepted, counts.rejected, counts.duplicated) == (100, 99, 1, 1)
    assert counts.attempted == (counts.accepted + counts.rejected + counts.released + counts.modified + counts.unknown)


def test_stalls_are_those_that_began_in_the_span():
    made = steady(1)
    made.stalls += [Stall(0.5, 0.2), Stall(2.0, 3.0)]
    assert figures.stalls_in(made, (0.0, 1.0)) == (1, 200.0)
