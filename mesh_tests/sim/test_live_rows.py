"""Does a reader that comes late to a ring know, from the rows it asked for, what a reader from the start knows?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from linklogs.writer.live_state import LiveState
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from mesh_tests.seeds import seeds
from mesh_tests.sim.invariants import CheckedMesh
from mesh_tests.sim.line import line
from mesh_tests.sim.recorded import router
from mesh_tests.sim.walk import Walk
from recording.live_rows import ROWS_AT_ONCE
from recording.records import Recorder

KEYS = {"connection": "connection", "link": "link", "credit": "link", "neighbor": "neighbor", "path": "egress"}
Row = dict[str, Any]
PATIENT_S = 1.0


class Readers:
    """Of one life of a node: a reader from the start, and one that begins anew with each list."""

    def __init__(self) -> None:
        self.ring = Ring(1 << 14)
        self.early, self.late = LiveState({}), LiveState({})
        self.is_listed = False
        self.counted = 0
        """Rows with event `live` since the list began."""

    def begin(self) -> None:
        self.late = LiveState({})
        self.is_listed, self.counted = False, 0

    def read(self) -> None:
        for row in self.ring.take()[1]:
            # A row has no time here, so that the time at which the oldest message came is unknown.
            row.pop("oldest_us", None)
            self.counted += row["event"] == "live" if "event" in row else 0
            for state in (self.early, self.late):
                state.on_row(row, 0)
            if row.get("event") == "listed":
                assert row["count"] == self.counted
                self.is_listed = True

    def compare(self, counts: tuple[int, int]) -> int:
        """The number of things that there are. ``counts``: of connections and of links, by the node."""
        early, late = known(self.early), known(self.late)
        kinds = [kind for kind, _ in early]
        assert counts == (kinds.count("connection"), kinds.count("link"))
        assert early.keys() == late.keys()
        for key, row in early.items():
            # The depth of a queue in which nothing happened is only in the list.
            assert row.items() <= late[key].items(), key
        return len(early)


def known(state: LiveState) -> dict[tuple[str, Any], Row]:
    rows: list[Any] = state.rows(0, 0)[1:]
    return {(row["kind"], row[KEYS.get(row["kind"], "queue")]): row for row in rows}


class ListedWalk(Walk):
    def __init__(self, seed: int, folder: Path) -> None:
        self.readers: dict[str, Readers] = {}
        self.compared = 0
        super().__init__(seed, folder)

    def make_mesh(self, folder: Path) -> SimMesh:
        return CheckedMesh(self, self.topology(), folder, recorder_of=self.recorder_of)

    def recorder_of(self, name: str) -> Recorder:
        self.readers[name] = readers = Readers()
        return Recorder(readers.ring.memory, "summary")

    def pause(self) -> None:
        super().pause()
        nodes: dict[str, Any] = {**self.mesh.routers, **self.mesh.brokers}
        for name, node in nodes.items():
            readers = self.readers[name]
            readers.read()
            if readers.is_listed:
                self.mesh.tell_second(name)
                readers.read()
                self.compared += readers.compare(node.recorded_counts())
            if self.random.random() < 0.05:
                slot = node.list_live(self.mesh.now)
                if slot == node._recorder.written:
                    readers.begin()
            if self.random.random() < 0.2:
                self.mesh.tell_second(name)


@pytest.mark.parametrize("seed", seeds(8))
def test_in_no_random_life_does_a_late_reader_know_more_or_less_than_one_from_the_start(tmp_path: Path, seed: int):
    walk = ListedWalk(seed, tmp_path)
    walk.live(250)
    assert walk.compared > 1000


def listed(mesh: SimMesh, ring: Ring) -> list[Row]:
    """The rows of the ring from now on until a list is complete."""
    rows: list[Row] = []

    def is_complete() -> bool:
        rows.extend(ring.take()[1])
        return any(row["event"] == "listed" for row in rows)

    mesh.run_until(is_complete)
    return rows


def test_two_requests_at_once_are_one_list_and_a_later_one_is_another(ring: Ring):
    mesh = router(ring)
    for _ in range(ROWS_AT_ONCE):
        mesh.client("r1").receiver("rpc")
    mesh.run(0.1)
    ring.take()
    node = mesh.routers["r1"]
    first = node.list_live(mesh.now)
    mesh.run(0.001)
    assert node.list_live(mesh.now) == first
    rows = listed(mesh, ring)
    assert [row["kind"] for row in rows].count("link") == ROWS_AT_ONCE
    mesh.run(PATIENT_S)
    assert ring.take() == ([], [])
    assert node.list_live(mesh.now) > first
    assert listed(mesh, ring) == rows


def test_a_turn_of_the_node_writes_a_few_rows_however_many_there_are(ring: Ring):
    mesh = router(ring)
    for _ in range(5 * ROWS_AT_ONCE):
        mesh.client("r1").receiver("rpc")
    mesh.run(0.1)
    ring.take()
    node = mesh.routers["r1"]
    node.list_live(mesh.now)
    counts = []
    for number in range(100):
        node.on_time(mesh.now + number / 100)
        counts.append(len(ring.take()[1]))
    assert max(counts) <= ROWS_AT_ONCE
    assert sum(counts) == 5 * ROWS_AT_ONCE * 2 + 1


def test_neighbors_and_paths_are_in_the_list():
    rings = {name: Ring(4096) for name in ("r1", "r2", "r3")}
    mesh = line(recorder_of=lambda name: Recorder(rings[name].memory, "summary"))
    mesh.tell_second("r1")
    rings["r1"].take()
    mesh.routers["r1"].list_live(mesh.now)
    rows = listed(mesh, rings["r1"])
    assert [(row["neighbor"], row["cost"]) for row in rows if row["kind"] == "neighbor"] == [("r2", 1)]
    assert {row["egress"]: row["path"] for row in rows if row["kind"] == "path"} == {"r2": "r1>r2", "r3": "r1>r2>r3"}


def test_a_node_without_a_ring_says_why_it_lists_nothing():
    mesh = line()
    with pytest.raises(ValueError, match="link_logs"):
        mesh.routers["r1"].list_live(mesh.now)
