"""Recordings of decisions over HTTP: begun at all hosts, read from all routers in pages, and shown to who may see."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from addressing.operator_rights import Operator, Right
from mesh.client.errors import Unreachable
from mesh.deploy.control import RequestRefused
from mesh.watch.write_request import WriteRefused
from mesh_tests.unit.mesh.watch.test_host_changes import TwoHosts
from mesh_tests.unit.mesh.watch.test_writes import filled
from mesh_tests.unit.mesh.watch.writing_host import WritingHost

RECORD, DECISIONS = "/api/addresses/orders/record", "/api/addresses/orders/decisions"
HOSTILE = '<img src=x onerror=alert(1)>"\u202e'


def decided(*numbers: int, start: float = 100.0) -> Any:
    """A router that has decisions with these numbers, a second apart, and answers with two at most."""

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {
                "number": number, "at": start + number, "from": 1, "chosen": 2, "delivery": number, "outcome": None,
                "candidates": [{"link": 2, "cost": 0, "outstanding": 1, "credit": 4, "verdict": "chosen"},
                               {"link": 3, "cost": 1, "outstanding": 0, "credit": 0, "verdict": "no_credit"}],
            }
            for number in numbers if number > request["after"]
        ][:2]  # fmt: skip
        links = {"1": {"role": "producer", "container": HOSTILE}, "2": {"role": "consumer", "container": "near"}}
        newest = rows[-1]["number"] if rows else request["after"]
        return {"decisions": rows, "next": newest, "lost": 0, "seconds_left": 12.5, "links": links}

    return answer


@pytest.fixture
def host(tmp_path: Path) -> WritingHost:
    made = filled(tmp_path)
    made.requests.answers["decisions"] = decided(1, 2, 3, 4, 5)
    return made


@pytest.fixture
def hosts(tmp_path: Path) -> TwoHosts:
    made = TwoHosts(tmp_path)
    for each, start in ((made.asked, 100.0), (made.other, 100.5)):
        each.requests.answers["decisions"] = decided(1, 2, 3, start=start)
    return made


def test_decisions_say_what_links_lead_to_and_why_not_the_others(host: WritingHost) -> None:
    page = host.ask("GET", f"{DECISIONS}?limit=1").json()
    (row,) = page["items"]
    assert (row["id"], row["node"], row["from"], row["chosen"]) == ("r1/1", "r1", "r1/1", "r1/2")
    assert row["from_text"] == f"r1/1 producer {HOSTILE}"
    assert [(each["link"], each["text"], each["why"]) for each in row["candidates"]] == [
        ("r1/2", "r1/2 consumer near", "chosen"),
        ("r1/3", "r1/3", "no credit"),
    ]
    assert (page["address"], page["seconds_left"], page["lost"]) == ("orders", 12.5, 0)
    assert "each client's link is tied to a link of its own at broker b1" in page["sentences"]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_have_each_decision_of_each_router_once(host: WritingHost, limit: int) -> None:
    found: list[str] = []
    after = ""
    for _ in range(20):
        page = host.ask("GET", f"{DECISIONS}?limit={limit}" + (f"&after={quote(after)}" if after else "")).json()
        found += [row["id"] for row in page["items"]]
        assert len(page["items"]) <= limit
        after = page["next"]
    assert sorted(found) == [f"r{router}/{number}" for router in (1, 2) for number in range(1, 6)]
    assert after == "r1:5,r2:5"


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("after=r1", "after"),
        ("after=r1:x", "after"),
        ("after=r1:-1", "after"),
        ("after=r1:1,", "after"),
        ("after=r1:99999999999", "after"),
        ("after=r1:1&after=r1:1", "after"),
        ("sort=at", "sort"),
    ],
)
def test_a_wrong_parameter_is_named(host: WritingHost, query: str, place: str) -> None:
    answer = host.ask("GET", f"{DECISIONS}?{query}")
    assert (answer.status_code, answer.json()["place"]) == (400, place), answer.text


@pytest.mark.parametrize(
    ("user", "address", "status"),
    [
        ("nobody", "orders", 403),
        ("viewer", "orders", 200),
        ("keeper", "orders", 200),
        ("viewer", "rpc", 404),
        ("oncall", "rpc", 200),
        ("owner", "rpc", 200),
        ("owner", "nothing/here", 404),
        (None, "orders", 401),
    ],
)
def test_an_operator_sees_decisions_of_his_addresses_only(
    host: WritingHost, user: str | None, address: str, status: int
) -> None:
    answer = host.ask("GET", f"/api/addresses/{address}/decisions", user)
    assert answer.status_code == status, answer.text
    assert bool(host.requests.asked) == (status == 200)


def test_who_sees_one_address_of_shared_circuits_sees_no_decisions_of_the_others(host: WritingHost) -> None:
    def status(*patterns: str) -> int:
        operator = Operator("one", {Right.VIEW: patterns})
        found = host.writes.decisions.address(operator, "news.eu")
        try:
            asyncio.run(host.writes.decisions.read(found, operator, {}))
        except WriteRefused as refused:
            return refused.status
        return 200

    assert (status("news.eu"), status("news.*"), status("news.#"), status("#")) == (403, 403, 200, 200)


def test_an_address_may_have_slashes(host: WritingHost) -> None:
    answer = host.ask("GET", "/api/addresses/news.a%2Fb/decisions")
    assert (answer.status_code, answer.json()["address"]) == (200, "news.a/b")


def test_a_router_that_does_not_record_has_none_and_one_that_is_gone_is_named(host: WritingHost) -> None:
    host.requests.answers["decisions"] = RequestRefused("address 'orders' is not recorded")
    page = host.ask("GET", DECISIONS).json()
    assert (page["items"], page["silent"], page["seconds_left"], page["next"]) == ([], [], 0, "")
    host.requests.answers["decisions"] = ConnectionRefusedError()
    silent = host.ask("GET", DECISIONS).json()["silent"]
    assert [each.partition(" ")[0] for each in silent] == ["r1", "r2"]


# To begin
def test_only_what_lasts_is_expected_of_an_address(host: WritingHost) -> None:
    assert host.write(RECORD, {"seconds": 5, "expect": {"treatment": "queue", "pattern": "orders"}}).status_code == 200
    other = host.write(RECORD, {"seconds": 5, "expect": {"treatment": "balanced"}})
    assert (other.status_code, other.json()["place"]) == (409, "expect.treatment")
    count = host.write(RECORD, {"seconds": 5, "expect": {"producers": 1}})
    assert (count.status_code, count.json()["place"]) == (400, "expect")


@pytest.mark.parametrize("seconds", [0, 61, 1.5, "5", None])
def test_the_seconds_are_checked(host: WritingHost, seconds: object) -> None:
    answer = host.write(RECORD, {"seconds": seconds})
    assert (answer.status_code, answer.json()["place"]) == (400, "seconds")
    assert host.requests.ops() == []


def test_one_router_that_refuses_is_told_and_all_of_them_refuse(host: WritingHost) -> None:
    def refuse(request: dict[str, Any]) -> dict[str, Any]:
        if len(host.requests.ops()) == 1:
            raise RequestRefused("at most 8 recorded addresses")
        return {}

    host.requests.answers["record_decisions"] = refuse
    done = host.write(RECORD, {"seconds": 5}).json()["done"]
    assert done == {"routers": 1, "seconds": 5, "not_recorded": ["r1: at most 8 recorded addresses"]}
    host.requests.answers["record_decisions"] = RequestRefused("at most 8 recorded addresses")
    assert host.write(RECORD, {"seconds": 5}).status_code == 409


def test_an_address_that_nobody_may_use_is_not_there(host: WritingHost) -> None:
    assert host.write("/api/addresses/nothing/record", {"seconds": 5}).status_code == 404
    assert host.write("/api/addresses/rpc/record", {"seconds": 5}, "keeper").status_code == 404
    assert host.write(RECORD, {"seconds": 5}, "viewer").status_code == 403


# Other hosts
def test_routers_of_all_hosts_record_and_both_hosts_have_it_in_the_audit(hosts: TwoHosts) -> None:
    answer = hosts.asked.write(RECORD, {"seconds": 5}, "keeper", Idempotency_Key="k")
    assert answer.json()["done"] == {"routers": 3, "seconds": 5}, answer.text
    asked = [(node, request["op"]) for host in (hosts.asked, hosts.other) for node, request in host.requests.asked]
    assert asked == [(name, "record_decisions") for name in ("e1", "r1", "r2")]
    (here,), (there,) = hosts.asked.audited(), hosts.other.audited()
    assert (here["who"], here["operation"], here["target"], here["outcome"]) == ("keeper", "record", "orders", "done")
    assert (there["who"], there["operation"], there["asked_at"]) == ("keeper", "record", "asked")
    again = hosts.asked.write(RECORD, {"seconds": 5}, "keeper", Idempotency_Key="k")
    assert again.json() == answer.json()
    assert len(hosts.other.requests.asked) == 2


def test_decisions_of_all_hosts_are_in_one_page_in_order(hosts: TwoHosts) -> None:
    page = hosts.asked.ask("GET", f"{DECISIONS}?limit=4", "viewer").json()
    assert [row["id"] for row in page["items"]] == ["e1/1", "r1/1", "r2/1", "e1/2"]
    assert page["next"] == "e1:2,r1:1,r2:1"


def test_a_host_that_does_not_answer_is_named(hosts: TwoHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(address: str, body: str, timeout_s: float) -> str:
        raise Unreachable("the mesh has no path")

    monkeypatch.setattr(hosts.asked.link, "ask", ask)
    page = hosts.asked.ask("GET", DECISIONS).json()
    assert {row["node"] for row in page["items"]} == {"e1"}
    assert page["silent"] == ["host other: the mesh has no path"]
    done = hosts.asked.write(RECORD, {"seconds": 5}).json()["done"]
    assert done["routers"] == 1
    assert "no observer takes changes" in done["not_recorded"][0]
