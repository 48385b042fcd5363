"""The table of metrics names fields that the model has, and names that Prometheus' users expect."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from mesh.watch.counts import LATENCY_BUCKETS
from mesh.watch.metric_table import (
    DETAIL_GROUPS,
    LATENCY_BOUNDS,
    LEFT_OUT,
    NODE_GROUP,
    PATTERN_GROUP,
    SUMMARY_GROUPS,
    MetricGroup,
    MetricSample,
    MetricType,
    Presence,
)
from mesh.watch.metrics import DERIVED

GROUPS = (*SUMMARY_GROUPS, *DETAIL_GROUPS)
each_group = pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.families[0].name)


def lost_fields(group: MetricGroup) -> list[str]:
    """The fields that the table names, and neither the model nor the writer has."""
    known = () if group.entity is None else group.entity.names
    derived = DERIVED.get(group.name, {})
    samples = [sample for family in group.families for sample in family.samples]
    lost = [each.field for each in samples if each.field not in (derived if each.is_derived else known)]
    return lost + [field for _, field in group.labels if field not in known]


@each_group
def test_a_metric_names_fields_that_the_model_has(group: MetricGroup) -> None:
    assert lost_fields(group) == []


def test_a_field_that_the_model_has_not_is_found() -> None:
    family = replace(NODE_GROUP.families[0], samples=(MetricSample("colour"), MetricSample("age", is_derived=True)))
    group = replace(NODE_GROUP, families=(family,), labels=(("node", "nom"),))
    assert lost_fields(group) == ["colour", "age", "nom"]


@each_group
def test_counters_are_counters_of_the_model_and_gauges_are_not(group: MetricGroup) -> None:
    if group.entity is None:
        return
    for family in group.families:
        for sample in family.samples:
            field = group.entity.field(sample.field)
            if field is not None and not sample.is_derived:
                assert field.is_counter == (family.type is MetricType.COUNTER), (family.name, sample.field)


def test_every_counter_of_nodes_and_patterns_is_a_metric() -> None:
    for group in (NODE_GROUP, PATTERN_GROUP):
        assert group.entity is not None
        shown = {sample.field for family in group.families for sample in family.samples}
        counters = {field.name for field in group.entity.fields if field.is_counter}
        # The sum over outcomes is the number of deliveries, and over causes the time without credit; a router has
        # deliveries of clients by delay.
        left_out = {name for name in counters - shown if not name.endswith("deliveries") and name != "starved_s"}
        assert left_out <= {f"{way}_delayed_{seconds}s" for way in ("in", "out") for seconds in (1, 10)}


@each_group
def test_names_follow_the_conventions(group: MetricGroup) -> None:
    for family in group.families:
        assert re.fullmatch(r"amqpmesh_[a-z0-9]+(_[a-z0-9]+)*", family.name)
        assert family.name.endswith("_total") == (family.type is MetricType.COUNTER)
        assert not family.meaning.endswith(".")
        assert not set("\\\n") & set(family.meaning)
        assert family.presence is not Presence.ALIVE or family.type is MetricType.GAUGE or group in DETAIL_GROUPS


def test_a_name_stands_for_one_metric_and_tells_the_tier() -> None:
    names = Counter(family.name for group in GROUPS for family in group.families)
    assert [name for name, count in names.items() if count > 1] == []
    detailed = {family.name for group in DETAIL_GROUPS for family in group.families} | {LEFT_OUT.name}
    assert {name for name in (*names, LEFT_OUT.name) if name.startswith("amqpmesh_detailed_")} == detailed


@each_group
def test_a_series_stands_once(group: MetricGroup) -> None:
    for family in group.families:
        fixed = [sample.fixed for sample in family.samples]
        assert len(set(fixed)) == len(fixed)


def test_bounds_of_histograms_rise_and_have_buckets() -> None:
    assert all(before < after for before, after in pairwise(LATENCY_BOUNDS))
    assert max(LATENCY_BOUNDS) < LATENCY_BUCKETS - 1
