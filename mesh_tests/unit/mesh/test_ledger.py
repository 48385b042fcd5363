"""The ledger of the demo: nothing is counted twice, nothing is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from mesh.ledger import UNKNOWN, Ledger, longest_gap_s


def test_what_was_accepted_and_never_arrived_is_lost_and_second_arrivals_are_seen() -> None:
    ledger = Ledger(["a", "b"])
    for _ in range(3):
        ledger.on_outcome(ledger.on_attempt(), "accepted")
    ledger.on_outcome(ledger.on_attempt(), "modified")
    for consumer, number in (("a", 1), ("a", 2), ("a", 2), ("a", 3), ("b", 1), ("b", 4)):
        ledger.on_arrival(consumer, number, 0.0)
    assert ledger.lost() == 2
    assert ledger.twice() == 1
    assert ledger.is_settled


def test_an_outage_is_the_longest_silence_of_the_consumer_that_suffers_most() -> None:
    ledger = Ledger(["a", "b"])
    for at in (1.0, 2.0, 3.0):
        ledger.on_arrival("a", 1, at)
    ledger.on_arrival("b", 1, 1.0)
    assert ledger.outage_s(1.0, 3.0) == 2.0
    assert ledger.received_between(1.0, 2.0) == 2
    assert longest_gap_s([], 5.0, 6.5) == 1.5
    assert longest_gap_s([0.0, 9.0], 5.0, 6.0) == 1.0


@given(st.lists(st.tuples(st.sampled_from(["accepted", "released", UNKNOWN, None]), st.integers(0, 3))))
def test_every_attempt_is_in_one_outcome_and_every_accepted_one_arrived_or_is_lost(
    story: list[tuple[str | None, int]],
) -> None:
    ledger = Ledger(["a"])
    for outcome, arrivals in story:
        number = ledger.on_attempt()
        if outcome is not None:
            ledger.on_outcome(number, outcome)
        for _ in range(arrivals):
            ledger.on_arrival("a", number, 0.0)
    open_count = sum(outcome is None for outcome, _ in story)
    assert ledger.attempted == ledger.outcomes.total() + open_count
    assert ledger.is_settled == (open_count == 0)
    assert len(ledger.accepted) == ledger.lost() + sum(bool(n) for outcome, n in story if outcome == "accepted")
    assert ledger.received() == ledger.twice() + len(ledger.arrivals["a"])
