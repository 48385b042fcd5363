"""The map: where the boxes stand, what they say, and how many there are."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mesh.watch.mesh_map import MAX_BOXES, MeshLayout
from mesh_tests.unit.mesh.watch.console_host import ConsoleHost
from recording.columns import RecordEvent, RecordKind


def drawn(host: ConsoleHost) -> dict[str, Any]:
    return MeshLayout(host.plan).draw(host.state)


def boxes(host: ConsoleHost) -> dict[str, dict[str, Any]]:
    return {box["id"]: box for box in drawn(host)["boxes"]}


def chain(count: int, shape: str = "line") -> str:
    def peer(number: int) -> int:
        return number + 1 if shape == "line" else 0 if shape == "star" else number // 2

    routers = [f"  r{number}: {{connect: [r{peer(number)}]}}" for number in range(count)]
    routers[-1 if shape == "line" else 0] = f"  r{count - 1 if shape == 'line' else 0}: {{}}"
    return "mesh: big\nrouters:\n" + "\n".join(routers) + "\naddresses: {a: anycast}\n"


@pytest.mark.parametrize("shape", ["line", "star", "tree"])
@pytest.mark.parametrize("count", [2, 7, 40, 150, 400])
def test_no_two_boxes_overlap_and_all_are_on_the_map(shape: str, count: int) -> None:
    host = ConsoleHost(chain(count, shape))
    for number in range(0, count, 3):
        host.start(f"r{number}")
        for client in range(6):
            host.connect(f"r{number}", client + 1, f"user-{client}")
    picture = drawn(host)
    assert len(picture["boxes"]) <= MAX_BOXES
    for box in picture["boxes"]:
        assert 0 <= box["x"] <= box["x"] + box["width"] <= picture["width"]
        assert 0 <= box["y"] <= box["y"] + box["height"] <= picture["height"]
    for one, other in itertools.combinations(picture["boxes"], 2):
        apart_x = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
        apart_y = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
        assert apart_x or apart_y, (one["id"], other["id"])


def test_a_large_mesh_shows_what_is_broken_and_counts_the_rest() -> None:
    host = ConsoleHost(chain(400))
    for number in range(400):
        host.start(f"r{number}")
    host.runs["r399"].end("lost")
    found = boxes(host)
    assert found["node r399"]["state"] == "lost"
    assert found["more"]["count"] == 250


def test_a_map_stays_the_same_while_nothing_changes() -> None:
    host = ConsoleHost()
    host.start_all()
    shown = MeshLayout(host.plan)
    assert shown.draw(host.state) == shown.draw(host.state)


def test_the_first_router_of_a_line_stands_on_the_left() -> None:
    host = ConsoleHost(chain(5))
    xs = [boxes(host)[f"node r{number}"]["x"] for number in range(5)]
    assert xs == sorted(xs)
    assert len(set(xs)) == 5


def test_clients_are_boxes_by_user_and_many_users_are_one_box() -> None:
    host = ConsoleHost()
    host.start_all()
    for number in range(2, 12):
        host.connect("r1", number, "alice")
    host.connect("r1", 12)
    assert boxes(host)["clients r1 alice"]["count"] == 10
    assert boxes(host)["clients r1 anonymous"]["count"] == 1
    for number in range(13, 33):
        host.connect("r1", number, f"user-{number}")
    others = boxes(host)["clients r1"]
    assert (others["users"], others["count"]) == (19, 19)


def test_brokers_stand_below_their_router() -> None:
    host = ConsoleHost()
    host.start_all()
    found = boxes(host)
    assert found["node b1"]["y"] > found["node r3"]["y"]
    assert found["node b1"]["x"] - found["node r3"]["x"] == 14


def test_a_node_of_another_host_is_unknown_and_never_lost() -> None:
    host = ConsoleHost()
    host.start("r1")
    found = boxes(host)
    assert found["node r2"]["state"] == found["node b1"]["state"] == "unknown"
    assert {line["state"] for line in drawn(host)["lines"] if "r1" not in (line["from"], line["to"])} == {"unknown"}


def test_a_line_is_missing_once_one_end_that_runs_does_not_have_it() -> None:
    host = ConsoleHost()
    host.start_all()
    assert {line["state"] for line in drawn(host)["lines"]} == {"up"}
    host.add("r1", RecordKind.NEIGHBOR, RecordEvent.CLOSED, neighbor="r2")
    states = {frozenset((line["from"], line["to"])): line["state"] for line in drawn(host)["lines"]}
    assert states == {frozenset(("r1", "r2")): "missing", frozenset(("r1", "r3")): "up", frozenset(("r2", "r3")): "up"}


def test_an_edge_router_has_one_uplink_and_others_in_reserve() -> None:
    host = ConsoleHost(
        "mesh: m\nrouters:\n  r1: {connect: [r2]}\n  r2: {}\n  e1: {mode: edge, connect: [r1, {to: r2, cost: 5}]}\n"
        "addresses: {a: anycast}\n"
    )
    for name, role in (("r1", "router"), ("r2", "router"), ("e1", "edge")):
        host.start(name, role)

    def states() -> dict[frozenset[str], str]:
        return {frozenset((line["from"], line["to"])): line["state"] for line in drawn(host)["lines"]}

    assert states()[frozenset(("e1", "r1"))] == "missing"
    host.add("e1", RecordKind.CONNECTION, connection=1, role="router", container="r1")
    host.add("r1", RecordKind.CONNECTION, connection=1, role="edge", container="e1")
    assert states()[frozenset(("e1", "r1"))] == "up"
    assert states()[frozenset(("e1", "r2"))] == "spare"
