"""The text of `/metrics`: what the model has, in Prometheus' format, with as many series as the topology allows."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from mesh.watch.counts import LATENCY_BUCKETS
from mesh.watch.declared_limits import DeclaredLimits, QueueLimits
from mesh.watch.expected_nodes import ExpectedNode
from mesh.watch.metric_table import (
    LATENCY_BOUNDS,
    NEIGHBOR_GROUP,
    NODE_GROUP,
    OBSERVER_GROUP,
    PATTERN_GROUP,
    QUEUE_GROUP,
)
from mesh.watch.metrics import escape_label, exposition
from mesh.watch.starved_times import CREDIT_CAUSES
from mesh_tests.installed import require
from mesh_tests.unit.mesh.watch.sample_host import (
    NOW_S,
    SampleHost,
    attach,
    closed,
    connect,
    deliver,
    hear,
    large_host,
    messages,
    queue,
    small_mesh,
)
from mesh_tests.unit.mesh.watch.sample_host import add as add_rows
from mesh_tests.unit.mesh.watch.scraped import Scraped
from recording.columns import RecordEvent, RecordKind

RPC = {"pattern": "rpc.#", "type": "anycast"}
R1 = {"node": "r1", "role": "router"}


def scrape(host: SampleHost, *expected: ExpectedNode) -> Scraped:
    return Scraped(exposition(host.model, expected))


def test_deliveries_are_counted_by_direction_and_outcome() -> None:
    found = scrape(small_mesh())
    wanted = {"accepted": 55, "rejected": 4, "released": 3, "modified": 2, "settled": 1, "aborted": 13}
    for outcome, count in wanted.items():
        for direction in ("in", "out"):
            labels = {**RPC, "direction": direction, "outcome": outcome}
            assert found.value("amqpmesh_pattern_deliveries_total", **labels) == count
    assert found.value("amqpmesh_pattern_bytes_total", **RPC, direction="in") == 7800
    assert found.value("amqpmesh_node_client_bytes_total", **R1, direction="out") == 7300


def test_delayed_deliveries_are_counted_over_1_s_and_over_10_s() -> None:
    found = scrape(small_mesh())
    orders = {"pattern": "orders", "type": "queue"}
    assert found.value("amqpmesh_pattern_deliveries_delayed_1s_total", **RPC, direction="in") == 5
    assert found.value("amqpmesh_pattern_deliveries_delayed_10s_total", **RPC, direction="in") == 0
    assert found.value("amqpmesh_pattern_deliveries_delayed_1s_total", **orders, direction="in") == 2
    assert found.value("amqpmesh_pattern_deliveries_delayed_10s_total", **orders, direction="in") == 2


def test_ends_and_starvation_are_counted_for_each_pattern() -> None:
    found = scrape(small_mesh())
    assert found.value("amqpmesh_pattern_producers", **RPC) == 2
    assert found.value("amqpmesh_pattern_consumers", **RPC) == 2
    assert found.value("amqpmesh_pattern_addresses", **RPC) == 1
    orders = {"pattern": "orders", "type": "queue"}
    assert found.value("amqpmesh_pattern_waiting_producers", **orders) == 1
    name = "amqpmesh_pattern_starved_seconds_total"
    starved = {cause: found.value(name, **orders, cause=cause) for cause in CREDIT_CAUSES}
    assert starved == dict.fromkeys(CREDIT_CAUSES, 0) | {"no_taker": 2.5}
    assert found.value("amqpmesh_node_waiting_producers", node="r2", role="router") == 1


def test_queues_are_added_up_for_each_broker_and_pattern() -> None:
    host = small_mesh()
    queue(host.runs["b1"], 3, "orders", depth=2, oldest_us=5_000_000)
    found = scrape(host)
    orders = {"node": "b1", "pattern": "orders"}
    assert found.value("amqpmesh_pattern_queue_messages", **orders) == 9
    assert found.value("amqpmesh_pattern_queue_bytes", **orders) == 90
    assert found.value("amqpmesh_pattern_queue_oldest_age_seconds", **orders) == 90
    assert found.value("amqpmesh_pattern_queue_enqueued_total", **orders) == 20
    assert found.value("amqpmesh_pattern_queue_dequeued_total", **orders) == 13
    assert found.value("amqpmesh_pattern_queue_messages", node="b1", pattern="news") == 0
    assert found.value("amqpmesh_pattern_queue_oldest_age_seconds", node="b1", pattern="news") is None


def test_the_sums_of_a_pattern_do_not_fall_when_a_queue_is_deleted() -> None:
    host = small_mesh()
    run = host.runs["b1"]
    add_rows(run, closed(RecordKind.QUEUE, queue=1))
    queue(run, 4, "orders")
    messages(run, 4, RecordEvent.REMOVED, 7)
    found = scrape(host)
    orders = {"node": "b1", "pattern": "orders"}
    assert found.value("amqpmesh_pattern_queue_enqueued_total", **orders) == 20
    assert found.value("amqpmesh_pattern_queue_removed_total", **orders) == 7
    assert found.value("amqpmesh_pattern_queue_messages", **orders) == 0


def test_a_histogram_counts_each_latency_at_its_bounds_and_above() -> None:
    host = SampleHost({"a": "anycast"})
    run = host.node("r1")
    connect(run, 1)
    attach(run, 1, "producer", "a")
    for power in range(LATENCY_BUCKETS):
        deliver(run, 1, 0, 1, took_us=(1 << power) - 1)
    found = scrape(host)
    labels = {"pattern": "a", "type": "anycast"}
    for power in LATENCY_BOUNDS:
        bound = str((1 << power) / 1e6)
        assert found.value("amqpmesh_pattern_latency_seconds_bucket", **labels, le=bound) == power + 1
    assert found.value("amqpmesh_pattern_latency_seconds_bucket", **labels, le="+Inf") == LATENCY_BUCKETS
    assert found.value("amqpmesh_pattern_latency_seconds_count", **labels) == LATENCY_BUCKETS
    total = found.value("amqpmesh_pattern_latency_seconds_sum", **labels)
    assert total == pytest.approx(host.model.patterns["a"].latencies.sum_us / 1e6)
    node_labels = {"node": "r1", "role": "router"}
    assert found.value("amqpmesh_node_latency_seconds_count", **node_labels) == LATENCY_BUCKETS


def test_a_lost_node_is_down_without_gauges_and_keeps_its_counters() -> None:
    host = small_mesh()
    before = scrape(host)
    host.runs["r1"].end("lost")
    host.runs["b1"].end("lost")
    after = scrape(host)
    assert before.value("amqpmesh_node_up", **R1) == 1
    assert after.value("amqpmesh_node_up", **R1) == 0
    assert after.value("amqpmesh_node_state", **R1, state="lost") == 1
    assert after.value("amqpmesh_node_state", **R1, state="running") == 0
    nodes = [{"node": "r1"}, {"node": "b1"}]
    for family in after.families:
        of_the_lost = [each for each in family.samples if {"node": each.labels.get("node")} in nodes]
        if family.type == "gauge":
            assert not of_the_lost or family.name in ("amqpmesh_node_up", "amqpmesh_node_state")
    for key, value in before.values.items():
        if key[0].endswith("_total"):
            assert after.values[key] == value


def test_a_silent_node_is_not_up_and_has_its_last_gauges_with_their_age() -> None:
    host = small_mesh()
    host.model.nodes["r1"].state, host.model.nodes["r1"].age_s = "silent", 8.5
    found = scrape(host)
    assert found.value("amqpmesh_node_up", **R1) == 0
    assert found.value("amqpmesh_node_clients", **R1) == 1
    assert found.value("amqpmesh_source_age_seconds", **R1) == 8.5


def test_a_node_of_the_topology_that_was_never_seen_is_down() -> None:
    found = scrape(small_mesh(), ExpectedNode("r9", "router", ("r1",)), ExpectedNode("r1", "router"))
    r9 = {"node": "r9", "role": "router"}
    assert found.value("amqpmesh_node_up", **r9) == 0
    assert found.value("amqpmesh_node_state", **r9, state="unknown") == 1
    assert found.value("amqpmesh_node_records_dropped_total", **r9) is None
    assert found.value("amqpmesh_node_up", **R1) == 1


def test_a_neighbor_of_the_topology_that_a_router_does_not_hear_is_down() -> None:
    found = scrape(small_mesh(), ExpectedNode("r1", "router", ("r2", "r3")))
    assert found.value("amqpmesh_neighbor_up", node="r1", neighbor="r2") == 1
    assert found.value("amqpmesh_neighbor_cost", node="r1", neighbor="r2") == 3
    assert found.value("amqpmesh_neighbor_up", node="r1", neighbor="r3") == 0
    assert found.value("amqpmesh_neighbor_cost", node="r1", neighbor="r3") is None


def test_a_router_that_is_lost_says_nothing_of_its_neighbors() -> None:
    host = small_mesh()
    host.runs["r1"].end("lost")
    found = scrape(host, ExpectedNode("r1", "router", ("r2",)))
    assert found.value("amqpmesh_neighbor_up", node="r1", neighbor="r2") is None


def test_the_observer_says_when_it_read_the_rings() -> None:
    assert scrape(small_mesh()).value("amqpmesh_observer_read_timestamp_seconds") == NOW_S


HOSTILE = (
    'a"b',
    "a\\b",
    "a\nb",
    "a\\nb",
    'a"} 1\nx{y="',
    "a\0b",
    "\u202eab",
    "<b>",
    "x" * 65536,
    "\\",
    "é中\U0001f600",
)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:12]))
def test_a_hostile_name_is_one_label_with_that_name(name: str) -> None:
    host = SampleHost({name: "anycast"})
    run = host.node("r1")
    connect(run, 1)
    attach(run, 1, "producer", name)
    found = scrape(host)
    assert found.value("amqpmesh_pattern_producers", pattern=name, type="anycast") == 1
    assert {labels["pattern"] for labels in found.labels("amqpmesh_pattern_producers")} == {name}


def test_a_name_that_utf_8_cannot_write_is_written_with_a_replacement() -> None:
    assert escape_label("a\ud800b\udfff").encode() == "a\ufffdb\ufffd".encode()


def bound_of(nodes: int, patterns: int, brokers: int, connections: int) -> int:
    """The formula of docs/how-to/monitor.md."""
    return (
        OBSERVER_GROUP.series
        + NODE_GROUP.series * nodes
        + PATTERN_GROUP.series * patterns
        + QUEUE_GROUP.series * brokers * patterns
        + NEIGHBOR_GROUP.series * 2 * connections
    )


def test_the_number_of_series_is_that_of_the_formula() -> None:
    patterns = ("a", "b", "c")
    limits = DeclaredLimits(dict.fromkeys(patterns, QueueLimits(10)), {}, dict.fromkeys(("r1", "r2", "b1", "b2"), 5))
    host = SampleHost(dict.fromkeys(patterns, "queue"), limits=limits)
    for name in ("r1", "r2"):
        run = host.node(name)
        hear(run, "r1" if name == "r2" else "r2")
        connect(run, 1)
        for number, pattern in enumerate(patterns):
            attach(run, 10 + number, "producer", pattern)
            attach(run, 20 + number, "consumer", pattern)
            deliver(run, 10 + number, 20 + number, 1)
    for name in ("b1", "b2"):
        run = host.node(name, "broker")
        for number, pattern in enumerate(patterns):
            queue(run, 1 + number, pattern, 1, 1)
    assert len(scrape(host).values) == bound_of(nodes=4, patterns=3, brokers=2, connections=1)


@pytest.mark.parametrize("addresses", [10, 100_000])
def test_the_topology_bounds_the_number_of_series_and_addresses_do_not(addresses: int) -> None:
    host = large_host(addresses)
    found = scrape(host)
    assert found.value("amqpmesh_addresses") == addresses
    assert found.value("amqpmesh_pattern_producers", pattern="p.#", type="queue") == addresses
    depth = sum(number % 3 for number in range(addresses))
    assert found.value("amqpmesh_pattern_queue_messages", node="b1", pattern="p.#") == depth
    assert len(found.values) <= bound_of(nodes=2, patterns=2, brokers=1, connections=0)


def test_promtool_finds_nothing_to_complain_of() -> None:
    promtool = shutil.which("promtool")
    require(promtool is not None, "promtool (Debian: prometheus)")
    text = scrape(small_mesh(), ExpectedNode("r9", "router")).text
    checked = subprocess.run(
        [str(promtool), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
