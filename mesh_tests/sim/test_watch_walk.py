"""In random lives of a mesh the observer knows what there is, as another reader of the same rings does.

The other reader is the live state of the link log writer, which shares no code with the observer.
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from linklogs.writer.live_state import LiveState
from mesh.simulation.sim_mesh import SimMesh
from mesh.watch import host_rings
from mesh.watch.host_model import HostModel
from mesh.watch.host_rings import HostRings
from mesh.watch.states import ObservedNode
from mesh_tests import rings
from mesh_tests.rings import Record
from mesh_tests.seeds import seeds
from mesh_tests.sim.invariants import CheckedMesh
from mesh_tests.sim.walk import Walk
from recording import ring_format as layout
from recording.records import Recorder
from recording.ring_file import RingFile

SIZE = 1 << 23
COPY, MANY = 2, 1


class OtherReader:
    """Of one run of a node."""

    def __init__(self, file: RingFile) -> None:
        self.file = file
        self.state = LiveState({})
        self.counts: Counter[str] = Counter()
        self._position = 0

    def read(self) -> None:
        (written,) = struct.unpack_from("<Q", self.file.memory, layout.WRITTEN_AT)
        assert written < layout.capacity_of(SIZE)
        places = (layout.HEADER_BYTES + number * layout.SLOT_BYTES for number in range(self._position, written))
        records, rows = rings.read_records(self.file.memory[at : at + layout.SLOT_BYTES] for at in places)
        self._position = written
        for record in records:
            self._count(record)
        for row in rows:
            self.state.on_row(row, 0)

    def _count(self, record: Record) -> None:
        if record.kind not in (layout.DELIVERY, layout.TRAFFIC):
            return
        if record.part != COPY and (record.incoming or not record.outgoing):
            self.counts["in"] += record.count
        if record.part != MANY and record.outgoing:
            self.counts["out"] += record.count

    def known(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {"connection": [], "link": [], "queue": [], "neighbor": [], "path": []}
        columns = {"path": "egress"}
        for row in self.state.rows(0, 0)[1:]:
            kind = str(row["kind"])
            if kind in found:
                found[kind].append(row[columns.get(kind, kind)])
        return {kind: sorted(names) for kind, names in found.items()}


def observed(node: ObservedNode) -> dict[str, list[Any]]:
    return {
        "connection": sorted(node.connections),
        "link": sorted(number for number, link in node.links.items() if not link.is_ended),
        "queue": sorted(node.queues),
        "neighbor": sorted(node.neighbors),
        "path": sorted(node.paths),
    }


class ObservedWalk(Walk):
    def __init__(self, seed: int, folder: Path) -> None:
        self.rings_folder = folder / "rings"
        self.readers: dict[str, OtherReader] = {}
        self.counts: dict[str, Counter[str]] = {}
        """By node, counts of its earlier runs."""
        self.runs = itertools.count(1)
        self.host = HostModel(lambda address: ("all", "anycast"))
        self.told: list[str] = []
        self.rings = HostRings(self.rings_folder, self.host, self.relist, self.told.append)
        self.compared = 0
        super().__init__(seed, folder)

    def make_mesh(self, folder: Path) -> SimMesh:
        return CheckedMesh(self, self.topology(), folder, recorder_of=self.recorder_of)

    def recorder_of(self, name: str) -> Recorder:
        before = self.readers.pop(name, None)
        if before is not None:
            before.read()
            before.file.close()
            self.counts[name].update(before.counts)
        self.counts.setdefault(name, Counter())
        role = "broker" if name.startswith("b") else "router"
        file = RingFile(self.rings_folder, name, next(self.runs), SIZE, {"node": name, "role": role})
        self.readers[name] = OtherReader(file)
        return Recorder(file.memory, self.random.choice(["full", "summary"]))

    def relist(self, name: str) -> None:
        self.told.append(f"{name} was asked for a list")

    @contextmanager
    def closing(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.rings.close()
            self.mesh.close()
            for reader in self.readers.values():
                reader.file.close()

    def pause(self) -> None:
        super().pause()
        for name in {**self.mesh.routers, **self.mesh.brokers}:
            if self.random.random() < 0.3:
                self.mesh.tell_second(name)
        if self.random.random() < 0.3:
            self.compare()

    def compare(self) -> None:
        while self.rings.step():
            pass
        assert self.told == []
        for name, reader in self.readers.items():
            node = self.host.nodes[name]
            reader.read()
            counts = self.counts[name] + reader.counts
            assert (node.incoming.deliveries, node.outgoing.deliveries) == (counts["in"], counts["out"]), name
            assert observed(node) == reader.known(), name
            assert node.attached == len(observed(node)["link"])
            self.compared += sum(map(len, observed(node).values()))
        self.compare_sums()

    def compare_sums(self) -> None:
        host = self.host
        for side in ("ingress", "egress"):
            users = sum(getattr(each, side).deliveries for each in host.users.values())
            nodes = sum(getattr(each, side).deliveries for each in host.nodes.values())
            patterns = sum(getattr(each, side).deliveries for each in host.patterns.values())
            # Messages that were refused to senders without an address have no user.
            assert patterns <= users <= nodes
            assert side == "ingress" or patterns == users == nodes
        links = [link for node in host.nodes.values() for link in node.links.values() if not link.is_ended]
        assert sum(user.links for user in host.users.values()) == sum(
            link.is_producer or link.is_consumer for link in links
        )
        assert sum(each.waiting_producers for each in host.addresses.values()) == sum(
            link.waits_for is not None and link.is_producer and link.address is not None for link in links
        )


@pytest.mark.parametrize("seed", seeds(6))
def test_in_no_random_life_does_the_observer_know_more_or_less_than_the_writer(tmp_path: Path, seed: int):
    walk = ObservedWalk(seed, tmp_path)
    with walk.closing():
        walk.live(200)
        for name in {**walk.mesh.routers, **walk.mesh.brokers}:
            walk.mesh.tell_second(name)
        walk.compare()
        assert walk.compared > 1000


class LappedWalk(ObservedWalk):
    """The observer is so slow now and then that nodes come round, and has to ask for lists."""

    def relist(self, name: str) -> None:
        node = {**self.mesh.routers, **self.mesh.brokers}.get(name)
        if node is not None:
            node.list_live(self.mesh.now)

    def compare(self) -> None:
        for followed in self.rings._followed.values():
            if self.random.random() < 0.2:
                # As far behind as if the node had come round: what was not read is missed.
                followed._ring.position -= layout.capacity_of(SIZE)
        while self.rings.step():
            pass
        assert self.told == []
        for followed in self.rings._followed.values():
            reader, node = self.readers[followed.node.name], followed.node
            reader.read()
            assert node.attached == len(observed(node)["link"])
            if not followed._records.wants_list:
                assert observed(node) == reader.known(), node.name
                self.compared += sum(map(len, observed(node).values()))


@pytest.mark.parametrize("seed", seeds(6))
def test_an_observer_that_missed_records_knows_all_again_after_the_next_list(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(host_rings, "RELIST_S", 0.0)
    walk = LappedWalk(seed, tmp_path)
    with walk.closing():
        walk.live(200)
        missed = sum(node.records_missed for node in walk.host.nodes.values())
        assert missed > 100
        assert walk.compared > 1000
