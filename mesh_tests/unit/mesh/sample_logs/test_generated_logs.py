"""Link logs that were made up add up to the truth that came with them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import compute, parquet

from addressing.records import Level
from addressing.topology.loader import load_topology, parse_topology
from linklogs.generating.run import TRUTH_NAME, generate
from mesh.sample_logs.plan import make_plan
from mesh.sample_logs.profile_file import parse_profile
from mesh.sample_logs.times import Times

BEGINS_US = 1_767_571_200_000_000
PROFILE = """
duration: 10m
outages: [{link: [r1, r2], at: 2m, for: 1m}, {router: r3, at: 5m, for: 1m}]
churn: {life: 4m}
starved: {links: 50%, every: 60s}
"""
Make = Callable[..., "Made"]


class Made:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.truth: dict[str, Any] = json.loads((directory / TRUTH_NAME).read_text())
        self.files = sorted(directory.rglob("*.parquet"))

    def rows(self, *kinds: str, node: str | None = None) -> list[dict[str, Any]]:
        """Each with its node."""
        found = []
        for file in self.files:
            name = file.parent.parent.name.removeprefix("node=")
            table = parquet.ParquetFile(file).read()
            kept = table.filter(compute.is_in(table["kind"], pyarrow.array(kinds)))
            found += [{**row, "node": name} for row in kept.to_pylist()] if node in (None, name) else []
        return found

    @property
    def digest(self) -> dict[str, str]:
        files = (*self.files, self.directory / TRUTH_NAME)
        return {str(each.relative_to(self.directory)): sha256(each.read_bytes()).hexdigest() for each in files}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(
        profile: str = PROFILE,
        *,
        seed: int = 1,
        drawn: int | None = None,
        level: str = "full",
        records: int = 30_000,
        name: str = "logs",
        topology: str | None = None,
    ) -> Made:
        """``seed`` of the plan, and of what is drawn for it, unless ``drawn`` is another."""
        loaded = load_topology("topologies/demo.yml") if topology is None else parse_topology(topology)
        parsed = parse_profile(profile, loaded)
        times = Times(BEGINS_US, BEGINS_US + int(parsed.duration * 1e6))
        plan = make_plan(loaded, parsed, times, seed, records)
        generate(plan, tmp_path / name, seed if drawn is None else drawn, Level(level), lambda progress: None)
        return Made(tmp_path / name)

    return made


def totals(rows: list[dict[str, Any]], side: str, parts: set[str]) -> Counter[tuple[str, int, int]]:
    """Messages by node, run and link."""
    found: Counter[tuple[str, int, int]] = Counter()
    for row in rows:
        if row["part"] in parts and row[side]:
            found[row["node"], row["run"], row[side]] += row["count"]
    return found


def told(truth: dict[str, Any], side: str) -> Counter[tuple[str, int, int]]:
    links = ((each["node"], each["run"], each["link"], each[side]["messages"]) for each in truth["links"])
    return Counter({(node, run, link): messages for node, run, link, messages in links if messages})


@pytest.mark.parametrize("level", ["full", "summary"])
def test_the_records_of_each_link_add_up_to_the_truth(make: Make, level: str) -> None:
    made = make(level=level)
    rows = made.rows("delivery", "traffic")
    assert totals(rows, "incoming", {"whole", "many"}) == told(made.truth, "came")
    assert totals(rows, "outgoing", {"whole", "copy"}) == told(made.truth, "went")
    assert sum(row["size_bytes"] for row in rows if row["part"] in ("whole", "many")) == sum(
        each["came"]["size_bytes"] for each in made.truth["links"]
    )


def test_one_seed_makes_the_same_bytes_and_another_others(make: Make) -> None:
    seeds = ((7, 7), (7, 7), (8, 8), (7, 8))
    first, same, *others = (make(seed=seed, drawn=drawn, name=str(i)) for i, (seed, drawn) in enumerate(seeds))
    assert first.digest == same.digest
    for other in others:
        assert set(first.digest.values()).isdisjoint(other.digest.values())


def test_an_address_that_nodes_do_not_record_is_not_made_up(make: Make) -> None:
    topology = (
        "mesh: m\nrouters: {r1: {listeners: [{authentication: none}]}}\n"
        "addresses: {rpc: anycast, gossip: {type: anycast, link_log: off}}"
    )
    made = make("duration: 1m", records=1000, topology=topology)
    assert set(made.truth["addresses"]) == {"rpc"}
    assert {row["address"] for row in made.rows("link")} == {"rpc"}


def test_both_levels_of_a_seed_have_the_same_truth(make: Make) -> None:
    full, summary = (make(level=level, name=level).truth for level in ("full", "summary"))
    assert full.pop("level") != summary.pop("level")
    assert full.pop("records") > summary.pop("records")
    assert full == summary


STEADY = """
duration: 5m
outages: []
churn: {life: 30d, lost: 0%}
addresses: {rpc.#: {names: 2, producers_at: r2, consumers_at: r3, producers: 2, consumers: 2}}
"""


def test_each_router_of_a_path_records_the_same_messages(make: Make) -> None:
    made = make(STEADY, records=6000)
    seen = {
        node: Counter((row["size_bytes"], row["outcome"]) for row in made.rows("delivery", node=node))
        for node in ("r1", "r2", "r3")
    }
    assert seen["r1"].total() > 1500
    assert seen["r1"] == seen["r2"] == seen["r3"]


def test_the_nearer_the_consumer_the_sooner_a_message_is_settled(make: Make) -> None:
    made = make(STEADY, records=6000)
    took_us = {node: sum(row["took_us"] for row in made.rows("delivery", node=node)) for node in ("r1", "r2", "r3")}
    assert took_us["r3"] < took_us["r1"] < took_us["r2"]


def test_a_message_leaves_by_the_link_whose_name_it_comes_in_by_at_the_next_router(make: Make) -> None:
    made = make(STEADY, records=6000)
    links = {(row["node"], row["link"]): row for row in made.rows("link")}
    sent = Counter(links["r2", row["outgoing"]]["name"] for row in made.rows("delivery", node="r2"))
    came = Counter(links["r1", row["incoming"]]["name"] for row in made.rows("delivery", node="r1"))
    assert sent == came
    assert {links["r2", row["outgoing"]]["path"] for row in made.rows("delivery", node="r2")} == {"r2>r1>r3"}


def test_latencies_of_an_address_are_exact(make: Make) -> None:
    made = make(STEADY, records=6000)
    links = {row["link"]: row for row in made.rows("link", node="r2")}
    for address, truth in made.truth["addresses"].items():
        rows = made.rows("delivery", node="r2")
        took_us = sorted(row["took_us"] for row in rows if links[row["incoming"]]["address"] == address)
        ranks = {f"p{share}_us": took_us[-(-len(took_us) * share // 100) - 1] for share in (50, 95, 99)}
        assert truth["latency_us"]["sent"] == {**ranks, "max_us": took_us[-1]}


def test_a_broken_link_shows_in_neighbors_connections_links_and_paths(make: Make) -> None:
    made = make(STEADY.replace("[]", "[{link: [r1, r2], at: 1m, for: 1m, cause: digger}]"), records=6000)
    down_us, up_us = BEGINS_US + 60_000_000, BEGINS_US + 120_000_000
    lost = [(row["node"], row["neighbor"]) for row in made.rows("neighbor") if row["event"] == "closed"]
    assert sorted(lost) == [("r1", "r2"), ("r2", "r1")]
    closed = [row for row in made.rows("connection", "link") if row["event"] == "closed" and row["at_us"] == down_us]
    assert {row["kind"] for row in closed} == {"connection", "link"}
    paths = [row for row in made.rows("path", node="r2") if row["egress"] == "r3" and row["event"] == "changed"]
    assert [row["path"] for row in paths] == ["r2>r3", "r2>r1>r3"]
    assert [row["at_us"] for row in paths] == [down_us + 200_000, up_us + 200_000]
    transit = [row["at_us"] for row in made.rows("delivery", node="r1")]
    assert transit
    assert not [at_us for at_us in transit if down_us + 3000 < at_us < up_us]
    assert made.truth["outages"][0]["cause"] == "digger"


def test_what_a_broken_link_catches_on_its_way_is_modified(make: Make) -> None:
    slow = STEADY.replace("producers: 2", "producers: 2, modified: 0%, latency: 200ms")
    made = make(slow.replace("[]", "[{link: [r1, r2], at: 1m, for: 1m}]"), records=6000)
    caught = [row for row in made.rows("delivery", node="r2") if row["outcome"] == "modified"]
    assert caught
    assert all(0 <= row["at_us"] - BEGINS_US - 60_000_000 < 3000 for row in caught)


def test_a_router_that_is_killed_has_a_second_run_with_links_of_its_own(make: Make) -> None:
    slow = STEADY.replace("producers: 2", "producers: 2, latency: 200ms")
    made = make(slow.replace("[]", "[{router: r3, at: 1m, for: 1m}]"), records=6000)
    down_us, up_us = BEGINS_US + 60_000_000, BEGINS_US + 120_000_000
    first, second = made.truth["nodes"]["r3"]["runs"]
    assert (first < BEGINS_US, second) == (True, up_us)
    at_us = {run: [row["at_us"] for row in made.rows("delivery", node="r3") if row["run"] == run]
             for run in (first, second)}  # fmt: skip
    assert max(at_us[first]) < down_us
    assert min(at_us[second]) > up_us
    assert all(row["run"] == second for row in made.rows("node", node="r3") if row["event"] == "opened")


def test_a_clock_that_is_ahead_shows_in_all_times_of_its_node(make: Make) -> None:
    right, ahead = (
        make(STEADY + f"clock_skew: {{r1: {skew}}}\n", records=6000, name=skew) for skew in ("0ms", "350ms")
    )
    for kind in ("delivery", "link"):
        pairs = zip(right.rows(kind, node="r1"), ahead.rows(kind, node="r1"), strict=True)
        assert {late["at_us"] - at["at_us"] for at, late in pairs} == {350_000}
    assert ahead.rows("node", node="r1")[0]["clock_us"] - right.rows("node", node="r1")[0]["clock_us"] == 350_000
    assert ahead.truth["nodes"]["r1"]["clock_skew_us"] == 350_000


def test_a_clock_that_is_set_shows_from_then_on_and_is_told(make: Make) -> None:
    files = STEADY + "file_every: 2m\n"
    right = make(files, records=6000, name="right")
    stepped = make(files + "clock_steps: {r1: [{at: 1m, by: 2s}, {at: 3m, by: -1500ms}]}\n", records=6000)
    set_us, back_us = BEGINS_US + 60_000_000, BEGINS_US + 180_000_000
    for kind in ("delivery", "link"):
        pairs = list(zip(right.rows(kind, node="r1"), stepped.rows(kind, node="r1"), strict=True))
        assert pairs
        for true, told in pairs:
            ahead_us = 0 if true["at_us"] < set_us else 2_000_000 if true["at_us"] < back_us else 500_000
            assert told["at_us"] - true["at_us"] == ahead_us
    told = [row for row in stepped.rows("node", node="r1") if row["event"] in ("live", "changed")]
    assert [(row["event"], row["clock_us"] - told[0]["clock_us"]) for row in told] == [
        ("live", 0),
        ("changed", 2_000_000),
        ("live", 2_000_000),
        ("changed", 500_000),
        ("live", 500_000),
    ]
    assert [row["at_us"] for row in told if row["event"] == "changed"] == [set_us + 2_000_000, back_us + 500_000]
    assert [each["by_us"] for each in stepped.truth["nodes"]["r1"]["clock_steps"]] == [2_000_000, -1_500_000]
    assert stepped.truth["links"] == right.truth["links"]


def test_a_run_after_a_step_starts_with_the_clock_as_it_was_set(make: Make) -> None:
    steps = "clock_steps: {r3: [{at: 30s, by: 2s}]}\n"
    made = make(STEADY.replace("[]", "[{router: r3, at: 1m, for: 1m}]") + steps, records=6000)
    _, second = made.truth["nodes"]["r3"]["runs"]
    assert second == BEGINS_US + 122_000_000
    assert min(row["at_us"] for row in made.rows("delivery", node="r3") if row["run"] == second) > second


def test_lost_records_are_counted_and_missing(make: Make) -> None:
    whole = make(STEADY, records=6000, name="whole")
    made = make(STEADY + "lost_records: {r1: [{at: 1m, for: 20s}]}\n", records=6000)
    lost = made.truth["nodes"]["r1"]["records_lost"]
    assert 0 < lost == len(whole.rows("delivery", node="r1")) - len(made.rows("delivery", node="r1"))
    assert [row["count"] for row in made.rows("node", node="r1") if row["event"] == "lost"] == [lost]
    assert made.truth["links"] == whole.truth["links"]


def test_queues_add_up(make: Make) -> None:
    made = make("{duration: 5m, outages: [], addresses: {orders: {expired: 5%, wait: 3s}}}", records=6000)
    moved = Counter((row["event"], row["queue"]) for row in made.rows("message", node="b1"))
    (queue,) = made.truth["queues"]
    found = {event: moved[event, queue["queue"]] for event in ("enqueued", "dequeued", "expired")}
    assert found == {event: queue[event]["messages"] for event in found}
    assert found["expired"] > 10
    assert found["enqueued"] == found["dequeued"] + found["expired"] + queue["left"]
    depths = [row["depth_count"] for row in made.rows("queue", node="b1") if row["event"] == "changed"]
    assert max(depths) == queue["most"] > 0


def test_a_multicast_comes_once_and_goes_to_each_consumer(make: Make) -> None:
    made = make(STEADY.replace("rpc.#", "prices.#").replace("consumers: 2", "consumers: 5"), records=9000)
    for truth in made.truth["addresses"].values():
        assert truth["received"]["messages"] == 5 * truth["sent"]["messages"] > 0


def test_time_without_credit_adds_up_to_the_truth(make: Make) -> None:
    made = make()
    starved_us: Counter[tuple[str, int, int]] = Counter()
    for row in made.rows("credit"):
        starved_us[row["node"], row["run"], row["link"]] += row["starved_us"] or 0
    truth = {(each["node"], each["run"], each["link"]): each["starved_us"] for each in made.truth["links"]}
    assert +starved_us == {key: value for key, value in truth.items() if value}
    assert starved_us.total() > 0


def test_a_wait_for_credit_is_told_each_second_and_what_a_link_has_in_its_first(make: Make) -> None:
    made = make()
    by_link: dict[tuple[str, int, int], list[dict[str, Any]]] = defaultdict(list)
    for row in made.rows("credit"):
        by_link[row["node"], row["run"], row["link"]].append(row)
    waits = [row for rows in by_link.values() for row in rows if row["starved_us"]]
    assert max(row["starved_us"] for row in waits) <= 1_000_000
    assert {row["credit"] for row in waits} == {0, 250}
    links = {(row["node"], row["run"], row["link"]): row for row in made.rows("link") if row["event"] != "closed"}
    ends_us = {(row["node"], row["run"], row["link"]): row["at_us"] for row in made.rows("link")}
    last_us = max(ends_us.values())
    for key, row in links.items():
        if key not in by_link:
            ended_us = ends_us[key] if ends_us[key] > row["at_us"] else last_us
            assert ended_us - row["at_us"] <= 1_000_000, row
    for key, rows in by_link.items():
        assert all((row["unsettled_count"] is None) == (links[key]["direction"] == "incoming") for row in rows)


def test_each_file_begins_with_all_links_of_its_deliveries(make: Make) -> None:
    made = make(PROFILE + "file_every: 1m\n")
    assert len(made.files) > 20
    for file in made.files:
        rows = parquet.ParquetFile(file).read().to_pylist()
        assert (rows[0]["kind"], rows[0]["event"]) == ("node", "live")
        known = {row["link"] for row in rows if row["kind"] == "link"} | {0}
        used = {row[side] for row in rows if row["kind"] == "delivery" for side in ("incoming", "outgoing")}
        assert used <= known


def test_the_depth_of_a_queue_is_what_went_in_and_has_not_left(make: Make) -> None:
    made = make("{duration: 5m, outages: [], addresses: {orders: {wait: 3s}}}", records=6000)
    moves = made.rows("message", node="b1")
    depths = [row for row in made.rows("queue", node="b1") if row["event"] == "changed"]
    assert len(depths) > 10
    for row in depths:
        before = [each for each in moves if each["at_us"] <= row["at_us"]]
        signed = [(1 if each["event"] == "enqueued" else -1, each) for each in before]
        assert row["depth_count"] == sum(sign for sign, _ in signed)
        assert row["depth_bytes"] == sum(sign * each["size_bytes"] for sign, each in signed)
        came = Counter(each["at_us"] - each["took_us"] for each in before if each["event"] == "enqueued")
        came.subtract(each["at_us"] - each["took_us"] for each in before if each["event"] != "enqueued")
        assert row["oldest_us"] == max((row["at_us"] - at_us for at_us in +came), default=0)


@pytest.mark.parametrize("level", ["full", "summary"])
def test_copies_that_stalled_consumers_miss_are_told_and_not_delivered(make: Make, level: str) -> None:
    steady = STEADY.replace("rpc.#", "prices.#").replace("consumers: 2", "consumers: 5, settled: 50%")
    whole = make(steady, records=9000, name="whole", level=level)
    made = make(steady + "stalled: {links: 60%, every: 20s, for: 10s}\n", records=9000, level=level)
    missed: Counter[tuple[str, int, int]] = Counter()
    for row in made.rows("drop"):
        assert (row["event"], row["cause"], row["at_us"] % 1_000_000) == (None, "stalled", 0)
        missed[row["node"], row["run"], row["link"]] += row["count"]
    links = {(each["node"], each["run"], each["link"]): each for each in made.truth["links"]}
    assert missed == Counter({key: each["missed"] for key, each in links.items() if each["missed"]})
    assert len(missed) > 3
    before = {(each["node"], each["run"], each["link"]): each for each in whole.truth["links"]}
    for key, each in links.items():
        assert each["went"]["messages"] + each["missed"] == before[key]["went"]["messages"]
        assert each["missed"] <= before[key]["went"]["outcomes"].get("none", 0)
    rows = made.rows("delivery", "traffic")
    assert totals(rows, "outgoing", {"whole", "copy"}) == told(made.truth, "went")


def test_a_consumer_that_has_stalled_gets_nothing_settled_meanwhile(make: Make) -> None:
    steady = STEADY.replace("rpc.#", "prices.#").replace("producers: 2", "producers: 2, settled: 100%, latency: 0.1ms")
    made = make(steady + "stalled: {links: 100%, every: 20s, for: 10s}\n", records=9000)
    seconds = {(row["link"], row["at_us"] // 1_000_000 - 1) for row in made.rows("drop", node="r3")}
    quiet = {(link, at) for link, at in seconds if {(link, at - 1), (link, at + 1)} <= seconds}
    got = {(row["outgoing"], row["at_us"] // 1_000_000) for row in made.rows("delivery", node="r3") if row["outgoing"]}
    assert len(quiet) > 10
    # What began just before may be over a little later.
    assert len(quiet & got) < len(quiet) / 10


GRAVES = """
mesh: graves
routers: {r1: {}}
brokers: {b1: {data: ./data, routers: [r1]}}
addresses:
  orders: {type: queue, dead_letter: dead}
  dead: queue
"""


def test_dead_letters_leave_one_queue_and_come_into_the_other(make: Make) -> None:
    profile = (
        "{duration: 5m, outages: [], addresses: {orders: {dead_lettered: 20%, expired: 5%, wait: 2s}, "
        "dead: {producers: 0, consumers: 1, wait: 1s, weight: 0}}}"
    )
    made = make(profile, records=6000, topology=GRAVES)
    queues = {each["address"]: each for each in made.truth["queues"]}
    moved = Counter((row["event"], row["queue"]) for row in made.rows("message", node="b1"))
    for queue in queues.values():
        for event in ("enqueued", "dequeued", "expired", "dead_lettered"):
            assert moved[event, queue["queue"]] == queue[event]["messages"]
        gone = sum(queue[event]["messages"] for event in ("dequeued", "expired", "dead_lettered"))
        assert queue["enqueued"]["messages"] == gone + queue["left"]
    dead = queues["orders"]["dead_lettered"]
    assert 0.15 < dead["messages"] / queues["orders"]["enqueued"]["messages"] < 0.25
    assert queues["dead"]["enqueued"] == dead
    assert queues["dead"]["dequeued"]["messages"] > 0


def test_a_broker_that_is_killed_has_a_second_run_and_its_messages_wait_for_it(make: Make) -> None:
    made = make(
        "{duration: 5m, outages: [{broker: b1, at: 1m, for: 30s}], churn: {life: 30d, lost: 0%}, "
        "addresses: {orders: {wait: 10s, expired: 10%, latency: 50ms, modified: 0%}}}",
        records=9000,
    )
    down_us, up_us = BEGINS_US + 60_000_000, BEGINS_US + 90_000_000
    first, second = made.truth["nodes"]["b1"]["runs"]
    assert (first < BEGINS_US, second) == (True, up_us)
    moves = made.rows("message", node="b1")
    at_us = {run: [row["at_us"] for row in moves if row["run"] == run] for run in (first, second)}
    assert max(at_us[first]) < down_us
    assert up_us <= min(at_us[second]) < up_us + 1_000_000
    (queue,) = made.truth["queues"]
    moved = Counter(row["event"] for row in moves)
    assert moved == {event: queue[event]["messages"] for event in ("enqueued", "dequeued", "expired")}
    assert queue["enqueued"]["messages"] == queue["dequeued"]["messages"] + queue["expired"]["messages"] + queue["left"]
    over = [row for row in moves if row["run"] == second and row["at_us"] - row["took_us"] < down_us]
    assert {row["event"] for row in over} == {"dequeued", "expired"}
    carried = [row for node in ("r1", "r3") for row in made.rows("delivery", node=node)]
    assert not [row for row in carried if down_us + 3000 < row["at_us"] < up_us]
    caught = [row for row in carried if down_us <= row["at_us"] <= down_us + 3000]
    assert {row["outcome"] for row in caught} <= {"modified", "none"}
    assert caught
    depths = [row for row in made.rows("queue", node="b1") if row["event"] == "changed"]
    assert not [row for row in depths if down_us <= row["at_us"] < up_us]
    assert {row["run"] for row in depths} == {first, second}
    closed = [row for row in made.rows("connection", node="r1") if row["event"] == "closed" and row["role"] == "broker"]
    assert [row["at_us"] for row in closed] == [down_us]


@pytest.mark.parametrize(("node", "kind"), [("r3", "router"), ("b1", "broker")])
def test_a_node_that_is_stopped_says_so_as_its_last_and_one_that_is_killed_does_not(
    make: Make, node: str, kind: str
) -> None:
    down_us = BEGINS_US + 60_000_000
    for is_stopped in (True, False):
        outage = f"{{{kind}: {node}, at: 1m, for: 1m, stopped: {str(is_stopped).lower()}}}"
        profile = f"{{duration: 5m, outages: [{outage}], addresses: {{orders: {{}}, rpc.#: {{}}}}}}"
        made = make(profile, records=6000, name=f"{is_stopped}")
        first, _ = made.truth["nodes"][node]["runs"]
        told = [row for row in made.rows("node", "connection", "link", "neighbor", node=node) if row["run"] == first]
        ends = [(row["at_us"], row["cause"]) for row in told if row["kind"] == "node" and row["event"] == "closed"]
        closed = {row["kind"] for row in told if row["event"] == "closed" and row["at_us"] >= down_us - 10}
        assert max(row["at_us"] for row in told) < down_us
        if is_stopped:
            assert ends == [(down_us - 1, "stopped")]
            assert closed >= {"node", "connection", "link"}
        else:
            assert ends == []
            assert closed == set()
        assert made.truth["outages"][0]["cause"] == ("stopped" if is_stopped else "crash")
