"""Link logs that were made up add up to the truth that came with them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import compute, parquet

from addressing.link_log import Level
from addressing.loader import load_topology
from linklogs.generating.run import TRUTH_NAME, generate
from mesh.link_logs.planning import Times, make_plan
from mesh.link_logs.profile_file import parse_profile

BEGINS_US = 1_767_571_200_000_000
PROFILE = """
duration: 10m
outages: [{link: [r1, r2], at: 2m, for: 1m}, {router: r3, at: 5m, for: 1m}]
churn: {life: 4m}
starved: {links: 50%, every: 60s}
"""
Make = Callable[..., "Made"]


class Made:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.truth: dict[str, Any] = json.loads((directory / TRUTH_NAME).read_text())
        self.files = sorted(directory.rglob("*.parquet"))

    def rows(self, *kinds: str, node: str | None = None) -> list[dict[str, Any]]:
        """Each with its node."""
        found = []
        for file in self.files:
            name = file.parent.parent.name.removeprefix("node=")
            table = parquet.ParquetFile(file).read()
            kept = table.filter(compute.is_in(table["kind"], pyarrow.array(kinds)))
            found += [{**row, "node": name} for row in kept.to_pylist()] if node in (None, name) else []
        return found

    @property
    def digest(self) -> dict[str, str]:
        files = (*self.files, self.directory / TRUTH_NAME)
        return {str(each.relative_to(self.directory)): sha256(each.read_bytes()).hexdigest() for each in files}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(
        profile: str = PROFILE, *, seed: int = 1, level: str = "full", records: int = 30_000, name: str = "logs"
    ) -> Made:
        topology = load_topology("topologies/demo.yml")
        parsed = parse_profile(profile, topology)
        times = Times(BEGINS_US, BEGINS_US + int(parsed.duration * 1e6))
        plan = make_plan(topology, parsed, times, seed, records)
        generate(plan, tmp_path / name, seed, Level(level), lambda progress: None)
        return Made(tmp_path / name)

    return made


def totals(rows: list[dict[str, Any]], side: str, parts: set[str]) -> Counter[tuple[str, int, int]]:
    """Messages by node, run and link."""
    found: Counter[tuple[str, int, int]] = Counter()
    for row in rows:
        if row["part"] in parts and row[side]:
            found[row["node"], row["run"], row[side]] += row["count"]
    return found


def told(truth: dict[str, Any], side: str) -> Counter[tuple[str, int, int]]:
    links = ((each["node"], each["run"], each["link"], each[side]["messages"]) for each in truth["links"])
    return Counter({(node, run, link): messages for node, run, link, messages in links if messages})


@pytest.mark.parametrize("level", ["full", "summary"])
def test_the_records_of_each_link_add_up_to_the_truth(make: Make, level: str) -> None:
    made = make(level=level)
    rows = made.rows("delivery", "traffic")
    assert totals(rows, "incoming", {"whole", "many"}) == told(made.truth, "came")
    assert totals(rows, "outgoing", {"whole", "copy"}) == told(made.truth, "went")
    assert sum(row["size_bytes"] for row in rows if row["part"] in ("whole", "many")) == sum(
        each["came"]["size_bytes"] for each in made.truth["links"]
    )


def test_one_seed_makes_the_same_bytes_and_another_others(make: Make) -> None:
    first, same, other = (make(seed=seed, name=str(i)) for i, seed in enumerate((7, 7, 8)))
    assert first.digest == same.digest
    assert first.digest.values() != other.digest.values()


def test_both_levels_of_a_seed_have_the_same_truth(make: Make) -> None:
    full, summary = (make(level=level, name=level).truth for level in ("full", "summary"))
    assert full.pop("level") != summary.pop("level")
    assert full.pop("records") > summary.pop("records")
    assert full == summary
