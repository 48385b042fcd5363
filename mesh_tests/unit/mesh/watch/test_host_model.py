"""The model of a host: whatever happens to nodes, sums are what was told, never fall, and counts go back to 0."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.watch.counts import COUNT_FIELDS, DeliveryCounts, DeliverySums
from mesh.watch.host_model import ANONYMOUS, HostModel, NodeRecords, state_of
from mesh.watch.slots import Alike, RingRecords
from mesh.watch.states import ENDED, LOST, RUNNING, SILENT, SILENT_S
from mesh_tests.unit.mesh.watch.model_lives import NODES, Life, pattern_of
from recording.columns import RecordEvent
from recording.entities import ADDRESS, CONNECTION, LINK, NEIGHBOR, PATH, QUEUE

ACCEPTED = 0x24
NUMBERS = [name for name in COUNT_FIELDS if name not in ("rate", "last_at")]
SECOND_US = 1_000_000


def counts_of(host: HostModel) -> dict[tuple[str, str, str], DeliveryCounts]:
    found: dict[tuple[str, str, str], DeliveryCounts] = {}
    for node in host.nodes.values():
        for direction, counts in (("in", node.incoming), ("out", node.outgoing), ("ingress", node.ingress),
                                  ("egress", node.egress)):  # fmt: skip
            found["node", node.name, direction] = counts
    for user in host.users.values():
        found["user", user.name, "in"], found["user", user.name, "out"] = user.ingress, user.egress
    for pattern in host.patterns.values():
        name = pattern.pattern
        found["pattern", name, "in"], found["pattern", name, "out"] = pattern.ingress, pattern.egress
    return found


def numbers(host: HostModel) -> Counter[tuple[str, str, str, str]]:
    return Counter({(*key, name): getattr(each, name) for key, each in counts_of(host).items() for name in NUMBERS})


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32))
def test_in_any_life_sums_are_those_told_and_never_fall_and_counts_are_of_what_there_is(seed: int):
    life = Life(Random(seed))
    host = life.host
    before = numbers(host)
    for _ in range(40):
        life.step()
        now = numbers(host)
        assert now == +life.sums
        assert all(now[key] >= value for key, value in before.items())
        before = now
        check_counts(life)
    life.finish()
    check_nothing_is_left(life)
    assert numbers(host) == +life.sums


def check_counts(life: Life) -> None:
    links = [link for name in NODES for link in life.links[name].values()]
    assert sum(node.attached for node in life.host.nodes.values()) == len(links) == len(life.host.states(LINK))
    clients = [user for name in NODES for role, user in life.connections[name].values() if role == "client"]
    assert sum(node.clients for node in life.host.nodes.values()) == len(clients)
    for user in life.host.users.values():
        assert user.connections == sum((name or ANONYMOUS) == user.name for name in clients)
        assert user.links == sum(link.role != "circuit" and (link.user or ANONYMOUS) == user.name for link in links)
    for address in life.host.addresses.values():
        own = [link for link in links if link.address == address.address]
        producers = [link for link in own if link.role == "producer"]
        assert address.producers == len(producers)
        assert address.consumers == sum(link.role == "consumer" for link in own)
        assert address.waiting_producers == sum(link.is_waiting for link in producers)
        depths = [depth for name in NODES for at, depth in life.depths[name].values() if at == address.address]
        assert address.depth == (sum(depths) if depths else None)
    (pattern,) = life.host.patterns.values()
    covered = [each for each in life.host.addresses.values() if each.pattern is pattern]
    assert pattern.addresses == len(covered)
    assert pattern.producers == sum(each.producers for each in covered)
    assert pattern.consumers == sum(each.consumers for each in covered)
    assert pattern.waiting_producers == sum(each.waiting_producers for each in covered)
    assert pattern.starved.total_us == life.starved_us


def check_nothing_is_left(life: Life) -> None:
    check_counts(life)
    assert life.host.addresses == {}
    for entity in (ADDRESS, CONNECTION, LINK, QUEUE):
        assert list(life.host.states(entity)) == []
    for node in life.host.nodes.values():
        assert (node.attached, node.clients, node.waiting_producers, node.links) == (0, 0, 0, {})


# One node
@pytest.fixture
def host() -> HostModel:
    made = HostModel(pattern_of, [("rpc.#", "anycast")])
    made.on_time(1000.0)
    return made


@pytest.fixture
def node(host: HostModel) -> NodeRecords:
    return NodeRecords(host, host.node("r1"), 999.0)


def rows(*found: dict[str, Any], at_us: int = 0) -> RingRecords:
    return RingRecords(rows=[(at_us, row) for row in found])


CLIENT = {"kind": "connection", "event": "opened", "connection": 1, "role": "client", "user": "alice"}
PRODUCER = {"kind": "link", "event": "opened", "connection": 1, "link": 2, "role": "producer", "address": "rpc.1"}
CONSUMER = {**PRODUCER, "link": 3, "role": "consumer"}


def moved(count: int, incoming: int = 2, outgoing: int = 3, part: int = 0) -> RingRecords:
    sums = DeliverySums()
    sums.count, sums.last_us, sums.latencies = count, SECOND_US, {3: count}
    return RingRecords(deliveries={Alike(incoming, outgoing, ACCEPTED, part): sums})


def closed(kind: str, number: int) -> RingRecords:
    return rows({"kind": kind, "event": "closed", kind: number})


def test_what_operators_send_is_no_traffic_of_clients(host: HostModel, node: NodeRecords):
    operator = {**CLIENT, "role": "operator", "user": None}
    node.add(rows(operator, {**PRODUCER, "address": "_amqpmesh/observe"}, {**CONSUMER, "address": "rpc.1"}))
    node.add(rows({"kind": "credit", "event": "changed", "link": 2, "credit": 0, "cause": "no_taker"}))
    node.add(moved(4))
    assert [link.role for link in host.states(LINK)] == ["operator", "operator"]
    seen = host.nodes["r1"]
    assert (seen.incoming.accepted, seen.ingress.accepted, seen.egress.accepted) == (4, 0, 0)
    assert (seen.clients, seen.waiting_producers, seen.routed.ingress, seen.routed.egress) == (0, 0, 0, 0)
    assert host.addresses["rpc.1"].consumers == 0


def test_the_sums_of_a_links_last_second_count_though_they_come_after_its_end(host: HostModel, node: NodeRecords):
    node.add(rows(CLIENT, PRODUCER, CONSUMER))
    node.add(moved(4))
    node.add(closed("connection", 1))
    address = host.addresses["rpc.1"]
    host.on_time(1001.0)
    node.add(moved(3))
    node.on_time()
    assert (address.ingress.accepted, address.egress.accepted) == (7, 7)
    assert (host.users["alice"].ingress.accepted, host.patterns["rpc.#"].egress.accepted) == (7, 7)
    assert (address.producers, address.consumers, len(host.states(LINK))) == (0, 0, 0)
    host.on_time(1007.0)
    node.on_time()
    assert host.addresses == {}
    assert host.patterns["rpc.#"].ingress.accepted == 7


def test_an_address_that_is_used_again_within_seconds_goes_on_counting(host: HostModel, node: NodeRecords):
    node.add(rows(CLIENT, PRODUCER, CONSUMER))
    node.add(moved(4))
    node.add(closed("link", 2))
    node.add(closed("link", 3))
    node.add(rows({**PRODUCER, "link": 4}))
    node.add(moved(3))
    assert host.addresses["rpc.1"].ingress.accepted == 7


def test_a_multicast_arrives_once_and_leaves_once_for_each_copy(host: HostModel, node: NodeRecords):
    node.add(rows(CLIENT, PRODUCER, CONSUMER, {**CONSUMER, "link": 4}))
    node.add(moved(5, outgoing=0, part=1))
    node.add(moved(5, outgoing=3, part=2))
    node.add(moved(5, outgoing=4, part=2))
    assert (host.addresses["rpc.1"].ingress.accepted, host.addresses["rpc.1"].egress.accepted) == (5, 10)


def test_a_sender_without_an_address_counts_where_its_messages_go(host: HostModel, node: NodeRecords):
    anonymous = {key: value for key, value in PRODUCER.items() if key != "address"}
    node.add(rows(CLIENT, anonymous, CONSUMER))
    node.add(moved(5))
    assert (host.addresses["rpc.1"].ingress.accepted, host.addresses["rpc.1"].producers) == (5, 0)


def test_a_run_that_is_lost_takes_what_it_had_and_leaves_its_sums_to_the_next(host: HostModel, node: NodeRecords):
    node.add(rows(CLIENT, PRODUCER, CONSUMER))
    node.add(moved(4))
    node.end(LOST)
    assert (host.nodes["r1"].state, host.addresses, host.users["alice"].links) == (LOST, {}, 0)
    again = NodeRecords(host, host.node("r1"), 1005.0)
    again.add(rows(CLIENT, PRODUCER, CONSUMER))
    again.add(moved(3))
    assert (host.nodes["r1"].state, host.nodes["r1"].ingress.accepted) == (RUNNING, 7)
    assert host.users["alice"].ingress.accepted == 7


def test_a_producer_waits_until_it_has_credit_again_whatever_else_is_told_of_it(host: HostModel, node: NodeRecords):
    credit = {"kind": "credit", "event": "changed", "link": 2}
    node.add(rows(CLIENT, PRODUCER, {**credit, "credit": 0, "starved_us": 7, "cause": "no_taker"}))
    (link,) = host.states(LINK)
    # A record of a link that stands still has no cause.
    node.add(rows({**credit, "credit": 0}))
    assert (link.waits_for, host.addresses["rpc.1"].waiting_producers, host.nodes["r1"].waiting_producers) == (
        "no_taker", 1, 1,
    )  # fmt: skip
    node.add(rows({**credit, "credit": 5, "starved_us": 3, "cause": "no_taker"}))
    assert (link.waits_for, link.credit, link.starved.total_us) == (None, 5, 10)
    assert (host.addresses["rpc.1"].waiting_producers, host.patterns["rpc.#"].waiting_producers) == (0, 0)


def test_time_without_credit_is_told_apart_by_cause_and_the_present_wait_has_a_begin(
    host: HostModel, node: NodeRecords
) -> None:
    credit = {"kind": "credit", "event": "changed", "link": 2}
    node.add(rows(CLIENT, PRODUCER))
    (link,) = host.states(LINK)
    address, pattern = host.addresses["rpc.1"], host.patterns["rpc.#"]
    assert (link.waiting_since, address.waiting_since, address.waits_for) == (None, None, None)
    lasts_2_s = {"credit": 0, "starved_us": 2 * SECOND_US}
    node.add(rows({**credit, **lasts_2_s, "cause": "no_taker"}, at_us=900 * SECOND_US))
    # The wait goes on, for another reason.
    node.add(rows({**credit, **lasts_2_s, "cause": "takers"}, at_us=902 * SECOND_US))
    assert (link.waiting_since, address.waiting_since, address.waits_for) == (898.0, 898.0, "takers")
    for state in (link, pattern):
        assert {cause: us for cause, us in state.starved.by_cause.items() if us} == {
            "no_taker": 2 * SECOND_US, "takers": 2 * SECOND_US,
        }  # fmt: skip
        assert state.starved_s == 4.0
    node.add(rows({**credit, "credit": 7}, at_us=903 * SECOND_US))
    assert (link.waiting_since, address.waiting_since, address.waits_for) == (None, None, None)


def test_the_begin_of_a_wait_that_the_observer_did_not_see_is_unknown(host: HostModel, node: NodeRecords) -> None:
    live = {"kind": "credit", "event": "live", "link": 2, "credit": 0, "cause": "takers"}
    later = {**live, "event": "changed", "starved_us": SECOND_US}
    node.add(rows(CLIENT, PRODUCER, live, later, at_us=900 * SECOND_US))
    (link,) = host.states(LINK)
    assert (link.waits_for, link.waiting_since, host.addresses["rpc.1"].waiting_since) == ("takers", None, None)


def test_a_subscription_is_no_part_of_an_addresses_depth(host: HostModel, node: NodeRecords):
    queue = {"kind": "queue", "event": "live", "queue": 1, "address": "rpc.1", "depth_count": 5}
    node.add(rows(queue, {**queue, "queue": 2, "name": "carol"}))
    assert host.addresses["rpc.1"].depth == 5
    node.add(closed("queue", 1))
    assert host.addresses["rpc.1"].depth is None


def test_the_age_of_a_message_grows_with_time(host: HostModel, node: NodeRecords):
    queue = {"kind": "queue", "event": "changed", "queue": 1, "depth_count": 1, "oldest_us": 2 * SECOND_US}
    node.add(rows(queue, at_us=999 * SECOND_US))
    (found,) = host.states(QUEUE)
    assert found.oldest_s == pytest.approx(3.0)
    host.on_time(1004.0)
    assert found.oldest_s == pytest.approx(7.0)


def test_at_a_broker_no_link_counts_as_a_clients_though_a_router_gave_it_the_clients_name(host: HostModel):
    broker = NodeRecords(host, host.node("b1"), 999.0)
    broker.set_role("broker")
    waits = {"kind": "credit", "event": "changed", "link": 2, "credit": 0, "starved_us": 5, "cause": "full_queue"}
    broker.add(rows(CLIENT, PRODUCER, CONSUMER, waits))
    address = host.addresses["rpc.1"]
    assert (address.producers, address.consumers, address.waiting_producers, host.users) == (0, 0, 0, {})
    assert (host.nodes["b1"].clients, host.nodes["b1"].attached, host.nodes["b1"].waiting_producers) == (0, 2, 1)
    broker.end(LOST)
    assert host.nodes["b1"].waiting_producers == 0


# Rates
def test_rates_are_of_the_time_since_the_last_and_fall_to_0(host: HostModel, node: NodeRecords):
    node.add(rows(CLIENT, PRODUCER, CONSUMER))
    node.add(moved(30))
    host.on_time(1002.0)
    rate = host.addresses["rpc.1"].ingress
    assert rate.rate == 15.0
    host.on_time(1003.9)
    assert rate.rate == 15.0
    host.on_time(1004.0)
    assert rate.rate == 0.0


def test_what_happened_before_the_first_look_was_complete_is_in_no_rate():
    host = HostModel(pattern_of)
    host.on_time(1000.0, is_caught_up=False)
    node = NodeRecords(host, host.node("r1"), 1.0)
    node.add(rows(CLIENT, PRODUCER, CONSUMER))
    node.add(moved(1_000_000))
    host.on_time(1000.1, is_caught_up=False)
    node.add(moved(1_000_000))
    host.on_time(1000.2)
    node.add(moved(10))
    host.on_time(1002.2)
    assert host.nodes["r1"].ingress.rate == pytest.approx(5.0)
    assert host.nodes["r1"].ingress.deliveries == 2_000_010


def test_of_a_node_that_writes_more_than_a_look_reads_the_rate_is_that_of_all(host: HostModel, node: NodeRecords):
    node.add(rows(CLIENT, PRODUCER, CONSUMER))
    for second in range(1, 4):
        node.add(moved(60))
        host.on_time(1000.0 + second, is_caught_up=False)
        node.add(moved(40))
        host.on_time(1000.01 + second)
    assert host.nodes["r1"].ingress.rate == pytest.approx(100.0, rel=0.02)


def test_a_clock_that_is_set_back_leaves_rates_for_one_look_only(host: HostModel, node: NodeRecords):
    node.add(rows(CLIENT, PRODUCER, CONSUMER))
    node.add(moved(5))
    host.on_time(500.0)
    assert host.nodes["r1"].ingress.rate == 0.0
    node.add(moved(7))
    host.on_time(502.0)
    assert host.nodes["r1"].ingress.rate == 3.5


# Records that were missed
def known(host: HostModel) -> dict[str, list[str]]:
    entities = (CONNECTION, LINK, QUEUE, NEIGHBOR, PATH)
    return {entity.plural: sorted(each.id for each in host.states(entity)) for entity in entities}


EVERYTHING = (
    CLIENT,
    PRODUCER,
    CONSUMER,
    {"kind": "connection", "event": "opened", "connection": 9, "role": "client"},
    {"kind": "queue", "event": "opened", "queue": 5, "address": "rpc.1"},
    {"kind": "neighbor", "event": "opened", "neighbor": "r2", "cost": 1},
    {"kind": "path", "event": "opened", "egress": "r2", "path": "r1>r2", "cost": 1},
)


def test_after_missed_records_all_stays_until_a_list_lacks_it(host: HostModel, node: NodeRecords):
    node.add(rows(*EVERYTHING))
    node.add(moved(4))
    before = known(host)
    node.on_missed()
    assert node.wants_list
    assert known(host) == before
    listed = [{**row, "event": "live"} for row in (CLIENT, PRODUCER)]
    node.add(rows(*listed, {"kind": "node", "event": RecordEvent.LISTED, "count": 2}))
    assert not node.wants_list
    assert {plural: names for plural, names in known(host).items() if names} == {
        "connections": ["r1/1"], "links": ["r1/2"],
    }  # fmt: skip
    assert (host.addresses["rpc.1"].consumers, host.addresses["rpc.1"].producers) == (0, 1)
    assert (host.addresses["rpc.1"].depth, host.addresses["rpc.1"].egress.accepted) == (None, 4)


def test_a_complete_list_ends_nothing_that_it_has(host: HostModel, node: NodeRecords):
    node.add(rows(*EVERYTHING))
    before = known(host)
    node.on_missed()
    live = [{**row, "event": "live"} for row in EVERYTHING]
    node.add(rows(*live, {"kind": "node", "event": RecordEvent.LISTED, "count": len(live)}))
    assert known(host) == before
    assert not node.wants_list


def test_a_list_that_began_before_the_gap_ends_nothing_and_the_next_one_counts(host: HostModel, node: NodeRecords):
    node.add(rows(*EVERYTHING))
    before = known(host)
    node.on_missed()
    live, listed = {**CLIENT, "event": "live"}, {"kind": "node", "event": RecordEvent.LISTED}
    node.add(rows(live, {**listed, "count": 7}))
    assert node.wants_list
    assert known(host) == before
    node.add(rows(live, {**listed, "count": 1}))
    assert known(host)["links"] == []
    assert known(host)["connections"] == ["r1/1"]


def test_what_began_or_ended_after_the_gap_is_as_the_node_tells(host: HostModel, node: NodeRecords):
    node.add(rows(*EVERYTHING))
    node.on_missed()
    node.add(closed("link", 2))
    new = {"kind": "link", "event": "opened", "connection": 1, "link": 8, "role": "consumer", "address": "rpc.2"}
    node.add(rows(new, {**CLIENT, "event": "live"}, {"kind": "node", "event": RecordEvent.LISTED, "count": 1}))
    assert known(host)["links"] == ["r1/8"]


def test_a_link_whose_connection_was_missed_gets_it_from_the_list(host: HostModel, node: NodeRecords):
    node.on_missed()
    node.add(rows(PRODUCER))
    live = [{**row, "event": "live"} for row in (CLIENT, PRODUCER)]
    node.add(rows(*live, {"kind": "node", "event": RecordEvent.LISTED, "count": 2}))
    node.add(moved(3, outgoing=0))
    assert (host.users["alice"].links, host.users["alice"].ingress.accepted) == (1, 3)
    assert host.addresses["rpc.1"].producers == 1


@pytest.mark.parametrize(
    ("age_s", "is_abandoned", "cause", "state"),
    [
        (0.5, False, None, RUNNING),
        (SILENT_S, False, None, SILENT),
        (0.5, True, "stopped", ENDED),
        (0.5, True, "failed", LOST),
        (99.0, True, None, LOST),
    ],
)
def test_the_state_of_a_node_is_as_the_entity_says(age_s: float, is_abandoned: bool, cause: str | None, state: str):
    assert state_of(age_s, is_abandoned=is_abandoned, cause=cause) == state
