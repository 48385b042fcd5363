"""Changes of nodes of other hosts: carried there, judged and made there, told at both, and never claimed or doubled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mesh.client.errors import TimedOut, Unreachable
from mesh.watch.host_changes import MAX_TICKETS, TICKET_S, ChangeTickets
from mesh.watch.write_operations import WRITES, WriteOperation
from mesh.watch.writes import MAX_AT_ONCE, MAX_AT_ONCE_OF_ONE
from mesh_tests.unit.mesh.watch.memory_link import MemoryMesh
from mesh_tests.unit.mesh.watch.sample_host import attach, connect, hear, queue
from mesh_tests.unit.mesh.watch.test_writes import BODIES, MAY, USERS, path_of
from mesh_tests.unit.mesh.watch.writing_host import PASSWORD, URL, WritingHost
from recording.entities import ADDRESS

OF_NODES = [each for each in WRITES if each.entity is not ADDRESS]
OPERATION = pytest.mark.parametrize("operation", OF_NODES, ids=lambda operation: operation.name)


class TwoHosts:
    """``asked``: an observer without any node of the entities; ``other``: the observer of the nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mesh = folder, MemoryMesh()
        self.asked, self.other = self.observer("asked"), self.observer("other")
        self.asked.sample.node("e1", "edge")
        fill(self.other)
        self.other.join()
        self.asked.join()

    def observer(self, name: str) -> WritingHost:
        (self.folder / name).mkdir(exist_ok=True)
        return WritingHost(self.folder / name, mesh=self.mesh)


def fill(host: WritingHost) -> None:
    r1, r2, b1 = host.sample.node("r1"), host.sample.node("r2"), host.sample.node("b1", "broker")
    hear(r1, "r2", 3)
    hear(r2, "r1", 3)
    connect(r1, 1, "viewer")
    attach(r1, 10, "producer", "orders")
    queue(b1, 1, "orders", depth=12)


@pytest.fixture
def hosts(tmp_path: Path) -> TwoHosts:
    return TwoHosts(tmp_path)


def asked_for(hosts: TwoHosts, operation: WriteOperation, user: str | None = "owner", **more: str) -> Any:
    return hosts.asked.write(path_of(operation), BODIES[operation.name], user, method=operation.method, **more)


def outcomes(host: WritingHost) -> list[str]:
    return [entry["outcome"] for entry in host.audited()]


@OPERATION
def test_a_change_is_made_at_the_host_of_its_node_and_answered_as_there(
    hosts: TwoHosts, operation: WriteOperation, tmp_path: Path
) -> None:
    answer = asked_for(hosts, operation)
    assert answer.status_code == 200, answer.text
    (tmp_path / "sole").mkdir()
    sole = WritingHost(tmp_path / "sole")
    fill(sole)
    there = sole.write(path_of(operation), BODIES[operation.name], method=operation.method)
    assert answer.json() == there.json()
    assert (hosts.other.requests.asked, hosts.other.requests.sent) == (sole.requests.asked, sole.requests.sent)
    assert hosts.asked.requests.asked == []
    (here,), (at_node,) = hosts.asked.audited(), hosts.other.audited()
    assert (here["host"], at_node["asked_at"]) == ("other", "asked")
    told = ("who", "operation", "target", "key", "outcome", "status", "done", "before", "after", "login", "from")
    assert [here.get(name) for name in told] == [at_node.get(name) for name in told]


@OPERATION
def test_a_dry_run_is_counted_at_the_host_of_the_node(hosts: TwoHosts, operation: WriteOperation) -> None:
    path = path_of(operation) + "?dry_run=true"
    answer = hosts.asked.write(path, BODIES[operation.name], method=operation.method)
    assert answer.json()["dry_run"], answer.text
    assert hosts.other.requests.ops() == []
    assert outcomes(hosts.asked) == outcomes(hosts.other) == ["counted"]


@OPERATION
@pytest.mark.parametrize("user", USERS)
def test_the_right_is_judged_at_the_host_of_the_node(operation: WriteOperation, user: str, hosts: TwoHosts) -> None:
    answer = asked_for(hosts, operation, user)
    may = user in MAY[operation.right]
    assert answer.status_code == (200 if may else 403), answer.text
    assert bool(hosts.other.requests.ops() or hosts.other.requests.sent) == may
    if may:
        assert hosts.other.audited()[0]["who"] == ("the owner of the mesh" if user == "owner" else user)


