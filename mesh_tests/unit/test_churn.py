"""When does the proof of a churn call a measure flat, and what does it show?"""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree

import pytest

from mesh_tests.churn.churn import not_flat
from mesh_tests.churn.page import chart, page
from mesh_tests.churn.samples import BLOCKS, DESCRIPTORS, RESIDENT, Sample, Trend, from_maps, to_maps, trends

SAMPLES, EACH_S = 180, 10.0
LEVELS = {RESIDENT: 80e6, DESCRIPTORS: 30.0, BLOCKS: 320_000.0}


def life(
    measure: str = RESIDENT, *, growth_a_minute: float = 0.0, warm_up: float = 0.0, noise: float = 0.0
) -> list[Sample]:
    """Half an hour of a router, one measure of which grows all the time, or by ``warm_up`` in the first third."""
    chance = random.Random(1)
    samples = []
    for number in range(1, SAMPLES + 1):
        at_s = number * EACH_S
        values = dict(LEVELS)
        values[measure] += growth_a_minute * at_s / 60 + warm_up * min(1.0, at_s / 600) + chance.uniform(-noise, noise)
        samples.append(Sample(at_s, {"r1": {"cpu_s": at_s / 20, **values}}))
    return samples


def judged(samples: list[Sample], each: int = 10) -> list[Trend]:
    return trends(samples, samples[each - 1 :: each])


@pytest.mark.parametrize("measure", [RESIDENT, DESCRIPTORS, BLOCKS])
def test_what_stays_is_flat_with_noise_and_with_a_warm_up(measure: str) -> None:
    level = LEVELS[measure]
    assert not_flat(judged(life(measure, warm_up=level / 2, noise=level * 0.05))) == []


@pytest.mark.parametrize(("measure", "a_minute"), [(RESIDENT, 200_000.0), (DESCRIPTORS, 0.2), (BLOCKS, 600.0)])
def test_what_grows_all_the_time_is_not_flat(measure: str, a_minute: float) -> None:
    level = LEVELS[measure]
    (sentence,) = not_flat(judged(life(measure, growth_a_minute=a_minute, noise=level * 0.01)))
    assert sentence.startswith(f"r1: {measure} grew by ")


def test_memory_that_is_given_back_every_few_minutes_is_no_growth() -> None:
    """16 MB more within three minutes, and then gone: a saw whose last tooth is high."""
    samples = [Sample(each.at_s, {"r1": {RESIDENT: 80e6 + 16e6 * (each.at_s % 170 / 170)}}) for each in life()]
    assert not_flat(judged(samples)) == []


def test_objects_are_judged_by_what_is_left_at_rest() -> None:
    samples, rests = life(BLOCKS, growth_a_minute=2_000.0), life()
    assert not_flat(trends(samples, rests[9::10])) == []
    (sentence,) = not_flat(trends(rests, samples[9::10]))
    assert sentence.startswith("r1: python_blocks grew by ")


def test_what_shrinks_is_flat() -> None:
    assert not_flat(judged(life(BLOCKS, growth_a_minute=-5_000.0))) == []


def test_blocks_that_are_3_percent_of_a_high_level_are_not_flat_if_they_are_many() -> None:
    samples = [Sample(each.at_s, {"r1": {BLOCKS: 1_000_000 + 12 * each.at_s}}) for each in life()]
    assert [each.is_flat for each in judged(samples)] == [False]


def test_few_samples_are_no_proof() -> None:
    with pytest.raises(ValueError, match="expected 20 and 6 or more"):
        judged(life()[:12])


def test_the_page_tells_revision_seed_and_what_grows_and_the_chart_is_an_image() -> None:
    samples = life(RESIDENT, growth_a_minute=200_000.0)
    assert from_maps(to_maps(samples)) == samples
    found = {"seed": 7, "seconds": 1800.0, "state": "failed", "why": "r1 grew", "counts": {"names": 100_000}}
    text = page(found | {"samples": to_maps(samples), "rests": to_maps(samples[9::10])}, "abc1234", "2026-11-27")
    assert "revision abc1234, seed 7, 1,800 s: **failed**" in text
    assert "| names | 100,000 |" in text
    assert "**grows**" in text
    assert text.count("| flat |") == 2
    lines = ElementTree.fromstring(chart(samples)).findall("{http://www.w3.org/2000/svg}polyline")
    assert [len((line.get("points") or "").split()) for line in lines] == [SAMPLES] * 3
