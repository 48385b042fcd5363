"""The steps of a drill against a topology: what happens when, to whom, and what does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from addressing.topology.loader import parse_topology
from mesh.drills.drill_file import DrillInvalid, read_drill
from mesh.drills.plan import DrillPlan, make_plan

TOPOLOGY = """
mesh: m
routers: {r1: {connect: [r2]}, r2: {connect: [r3]}, r3: }
brokers: {b1: {data: ./b1}, old: {url: "amqp://h"}}
default_broker: b1
addresses: {orders: anycast, prices: multicast, closed: unavailable}
"""


def plan(
    text: str, folder: Path, *, load: str = "{address: orders}", seed: int = 1, topology: str = TOPOLOGY
) -> DrillPlan:
    path = folder / "drill.yml"
    path.write_text(f"drill: d\nsteady_state: {{load: {load}}}\nmethod:\n{text}")
    return make_plan(read_drill(path), parse_topology(topology), seed)


def wrong(text: str, folder: Path, **more: str) -> list[str]:
    with pytest.raises(DrillInvalid) as caught:
        plan(text, folder, **more)  # type: ignore[arg-type]
    return [f"{error['line']}:{error['column']} {error['code']}" for error in caught.value.errors]


def test_a_fault_lasts_as_long_as_it_says_or_to_the_end_or_until_all_is_healed(tmp_path: Path):
    made = plan(
        """
  - {at: 1s, fault: cut, link: [r1, r2], for: 2s}
  - {at: 2s, fault: pause, router: r2}
  - {at: 4s, heal: all}
  - {at: 5s, fault: kill, router: r1}
  - {at: 6s, fault: blackhole, link: [r3, r2], for: 4s}
