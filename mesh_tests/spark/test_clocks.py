"""Clocks that disagree, as links and neighbors show it, and clocks that were set."""

import statistics
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from mesh.commands.cli import cli
from mesh_tests.link_logs import RUN, START_US, Row, S, connection, delivery, link, node, write
from mesh_tests.spark.reports import only, report, rows

MS = 1000
LINE = Path(__file__).resolve().parents[2] / "topologies" / "line_3.yml"
BEGINS = "2026-01-05T12:10"
"""So that no clock comes to an hour's end: what is made up has other numbers then."""
OUTAGES = "duration: 20m\nfile_every: 6m\noutages: [{router: r2, at: 11m, for: 90s}]\n"
"""Clocks are set in the midst of files, and at the beginning of a run."""
SKEW_S = {"r2": 3}
STEPS = {"r3": ((9, 20.0),), "r1": ((5, -15.0), (14, -0.2)), "r2": ((12, 40.0),)}
"""Minutes, and seconds. That of r2 is while it is not there."""
CLOCKS = """
clock_skew: {r2: 3s}
clock_steps: {r3: [{at: 9m, by: 20s}], r1: [{at: 5m, by: -15s}, {at: 14m, by: -200ms}], r2: [{at: 12m, by: 40s}]}
"""


def at_clock(row: Row, ahead_us: int) -> Row:
    return {**row, "at_us": int(row["at_us"] or 0) + ahead_us}


def three_nodes(root: Path, ahead_us: int) -> None:
    """r1, r2 and r3 are tied by circuits; r3's clock is ahead, and each end hears of a circuit 1 ms after the other."""
    for me, others in (("r1", ("r2", "r3")), ("r2", ("r1", "r3")), ("r3", ("r1", "r2"))):
        rows = [node(), connection(1, "client"), link(1, "producer", "incoming", address="a"), delivery(5, 1, 0)]
        for number, other in enumerate(others, 2):
            begun = link(number, "circuit", "outgoing", name=f"{me}>{other}", address="a")
            heard = link(number + 2, "circuit", "incoming", name=f"{other}>{me}", address="a")
            rows += [begun, {**heard, "at_us": START_US + MS}]
        write(root, me, [at_clock(row, ahead_us if me == "r3" else 0) for row in rows])


def test_a_clock_that_is_ahead_is_found_and_its_times_corrected(spark: SparkSession, tmp_path: Path) -> None:
    three_nodes(tmp_path, 60_000_000)
    tables = report(spark, tmp_path).by_name
    found = only(tables["clocks"])
    assert found.node == "r3"
    assert abs(found.ahead_us - 60_000_000) <= MS
    assert rows(tables["mesh_by_window"], "side", "messages") == {("in", 3)}


@pytest.mark.parametrize("ahead_us", [0, 45_000, -45_000])
def test_a_small_difference_is_left_alone(spark: SparkSession, tmp_path: Path, ahead_us: int) -> None:
    three_nodes(tmp_path, ahead_us)
    assert report(spark, tmp_path).by_name["clocks"].collect() == []


def test_clients_that_move_to_another_router_do_not_make_its_clock_wrong(spark: SparkSession, tmp_path: Path) -> None:
    for me, since_s in (("r1", 0), ("r2", 600)):
        clients = [connection(1, "client"), *(
            link(number, "consumer", "outgoing", name=f"subscriber-{number}", address="a") for number in range(1, 9)
        )]  # fmt: skip
        moved = [{**row, "at_us": START_US + since_s * S} for row in clients]
        write(tmp_path, me, [node(), *moved, delivery(since_s + 5, 0, 1)])
    # Nor do links of nodes whose ends have nothing to do with each other.
    for me, apart_s in (("r1", 0), ("r2", 30)):
        circuits = [link(20 + i, "circuit", "outgoing", name=f"x{i}", address="a") for i in range(4)]
        write(
            tmp_path, me, [{**row, "at_us": START_US + i * apart_s * S} for i, row in enumerate(circuits)], name="1-1"
        )
    assert report(spark, tmp_path).by_name["clocks"].collect() == []


