"""Which counters stay when nobody uses an address any more, and which limits are shown beside values."""

from __future__ import annotations

from addressing.topology.loader import parse_topology
from mesh.watch.declared_limits import declared_limits
from mesh.watch.host_model import ENDED_KEPT_S, HostModel
from mesh.watch.idle_addresses import MAX_IDLE, IdleAddresses
from mesh.watch.metrics import exposition
from mesh.watch.pattern_lookup import declared_patterns, detail_lookup, pattern_lookup, unlisted_patterns
from mesh.watch.states import row_of
from mesh_tests.unit.mesh.watch.sample_host import (
    NOW_S,
    SampleHost,
    add,
    attach,
    changed,
    closed,
    connect,
    deliver,
    queue,
)
from recording.columns import RecordKind
from recording.entities import NODE, QUEUE, USER

TOPOLOGY = parse_topology(
    """
mesh: m
routers: {r1: {listeners: [{port: 5001, max_connections: 30}, {port: 5002, max_connections: 12}]}}
brokers: {b1: {data: ./b1, routers: [r1]}}
addresses:
  rpc.#: anycast
  devices.#: anycast
  jobs.#: {type: queue, max_messages: 10}
users: {alice: {send: "#", max_connections: 5}, bob: {send: "#"}}
metrics: {detail: [rpc.*], off: [devices.#]}
"""
)


def sample() -> SampleHost:
    host = SampleHost({})
    host.model = HostModel(
        pattern_lookup(TOPOLOGY), declared_patterns(TOPOLOGY), declared_limits(TOPOLOGY), detail_lookup(TOPOLOGY)
    )
    host.model.on_time(NOW_S)
    return host


def use(host: SampleHost, address: str, link: int, count: int) -> None:
    run = host.runs["r1"]
    attach(run, link, "producer", address)
    deliver(run, link, 0, count)
    add(run, closed(RecordKind.LINK, link=link))
    host.model.on_time(host.model.utc_s + ENDED_KEPT_S + 1)
    run.on_time()


def test_the_counters_of_a_detailed_address_go_on_when_it_is_used_again() -> None:
    host = sample()
    connect(host.node("r1"), 1)
    use(host, "rpc.a", 1, 3)
    assert host.model.addresses["rpc.a"].ingress.deliveries == 3
    assert host.model.patterns["rpc.#"].addresses == 0
    assert len(host.model.idle) == 1
    use(host, "rpc.a", 2, 4)
    assert host.model.addresses["rpc.a"].ingress.deliveries == 7
    assert (host.model.patterns["rpc.#"].addresses, len(host.model.idle)) == (0, 1)
    attach(host.runs["r1"], 3, "producer", "rpc.a")
    assert (host.model.patterns["rpc.#"].addresses, len(host.model.idle)) == (1, 0)


def test_an_address_that_is_not_detailed_goes_with_its_last_link() -> None:
    host = sample()
    connect(host.node("r1"), 1)
    use(host, "devices.a", 1, 3)
    assert "devices.a" not in host.model.addresses


def test_the_address_that_was_left_first_is_forgotten_and_counted() -> None:
    idle = IdleAddresses(lambda address: address != "plain")
    assert idle.keep("plain") == "plain"
    for number in range(MAX_IDLE):
        assert idle.keep(f"a{number}") is None
    assert idle.use("a0")
    assert idle.keep("a0") is None
    assert idle.keep("another") == "a1"
    assert (len(idle), idle.forgotten) == (MAX_IDLE, 1)
    assert not idle.use("a1")


def test_what_metrics_are_off_for_has_no_series() -> None:
    host = sample()
    run = host.node("b1", "broker")
    queue(run, 1, "jobs.a")
    text = "".join(exposition(host.model, (), unlisted_patterns(TOPOLOGY)))
    assert 'pattern="rpc.#"' in text
    assert 'pattern="jobs.#"' in text
    assert 'pattern="devices.#"' not in text
    assert 'pattern="jobs.#"' not in "".join(exposition(host.model, (), {"jobs.#"}))


def test_limits_of_the_topology_are_beside_their_values() -> None:
    host = sample()
    router, broker = host.node("r1"), host.node("b1", "broker")
    connect(router, 1, "alice")
    connect(router, 2, "bob")
    queue(broker, 1, "jobs.a")
    queue(broker, 2, "jobs.b")
    add(broker, changed(RecordKind.QUEUE, queue=1, depth_count=9, depth_bytes=100))
    add(broker, changed(RecordKind.QUEUE, queue=2, depth_count=2, depth_bytes=100))
    model = host.model
    assert row_of(NODE, model.nodes["r1"], ("max_clients",)) == {"max_clients": 42}
    assert [row_of(USER, model.users[name], ("max_connections",))["max_connections"] for name in ("alice", "bob")] == [
        5,
        None,
    ]
    (first, _) = model.nodes["b1"].queues.values()
    assert row_of(QUEUE, first, ("max_messages", "max_bytes")) == {"max_messages": 10, "max_bytes": None}
    text = "".join(exposition(model))
    assert 'amqpmesh_pattern_queue_fullest_ratio{node="b1",pattern="jobs.#"} 0.9\n' in text
    assert 'amqpmesh_node_clients_limit{node="r1",role="router"} 42\n' in text