""",
        tmp_path,
    )
    assert [(fault.id, fault.label, fault.at_s, fault.lasts_s) for fault in made.faults] == [
        ("1", "cut r1 - r2", 1, 2),
        ("2", "pause r2", 2, 2),
        ("3", "kill r1", 5, 0),
        ("4", "blackhole r3 - r2", 6, 4),
    ]
    assert made.method_s == 10


def test_a_fault_may_follow_the_end_of_the_one_before_it(tmp_path: Path):
    made = plan("  - {fault: restart, router: r1}\n  - {after: 2s, fault: pause, router: r2, for: 1s}\n", tmp_path)
    assert [(fault.after_s, fault.lasts_s) for fault in made.faults] == [(None, 0), (2, 1)]
    assert wrong("  - {fault: kill, router: r1}\n  - {after: 1s, fault: pause, router: r2}\n", tmp_path) == [
        "5:5 AM106"
    ]


@pytest.mark.parametrize(
    ("step", "place"),
    [
        ("{fault: kill, router: r9}", "4:27 AM103"),
        ("{fault: kill, broker: b9}", "4:27 AM104"),
        ("{fault: kill, broker: old}", "4:27 AM603"),
        ("{fault: disk_full, broker: old, for: 1s}", "4:32 AM603"),
        ("{fault: cut, link: [r1, r3], for: 1s}", "4:24 AM603"),
    ],
)
def test_a_target_that_the_topology_does_not_have_is_refused(step: str, place: str, tmp_path: Path):
    assert wrong(f"  - {step}\n", tmp_path) == [place]


def test_no_certificate_expires_where_nodes_talk_in_plain_text(tmp_path: Path):
    topology = TOPOLOGY + "node_tls: false\n"
    assert wrong("  - {fault: expire_certificate, router: r1, for: 1s}\n", tmp_path, topology=topology) == [
        "4:13 AM603"
    ]


@pytest.mark.parametrize("address", ["closed", "unknown", "_amqpmesh/x"])
def test_traffic_needs_an_address_that_clients_can_use(address: str, tmp_path: Path):
    assert wrong("  - {fault: kill, router: r1}\n", tmp_path, load=f"{{address: {address}}}") == ["2:32 AM604"]


def test_a_method_without_a_fault_drills_nothing(tmp_path: Path):
    assert wrong("  - {at: 1s, heal: all}\n", tmp_path) == ["4:3 AM102"]


def test_an_address_and_its_fallback_have_no_load_each(tmp_path: Path):
    topology = TOPOLOGY.replace("orders: anycast", "orders: {type: anycast, fallback: waiting}, waiting: queue")
    load = "[{address: orders}, {address: waiting}]"
    assert wrong("  - {fault: kill, router: r1}\n", tmp_path, load=load, topology=topology) == ["2:33 AM604"]


def test_senders_and_receivers_are_spread_over_the_routers_that_are_named(tmp_path: Path):
    load = "{address: prices, from: [r2, r1], senders: 3, to: [r1, r3]}"
    (flow,) = plan("  - {fault: kill, router: r2}\n", tmp_path, load=load).flows
    assert (flow.senders, flow.receivers, flow.is_competing) == (("r2", "r1", "r2"), ("r1", "r3"), False)
    (flow,) = plan("  - {fault: kill, router: r2}\n", tmp_path).flows
    assert (flow.senders, flow.receivers, flow.is_competing) == (("r1",), ("r3",), True)


def test_random_faults_are_those_of_the_seed(tmp_path: Path):
    step = "  - {fault: random, among: [kill, cut, pause], count: 8, every: 5s, for: 1s}\n"
    drawn = [[(fault.label, fault.at_s) for fault in plan(step, tmp_path, seed=seed).faults] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [at for _, at in drawn[0]] == [0, 5, 10, 15, 20, 25, 30, 35]


def test_any_router_is_chosen_by_the_seed(tmp_path: Path):
    chosen = {plan("  - {fault: kill, router: any}\n", tmp_path, seed=seed).faults[0].label for seed in range(20)}
    assert chosen == {"kill r1", "kill r2", "kill r3"}


@pytest.mark.parametrize(
    "step",
    ["{fault: cut, link: [r1, r2]}", "{fault: cut, link: [r1, r2], for: 0s}", "{fault: stop, router: r1}"],
)
def test_a_fault_that_would_be_over_at_once_is_refused(step: str, tmp_path: Path):
    assert wrong(f"  - {step}\n", tmp_path) == ["4:5 AM102"]


def test_a_link_is_not_broken_twice_in_the_same_way_at_the_same_time(tmp_path: Path):
    first = "  - {fault: cut, link: [r1, r2], for: 3s}\n"
    assert wrong(first + "  - {at: 2s, fault: flap, link: [r2, r1], for: 3s}\n", tmp_path) == ["5:5 AM603"]
    assert plan(first + "  - {at: 3s, fault: cut, link: [r1, r2], for: 3s}\n", tmp_path)
    assert plan(first + "  - {at: 2s, fault: blackhole, link: [r1, r2], for: 3s}\n", tmp_path)


@pytest.mark.parametrize("among", ["[bogus]", "[kill, latency]", "[disk_full]", "[command]"])
def test_what_cannot_be_drawn_is_refused(among: str, tmp_path: Path):
    assert wrong(f"  - {{fault: random, among: {among}}}\n", tmp_path) == ["4:28 AM106"]


def test_random_faults_may_be_named_by_their_other_names(tmp_path: Path):
    made = plan("  - {fault: random, among: timeout, count: 1}\n", tmp_path)
    assert made.faults[0].fault.kind == "blackhole"


def test_no_link_is_drawn_where_there_is_none(tmp_path: Path):
    topology = "{mesh: m, routers: {r1: }, addresses: {orders: anycast}}"
    step = "  - {fault: random, among: [cut, kill], count: 4}\n"
    assert wrong(step, tmp_path, topology=topology) == ["4:13 AM603"]


def complaints(text: str, folder: Path, load: str) -> list[tuple[str, str]]:
    with pytest.raises(DrillInvalid) as caught:
        plan(text, folder, load=load)
    return [(error["message"], error["fix"]) for error in caught.value.errors]


KILL = "  - {fault: kill, router: r2}\n"


def test_of_one_address_there_is_one_load(tmp_path: Path):
    ((message, _),) = complaints(KILL, tmp_path, "[{address: orders}, {address: prices}, {address: orders}]")
    assert message == "'orders' already has a load: with two loads, missing messages could not be told apart"


def test_what_an_address_is_the_topology_says(tmp_path: Path):
    assert plan(KILL, tmp_path, load="{address: orders, type: anycast}").flows
    ((message, fix),) = complaints(KILL, tmp_path, "{address: orders, type: queue}")
    assert message == "'orders' is anycast in the topology, not queue"
    assert "--against" in fix


def test_clients_are_at_routers_that_are_named(tmp_path: Path):
    ((message, fix),) = complaints(KILL, tmp_path, "{address: orders, from: any}")
    assert message == "unknown router 'any'"
    assert "'any'" not in fix
