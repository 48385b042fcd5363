"""All rings of a host: nodes start, end and start again, rings come and go, and the observer may come late."""

from __future__ import annotations

import errno
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh.watch import host_rings
from mesh.watch.host_model import HostModel
from mesh.watch.host_rings import HostRings
from mesh.watch.ring_follower import AT_ONCE_SLOTS
from mesh.watch.states import ENDED, LOST, RUNNING, SILENT, ObservedNode
from mesh_tests.handmade_ring import CAPACITY, HandmadeRing, slot, text
from recording.columns import RecordEvent
from recording.ring_format import BEAT_AT, CLOCK_AT, DELIVERY, DROPPED_AT, HEADER_BYTES

CLIENT = {"kind": "connection", "event": "opened", "connection": 1, "role": "client", "user": "alice"}
PRODUCER = {"kind": "link", "event": "opened", "connection": 1, "link": 2, "role": "producer", "address": "rpc"}
START = (CLIENT, PRODUCER)


class Observer:
    """Looks at the rings in ``folder``, as often as a test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.relisted: list[str] = []
        self.told: list[str] = []
        self.host = HostModel(lambda address: ("rpc", "anycast"), [("rpc", "anycast")])
        self.rings = HostRings(folder, self.host, self.relisted.append, self.told.append)
        self.made: list[HandmadeRing] = []

    def ring(self, node: str, run_s: int, **more: Any) -> HandmadeRing:
        self.made.append(HandmadeRing(self.folder, node, int((time.time() - 3600 + run_s) * 1e6), **more))
        return self.made[-1]

    def look(self) -> None:
        while self.rings.step():
            pass

    @property
    def accepted(self) -> int:
        return self.host.patterns["rpc"].ingress.accepted

    def node(self, name: str = "r1") -> ObservedNode:
        return self.host.nodes[name]


@pytest.fixture
def observer(tmp_path: Path) -> Iterator[Observer]:
    made = Observer(tmp_path)
    yield made
    made.rings.close()
    for ring in made.made:
        ring.close()


def deliveries(count: int) -> list[bytes]:
    return [slot(DELIVERY, incoming=2)] * count


def test_a_node_is_seen_with_all_that_it_did_since_its_start(observer: Observer):
    ring = observer.ring("r1", 0)
    ring.tell(*START)
    ring.put(*deliveries(5))
    observer.look()
    node = observer.node()
    assert (node.state, node.role, node.version, node.attached) == (RUNNING, "router", "1", 1)
    assert observer.accepted == 5
    assert node.counted_since == node.started_at == pytest.approx(time.time() - 3600, abs=60)
    assert node.age_s < 60
    assert observer.relisted == observer.told == []
    ring.put(*deliveries(2))
    observer.look()
    assert observer.accepted == 7


def test_a_node_that_starts_again_goes_on_with_its_sums_in_a_new_ring(observer: Observer):
    first = observer.ring("r1", 0)
    first.tell(*START)
    observer.look()
    first.put(*deliveries(5))
    first.end()
    second = observer.ring("r1", 10)
    second.tell(*START)
    second.put(*deliveries(3))
    observer.look()
    node = observer.node()
    assert (observer.accepted, node.ingress.accepted, node.attached, node.state) == (8, 8, 1, RUNNING)
    assert node.started_at == pytest.approx(time.time() - 3590, abs=60)
    assert node.counted_since == pytest.approx(time.time() - 3600, abs=5)
    assert observer.host.users["alice"].connections == 1


def test_a_node_that_started_twice_since_the_last_look_loses_no_run(observer: Observer):
    observer.ring("r1", 0)
    observer.look()
    observer.made[0].end()
    for run_s in (10, 20):
        ring = observer.ring("r1", run_s)
        ring.tell(*START)
        ring.put(*deliveries(4))
        if run_s == 10:
            ring.end()
    observer.look()
    assert (observer.accepted, observer.node().attached, observer.node().state) == (8, 1, RUNNING)


def test_a_run_that_is_over_is_read_to_its_end_before_the_next(observer: Observer):
    first = observer.ring("r1", 0, capacity=4 * AT_ONCE_SLOTS)
    first.tell(*START)
    observer.look()
    first.put(*deliveries(2 * AT_ONCE_SLOTS))
    first.end()
    second = observer.ring("r1", 10)
    second.tell(*START, {**PRODUCER, "link": 3})
    observer.rings.step()
    assert (observer.accepted, observer.node().attached) == (2 * AT_ONCE_SLOTS, 2)


def test_a_ring_that_the_writer_removed_is_read_to_its_end(observer: Observer):
    ring = observer.ring("r1", 0)
    ring.tell(*START)
    observer.look()
    ring.put(*deliveries(5))
    ring.end("stopped")
    ring.path.unlink()
    observer.look()
    assert (observer.accepted, observer.node().state, observer.node().cause) == (5, ENDED, "stopped")
    observer.look()
    assert observer.accepted == 5


@pytest.mark.parametrize(("cause", "state"), [("stopped", ENDED), ("failed", LOST), (None, LOST)])
def test_a_node_that_is_gone_has_nothing_more_and_ages(
    observer: Observer, monkeypatch: pytest.MonkeyPatch, cause: str | None, state: str
):
    ring = observer.ring("r1", 0)
    ring.tell(*START)
    observer.look()
    ring.end(cause)
    observer.look()
    node = observer.node()
    assert (node.state, node.cause, node.attached, node.connection_count) == (state, cause, 0, 0)
    now = time.time()
    monkeypatch.setattr(host_rings.time, "time", lambda: now + 100)
    observer.look()
    assert node.age_s == pytest.approx(100, abs=60)
    assert node.age_s >= 100


def test_of_a_node_that_is_gone_since_an_earlier_start_of_the_machine_the_age_is_right(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
):
    ring = observer.ring("r1", 0)
    ring.beat(ago_s=500)
    ring.end()
    monkeypatch.setattr(host_rings.time, "monotonic", lambda: 1.0)
    observer.look()
    assert observer.node().age_s == pytest.approx(500, abs=60)


def test_of_earlier_runs_that_a_late_observer_finds_only_the_last_counts(observer: Observer):
    for run_s, count in ((0, 5), (10, 3)):
        ring = observer.ring("r1", run_s)
        ring.tell(*START)
        ring.put(*deliveries(count))
        ring.end("stopped")
    observer.look()
    assert (observer.accepted, observer.node().state) == (3, ENDED)


def test_a_node_whose_clock_stands_still_is_silent_and_one_that_has_no_clock_yet_is_as_old_as_its_run(
    observer: Observer,
):
    observer.ring("r1", 0).beat(ago_s=5)
    young = observer.ring("r2", 3600)
    young.store(CLOCK_AT, 0)
    young.store(BEAT_AT, 0)
    young.tell(*START)
    observer.look()
    assert (observer.node("r1").state, observer.node("r2").state) == (SILENT, RUNNING)
    (connection,) = observer.node("r2").connections.values()
    assert connection.opened_at == pytest.approx(time.time() - time.monotonic(), abs=60)
    observer.made[0].beat()
    observer.look()
    assert observer.node("r1").state == RUNNING


# Late, and behind
def test_an_observer_that_comes_late_asks_for_a_list_and_counts_from_then(observer: Observer):
    ring = observer.ring("r1", 0)
    ring.tell(*START)
    ring.put(*deliveries(CAPACITY))
    observer.look()
    assert observer.relisted == ["r1"]
    assert observer.node().records_missed == ring.written
    assert observer.node().counted_since == pytest.approx(time.time(), abs=60)
    live = [{**row, "event": "live"} for row in START]
    ring.tell(*live, {"kind": "node", "event": RecordEvent.LISTED, "count": 2})
    ring.put(*deliveries(6))
    observer.look()
    assert (observer.accepted, observer.node().attached, observer.relisted) == (6, 1, ["r1"])


def test_a_node_that_does_not_list_is_asked_again_but_not_at_each_look(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
):
    observer.ring("r1", 0).put(*deliveries(CAPACITY))
    now = time.monotonic()
    for passed, count in ((0.0, 1), (1.0, 1), (host_rings.RELIST_S, 2), (host_rings.RELIST_S + 1, 2)):
        monkeypatch.setattr(host_rings.time, "monotonic", lambda passed=passed: now + passed)
        observer.look()
        assert observer.relisted == ["r1"] * count


def test_a_node_that_is_gone_is_not_asked(observer: Observer):
    ring = observer.ring("r1", 0)
    ring.put(*deliveries(CAPACITY))
    ring.end()
    observer.look()
    assert observer.relisted == []


def test_an_observer_that_was_lapped_keeps_what_it_knows_and_ends_what_is_gone(observer: Observer):
    ring = observer.ring("r1", 0)
    ring.tell(*START, {**PRODUCER, "link": 3})
    ring.put(*deliveries(5), text({"kind": "path"})[:32])
    observer.look()
    ring.put(*deliveries(CAPACITY))
    observer.look()
    assert (observer.accepted, observer.node().attached, observer.relisted) == (5, 2, ["r1"])
    live = [{**row, "event": "live"} for row in START]
    ring.tell(*live, {"kind": "node", "event": RecordEvent.LISTED, "count": 2})
    ring.put(*deliveries(1))
    observer.look()
    assert (observer.accepted, observer.node().attached) == (6, 1)


def test_a_full_ring_is_read_in_steps_and_gives_no_rate(observer: Observer, monkeypatch: pytest.MonkeyPatch):
    now = itertools.count(time.time())
    monkeypatch.setattr(host_rings.time, "time", lambda: next(now))
    ring = observer.ring("r1", 0, capacity=4 * AT_ONCE_SLOTS)
    ring.tell(*START)
    ring.put(*deliveries(2 * AT_ONCE_SLOTS))
    assert observer.rings.step()
    assert 0 < observer.accepted < 2 * AT_ONCE_SLOTS
    observer.look()
    assert observer.accepted == 2 * AT_ONCE_SLOTS
    assert observer.node().ingress.rate == 0.0


def test_records_that_the_node_dropped_are_counted_over_its_runs(observer: Observer):
    ring = observer.ring("r1", 0)
    ring.store(DROPPED_AT, 3)
    observer.look()
    ring.store(DROPPED_AT, 5)
    observer.look()
    assert observer.node().records_dropped == 5


# Files that are no rings
@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: b"x" + data[1:], lambda data: data[:HEADER_BYTES]])
def test_a_ring_that_cannot_be_read_is_told_of_once_and_others_are_read(
    observer: Observer, damage: Callable[[bytes], bytes]
):
    ring = observer.ring("r1", 0)
    bad = observer.folder / "r2.5.ring"
    bad.write_bytes(damage(ring.path.read_bytes()))
    for name in ("r3.ring", "r3.x.ring", "r3.7.new"):
        (observer.folder / name).write_bytes(b"")
    observer.look()
    observer.look()
    (told,) = observer.told
    assert str(bad) in told
    assert list(observer.host.nodes) == ["r1"]


def test_a_folder_that_is_not_there_yet_is_empty(tmp_path: Path):
    observer = Observer(tmp_path / "rings")
    observer.look()
    assert observer.host.nodes == {}
    observer.ring("r1", 0).tell(*START)
    observer.look()
    assert list(observer.host.nodes) == ["r1"]
    observer.rings.close()


def test_hours_of_traffic_in_a_ring_are_in_no_rate_though_the_model_had_a_time_before(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
):
    now = time.time()
    observer.host.on_time(now)
    ring = observer.ring("r1", 0)
    ring.tell(*START)
    ring.put(*deliveries(1000))
    for passed, rate in ((10.0, 0.0), (12.0, 10.0), (14.0, 0.0)):
        monkeypatch.setattr(host_rings.time, "time", lambda passed=passed: now + passed)
        observer.look()
        assert observer.node().ingress.rate == rate
        ring.put(*deliveries(20) if passed == 10.0 else [])


def test_a_node_that_starts_again_after_the_clock_was_set_back_is_followed(observer: Observer):
    first = observer.ring("r1", 0)
    first.tell(*START)
    first.put(*deliveries(5))
    observer.look()
    first.end()
    observer.look()
    second = observer.ring("r1", -1000)
    second.tell(*START)
    second.put(*deliveries(3))
    observer.look()
    assert (observer.accepted, observer.node().state, observer.node().attached) == (8, RUNNING, 1)


def test_an_older_ring_that_was_there_at_the_first_look_is_never_followed(observer: Observer):
    for run_s in (0, 10):
        ring = observer.ring("r1", run_s)
        ring.tell(*START)
        ring.put(*deliveries(4))
        if run_s == 0:
            ring.end()
    observer.look()
    observer.look()
    assert (observer.accepted, observer.node().state) == (4, RUNNING)


def test_rings_of_nodes_that_the_topology_does_not_have_are_left_alone(tmp_path: Path):
    observer = Observer(tmp_path)
    observer.rings = HostRings(tmp_path, observer.host, observer.relisted.append, observer.told.append, ["r1"])
    for name in ("r1", "r4"):
        observer.ring(name, 0).tell(*START)
    observer.look()
    assert set(observer.host.nodes) == {"r1"}


def test_a_ring_for_which_no_descriptor_was_free_is_tried_again(observer: Observer, monkeypatch: pytest.MonkeyPatch):
    observer.ring("r1", 0).tell(*START)

    def fail(path: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(host_rings, "RingFollower", fail)
        observer.look()
    assert observer.told == ["a ring cannot be read now: [Errno 24] Too many open files"]
    observer.look()
    assert observer.node().state == RUNNING


def test_links_that_ended_are_forgotten_though_the_clock_was_set_back(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
):
    ring = observer.ring("r1", 0)
    ring.tell(*START)
    observer.look()
    ring.tell({"kind": "link", "event": "closed", "link": 2})
    observer.look()
    now = time.time()
    monkeypatch.setattr(host_rings.time, "time", lambda: now - 86_400)
    observer.look()
    observer.look()
    assert (observer.node().links, observer.host.addresses) == ({}, {})
