"""What does the link log hear of credit: who waits for it, who wants it back, and who keeps what it got?"""

from __future__ import annotations

from typing import Any

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from mesh_tests.sim.recorded import router, told

PATIENT_S = 1.5


def waits(ring: Ring) -> list[dict[str, Any]]:
    return [row for row in told(ring, "credit") if "starved_us" in row]


def drains(ring: Ring) -> list[dict[str, Any]]:
    return [row for row in told(ring, "credit") if row["event"] == "drain"]


def test_how_long_a_producer_had_no_credit_is_told_with_who_is_to_blame(ring: Ring):
    mesh = router(ring)
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    receiver = mesh.client("r1").receiver("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.tell_second("r1")
    (lonely,) = waits(ring)
    assert 450_000 <= lonely["starved_us"] <= 600_000
    assert lonely["credit"] > 0
    receiver.tops_up = False
    receiver.accepts = False
    while sender.link.credit > 0:
        mesh.send(sender, b"x")
        mesh.run(0.005)
    mesh.tell_second("r1")
    told(ring, "credit")
    mesh.run(1.0)
    receiver.link.set_credit(1000)
    mesh.flush()
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.tell_second("r1")
    (starved,) = waits(ring)
    assert starved["cause"] == "takers"
    assert 900_000 <= starved["starved_us"] <= 1_200_000


def test_whoever_reads_of_a_lack_of_credit_reads_of_its_end(ring: Ring):
    mesh = router(ring)
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    mesh.tell_second("r1")
    assert [(row["credit"], row["cause"]) for row in waits(ring)] == [(0, "no_taker")]
    mesh.client("r1").receiver("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.tell_second("r1")
    rows = [row for row in told(ring, "credit") if "unsettled_count" not in row]
    assert [row["credit"] for row in rows] == [sender.link.credit]


def test_a_producer_without_a_consumer_starves_for_want_of_a_taker(ring: Ring):
    mesh = router(ring)
    mesh.client("r1").receiver("rpc").link.close()
    sender = mesh.client("r1").sender("rpc")
    mesh.flush()
    mesh.run(3.0)
    mesh.tell_second("r1")
    assert sender.link.credit == 0
    (starved,) = waits(ring)
    assert (starved["credit"], starved["cause"]) == (0, "no_taker")
    assert 2_500_000 <= starved["starved_us"] <= 3_100_000


def test_a_producer_starves_for_the_consumer_of_a_filter_that_grants_nothing(ring: Ring):
    mesh = router(ring, addresses={"prices.#": "multicast"})
    receiver = mesh.client("r1").receiver("prices.#", credit=0)
    sender = mesh.client("r1").sender("prices.tea")
    mesh.run_until(lambda: receiver.link.is_open)
    # The credit that every producer with a consumer has.
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.send(sender, b"x")
    mesh.run(2.0)
    mesh.tell_second("r1")
    told(ring, "credit")
    mesh.run(1.0)
    mesh.tell_second("r1")
    assert [row["cause"] for row in waits(ring)] == ["takers"]


def seconds(mesh: SimMesh, count: int) -> None:
    for _ in range(count):
        mesh.run(1.0)
        mesh.tell_second("r1")


def held(ring: Ring) -> list[tuple[int, int | None]]:
    """Of outgoing links."""
    return [(row["credit"], row["unsettled_count"]) for row in told(ring, "credit") if "unsettled_count" in row]


def given(ring: Ring) -> list[int]:
    """Of incoming links: what their senders have."""
    return [row["credit"] for row in told(ring, "credit") if "unsettled_count" not in row]


def test_what_each_new_link_has_of_credit_is_told_once_though_it_never_lacked_any(ring: Ring):
    mesh = router(ring)
    receiver = mesh.client("r1").receiver("rpc")
    mesh.run(1.0)
    mesh.tell_second("r1")
    assert held(ring) == [(receiver.link.credit, 0)]
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    ring.take()
    mesh.tell_second("r1")
    assert given(ring) == [sender.link.credit]
    seconds(mesh, 20)
    assert told(ring, "credit") == []


def test_of_very_many_links_each_is_looked_at_in_turn(ring: Ring, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("router.link_log.AT_ONCE", 2)
    mesh = router(ring)
    for _ in range(5):
        mesh.client("r1").receiver("rpc")
    mesh.run(0.1)
    told_of = []
    for _ in range(4):
        mesh.tell_second("r1")
        told_of.append(len(held(ring)))
    assert told_of == [2, 2, 1, 0]


def test_of_a_link_that_was_gone_within_a_second_it_is_not_told_what_it_had(ring: Ring):
    mesh = router(ring)
    receiver = mesh.client("r1").receiver("rpc")
    mesh.run(0.1)
    receiver.link.close()
    mesh.flush()
    mesh.run(0.1)
    mesh.tell_second("r1")
    rows = ring.take()[1]
    assert [row["event"] for row in rows if row["kind"] == "link"] == ["opened", "closed"]
    assert [row for row in rows if row["kind"] == "credit"] == []


def test_what_a_sender_has_is_told_when_it_stands_still_with_less(ring: Ring):
    mesh = router(ring)
    mesh.client("r1").receiver("rpc", credit=10).tops_up = False
    sender = mesh.client("r1").sender("rpc")
    seconds(mesh, 2)
    ring.take()
    for _ in range(7):
        mesh.send(sender, b"x")
    seconds(mesh, 30)
    assert given(ring) == [sender.link.credit] == [3]


def test_deliveries_that_a_consumer_keeps_without_an_outcome_are_told_until_it_goes_on(ring: Ring):
    mesh = router(ring)
    receiver = mesh.client("r1").receiver("rpc", credit=5)
    receiver.tops_up = receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.1)
    mesh.tell_second("r1")
    ring.take()
    for _ in range(3):
        mesh.send(sender, b"x")
    seconds(mesh, 9)
    assert held(ring) == []
    seconds(mesh, 3)
    assert held(ring) == [(2, 3)]
    seconds(mesh, 30)
    assert held(ring) == []
    receiver.settle()
    mesh.flush()
    seconds(mesh, 1)
    assert held(ring) == [(2, 0)]


def test_a_consumer_that_is_at_work_is_not_told_of_again(ring: Ring):
    mesh = router(ring)
    mesh.client("r1").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    seconds(mesh, 1)
    ring.take()
    for _ in range(30):
        mesh.send(sender, b"x")
        seconds(mesh, 1)
    assert [row for row in told(ring, "credit") if "unsettled_count" in row] == []


def test_copies_that_a_consumer_without_credit_misses_are_told(ring: Ring):
    mesh = router(ring)
    stalled = mesh.client("r1").receiver("prices")
    stalled.tops_up = False
    mesh.client("r1").receiver("prices")
    sender = mesh.client("r1").sender("prices")
    mesh.run(0.1)
    links = {row["link"]: row for row in told(ring, "link")}
    stalled.link.set_credit(0)
    mesh.flush()
    mesh.run(30.0)
    for _ in range(5):
        mesh.send(sender, b"x", settled=True)
    mesh.run(1.0)
    mesh.tell_second("r1")
    (drop,) = told(ring, "drop")
    assert links[drop["link"]]["role"] == "consumer"
    assert drop["count"] == 5


def test_how_often_a_consumer_asked_for_a_drain_is_told(ring: Ring):
    mesh = router(ring)
    receiver, other = mesh.client("r1").receiver("rpc"), mesh.client("r1").receiver("rpc")
    receiver.tops_up = False
    mesh.run(0.1)
    links = {row["link"]: row for row in told(ring, "link")}
    for _ in range(3):
        receiver.link.request_drain(10)
        mesh.run_until(lambda: not receiver.link.is_drain_pending)
        receiver.link.end_drain()
        mesh.flush()
    mesh.run(0.1)
    mesh.tell_second("r1")
    (drain,) = drains(ring)
    assert (drain["event"], drain["count"], drain["credit"]) == ("drain", 3, 0)
    assert links[drain["link"]]["role"] == "consumer"
    other.link.request_drain(10)
    mesh.run(1.0)
    mesh.tell_second("r1")
    (drain,) = drains(ring)
    assert drain["count"] == 1
    mesh.run(1.0)
    mesh.tell_second("r1")
    assert drains(ring) == []


def test_a_drain_of_a_consumer_that_leaves_in_the_same_second_is_told_before_it_goes(ring: Ring):
    mesh = router(ring)
    receiver = mesh.client("r1").receiver("rpc")
    receiver.tops_up = False
    mesh.run(0.1)
    ring.take()
    receiver.link.request_drain(10)
    mesh.run_until(lambda: not receiver.link.is_drain_pending)
    receiver.link.close()
    mesh.flush()
    mesh.run(0.1)
    told_rows = [(row["kind"], row["event"], row.get("count")) for row in ring.take()[1]]
    assert told_rows == [("credit", "drain", 1), ("link", "closed", None)]


def test_of_a_link_that_ends_its_time_without_credit_is_told_before(ring: Ring):
    mesh = router(ring)
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    sender.link.close()
    mesh.flush()
    mesh.run(0.1)
    starved, closed = [row for row in ring.take()[1] if row["kind"] != "connection"][1:]
    assert (starved["kind"], closed["kind"], closed["event"]) == ("credit", "link", "closed")
    assert starved["link"] == closed["link"]
    assert 450_000 <= starved["starved_us"] <= 550_000


def test_a_link_that_starves_is_told_of_each_second_with_the_cause_of_that_second(ring: Ring):
    mesh = router(ring)
    sender = mesh.client("r1").sender("rpc")
    rows = []
    for _ in range(3):
        mesh.run(1.0)
        mesh.tell_second("r1")
        rows += told(ring, "credit")
    assert [row["cause"] for row in rows] == ["no_taker"] * 3
    assert 2_900_000 <= sum(row["starved_us"] for row in rows) <= 3_000_000
    mesh.client("r1").receiver("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.tell_second("r1")
    told(ring, "credit")
    mesh.run(1.0)
    mesh.tell_second("r1")
    assert told(ring, "credit") == []


def test_who_is_not_recorded_is_not_told_to_have_no_credit(ring: Ring):
    mesh = router(ring, addresses={"quiet": {"type": "anycast", "link_log": "off"}})
    sender = mesh.client("r1").sender("quiet")
    mesh.run(2.0)
    mesh.tell_second("r1")
    sender.link.close()
    mesh.flush()
    mesh.run(0.1)
    assert told(ring, "credit") == []
