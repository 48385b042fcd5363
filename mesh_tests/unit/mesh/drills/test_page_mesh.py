"""The drawing of the mesh: who stands where, and what is marked."""

import math
from dataclasses import replace
from itertools import combinations

import pytest

from mesh.drills.page_mesh import scenes
from mesh.drills.report import Drawing
from mesh_tests import drill_reports
from mesh_tests.drill_reports import ring


def drawn(drawing: Drawing) -> list[str]:
    return [node.name for node in scenes(replace(drill_reports.empty(), drawing=drawing))[0].nodes]


def test_during_shows_what_each_fault_hit_and_after_what_was_not_healed() -> None:
    before, during, after = scenes(drill_reports.passing())
    marks = [
        {each.name: each.faults for each in (*scene.nodes, *scene.lines) if each.faults}
        for scene in (before, during, after)
    ]
    assert marks == [{}, {"r2": "1", "r3 to r4, cost 3": "2"}, {"r2": "1"}]


def test_a_fault_between_router_and_broker_is_marked_there() -> None:
    report = drill_reports.passing()
    cut = replace(report.faults[1], targets=("b1", "r1"))
    _, during, _ = scenes(replace(report, faults=(cut,)))
    assert [line.name for line in during.lines if line.faults] == ["r1 to b1"]


def test_many_faults_of_one_node_are_cut_short() -> None:
    report = drill_reports.passing()
    faults = tuple(replace(report.faults[0], id=str(i)) for i in range(1, 9))
    assert scenes(replace(report, faults=faults))[1].nodes[1].faults == "1, 2 …"


@pytest.mark.parametrize("routers", [1, 2, 3, 5, 12, 30])
@pytest.mark.parametrize("brokers", [0, 1, 3, 9])
def test_no_two_nodes_stand_on_each_other_and_all_are_in_the_drawing(routers: int, brokers: int) -> None:
    drawing = ring(routers)
    attached = [drawing.routers, drawing.routers[:1], drawing.routers[-2:]]
    drawing = replace(drawing, brokers=tuple((f"b{i}", attached[i % 3]) for i in range(brokers)))
    if routers == 1:
        drawing = replace(drawing, links=())
    (scene, *_) = scenes(replace(drill_reports.empty(), drawing=drawing))
    assert len(scene.nodes) == routers + brokers
    for one, other in combinations(scene.nodes, 2):
        assert math.hypot(one.x - other.x, one.y - other.y) > 26, (one, other)
    left, top, width, height = map(float, scene.box.split())
    for node in scene.nodes:
        assert left < node.x - node.width / 2 < node.x + node.width / 2 < left + width
        assert top < node.y - 13 < node.y + 13 < top + height


def test_costs_on_lines_that_cross_in_the_middle_do_not() -> None:
    names = ("r1", "r2", "r3", "r4")
    drawing = Drawing(names, (), (("r1", "r3", 5), ("r2", "r4", 7)))
    one, other = scenes(replace(drill_reports.empty(), drawing=drawing))[0].lines
    assert math.dist(one.label, other.label) > 20


def test_a_long_name_is_cut_and_still_told() -> None:
    (node,) = scenes(replace(drill_reports.empty(), drawing=Drawing(("r" * 40,), (), ())))[0].nodes
    assert (node.text, node.name) == ("r" * 11 + "…", "r" * 40)


def test_without_a_mesh_there_is_no_drawing() -> None:
    assert scenes(drill_reports.empty()) == []