def neighbors(me: str, other: str, ahead_us: int, *told: tuple[str, float]) -> list[Row]:
    common = {"kind": "neighbor", "run": RUN, "neighbor": other, "cost": 1}
    return [{**common, "event": event, "at_us": START_US + round(at * S) + ahead_us} for event, at in told]


@pytest.mark.parametrize(("ahead_s", "found_s"), [(60, {60}), (0, set())])
def test_where_no_links_tell_neighbors_do(spark: SparkSession, tmp_path: Path, ahead_s: int, found_s: set[int]) -> None:
    for me, other in (("r1", "r2"), ("r2", "r1"), ("r2", "r3"), ("r3", "r2")):
        late = 0.4 if me == "r3" else 0
        told = neighbors(me, other, ahead_s * S if me == "r3" else 0, ("opened", 10 + late), ("closed", 50 + late))
        write(tmp_path, me, [node(), *told], name=f"1-{other}")
    found = report(spark, tmp_path).by_name["clocks"].collect()
    assert {round(row.ahead_us / S) for row in found} == found_s
    assert all(row.node == "r3" for row in found)


def made_up(folder: Path, profile: str) -> Path:
    (folder.parent / f"{folder.name}.yml").write_text(profile)
    asked = ["-t", str(LINE), "--out", str(folder), "--records", "60k", "--start", BEGINS]
    done = CliRunner().invoke(
        cli, ["linklogs", "generate", *asked, "--profile", str(folder.parent / f"{folder.name}.yml")]
    )
    assert done.exit_code == 0, done.output
    return folder


def test_clocks_that_are_set_leave_the_report_as_it_is_with_clocks_that_are_right(
    spark: SparkSession, tmp_path: Path
) -> None:
    right = report(spark, made_up(tmp_path / "right", OUTAGES)).by_name
    off = report(spark, made_up(tmp_path / "off", OUTAGES + CLOCKS)).by_name
    check_clocks(off["clocks"])
    for node_name, restart in (("r1", 0), ("r2", 0), ("r2", 1), ("r3", 0), ("b1", 0)):
        one, other = (only(each["runs"], node=node_name, restart=restart) for each in (right, off))
        assert near(one.first_at, other.first_at), node_name
        assert near(one.last_at, other.last_at), node_name
        assert one.ending == other.ending
    lost, told = (sorted(each["outages"].collect(), key=lambda row: (row.at, row.node)) for each in (right, off))
    assert {(row.node, row.neighbor, row.why) for row in lost} == {(row.node, row.neighbor, row.why) for row in told}
    assert all(near(one.at, other.at) for one, other in zip(lost, told, strict=True))
    assert moved_by(right["routers_by_window"], "messages") == pytest.approx(
        moved_by(off["routers_by_window"], "messages"), abs=3
    )


def check_clocks(found: DataFrame) -> None:
    begins, ends = {"r1": 0, "r2": SKEW_S["r2"], "r3": 0, "b1": 0}, {}
    for name, first in begins.items():
        ends[name] = first + sum(by for _, by in STEPS.get(name, ()))
    middle = statistics.median_low(ends.values())
    true: set[tuple[Any, ...]] = set()
    for name, ahead in begins.items():
        if ahead != middle:
            true.add((name, None, None, ahead - middle))
        for at_min, by in STEPS.get(name, ()):
            ahead += by
            true.add((name, 12.5 if name == "r2" else at_min, None if name == "r2" else by, ahead - middle))
    told = {(row.node, row.at and minutes(row.at), row.set_by_us and row.set_by_us / S, round(row.ahead_us / S, 1))
            for row in found.collect()}  # fmt: skip
    assert {(*row[:3], round(row[3], 1)) for row in true} == told


def minutes(at: Any) -> float:
    return round(((at.minute - 10) * 60 + at.second + at.microsecond / 1e6) / 60, 2)


def near(one: Any, other: Any) -> bool:
    return abs((one - other).total_seconds()) < 0.05


def moved_by(table: DataFrame, name: str) -> dict[tuple[Any, ...], int]:
    return {(row.node, row.side, row.window.isoformat()): row[name] for row in table.collect()}
