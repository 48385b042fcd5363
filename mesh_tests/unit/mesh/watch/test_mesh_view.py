"""The view of a mesh at one of its observers, over a mesh in memory: ages, who is missing and why, what is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.watch.client_groups import CLIENT_GROUP
from mesh.watch.host_answers import HostAnswers
from mesh.watch.mesh_view import MeshView, NobodyTells
from mesh.watch.node_summary import SUMMARY_BYTES, from_list, summary_of, to_list
from mesh.watch.other_hosts import ANNOUNCE_S, FORGOTTEN_S, SPARED_S
from mesh.watch.query import QueryError
from mesh_tests.unit.mesh.watch.memory_link import MemoryHost, MemoryMesh
from mesh_tests.unit.mesh.watch.sample_host import NOW_S, SampleHost, add, attach, connect, deliver, hear, opened
from recording.columns import RecordKind
from recording.entities import CONNECTION, LINK, NODE, PATTERN, USER

ROLES = {"r1": "router", "r2": "router", "b2": "broker", "r3": "router"}
PATTERNS = {"rpc": "anycast"}


def sample(*routers: str, brokers: tuple[str, ...] = ()) -> SampleHost:
    """A host with routers, each with a client of alice that sent 5 messages to itself."""
    host = SampleHost(PATTERNS)
    for name in routers:
        run = host.node(name)
        connect(run, 1, "alice")
        attach(run, 10, "producer", "rpc")
        attach(run, 11, "consumer", "rpc")
        deliver(run, 10, 11, 5)
    for name in brokers:
        host.node(name, "broker")
    return host


class TwoHosts:
    """h1 has r1, h2 has r2 and b2; nobody has r3."""

    def __init__(self) -> None:
        self.mesh = MemoryMesh()
        self.one = MemoryHost(self.mesh, "h1", sample("r1").model, ROLES)
        self.two = MemoryHost(self.mesh, "h2", sample("r2", brokers=("b2",)).model, ROLES)

    async def join(self) -> None:
        await self.one.serve()
        await self.two.serve()
        await self.one.join()

    async def rows(self) -> dict[str, dict[str, Any]]:
        found = await self.one.view.page(NODE, [])
        return {row["name"]: row for row in found.page.rows}


def run(work: Callable[[TwoHosts], Awaitable[None]]) -> None:
    async def joined() -> None:
        hosts = TwoHosts()
        await hosts.join()
        await work(hosts)

    asyncio.run(joined())


def test_one_hello_is_enough_for_both_and_the_node_of_nobody_is_unknown() -> None:
    async def look(hosts: TwoHosts) -> None:
        rows = await hosts.rows()
        assert {name: (row["state"], row["host"]) for name, row in rows.items()} == {
            "r1": ("running", "h1"), "r2": ("running", "h2"), "b2": ("running", "h2"), "r3": ("unknown", None),
        }  # fmt: skip
        assert rows["r3"]["unknown_because"] == "no observer has told of it"
        assert rows["r3"]["role"] == "router"
        found = await hosts.two.view.page(NODE, [])
        assert {row["name"]: row["state"] for row in found.page.rows} == {
            name: row["state"] for name, row in rows.items()
        }
        assert [each.to_map() for each in found.missing] == [
            {"host": None, "nodes": ["r3"], "age_s": None, "why": "no observer has told of it"}
        ]

    run(look)


def test_nothing_is_sent_while_nobody_looks_but_that_the_observer_is_there() -> None:
    async def look(hosts: TwoHosts) -> None:
        stopping = asyncio.Event()
        tasks = [asyncio.create_task(each.others.run(stopping)) for each in (hosts.one, hosts.two)]
        try:
            await asyncio.sleep(0.05)
            hosts.mesh.sent.clear()
            # Look after look of both observers, in less than ANNOUNCE_S of their clock.
            hosts.mesh.now_s += ANNOUNCE_S - 1
            await asyncio.sleep(1.2)
            assert hosts.mesh.sent == []
            hosts.mesh.now_s += 2
            await asyncio.sleep(0.7)
            assert sorted(each["host"] for each in hosts.mesh.sent if each["op"] == "here") == ["h1", "h2"]
            assert len(hosts.mesh.sent) == 2
        finally:
            stopping.set()
            await asyncio.gather(*tasks)

    run(look)


def test_twenty_viewers_cost_one_summary_a_second_and_it_is_small() -> None:
    async def look(hosts: TwoHosts) -> None:
        hosts.mesh.sent.clear()
        for second in range(3):
            await asyncio.gather(*(hosts.one.view.page(NODE, []) for _ in range(20)))
            await asyncio.gather(*(hosts.one.view.page(NODE, []) for _ in range(20)))
            told = [each for each in hosts.mesh.sent if "nodes" in each]
            assert len(told) == second + 1
            assert all(len(json.dumps(node, separators=(",", ":"))) <= SUMMARY_BYTES for node in told[-1]["nodes"])
            hosts.mesh.now_s += 1.0
        assert [each for each in hosts.mesh.sent if each.get("op") not in (None, "summary")] == []

    run(look)


def test_a_lost_observer_leaves_the_last_numbers_with_their_age_and_no_rates() -> None:
    async def look(hosts: TwoHosts) -> None:
        before = (await hosts.rows())["r2"]
        hosts.two.link.is_up = False
        hosts.mesh.now_s += 5
        rows = await hosts.rows()
        assert rows["r2"]["state"] == rows["b2"]["state"] == "unknown"
        assert rows["r2"]["unknown_because"] == "nobody answers at _amqpmesh/observe/h2"
        assert rows["r2"]["age_s"] == before["age_s"] + 5
        assert (rows["r2"]["ingress_accepted"], rows["r2"]["in_rate"]) == (5, None)
        page = await hosts.one.view.page(LINK, [("fields", "node")])
        assert {row["node"] for row in page.page.rows} == {"r1"}
        assert [(each.host, each.nodes, each.age_s, each.why) for each in page.missing] == [
            ("h2", ("r2", "b2"), 5.0, "nobody answers at _amqpmesh/observe/h2"),
            (None, ("r3",), None, "no observer has told of it"),
        ]
        hosts.two.link.is_up = True
        hosts.mesh.now_s += 5
        assert (await hosts.rows())["r2"]["state"] == "running"
        assert len((await hosts.one.view.page(LINK, [])).missing) == 1

    run(look)


def test_an_observer_that_hangs_is_asked_again_only_after_a_while() -> None:
    async def look(hosts: TwoHosts) -> None:
        hosts.two.link.hangs = True
        await hosts.rows()
        hosts.mesh.sent.clear()
        for _ in range(10):
            found = await hosts.one.view.page(LINK, [])
            assert "did not answer within 2 s" in found.missing[0].why
            assert (await hosts.rows())["r2"]["state"] == "unknown"
        assert hosts.mesh.sent == []
        hosts.two.link.hangs = False
        hosts.mesh.now_s += SPARED_S
        assert (await hosts.rows())["r2"]["state"] == "running"

    run(look)


def test_without_a_connection_to_the_mesh_the_reason_is_that_of_the_link() -> None:
    async def look(hosts: TwoHosts) -> None:
        await hosts.rows()
        hosts.one.link.is_up, hosts.one.link.reason = False, "connection refused"
        hosts.mesh.now_s += 1
        rows = await hosts.rows()
        assert rows["r1"]["state"] == "running"
        for name in ("r2", "r3"):
            assert "no connection to" in rows[name]["unknown_because"]
            assert "connection refused" in rows[name]["unknown_because"]

    run(look)


def test_a_client_counts_once_and_sums_are_those_of_all_hosts() -> None:
    async def look(hosts: TwoHosts) -> None:
        for entity, expected in (
            (PATTERN, {"in_accepted": 10, "producers": 2}),
            (USER, {"in_accepted": 10, "connections": 2}),
            (CLIENT_GROUP, {"connections": 2, "nodes": "r1, r2"}),
        ):
            (row,) = (await hosts.one.view.page(entity, [])).page.rows
            assert {name: row[name] for name in expected} == expected
        assert (await hosts.one.view.one(PATTERN, "rpc"))["in_accepted"] == 10  # type: ignore[index]
        assert (await hosts.one.view.page(CONNECTION, [])).page.total == 2
        own = await hosts.one.view.page(PATTERN, [("scope", "host")])
        assert own.page.rows[0]["in_accepted"] == 5

    run(look)


def test_a_page_of_one_node_asks_only_its_host_and_one_entity_is_found_where_it_is() -> None:
    async def look(hosts: TwoHosts) -> None:
        hosts.mesh.sent.clear()
        page = await hosts.one.view.page(LINK, [("node", "r1")])
        assert {row["node"] for row in page.page.rows} == {"r1"}
        assert hosts.mesh.sent == []
        page = await hosts.one.view.page(LINK, [("node", "r2"), ("limit", "1")])
        assert ([row["id"] for row in page.page.rows], page.page.matched) == (["r2/10"], 2)
        assert page.missing == []
        assert (await hosts.one.view.page(LINK, [("node", "r3")])).missing[0].nodes == ("r3",)
        assert (await hosts.one.view.one(LINK, "r2/10"))["deliveries"] == 5  # type: ignore[index]
        assert await hosts.one.view.one(LINK, "r2/99") is None
        with pytest.raises(NobodyTells, match="nodes r3: no observer has told of it"):
            await hosts.one.view.one(LINK, "r3/10")
        hosts.two.link.is_up = False
        with pytest.raises(NobodyTells, match=r"host h2 with nodes .*r2.* heard 0 s ago: nobody answers"):
            await hosts.one.view.one(LINK, "r2/10")

    run(look)


@pytest.mark.parametrize(
    ("parameters", "place"),
    [([("scope", "world")], "scope"), ([("node", "r1"), ("node", "r2")], "scope"), ([("size", "1")], "size")],
)
def test_a_wrong_parameter_is_refused(parameters: list[tuple[str, str]], place: str) -> None:
    view = MeshView(sample("r1").model, HostAnswers(sample("r1").model), {})
    with pytest.raises(QueryError) as refused:
        view.check(LINK, parameters)
    assert refused.value.place == place
    with pytest.raises(QueryError, match="patterns belong to no node"):
        view.check(PATTERN, [("node", "r1")])


def test_a_node_that_moved_is_the_one_that_runs_and_its_old_host_is_forgotten() -> None:
    async def look(hosts: TwoHosts) -> None:
        await hosts.rows()
        hosts.two.link.is_up = False
        hosts.mesh.now_s += 1
        assert (await hosts.rows())["r2"]["state"] == "unknown"
        three = MemoryHost(hosts.mesh, "h3", sample("r2", "b2").model, ROLES)
        await three.join()
        rows = await hosts.rows()
        assert (rows["r2"]["state"], rows["r2"]["host"]) == ("running", "h3")
        assert [each.host for each in hosts.one.others.hosts] == ["h3"]

    run(look)


def test_a_host_that_is_silent_for_a_day_is_forgotten() -> None:
    async def look(hosts: TwoHosts) -> None:
        await hosts.rows()
        hosts.two.link.is_up = False
        hosts.mesh.now_s += FORGOTTEN_S
        await hosts.rows()
        await MemoryHost(hosts.mesh, "h3", sample("r3").model, ROLES).join()
        assert [each.host for each in hosts.one.others.hosts] == ["h3"]

    run(look)


@given(st.text() | st.binary(), st.sampled_from(["hello", "here", "bye", "summary", "x", 3]), st.none() | st.text())
def test_whatever_comes_from_other_observers_an_observer_goes_on(body: Any, op: Any, host: Any) -> None:
    from wire.message import Message

    async def look(hosts: TwoHosts) -> None:
        for text in (body, json.dumps({"op": op, "host": host, "nodes": body if isinstance(body, str) else 3})):
            await hosts.one.others._on_said_to_all(Message(text))
            await hosts.one.others._on_asked(Message(text))
        assert (await hosts.rows())["r2"]["state"] == "running"

    run(look)


# Summaries
def big_node() -> Any:
    """A node with numbers as long as they get, and more neighbors and users than a summary can have."""
    host = sample("r" * 64)
    run = next(iter(host.runs.values()))
    for number in range(300):
        hear(run, f"neighbor-with-a-long-name-{number}")
        connect(run, 1000 + number, f"user{number:03}" * 30)
        add(run, opened(RecordKind.CONNECTION, connection=2000 + number, role="router", container=f"router {number}"))
    node = host.model.node("r" * 64)
    for counts in (node.incoming, node.outgoing, node.ingress, node.egress):
        for name in ("deliveries", "accepted", "rejected", "released", "modified", "settled", "aborted", "bytes"):
            setattr(counts, name, 10**15)
        counts.rate, counts.last_us = 123456.78901234567, int(NOW_S * 1e6) + 1
    node.cause, node.version, node.topology = "failed" * 100, "1.2.3.dev456+g0123456789", "f" * 64
    node.host = "h" * 47
    return node


def test_the_summary_of_a_node_is_bounded_and_says_what_it_lacks() -> None:
    node = big_node()
    told = to_list(summary_of(node))
    assert len(json.dumps(told, separators=(",", ":"))) <= SUMMARY_BYTES
    summary = from_list(json.loads(json.dumps(told)), NODE.names)
    assert summary.is_cut
    assert summary.row["clients"] == 301
    assert summary.row["name"] == "r" * 64


def test_a_small_summary_is_told_whole_and_a_field_of_another_version_is_left_out() -> None:
    node = sample("r1").model.node("r1")
    summary = summary_of(node)
    told = json.loads(json.dumps(to_list(summary)))
    assert from_list(told, NODE.names) == summary
    newer = [[*told[0], "x"], *told[1:]]
    assert from_list(newer, (*NODE.names, "new")) == summary
