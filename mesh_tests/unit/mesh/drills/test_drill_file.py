"""A wrong drill file: every mistake at once, each with its place; a right one means what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from addressing.book import AddressBook
from addressing.topology.loader import load_topology
from mesh.drills.drill_file import DrillFile, DrillInvalid, read_drill
from mesh.drills.model import Heal, Kill, Latency, Random
from mesh.drills.traffic import CREDIT
from mesh.terminal.exit_codes import ExitCode

HEAD = "drill: d\nsteady_state: {load: {address: orders}}\n"


def read(text: str, folder: Path) -> DrillFile:
    path = folder / "drill.yml"
    path.write_text(text)
    return read_drill(path)


def found_in(text: str, folder: Path) -> list[str]:
    with pytest.raises(DrillInvalid) as caught:
        read(text, folder)
    assert caught.value.exit_code is ExitCode.TOPOLOGY_INVALID
    return [f"{error['line']}:{error['column']} {error['code']}" for error in caught.value.errors]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "0:0 AM007"),
        ("drill: [", "1:9 AM004"),
        ("drill: d\n", "1:1 AM102"),
        ("drill: d\nsteady_state: {load: {adress: orders}}", "2:23 AM101"),
        ("drill: d\nsteady_state: {load: [{address: a}, {address: b, rate: fast}]}", "2:56 AM106"),
        ("drill: d\nsteady_state: {load: {address: orders, senders: many}}", "2:49 AM105"),
        ("drill: d\nsteady_state: {load: {address: orders, senders: 101}}", "2:49 AM106"),
        (HEAD + "baseline: 20", "3:11 AM106"),
        (HEAD + "baseline: 20kg", "3:11 AM106"),
        (HEAD + "baseline: [1s]", "3:11 AM106"),
        (HEAD + "baseline: {s: 1}", "3:11 AM106"),
        (HEAD + "baseline: false", "3:11 AM106"),
        (HEAD + "expect: lsot == 0", "3:9 AM601"),
        (HEAD + "expect: [lost == 0, lost < 5ms]", "3:21 AM601"),
        (HEAD + "x-note: ignored\nbaselin: 5s", "4:1 AM101"),
        (HEAD + "method: [{fault: kil, router: r1}]", "3:18 AM602"),
        (HEAD + "method: [{router: r1}]", "3:10 AM102"),
        (HEAD + "method: [{fault: kill}]", "3:10 AM106"),
        (HEAD + "method: [{fault: kill, router: r1, broker: b1}]", "3:10 AM106"),
        (HEAD + "method: [{fault: cut, link: [r1]}]", "3:29 AM106"),
        (HEAD + "method: [{fault: cut, link: [r1, r2], direction: up}]", "3:50 AM106"),
        (HEAD + "method: [{fault: latency, link: [r1, r2], latency: 100}]", "3:52 AM106"),
        (HEAD + "method: [{fault: loss, link: [r1, r2], loss: 0.05}]", "3:46 AM106"),
        (HEAD + "method: [{heal: some}]", "3:17 AM106"),
    ],
)
def test_a_mistake_has_a_place_and_a_code(text: str, place: str, tmp_path: Path):
    assert found_in(text, tmp_path) == [place]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path: Path):
    text = HEAD + "baseline: 5\nmethod:\n  - {fault: kil}\n  - {fault: cut, links: [a, b]}\nexpect: [x]\n"
    assert found_in(text, tmp_path) == ["3:11 AM106", "5:13 AM602", "6:18 AM101", "7:10 AM601"]


def test_a_file_that_is_not_there_is_told_like_any_other(tmp_path: Path):
    with pytest.raises(DrillInvalid, match="no such file"):
        read_drill(tmp_path / "none.yml")


def test_a_right_file_means_what_it_says(tmp_path: Path):
    file = read(
        HEAD
        + """
baseline: 1m
method:
  - {fault: kill, router: r2}
  - {at: 1500ms, fault: delay, link: [r1, r2], latency: 100ms, for: 10s}
  - {at: 20s, fault: random, count: 3}
  - {at: 30s, heal: all}
expect: "lost == 0"
""",
        tmp_path,
    )
    steps = [step for _, step in file.steps]
    assert [type(step) for step in steps] == [Kill, Latency, Random, Heal]
    assert isinstance(steps[1], Latency)
    assert (file.drill.baseline, steps[1].at, steps[1].latency, steps[1].for_) == (60, 1.5, 0.1, 10)
    assert [threshold.text for threshold in file.drill.expect] == ["lost == 0"]


def test_every_shipped_drill_can_be_read():
    files = sorted(Path("topologies/drills").glob("*.yml"))
    assert len(files) >= 8
    for file in files:
        assert read_drill(file).drill.title


SHIPPED = [*sorted(Path("topologies/drills").glob("*.yml")), Path("mesh/drills/demo_drill.yml")]
HARMLESS = {"latency", "bandwidth", "loss"}


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_no_shipped_drill_expects_what_the_mesh_does_not_promise(file: Path):
    """A broker gives again what a consumer had not settled when its path broke, up to its credit."""
    read = read_drill(file)
    book = AddressBook(load_topology(file.parent / str(read.drill.topology)))
    if all(getattr(step, "kind", "") in HARMLESS for _, step in read.steps):
        return
    for load in read.drill.steady_state.load:
        if not book.resolve(load.address).kind.is_stored:
            continue
        for threshold in (*read.drill.expect, *read.drill.steady_state.expect, *load.expect):
            if threshold.metric == "duplicated":
                assert threshold.holds(CREDIT * load.receivers), f"{file}: {load.address}: {threshold.text}"


@pytest.mark.parametrize("name", ["a/b", "../x", "lose r2", ".", "*", "x" * 81])
def test_the_name_of_a_drill_is_one_of_a_folder(name: str, tmp_path: Path):
    path = tmp_path / "drill.yml"
    path.write_text(f"drill: {name!r}\nsteady_state: {{load: {{address: a}}}}\n")
    with pytest.raises(DrillInvalid) as caught:
        read_drill(path)
    assert [error["code"] for error in caught.value.errors] == ["AM106"]


def complaint(text: str, folder: Path) -> tuple[str, str]:
    path = folder / "drill.yml"
    path.write_text(text)
    with pytest.raises(DrillInvalid) as caught:
        read_drill(path)
    (error,) = caught.value.errors
    return error["message"], error["fix"]


def test_a_topology_in_place_of_a_drill_is_told_to_be_one(tmp_path: Path):
    message, fix = complaint("mesh: m\nrouters: {r1: }\n", tmp_path)
    assert message == "expected a drill, got a topology: a drill describes the faults of a topology"
    assert "topology: FILE" in fix


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("method: [{at: 15s, heal: al}]", "expected all, got 'al'"),
        ("baseline: -5s", "expected a number, or a number and a unit, got '-5s'"),
        ("method: [{}]", "expected a mapping with 'fault', or with 'heal: all'"),
    ],
)
def test_a_mistake_is_told_in_the_words_of_the_file(line: str, message: str, tmp_path: Path):
    told, fix = complaint(f"{HEAD}{line}\n", tmp_path)
    assert told.startswith(message)
    assert "expected values" not in fix
