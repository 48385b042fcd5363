"""What `amqpmesh bench broker` measures, and what it makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner, Result

from addressing.topology.model import Topology
from mesh.bench import broker
from mesh.bench.broker import (
    KINDS,
    BrokerBenchRequest,
    BrokerBenchRun,
    BrokerLoad,
    addresses_of,
    count_of,
    row_of,
    told_by_sender,
    works_of,
)
from mesh.bench.dial import BenchServer
from mesh.bench.loopback_mesh import KEPT, LoopbackPlan, topology_of
from mesh.bench.target import BenchTarget
from mesh.client.url import parse_url
from mesh.commands.bench import BROKER_WORKS, kinds_of
from mesh.commands.cli import cli
from mesh.terminal.exit_codes import ExitCode

ORDER = BrokerBenchRequest(messages=1000, body_bytes=1024, in_flight=250, window=1000, repeat=5, stall_s=10.0)
TARGET = BenchTarget(BenchServer("h", 1), BenchServer("h", 1), None, 1, KEPT)
SENT: dict[str, Any] = {"waits_us": {}, "waited_s": 6.0, "started_at": 10.0, "ended_at": 12.0, "cpu_s": 0.5}


def work(kind: str) -> BrokerLoad:
    return works_of([kind])[0]


def run_of(part: str = "", wrongs: dict[str, int] | None = None, **figures: float | None) -> BrokerBenchRun:
    return BrokerBenchRun(part, figures, wrongs or {})


def test_the_command_offers_what_can_be_measured() -> None:
    assert BROKER_WORKS == KINDS
    assert [each.mode for each in works_of(["pair"])] == ["durable", "non-durable"]
    assert [each.consumers for each in works_of(["topic"])] == [1, 10, 100, 100]


def test_messages_are_shared_out_among_producers_and_copies() -> None:
    assert [count_of(work(kind), ORDER) for kind in ("pair", "pairs", "backlog")] == [1000, 250, 1000]
    assert [count_of(each, ORDER) for each in works_of(["topic"])] == [1000, 100, 10, 10]
    assert count_of(work("await"), ORDER) == 20


def test_each_pair_has_a_queue_of_its_own() -> None:
    assert addresses_of(TARGET, work("pair")) == ["bench.queue"]
    assert addresses_of(TARGET, work("topic")) == ["bench.topic"]
    assert addresses_of(TARGET, work("pairs")) == [f"bench.queue.{number}" for number in (1, 2, 3, 4)]


def test_the_broker_of_its_own_keeps_every_address_that_is_used() -> None:
    topology = Topology.model_validate(topology_of(LoopbackPlan(1, has_broker=True)))
    assert list(topology.brokers) == ["b1", "b2"]
    kinds = {pattern: str(entry.type) for pattern, entry in topology.addresses.items()}
    assert kinds["bench.queue.#"] == "queue"
    assert kinds["bench.topic.#"] == "topic"
    assert topology.addresses["bench.spread.#"].brokers == ("b1", "b2")


def test_what_is_in_flight_is_the_sum_of_all_waits_over_time() -> None:
    told = told_by_sender({**SENT, "waits_us": {"p50_us": 5.0, "p99_us": 9.0}}, 1000)
    assert told == {"accept_p50_us": 5.0, "accept_p99_us": 9.0, "in_flight": 3.0, "sender_us_per_message": 500.0}


def test_a_row_holds_medians_and_spreads_and_the_sum_of_what_was_lost() -> None:
    runs = [run_of(messages_per_s=rate, accept_p50_us=rate * 2, lost=1) for rate in (30.0, 10.0, 20.0)]
    row = row_of("w", "durable", runs)
    assert row.to_map() == {
        "work": "w",
        "mode": "durable",
        "messages_per_s": 20.0,
        "messages_per_s_spread": [10.0, 30.0],
        "accept_p50_us": 40.0,
        "lost": 3,
        "wrongs": ["w, durable: 3 messages did not arrive"],
    }


def test_what_was_wrong_is_said_for_all_runs_together() -> None:
    runs = [run_of("drain", {"doubled": 1}, lost=0), run_of("drain", {"doubled": 2, "damaged": 1}, lost=0)]
    assert row_of("w", "durable", runs).wrongs == ("w, durable: 1 messages damaged", "w, durable: 3 messages doubled")


def test_a_backlog_is_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from mesh.terminal.output import Output

    halves = [run_of("fill", messages_per_s=1.0), run_of("drain", messages_per_s=2.0, lost=0)]
    monkeypatch.setattr(broker, "run", lambda *_: halves)
    rows = list(broker.measure(TARGET, "b", works_of(["backlog"]), ORDER, Output("bench.broker", is_quiet=True)))
    assert [row.work for row in rows] == ["b, 1 to 1, 1 KB, fill", "b, 1 to 1, 1 KB, drain"]


# Options
URL = parse_url("amqp://h/a")


def test_a_topic_is_measured_where_there_is_one() -> None:
    assert kinds_of((), None, (), None) == BROKER_WORKS
    assert "topic" not in kinds_of((), URL, (), None)
    assert kinds_of((), URL, (), "news") == BROKER_WORKS
    assert kinds_of(("pair",), URL, (), None) == ("pair",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["amqp://h/a", "--work", "topic"], "--work topic needs --topic ADDRESS if a URL is given"),
        (["--topic", "news"], "--pid and --topic need URL"),
        (["--pid", "1"], "--pid and --topic need URL"),
        (["orders"], "expected a URL with host and address"),
        (["amqps://h/a"], "plain text"),
        (["--body", "15"], "at least 16 bytes"),
        (["--work", "fast"], "fast"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_starts(arguments: list[str], words: str) -> None:
    result: Result = CliRunner().invoke(cli, ["bench", "broker", *arguments])
    assert result.exit_code == ExitCode.USAGE
    assert words in result.stderr