def test_a_refusal_of_the_other_host_is_answered_and_told_at_both(hosts: TwoHosts) -> None:
    answer = hosts.asked.write("/api/queues/b1/1/purge", {"up_to": 1, "expect": {"address": "orders.eu"}})
    assert (answer.status_code, answer.json()["place"]) == (409, "expect.address")
    assert hosts.asked.write("/api/queues/b1/9/purge", {"up_to": 1}).status_code == 404
    assert outcomes(hosts.asked) == outcomes(hosts.other) == ["refused", "refused"]
    assert hosts.other.requests.ops() == []


def test_the_key_is_that_of_the_host_of_the_node_whichever_observer_is_asked(hosts: TwoHosts) -> None:
    first = hosts.asked.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    for host in (hosts.asked, hosts.other, hosts.asked):
        again = host.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
        assert (again.status_code, again.json()) == (200, first.json())
    assert hosts.other.requests.ops() == ["purge"]
    assert outcomes(hosts.asked) == ["repeated", "repeated", "done"]
    assert hosts.asked.write("/api/queues/b1/1/purge", {"up_to": 21}, Idempotency_Key="k").status_code == 409


def lose_answers(hosts: TwoHosts, op: str, error: Exception) -> None:
    """Have answers to questions ``op`` of the asked host lost."""
    ask = type(hosts.asked.link).ask

    async def asking(address: str, body: str, timeout_s: float) -> str:
        answer = await ask(hosts.asked.link, address, body, timeout_s)
        if json.loads(body)["op"] == op:
            raise error
        return answer

    hosts.asked.link.ask = asking  # type: ignore[method-assign]


@pytest.mark.parametrize("error", [TimedOut("no answer"), Unreachable("connection lost")])
def test_a_change_whose_answer_is_lost_is_unknown_and_the_same_key_tells_what_became_of_it(
    hosts: TwoHosts, error: Exception
) -> None:
    lose_answers(hosts, "change", error)
    lost = hosts.asked.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    assert (lost.status_code, lost.json()["is_uncertain"]) == (504, True)
    assert "Ask again with the same key" in lost.json()["error"]
    assert outcomes(hosts.asked) == ["uncertain"]
    del hosts.asked.link.ask  # type: ignore[method-assign]
    again = hosts.asked.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    assert (again.status_code, again.json()["done"]) == (200, {"messages": 3})
    assert hosts.other.requests.ops() == ["purge"]


@pytest.mark.parametrize("error", [TimedOut("no answer"), Unreachable("connection lost")])
def test_a_change_that_was_not_offered_has_changed_nothing_and_says_so(hosts: TwoHosts, error: Exception) -> None:
    lose_answers(hosts, "offer", error)
    answer = hosts.asked.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    assert answer.status_code == 502
    assert "is_uncertain" not in answer.json()
    assert answer.json()["error"].startswith("nothing was changed: no observer takes changes of b1. host other: ")
    assert hosts.other.requests.asked == []
    assert outcomes(hosts.asked) == ["refused"]


def test_an_observer_of_an_older_version_takes_no_change(hosts: TwoHosts) -> None:
    hosts.other.others.answer_by({})
    answer = hosts.asked.write("/api/queues/b1/1/purge", {"up_to": 20})
    assert answer.status_code == 502
    assert "nothing was changed" in answer.json()["error"]
    assert "is not one of this version" in answer.json()["error"]


def test_a_change_that_comes_after_its_ticket_is_not_made(hosts: TwoHosts) -> None:
    given = hosts.other.writes._tickets
    given.take = lambda _: False  # type: ignore[method-assign]
    answer = hosts.asked.write("/api/queues/b1/1/purge", {"up_to": 20})
    assert answer.status_code == 503
    assert "nothing was changed" in answer.json()["error"]
    assert hosts.other.requests.asked == []


def test_a_ticket_is_good_once_and_for_its_time() -> None:
    now = 100.0
    tickets = ChangeTickets(lambda: now)
    first, second = tickets.give(), tickets.give()
    assert tickets.take(first)
    assert not tickets.take(first)
    assert not tickets.take("another")
    assert not tickets.take(None)
    now += TICKET_S
    assert not tickets.take(second)
    given = [tickets.give() for _ in range(MAX_TICKETS + 1)]
    assert [tickets.take(each) for each in given] == [False, *[True] * MAX_TICKETS]


def test_a_node_that_has_moved_is_changed_where_it_runs(hosts: TwoHosts) -> None:
    before = hosts.observer("before")
    fill(before)
    for run in before.sample.runs.values():
        run.end("lost")
    before.join()
    assert hosts.asked.write("/api/queues/b1/1/purge", {"up_to": 20}).status_code == 200
    assert (hosts.other.requests.ops(), before.requests.asked) == (["purge"], [])
    # The host from which the node has moved carries the change, too.
    before.join()
    assert before.write("/api/queues/b1/1/purge", {"up_to": 20}).status_code == 200


