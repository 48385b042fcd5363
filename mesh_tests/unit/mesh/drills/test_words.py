"""How figures of a drill read, and which of them make the headline."""

from dataclasses import replace

import pytest

from mesh.drills import words
from mesh.drills.page import page
from mesh.drills.report import MessageCounts
from mesh_tests import drill_reports


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [
        (None, "-"),
        (0, "0 ms"),
        (0.004, "0.01 ms"),
        (0.7, "0.7 ms"),
        (18.16, "18.2 ms"),
        (999.4, "999 ms"),
        (999.6, "1 s"),
        (2404, "2.4 s"),
        (59_900, "59.9 s"),
        (59_960, "1 min 0 s"),
        (125_000, "2 min 5 s"),
    ],
)
def test_durations_have_three_digits_at_most(value_ms: float | None, text: str) -> None:
    assert words.duration(value_ms) == text


def test_the_headline_has_the_worst_of_all_faults_and_addresses() -> None:
    report = drill_reports.failing()
    headline = words.Headline.of(report)
    assert (headline.outage_ms, headline.outage_at) == (2404.0, report.results[3])
    assert (headline.recovery_ms, headline.recovery_at) == (2436.0, report.results[0])
    assert (headline.attempted, headline.lost, headline.duplicated) == (18_039, 26, 4)


def test_an_outage_that_was_not_measured_is_no_outage_of_0() -> None:
    headline = words.Headline.of(drill_reports.silent())
    assert (headline.outage_ms, headline.lost, headline.duplicated) == (None, None, None)


def test_the_sentence_says_it_all() -> None:
    report = replace(drill_reports.passing(), took_s=24.0)
    assert (
        words.Headline.of(report).sentence(report)
        == "PASS: lose-a-router: worst outage 18.2 ms, 0 lost, 0 duplicated (12,034 messages, 24 s)"
    )


def test_all_but_accepted_is_not_accepted() -> None:
    assert words.not_accepted(MessageCounts(15, 5, 1, 2, 3, 4)) == 10


def test_where_one_address_never_recovered_the_slowest_recovery_is_never():
    report = drill_reports.passing()
    assert words.Headline.of(report).has_recovered
    stuck = replace(report.results[0], recovery_ms=None)
    report = replace(report, results=(stuck, *report.results[1:]))
    assert not words.Headline.of(report).has_recovered
    assert "<dd>never</dd>" in page(report)
