"""What `top` shows of a model: which rows, in which order, and what the numbers lack."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from addressing.topology.loader import load_topology
from addressing.topology.model import Topology
from mesh.client.errors import Unreachable
from mesh.commands.top import THINGS
from mesh.deploy.workdir import WorkDir
from mesh.operations import top
from mesh.operations.top import VIEWS, ObservedMesh, TopTable, WatchedHost, check_sort
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output
from mesh.watch.counts import DeliverySums
from mesh.watch.host_model import HostModel, NodeRecords
from mesh.watch.slots import Alike, RingRecords
from mesh.watch.states import LOST
from mesh_tests.handmade_ring import HandmadeRing, slot
from recording.entities import Entity
from recording.ring_format import DELIVERY

MODEL = {"mesh": "shop", "routers": {"r1": {}, "r2": {"connect": ["r1"]}}, "addresses": {"rpc.#": "anycast"}}
CONNECTION = {"kind": "connection", "event": "opened", "connection": 1, "role": "client", "user": "alice"}


def link(number: int, address: str, role: str = "producer", **more: Any) -> dict[str, Any]:
    row = {"kind": "link", "event": "opened", "connection": 1, "link": number, "role": role, "address": address}
    return {**row, **more}


def moved(node: NodeRecords, number: int, count: int) -> None:
    sums = DeliverySums()
    sums.count = count
    node.add(RingRecords(deliveries={Alike(number, 0, 0x24, 0): sums}))


@pytest.fixture
def topology() -> Topology:
    return Topology.model_validate(MODEL)


@pytest.fixture
def host() -> HostModel:
    """Five addresses, the busier the greater their number, and a node r2 that is lost."""
    made = HostModel(lambda address: ("rpc.#", "anycast") if address.startswith("rpc.") else None)
    made.on_time(100.0)
    records = NodeRecords(made, made.node("r1"), 50.0)
    records.set_role("router")
    rows = [CONNECTION, {**CONNECTION, "connection": 2, "role": "router", "user": "r2"}]
    rows += [link(number, f"rpc.{number}") for number in range(1, 6)]
    records.add(RingRecords(rows=[(0, row) for row in rows]))
    for number in range(1, 6):
        moved(records, number, number * 10)
    made.on_time(102.0)
    NodeRecords(made, made.node("r2"), 50.0).end(LOST)
    made.nodes["r2"].beat_at = 90.0
    made.on_time(102.0, is_caught_up=False)
    return made


def table(topology: Topology, thing: str, sort: str | None = None, limit: int = 20) -> TopTable:
    return TopTable(topology, VIEWS[thing], thing, check_sort(thing, sort), limit)


def test_the_words_of_the_command_are_those_of_the_tables():
    assert tuple(VIEWS) == THINGS


@pytest.mark.parametrize("thing", VIEWS)
def test_columns_and_sort_are_fields_of_the_entity(thing: str):
    view = VIEWS[thing]
    assert [name for name in (*view.columns.values(), view.sort) if view.entity.field(name) is None] == []


def ids(rows: list[dict[str, Any]], field: str = "address") -> list[str]:
    return [row[field] for row in rows]


def chosen(topology: Topology, host: HostModel, thing: str, limit: int, sort: str | None = None) -> Any:
    return WatchedHost(topology, host).choose(VIEWS[thing], check_sort(thing, sort), limit)


def test_the_busiest_are_first_and_the_limit_says_how_many(topology: Topology, host: HostModel):
    states, count = chosen(topology, host, "addresses", 2)
    assert (ids(states), count) == (["rpc.5", "rpc.4"], 5)


def test_texts_are_sorted_from_their_beginning_and_what_has_no_value_is_last(topology: Topology, host: HostModel):
    by_text, _ = chosen(topology, host, "addresses", 9, "address")
    assert ids(by_text) == [f"rpc.{number}" for number in range(1, 6)]
    host.addresses["rpc.2"].depth = 0
    by_depth, _ = chosen(topology, host, "addresses", 9, "depth")
    assert ids(by_depth) == ["rpc.2", "rpc.1", "rpc.3", "rpc.4", "rpc.5"]


def test_clients_are_the_connections_of_clients_only(topology: Topology, host: HostModel):
    states, count = chosen(topology, host, "clients", 9)
    assert (ids(states, "id"), count) == (["r1/1"], 1)


def test_a_table_of_text_says_what_it_leaves_out_and_what_the_numbers_lack(
    topology: Topology, host: HostModel, capsys: pytest.CaptureFixture[str]
):
    host.nodes["r1"].records_missed = 7
    host.nodes["r1"].records_dropped = 1234
    table(topology, "addresses", limit=2).print(WatchedHost(topology, host), Output("top"))
    shown = capsys.readouterr()
    head, first, second = shown.out.splitlines()
    assert head.split()[:4] == ["ADDRESS", "PATTERN", "TREATMENT", "PRODUCERS"]
    assert first.split()[:2] == ["rpc.5", "rpc.#"]
    assert first.split()[7] == "25.0"
    assert second.split()[0] == "rpc.4"
    assert shown.err.splitlines() == [
        "first 2 of 5 addresses by in_rate; --limit shows more",
        "r1: counters lack what was recorded before `top` began or caught up",
        "r1: counters lack 1,234 records for which the ring had no room",
        "r2: lost, last heard of 12 s ago",
    ]


def test_a_node_without_a_ring_here_is_unknown_and_not_lost(topology: Topology, host: HostModel):
    del host.nodes["r2"]
    assert list(WatchedHost(topology, host).notes()) == ["r2: unknown, no records on this machine"]


def test_json_has_every_field_and_the_number_of_all_rows(
    topology: Topology, host: HostModel, capsys: pytest.CaptureFixture[str]
):
    table(topology, "addresses", limit=1).print(WatchedHost(topology, host), Output("top", is_json=True))
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["mesh"], found["things"], found["sort"], found["count"]) == (
        "amqpmesh.top/1", "shop", "addresses", "in_rate", 5,
    )  # fmt: skip
    (row,) = found["rows"]
    assert list(row) == list(VIEWS["addresses"].entity.names)
    assert (row["address"], row["in_deliveries"]) == ("rpc.5", 50)
    assert found["notes"] == ["r2: lost, last heard of 12 s ago"]


@pytest.mark.parametrize(("height", "rows"), [(9, 3), (1, 1), (50, 5)])
def test_a_terminal_gets_no_more_rows_than_it_has_lines(topology: Topology, host: HostModel, height: int, rows: int):
    console = Console(file=io.StringIO(), width=200)
    console.print(table(topology, "addresses").rendered(WatchedHost(topology, host), height))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert sum("rpc.#" in line for line in shown.splitlines()) == rows
    assert ("first" in shown.splitlines()[0]) == (rows < 5)
    assert "r2: lost" in shown
    if height > 5:
        assert len(shown.splitlines()) <= height


def test_names_of_clients_cannot_write_to_the_terminal(topology: Topology, host: HostModel):
    records = NodeRecords(host, host.node("r1"), 50.0)
    records.add(RingRecords(rows=[(0, link(9, "rpc.\x1b[2J\n[red]x"))]))
    console = Console(file=io.StringIO(), width=200)
    console.print(table(topology, "addresses", "address").rendered(WatchedHost(topology, host), 50))
    assert "rpc. [2J [red]x" in console.file.getvalue()  # type: ignore[attr-defined]


class FakeObserver:
    """Answers pages of two rows at most, as an observer does of more rows than a page has."""

    def __init__(self, nodes: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
        self.notes: list[str] = []
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._rows = {"nodes": nodes, "addresses": rows, "connections": rows}

    def page(self, entity: Entity, parameters: Any) -> dict[str, Any]:
        asked = dict(parameters)
        self.asked.append((entity.plural, asked))
        begin = int(asked.get("after", 0))
        end = begin + min(2, int(asked["limit"]))
        rows = self._rows[entity.plural]
        self.notes = ["missing: r9: its observer was stopped"]
        return {"items": rows[begin:end], "matched": len(rows), "next": str(end) if end < len(rows) else None}


def node_row(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "state": "running", "age_s": 0.1, "records_missed": 0, "records_dropped": 0, **more}


def test_with_an_observer_the_rows_are_those_of_the_mesh_page_by_page(topology: Topology):
    rows = [{"id": f"r{number}/1", "address": f"rpc.{number}"} for number in range(5)]
    observer = FakeObserver([node_row("r1"), node_row("r2", state="unknown", age_s=None)], rows)
    source = ObservedMesh(topology, observer)  # type: ignore[arg-type]
    assert source.choose(VIEWS["addresses"], "in_rate", 3) == (rows[:3], 5)
    assert source.choose(VIEWS["addresses"], "in_rate", 9) == (rows, 5)
    source.choose(VIEWS["clients"], "container", 2)
    assert observer.asked[0] == ("addresses", {"sort": "-in_rate", "limit": "3"})
    assert observer.asked[1] == ("addresses", {"sort": "-in_rate", "limit": "1", "after": "2"})
    assert observer.asked[-1] == ("connections", {"sort": "container", "filter": "role=client", "limit": "2"})


def test_with_an_observer_the_notes_name_nodes_and_hosts_that_nobody_tells_of(topology: Topology):
    observer = FakeObserver([node_row("r2", state="unknown", age_s=7.2, records_missed=1)], [])
    assert list(ObservedMesh(topology, observer).notes()) == [  # type: ignore[arg-type]
        "r1: unknown, no observer has told of it",
        "r2: unknown, last heard of 7 s ago",
        "r2: counters lack what was recorded before the observer began or caught up",
        "missing: r9: its observer was stopped",
    ]


def test_an_observer_that_gives_no_rows_is_named_with_its_sentence(topology: Topology):
    class Refuses(FakeObserver):
        def page(self, entity: Entity, parameters: Any) -> dict[str, Any]:
            raise ValueError("sort: only the largest sums are found")

    with pytest.raises(CommandFailed, match="the observer of this host gives no rows: sort: only the largest"):
        ObservedMesh(topology, Refuses([], [])).choose(VIEWS["addresses"], "type", 2)  # type: ignore[arg-type]


# Bad input
def test_a_wrong_sort_field_is_answered_with_those_allowed_and_the_nearest():
    with pytest.raises(CommandFailed, match=r"--sort is 'depht': expected a field of queues: id, node, .*depth") as bad:
        check_sort("queues", "depht")
    assert (bad.value.exit_code, bad.value.fix) == (ExitCode.USAGE, "did you mean depth?")


def run(topology: Topology, **more: Any) -> int:
    wanted: dict[str, Any] = {"sort": None, "limit": 20, "every_s": 2.0, "is_once": True, "out": Output("top")}
    return top.run(topology, "addresses", **{**wanted, **more})


def test_a_period_that_is_too_short_is_refused(topology: Topology):
    with pytest.raises(CommandFailed, match=r"--every is 0\.1 s: expected 0\.5 s or more"):
        run(topology, every_s=0.1)


def test_a_mesh_without_records_says_which_setting_turns_them_off():
    with pytest.raises(CommandFailed, match="link_logs: off") as failed:
        run(Topology.model_validate({**MODEL, "link_logs": "off"}))
    assert failed.value.fix is not None


@pytest.fixture
def running(tmp_path: Path) -> Topology:
    file = tmp_path / "amqpmesh.yml"
    file.write_text("mesh: shop\nrouters: {r1: }\naddresses: {rpc.#: anycast}\n")
    return load_topology(file)


def test_rings_of_nodes_that_are_gone_are_not_a_mesh_that_runs(running: Topology):
    rings = WorkDir(running.work_dir).rings
    with pytest.raises(Unreachable, match="no node of mesh shop runs here"):
        run(running)
    HandmadeRing(rings, "r1", 1).end()
    with pytest.raises(Unreachable, match="no node of mesh shop runs here"):
        run(running)


def test_rates_of_one_table_are_those_between_two_looks(
    running: Topology, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    ring = HandmadeRing(WorkDir(running.work_dir).rings, "r1", 1)
    ring.tell(CONNECTION, link(2, "rpc.1"))
    ring.put(*[slot(DELIVERY, incoming=2)] * 1000)
    slept: list[float] = []
    sleep = top.time.sleep

    def deliver(seconds: float) -> None:
        slept.append(seconds)
        ring.put(*[slot(DELIVERY, incoming=2)] * 63)
        sleep(seconds)

    monkeypatch.setattr(top.time, "sleep", deliver)
    assert run(running, out=Output("top", is_json=True)) == ExitCode.OK
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["in_deliveries"] == 1063
    assert row["in_rate"] == pytest.approx(30.0, rel=0.5)
    assert slept == [pytest.approx(2.1)]
    ring.close()
