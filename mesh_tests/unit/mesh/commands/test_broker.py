"""Which brokers does `amqpmesh broker` ask, what does it ask first, and what does it say of the answers?"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from addressing.topology.loader import parse_topology
from mesh.client.errors import MeshError, Unreachable
from mesh.commands.cli import cli
from mesh.operations import broker_control
from mesh.operations.broker_control import Answer, QueueSite, all_sites, name_at, sites_of
from mesh.operations.broker_report import MESSAGES, QUEUES
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed

TEXT = """
mesh: m
routers: {r1: }
brokers: {b1: {data: b1}, b2: {data: b2}, rabbit: {url: "amqp://elsewhere"}}
default_broker: b1
addresses:
  orders.#: queue
  jobs: {type: queue, brokers: [b1, b2]}
  renamed: {type: queue, broker: b2, broker_address: its.name.there}
  news.#: {type: topic, broker: b2}
  theirs: {type: queue, broker: rabbit}
  rpc: anycast
"""
TOPOLOGY = parse_topology(TEXT)


class Brokers:
    """What each was asked, and what it answers: parts, and a failure after those."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.parts: dict[str, list[Answer]] = {}
        self.failures: dict[str, MeshError] = {}

    async def ask(
        self,
        topology: object,
        broker: str,
        request: Mapping[str, Any],
        parts: list[Answer],
        on_sent: Callable[[], None] = lambda: None,
    ) -> None:
        self.asked.append((broker, request))
        parts += self.parts.get(broker, [])
        await asyncio.sleep(0)
        if broker in self.failures:
            raise self.failures[broker]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Brokers:
    (tmp_path / "amqpmesh.yml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    brokers = Brokers()
    monkeypatch.setattr(broker_control, "_ask", brokers.ask)
    return brokers


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(cli, ["broker", *arguments], **options)


# Where


@pytest.mark.parametrize(
    ("address", "only", "sites"),
    [
        ("orders.a", None, [QueueSite("b1", "orders.a")]),
        ("jobs", None, [QueueSite("b1", "jobs"), QueueSite("b2", "jobs")]),
        ("jobs", "b2", [QueueSite("b2", "jobs")]),
        ("renamed", None, [QueueSite("b2", "its.name.there")]),
        ("renamed", "b1", [QueueSite("b1", "renamed")]),
        ("news.#", None, [QueueSite("b2", "news.#")]),
        ("left.behind", "b2", [QueueSite("b2", "left.behind")]),
    ],
)
def test_the_topology_says_which_brokers_keep_an_address(
    address: str, only: str | None, sites: list[QueueSite]
) -> None:
    assert list(sites_of(TOPOLOGY, address, only)) == sites


@pytest.mark.parametrize(
    ("address", "only", "said"),
    [
        ("rpc", None, "'rpc' is anycast: no broker keeps it"),
        ("left.behind", None, "names no broker for 'left.behind': name one with --broker, of b1, b2"),
        ("orders.a", "b9", "unknown broker 'b9' in mesh m: expected one of b1, b2, rabbit"),
        ("theirs", None, "'theirs' is kept by rabbit, which is an existing broker: use its own tools"),
        ("orders.a", "rabbit", "rabbit is an existing broker: use its own tools"),
    ],
)
def test_an_address_that_is_at_no_broker_of_ours_is_told_so(address: str, only: str | None, said: str) -> None:
    with pytest.raises(click.UsageError, match=said):
        sites_of(TOPOLOGY, address, only)


def test_what_the_topology_does_not_know_is_looked_for_at_the_only_broker() -> None:
    topology = parse_topology("mesh: m\nrouters: {r1: }\nbrokers: {b1: {data: b1}}\n")
    assert sites_of(topology, "left.behind", None) == (QueueSite("b1", "left.behind"),)


def test_a_list_is_of_all_embedded_brokers() -> None:
    assert [site.broker for site in all_sites(TOPOLOGY, None)] == ["b1", "b2"]
    assert [site.broker for site in all_sites(TOPOLOGY, "b2")] == ["b2"]
    with pytest.raises(click.UsageError, match="mesh m has no embedded broker"):
        all_sites(parse_topology("mesh: m\nrouters: {r1: }\n"), None)


def test_a_target_is_called_by_its_name_at_the_same_broker(brokers: Brokers) -> None:
    assert name_at(TOPOLOGY, "renamed", "b2") == "its.name.there"
    run("move", "news.x", "renamed", "--subscriber", "a|b")
    (asked,) = brokers.asked
    assert asked == (
        "b2",
        {"op": "move", "source": "news.x", "target": "its.name.there", "subscriber": "a|b", "count": None},
    )


# Asking first


@pytest.mark.parametrize("verb", ["purge", "delete"])
def test_nothing_is_lost_unless_somebody_says_yes(brokers: Brokers, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unattended = run(verb, "orders.a")
    assert unattended.exit_code == ExitCode.USAGE
    assert "cannot ask for confirmation without a terminal: confirm with --yes" in unattended.stderr
    monkeypatch.setattr("mesh.commands.broker.is_attended", lambda: True)
    refused = run(verb, "jobs", input="n\n")
    assert refused.exit_code == ExitCode.FAILED
    assert "jobs on b1, b2" in refused.stderr
    assert refused.stderr.endswith("error: not confirmed: nothing was changed\n")
    assert brokers.asked == []
    assert run(verb, "orders.a", input="y\n").exit_code == ExitCode.OK
    assert run(verb, "orders.a", "--yes").exit_code == ExitCode.OK
    assert [broker for broker, _ in brokers.asked] == ["b1", "b1"]


# What is said


def test_the_parts_of_an_answer_are_added_up(brokers: Brokers) -> None:
    brokers.parts = {"b1": [{"messages": 10_000}, {"messages": 1}], "b2": [{"messages": 1}]}
    assert run("purge", "jobs", "-y").stderr == "b1: dropped 10,001 messages of jobs\nb2: dropped 1 message of jobs\n"
    document = json.loads(run("purge", "jobs", "-y", "--json").stdout)
    assert document["messages"] == 10_002
    assert document["brokers"][0] == {"broker": "b1", "address": "jobs", "messages": 10_001}


def test_what_was_not_moved_is_told(brokers: Brokers) -> None:
    brokers.parts = {"b1": [{"messages": 3, "not_moved": 2}]}
    assert run("redrive", "orders.dead", "--to", "orders.a").stderr == (
        "b1: moved 3 messages from orders.dead to orders.a\n"
        "b1: 2 stay or are gone: there already, taken, or expired meanwhile\n"
    )


def test_why_messages_were_not_moved_is_told(brokers: Brokers) -> None:
    brokers.parts = {"b1": [{"messages": 3, "not_moved": 9, "without_queue": 4, "for_full_queue": 2}]}
    assert run("redrive", "orders.dead").stderr.splitlines()[1:] == [
        "b1: 4 stay: they come from no queue of this broker; name a queue with --to",
        "b1: 2 stay: their target queue is full",
        "b1: 3 stay or are gone: there already, taken, or expired meanwhile",
    ]


def test_a_broker_that_is_lost_midway_leaves_what_is_known_and_the_others(brokers: Brokers) -> None:
    brokers.parts = {"b1": [{"messages": 10_000}], "b2": [{"messages": 5}]}
    brokers.failures = {"b1": Unreachable("connection lost: gone")}
    result = run("purge", "jobs", "-y")
    assert result.exit_code == ExitCode.UNREACHABLE
    assert result.stderr == (
        "b1: dropped 10,000 messages of jobs\n"
        "b2: dropped 5 messages of jobs\n"
        "error: b1: connection lost: gone, after 10,000 messages\n"
        "fix: `amqpmesh status` shows what runs.\n"
    )


NOT_MADE = CommandFailed("there is no queue 'jobs' yet", code=broker_control.NOT_MADE_YET)


@pytest.mark.parametrize(
    ("arguments", "done"),
    [
        (["purge", "jobs", "-y"], "dropped 5 messages of jobs"),
        (["move", "jobs", "orders.a"], "moved 5 messages from jobs to orders.a"),
        (["redrive", "jobs"], "moved 5 messages from jobs to where they come from"),
        (["delete", "jobs", "-y"], "deleted jobs, 5 messages in it"),
    ],
)
def test_a_queue_that_one_of_several_brokers_has_not_made_yet_has_no_messages_there(
    brokers: Brokers, arguments: list[str], done: str
) -> None:
    brokers.failures = {"b1": NOT_MADE}
    brokers.parts = {"b2": [{"messages": 5}]}
    result = run(*arguments)
    assert result.exit_code == ExitCode.OK
    assert result.stderr == f"b2: {done}\nb1: there is no queue 'jobs' yet\n"
    document = json.loads(run(*arguments, "--json").stdout)
    assert {total["broker"]: total["messages"] for total in document["brokers"]} == {"b1": 0, "b2": 5}
    assert document["messages"] == 5


def test_a_queue_that_none_of_several_brokers_has_made_yet_is_a_failure(brokers: Brokers) -> None:
    brokers.failures = {"b1": NOT_MADE, "b2": NOT_MADE}
    result = run("redrive", "jobs")
    assert result.exit_code == ExitCode.FAILED
    assert "error: b1: there is no queue 'jobs' yet; b2: there is no queue 'jobs' yet\n" in result.stderr


def test_a_broker_that_cannot_be_asked_is_a_failure_whatever_another_has_not_made(brokers: Brokers) -> None:
    brokers.parts = {"b2": [{"messages": 5}]}
    brokers.failures = {"b1": NOT_MADE, "b2": Unreachable("connection lost: gone")}
    result = run("purge", "jobs", "-y")
    assert result.exit_code == ExitCode.UNREACHABLE
    assert "b1: there is no queue 'jobs' yet\n" in result.stderr


def test_a_refusal_is_all_that_is_said_where_nothing_was_done(brokers: Brokers) -> None:
    brokers.failures = {"b1": CommandFailed("queue 'orders.a' already exists")}
    result = run("create", "orders.a", "--json")
    assert result.exit_code == ExitCode.FAILED
    assert [json.loads(line)["error"]["message"] for line in result.stdout.splitlines()] == [
        "b1: queue 'orders.a' already exists"
    ]


def test_a_count_is_not_shared_out_between_brokers(brokers: Brokers) -> None:
    result = run("redrive", "jobs", "-c", "5")
    assert result.exit_code == ExitCode.USAGE
    assert "-c counts messages of one broker, and jobs is spread over b1, b2: name one with --broker" in result.stderr
    assert run("redrive", "jobs", "-c", "5", "--broker", "b2").exit_code == ExitCode.OK


def test_the_mesh_s_own_queues_are_in_json_only(brokers: Brokers) -> None:
    queue = dict.fromkeys(QUEUES.values(), 0) | {"departed_total": {"accepted": 3, "purged": 0, "moved": 1}}
    names = ("orders.a", "_amqpmesh/broker/b1/temp.x")
    brokers.parts = {"b1": [{"queues": [{**queue, "address": name}]} for name in names]}
    table = [line.split() for line in run("list").stdout.splitlines()]
    assert [row[1] for row in table] == ["ADDRESS", "orders.a"]
    assert table[1][-4:] == ["accepted", "3,", "moved", "1"]
    assert [found["address"] for found in json.loads(run("list", "--json").stdout)["queues"]] == list(names)


def test_every_column_is_explained_in_the_help() -> None:
    shown = run("list", "--help").stdout + run("show", "--help").stdout
    # What they are is in their names.
    assert {*QUEUES, *MESSAGES} - set(re.findall(r"[A-Z]+", shown)) <= {"BROKER", "ADDRESS"}


# Browsing, and what was seen

MESSAGE = {
    "number": 17,
    "priority": 4,
    "durable": False,
    "expires_at": None,
    "stored_at": None,
    "attempts": 0,
    "bytes": 99,
    "message_id": {"$ulong": 5},
    "correlation_id": None,
    "subject": "\u202e\x1b[31mred",
    "properties": {"k" * 100: 1},
    "annotations": {},
    "is_locked": True,
    "reason": None,
    "origin": None,
    "why": None,
    "left_out": [],
    "body": {"kind": "text", "text": "hello\x00world", "bytes": 11, "is_cut": False, "why": None},
}


def page(*messages: Mapping[str, Any], after: int | None = None) -> Answer:
    return {"messages": list(messages), "next": after, "last": 20, "scanned": 3}


def test_pages_are_asked_for_until_enough_is_shown(brokers: Brokers) -> None:
    brokers.parts = {"b1": [page(*[MESSAGE] * 60, after=60)]}
    document = json.loads(run("browse", "orders.a", "-n", "120", "--search", "x", "--json").stdout)
    assert [request for _, request in brokers.asked] == [
        {"op": "browse", "address": "orders.a", "search": "x", "limit": 100},
        {"op": "browse", "address": "orders.a", "search": "x", "after": 60, "limit": 60},
    ]
    assert len(document["messages"]) == 120
    assert document["messages"][0] == {"broker": "b1", **MESSAGE}
    assert document["brokers"] == [{"broker": "b1", "address": "orders.a", "next": 60, "last": 20, "scanned": 6}]


def test_a_table_of_messages_has_no_escapes_and_says_how_to_go_on(brokers: Brokers) -> None:
    brokers.parts = {"b1": [page(MESSAGE, after=17)]}
    result = run("browse", "orders.a", "--bodies", "-n", "1")
    head, row = result.stdout.splitlines()
    assert head.split() == [
        *["BROKER", "NUMBER", "STATE", "BYTES", "DELIVERED", "EXPIRES"],
        *["REASON", "MESSAGE-ID", "SUBJECT", "PROPERTIES", "BODY"],
    ]
    assert row.startswith("b1      17      locked  99")
    assert row.endswith("hello world")
    assert row.isprintable()
    assert len(row) < 250
    assert result.stderr == "b1: more follow: go on with --after 17\n"


def test_what_was_seen_is_purged_removed_moved_and_sent_back(brokers: Brokers) -> None:
    brokers.parts = {"b1": [{"messages": 1, "missing": [4], "locked": [5, 6]}]}
    run("purge", "orders.a", "--up-to", "20", "-y")
    removed = run("remove", "orders.a", "17", "4", "5", "6", "-y")
    moved = run("move", "orders.a", "orders.b", "--numbers", "17,18")
    assert moved.stderr == (
        "b1: moved 1 message from orders.a to orders.b\nb1: not there: 4\nb1: with a consumer: 5, 6\n"
    )
    run("redrive", "orders.a", "--up-to", "20")
    assert removed.stderr == ("b1: dropped 1 message of orders.a\nb1: not there: 4\nb1: with a consumer: 5, 6\n")
    assert [{**request} for _, request in brokers.asked] == [
        {"op": "purge", "address": "orders.a", "subscriber": None, "up_to": 20},
        {"op": "remove", "address": "orders.a", "numbers": [17, 4, 5, 6]},
        {
            "op": "move",
            "source": "orders.a",
            "target": "orders.b",
            "subscriber": None,
            "count": None,
            "numbers": [17, 18],
        },
        {"op": "redrive", "address": "orders.a", "to": None, "count": None, "up_to": 20},
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["remove", "orders.a", "x", "-y"], "expected numbers of messages, as `amqpmesh broker browse` shows them"),
        (["move", "orders.a", "orders.b", "--numbers", "1,,2"], "got ''"),
        (["remove", "jobs", "1", "-y"], "NUMBER is about messages of one broker, and jobs is spread over b1, b2"),
        (["purge", "jobs", "--up-to", "1", "-y"], "--up-to is about messages of one broker"),
        (["browse", "jobs", "--after", "1"], "--after is about messages of one broker"),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(brokers: Brokers, arguments: list[str], said: str) -> None:
    refused = run(*arguments)
    assert refused.exit_code == ExitCode.USAGE
    assert said in " ".join(refused.stderr.split())
    assert brokers.asked == []