def test_a_node_of_which_nobody_has_told_is_a_502(tmp_path: Path) -> None:
    (tmp_path / "asked").mkdir()
    alone = WritingHost(tmp_path / "asked", mesh=MemoryMesh())
    alone.join()
    answer = alone.write("/api/queues/b1/1/purge", {"up_to": 20})
    assert answer.status_code == 502
    assert "no observer of another host has told of it" in answer.json()["error"]


# Costs
class ThreeHosts(TwoHosts):
    """``other`` has r1, and ``third`` has r2, which hears r1."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mesh = folder, MemoryMesh()
        self.asked, self.other, self.third = (self.observer(name) for name in ("asked", "other", "third"))
        hear(self.other.sample.node("r1"), "r2", 3)
        hear(self.third.sample.node("r2"), "r1", 3)
        for each in (self.asked, self.other, self.third):
            each.join()


@pytest.mark.parametrize("at", ["asked", "other", "third"])
def test_a_cost_is_set_at_routers_of_two_hosts_and_told_at_both(tmp_path: Path, at: str) -> None:
    hosts = ThreeHosts(tmp_path)
    hosts.third.requests.answers["cost"] = 4
    answer = getattr(hosts, at).write("/api/neighbors/r1/r2/cost", {"cost": 7}, "admin")
    assert answer.json()["done"] == {"connections": 1, "cost": 7, "cost_before": 4}
    assert hosts.other.requests.asked == [("r1", {"op": "cost", "neighbor": "r2", "cost": 7})]
    assert hosts.third.requests.asked == [("r2", {"op": "cost", "neighbor": "r1", "cost": 7})]
    for host, target in ((hosts.other, "r1/r2"), (hosts.third, "r2/r1")):
        told = [each for each in host.audited() if each["target"] == target and "host" not in each]
        assert [(each["who"], each["outcome"], each["status"]) for each in told] == [("admin", "done", 200)]


@pytest.mark.parametrize(("error", "status"), [(ConnectionRefusedError(), 502), (TimeoutError(), 504)])
def test_a_cost_that_another_host_does_not_set_is_taken_back(tmp_path: Path, error: Exception, status: int) -> None:
    hosts = ThreeHosts(tmp_path)
    hosts.third.requests.answers["cost"] = error
    answer = hosts.asked.write("/api/neighbors/r1/r2/cost", {"cost": 7})
    assert answer.status_code == status
    assert answer.json().get("is_uncertain", False) == (status == 504)
    assert [request["cost"] for _, request in hosts.other.requests.asked] == [7, 1]


def test_a_cost_whose_second_answer_is_lost_is_unknown_and_needs_another_key(tmp_path: Path) -> None:
    hosts = ThreeHosts(tmp_path)
    hosts.asked = hosts.other
    lose_answers(hosts, "change", TimedOut("no answer"))
    answer = hosts.other.write("/api/neighbors/r1/r2/cost", {"cost": 7})
    assert (answer.status_code, answer.json()["is_uncertain"]) == (504, True)
    assert "another key" in answer.json()["error"]


# Shares
@asynccontextmanager
async def clients(*hosts: WritingHost) -> AsyncIterator[Sequence[httpx2.AsyncClient]]:
    """Yields a client of each host, for requests at the same time; the passwords are known there already."""
    async with AsyncExitStack() as stack:
        found = []
        for host in hosts:
            transport = httpx2.ASGITransport(app=host.app)
            found.append(await stack.enter_async_context(httpx2.AsyncClient(transport=transport, base_url=URL)))
            for user in ("admin", "keeper", "steward"):
                assert (await found[-1].get("/api/me", auth=(user, PASSWORD))).status_code == 200
        yield found


async def change(client: httpx2.AsyncClient, path: str, body: Any, user: str, key: str) -> Any:
    return await client.post(path, json=body, headers={"idempotency-key": key}, auth=(user, PASSWORD))


def test_a_user_takes_not_all_changes_of_a_host_by_way_of_others(hosts: TwoHosts) -> None:
    second = hosts.observer("second")
    second.join()
    hosts.other.join()

    async def run() -> None:
        release = asyncio.Event()
        original = hosts.other.requests.ask_broker

        async def wait(*arguments: Any) -> None:
            await release.wait()
            await original(*arguments)

        hosts.other.requests.ask_broker = wait  # type: ignore[method-assign]
        path, body = "/api/queues/b1/1/purge", {"up_to": 1}
        async with clients(hosts.asked, second, hosts.other) as (*ways, there):
            tasks = [
                asyncio.create_task(change(way, path, body, "admin", f"{number}-{each}"))
                for number, way in enumerate(ways)
                for each in range(MAX_AT_ONCE_OF_ONE)
            ]
            refused, _ = await asyncio.wait(tasks, timeout=1)
            assert [task.result().status_code for task in refused] == [429] * MAX_AT_ONCE_OF_ONE
            assert {task.result().json()["error"] for task in refused} == {
                "8 changes of yours are under way, which is the most for one requester: "
                "try again when one of them has ended"
            }
            keeper = asyncio.create_task(change(there, path, body, "keeper", "k"))
            await asyncio.sleep(0.1)
            release.set()
            assert (await keeper).status_code == 200
            found = [answer.status_code for answer in await asyncio.gather(*tasks)]
            assert found.count(200) == MAX_AT_ONCE_OF_ONE

    asyncio.run(run())


def test_costs_that_wait_for_another_host_leave_room_for_their_other_ends(tmp_path: Path) -> None:
    hosts = ThreeHosts(tmp_path)

    async def run() -> None:
        begun, original = 0, hosts.other.requests.ask_node
        all_begun = asyncio.Event()

        async def wait(node: str, op: str, **arguments: Any) -> Any:
            nonlocal begun
            begun += 1
            if begun == MAX_AT_ONCE:
                all_begun.set()
            await asyncio.wait_for(all_begun.wait(), 10)
            return await original(node, op, **arguments)

        hosts.other.requests.ask_node = wait  # type: ignore[method-assign]
        async with clients(hosts.third) as (client,):
            answers = await asyncio.gather(
                *(
                    change(client, "/api/neighbors/r1/r2/cost", {"cost": 7}, user, f"{user}-{number}")
                    for user in ("admin", "steward")
                    for number in range(MAX_AT_ONCE_OF_ONE)
                )
            )
        assert [answer.status_code for answer in answers] == [200] * MAX_AT_ONCE

    asyncio.run(run())


# What only looks
def test_messages_of_a_queue_of_another_host_are_browsed_there_with_the_users_right(hosts: TwoHosts) -> None:
    page = {"messages": [{"number": 3}], "next": None, "last": 20, "scanned": 1}
    hosts.other.requests.answers["browse"] = page
    answer = hosts.asked.ask("GET", "/api/queues/b1/1/messages?search=x&limit=5")
    assert (answer.status_code, answer.json()) == (200, page)
    assert hosts.other.requests.asked == [
        ("b1", {"op": "browse", "address": "orders", "limit": 5, "bodies": False, "search": "x"})
    ]
    for user, status in (("nobody", 403), ("viewer", 403), ("browser", 200), ("owner", 200)):
        assert hosts.asked.ask("GET", "/api/queues/b1/1/messages?bodies=true", user).status_code == status, user
    assert hosts.asked.ask("GET", "/api/queues/b1/9/messages").status_code == 404
    hosts.other.link.is_up = False
    lost = hosts.asked.ask("GET", "/api/queues/b1/1/messages")
    assert lost.status_code == 502
    assert "nobody can tell of b1 now" in lost.json()["error"]


def test_events_of_a_node_of_another_host_are_read_there(hosts: TwoHosts) -> None:
    line = {"ts": "2026-01-31T12:00:00Z", "level": "info", "node": "r1", "event": "node_started"}
    (hosts.folder / "other" / "log" / "r1.jsonl").write_text(json.dumps(line) + "\n")
    for query in ("node=r1", "host=other", "host=other&node=r1"):
        answer = hosts.asked.ask("GET", f"/api/events?{query}", "oncall")
        assert [each["event"] for each in answer.json()["items"]] == ["node_started"], answer.text
    assert hosts.asked.ask("GET", "/api/events?host=asked").json()["items"] == []
    assert hosts.asked.ask("GET", "/api/events?node=r1", "keeper").status_code == 403
    bad = hosts.asked.ask("GET", "/api/events?node=r1&level=loud")
    assert (bad.status_code, bad.json()["place"]) == (400, "level")


def test_the_audit_of_another_host_is_read_there(hosts: TwoHosts) -> None:
    assert hosts.other.write("/api/queues/b1/1/purge", {"up_to": 20}).status_code == 200
    answer = hosts.asked.ask("GET", "/api/audit?host=other&operation=purge", "oncall")
    assert [each["target"] for each in answer.json()["items"]] == ["b1/1"]
    assert hosts.asked.ask("GET", "/api/audit").json()["items"] == []
    unknown = hosts.asked.ask("GET", "/api/audit?host=h9")
    assert (unknown.status_code, unknown.json()["place"], unknown.json()["allowed"]) == (
        400,
        "host",
        ["asked", "other"],
    )


def test_each_change_is_tried_here() -> None:
    assert {operation.name for operation in WRITES} == set(BODIES)
