"""Names of directories and files: what Hive and Spark make of them, and back."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklogs.file_names import HOUR_US, directory_of, end_of_hour_us, escape, hour_of, hours, start_of_hour_us
from mesh_tests.unit.linklogs.rings import RUN


@given(st.text(max_size=20))
def test_every_name_reads_back(name: str) -> None:
    escaped = escape(name)
    assert unquote(escaped) == name
    assert not set(escaped) & set("/:=\0\n")


@pytest.mark.parametrize(("name", "escaped"), [("007", "007"), ("a=b", "a%3Db"), ("50%", "50%25"), ("né e", "né e")])
def test_what_is_no_danger_stays_as_it_is(name: str, escaped: str) -> None:
    assert escape(name) == escaped


@given(st.integers(0, 8_000_000_000_000_000))
def test_an_hour_begins_and_ends_around_its_times(at_us: int) -> None:
    begins = start_of_hour_us(hour_of(at_us))
    assert begins <= at_us < begins + HOUR_US == end_of_hour_us(at_us)


def test_hours_are_found_the_oldest_first_and_nothing_else(tmp_path: Path) -> None:
    for node, hour in (("b", 1), ("a", 2), ("c", 0)):
        directory_of(tmp_path, node, RUN + hour * HOUR_US).mkdir(parents=True)
    (tmp_path / "node=a" / "hour=yesterday").mkdir()
    (tmp_path / "other").mkdir()
    found = [(began_us - RUN, path.parent.name) for began_us, path in hours(tmp_path)]
    assert found == [(0, "node=c"), (HOUR_US, "node=b"), (2 * HOUR_US, "node=a")]
