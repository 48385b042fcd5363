"""What sections of the page work out: the ledger's equations, the timeline, the run before."""

import re
from dataclasses import replace

import pytest

from mesh.drills.page_view import PageView
from mesh.drills.report import AddressReport, LatencyFigures, MessageCounts, Series
from mesh_tests import drill_reports


def equations(kind: str, counts: MessageCounts) -> list[tuple[str, bool]]:
    address = AddressReport("a", kind, counts, LatencyFigures(), 1.0, 0, 0.0, 0)
    (row,) = PageView(replace(drill_reports.empty(), addresses=(address,))).ledger()
    return [(each.text, each.holds) for each in (row.outcomes, row.arrivals)]


def test_both_equations_of_the_ledger_are_shown() -> None:
    assert equations("queue", MessageCounts(1000, 990, 1, 2, 3, 4, 995, 2, 7)) == [
        ("1,000 attempted = 990 + 1 + 2 + 3 + 4", True),
        ("990 accepted = 995 received − 7 duplicated + 2 lost", True),  # noqa: RUF001
    ]


def test_what_arrived_though_its_producer_heard_otherwise_is_in_the_equation() -> None:
    assert equations("anycast", MessageCounts(10, 8, modified=2, received=9))[1] == (
        "8 accepted + 1 others that arrived = 9 received − 0 duplicated + 0 lost",  # noqa: RUF001
        True,
    )


def test_each_consumer_of_a_multicast_has_a_copy() -> None:
    assert equations("multicast", MessageCounts(10, 10, received=29, lost=1))[1] == (
        "10 accepted × 3 consumers = 29 received − 0 duplicated + 1 lost",  # noqa: RUF001
        True,
    )


@pytest.mark.parametrize(
    ("counts", "off_by"),
    [
        (MessageCounts(11, 10, received=10), "off by 1"),
        (MessageCounts(10, 10, received=9), "off by -1"),
        (MessageCounts(10, 9, modified=1, received=12), "off by 2"),
    ],
)
def test_an_equation_that_does_not_hold_says_by_how_much(counts: MessageCounts, off_by: str) -> None:
    (wrong,) = [text for text, holds in equations("queue", counts) if not holds]
    assert wrong.endswith(off_by)


def test_the_run_before_is_compared_by_fault_and_address() -> None:
    first, _, third, fourth, *_ = PageView(drill_reports.failing()).differences()
    assert (first.outage, first.recovery, first.lost) == (
        "18.2 ms → 812 ms (+794 ms)",
        "54.6 ms → 2.44 s (+2.38 s)",
        "0 → 13",
    )
    assert (third.outage, third.lost) == ("– → 12.2 ms", "– → 0")  # noqa: RUF001
    assert fourth.recovery == "54.6 ms → –"  # noqa: RUF001


def test_the_same_fault_twice_is_compared_with_its_like() -> None:
    report = drill_reports.passing()
    again = replace(report, faults=tuple(replace(each, label="kill r2") for each in report.faults))
    before = replace(again, results=tuple(replace(each, outage_ms=float(i)) for i, each in enumerate(again.results)))
    outages = [each.outage for each in PageView(replace(again, previous=before.summary())).differences()]
    assert [text.split(" → ")[0] for text in outages] == ["0 ms", "1 ms", "2 ms", "3 ms"]


def test_lanes_of_the_timeline_lie_within_it() -> None:
    for name in drill_reports.ALL:
        view = PageView(drill_reports.ALL[name]())
        for lane in view.lanes():
            assert 0 <= lane.left <= lane.left + lane.width <= 100
        assert all(0 <= left <= 97 for left, _ in view.ticks())


def test_a_fault_that_was_never_healed_lasts_to_the_end() -> None:
    first, second = PageView(drill_reports.passing()).lanes()
    assert first.left + first.width == pytest.approx(100)
    assert second.left + second.width == pytest.approx(75)


def test_recovered_is_when_the_last_address_was() -> None:
    killed, cut = PageView(drill_reports.failing()).lanes()
    assert killed.recovered == pytest.approx(100 * (8.0 + 2.436) / 24, abs=0.01)
    assert cut.recovered is None


def test_ticks_are_round_numbers() -> None:
    assert [text for _, text in PageView(drill_reports.passing()).ticks()] == ["0 s", "5 s", "10 s", "15 s", "20 s"]


@pytest.mark.parametrize("bin_s", [0.01, 0.1, 0.5, 3.0])
def test_the_traffic_of_a_constant_rate_is_flat_however_long_its_bins_are(bin_s: float) -> None:
    bins = round(12 / bin_s)
    series = {"a": Series(bin_s, (1,) * bins, (1,) * bins, (0,) * bins)}
    path = PageView(replace(drill_reports.empty(), series=series)).traffic()
    heights = [float(each) for each in re.findall(r"V([\d.]+)H", path)]
    assert len(heights) == 240
    assert max(heights) < 1
