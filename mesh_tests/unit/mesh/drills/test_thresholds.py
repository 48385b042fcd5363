"""Expectations as text: what they mean, and what is said of one that means nothing."""

from __future__ import annotations

import math

import pytest

from mesh.drills.thresholds import parse_threshold


@pytest.mark.parametrize(
    ("text", "metric", "bound"),
    [
        ("lost == 0", "lost", 0),
        ("duplicates <= 10", "duplicated", 10),
        ("p(99) < 250ms", "p(99)", 250),
        ("p99<1s", "p(99)", 1000),
        ("recovery < 1.5m", "recovery", 90_000),
        ("rate >= 30/m", "rate", 0.5),
        ("  Outage  !=  0s ", "outage", 0),
        ("outage < 500 ms", "outage", 500),
        ("outage<1.5  s", "outage", 1500),
        ("rate >= 100 / s", "rate", 100),
        ("rate >= 1 k/s", "rate", 1000),
    ],
)
def test_a_threshold_has_a_metric_and_a_bound_in_milliseconds_a_second_or_a_count(text: str, metric: str, bound: float):
    threshold = parse_threshold(text)
    assert (threshold.metric, threshold.bound) == (metric, bound)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lsot == 0", "did you mean 'lost'?"),
        ("lost", "expected METRIC, one of < <= == != >= >, and a value"),
        ("lost = 0", "is not a threshold"),
        ("outage < 500", "expected a time such as 250ms, got '500'"),
        ("outage < 5kg", "expected a time such as 250ms"),
        ("lost < 5ms", "expected a number, such as 0"),
        ("lost < 0.5", "expected a number, such as 0"),
        ("outage < 5 0ms", "expected a time such as 250ms, got '5 0ms'"),
        ("lost == 0 messages", "expected a number, such as 0, got '0 messages'"),
        ("outage < 1s and lost == 0", "expected a time such as 250ms, got '1s and lost == 0'"),
        ("rate > 100", "expected a rate such as 100/s"),
    ],
)
def test_a_wrong_one_is_refused_with_what_was_expected(text: str, said: str):
    with pytest.raises(ValueError, match=r"^(threshold )?'") as caught:
        parse_threshold(text)
    assert said in str(caught.value)


def test_of_several_values_the_one_furthest_on_the_wrong_side_is_judged():
    assert parse_threshold("outage < 1s").worst([3, 900, 20]) == 900
    assert parse_threshold("rate >= 1/s").worst([3, 900, 20]) == 3
    assert parse_threshold("lost == 0").worst([0, 2, 0]) == 2


def test_what_never_came_is_over_every_bound():
    assert not parse_threshold("recovery < 24h").holds(math.inf)


@pytest.mark.parametrize(("observed", "margin"), [(50.0, "2.0x below"), (300.0, "3.0x above"), (0.0, "below")])
def test_the_margin_says_how_far_it_is_from_the_bound(observed: float, margin: str):
    assert parse_threshold("outage < 100ms").margin(observed) == margin
