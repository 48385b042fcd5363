"""What the decision record says of each kind of address and each taker, and how long a recording goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from mesh_tests.sim.test_decisions import decisions, record, stored
from wire.delivery import RELEASED


def verdicts(row: dict[str, Any]) -> list[str]:
    return [each["verdict"] for each in row["candidates"]]


def consumers(mesh: SimMesh, address: str, *credits: int, **more: Any) -> list[SimReceiver]:
    made = [mesh.client("r1").receiver(address, credit=credit, **more) for credit in credits]
    for each in made:
        each.accepts = False
    mesh.run(0.5)
    return made


# How long
def test_another_operator_prolongs_a_recording_and_ends_none():
    mesh = line()
    mesh.client("r1").receiver("rpc", credit=100)
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    r1 = mesh.routers["r1"]
    first = r1.record_decisions("rpc", 20, mesh.now)
    assert (first["seconds"], first["after"]) == (20, 0)
    mesh.send(sender)
    mesh.run(5)
    # A shorter one ends nothing, and leaves what was recorded.
    second = r1.record_decisions("rpc", 1, mesh.now)
    assert second["after"] == 1
    assert second["seconds"] == pytest.approx(15, abs=0.1)
    mesh.run(5)
    mesh.send(sender)
    mesh.run(0.1)
    assert [row["delivery"] for row in decisions(mesh, address="rpc")] == [1, 2]
    assert r1.record_decisions("rpc", 30, mesh.now)["seconds"] == pytest.approx(30)
    mesh.run(25)
    mesh.send(sender)
    mesh.run(10)
    mesh.send(sender)
    mesh.run(0.1)
    assert [row["delivery"] for row in decisions(mesh, address="rpc")] == [1, 2, 3]
    assert r1.decisions("rpc", 0, mesh.now)["seconds_left"] == 0


@pytest.mark.parametrize("seconds", [0, -1, 60.5, None])
def test_a_recording_is_asked_for_with_its_seconds(seconds: object):
    mesh = line()
    with pytest.raises(ValueError, match="seconds: expected a number above 0, and at most 60"):
        mesh.routers["r1"].record_decisions("rpc", seconds, mesh.now)


def test_eight_addresses_are_recorded_at_once_and_one_of_them_may_be_prolonged():
    mesh = line()
    r1 = mesh.routers["r1"]
    for number in range(8):
        r1.record_decisions(f"work.{number}", 10, mesh.now)
    with pytest.raises(ValueError, match=r"at most 8 recorded addresses at once: work\.0, work\.1"):
        r1.record_decisions("rpc", 10, mesh.now)
    assert r1.record_decisions("work.3", 20, mesh.now)["seconds"] == 20
    mesh.run(11)
    r1.record_decisions("rpc", 10, mesh.now)


# Numbers of takers
@pytest.mark.parametrize("address", ["rpc", "near", "prices"])
def test_numbers_of_the_chosen_taker_are_those_from_before(address: str):
    mesh = line()
    consumers(mesh, address, 5)
    sender = mesh.client("r1").sender(address)
    mesh.run(0.5)
    record(mesh, address=address)
    for _ in range(3):
        mesh.send(sender)
        mesh.run(0.05)
    found = [row["candidates"][0] for row in decisions(mesh, address=address)]
    assert [(each["outstanding"], each["credit"], each["cost"]) for each in found] == [(0, 5, 0), (1, 4, 0), (2, 3, 0)]


def test_what_is_not_chosen_is_farther_busier_or_had_its_turn():
    mesh = line()
    for address in ("rpc", "near", "spilling"):
        consumers(mesh, address, 3)
        mesh.client("r2").receiver(address, credit=10)
        sender = mesh.client("r1").sender(address)
        mesh.run(0.5)
        record(mesh, address=address)
        for _ in range(3):
            mesh.send(sender)
            mesh.run(0.05)
        chosen = [row for row in decisions(mesh, address=address) if row["chosen"]]
        costs = [(row["candidates"][0]["cost"], verdicts(row)[1]) for row in chosen]
        wanted = {
            # The near consumer holds what it gets: with one of them it is as far as the router behind cost 1.
            "rpc": [(0, "busier"), (1, "other_turn"), (0, "other_turn")],
            "near": [(0, "farther"), (0, "farther"), (0, "farther")],
            "spilling": [(0, "farther"), (0, "farther"), (0, "farther")],
        }
        assert costs == wanted[address], address


def test_a_farther_taker_with_credit_is_not_taken_while_the_closest_is_waited_for():
    mesh = line()
    consumers(mesh, "near", 0)
    far = mesh.client("r2").receiver("near", credit=10)
    sender = mesh.client("r1").sender("near")
    mesh.run(1)
    record(mesh, address="near")
    sender.send(b"x")
    mesh.run(0.5)
    (row,) = decisions(mesh, address="near")
    assert (row["chosen"], row["chosen_count"], sorted(verdicts(row))) == (None, 0, ["farther", "no_credit"])
    assert far.messages == []


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_taker_that_takes_small_messages_only_is_told_apart(address: str):
    mesh = line()
    consumers(mesh, address, 10)
    consumers(mesh, address, 10, max_message_bytes=1000)
    sender = mesh.client("r1").sender(address)
    mesh.run(0.5)
    record(mesh, address=address)
    mesh.send(sender, b"x" * 5000)
    mesh.run(0.2)
    (row,) = decisions(mesh, address=address)
    assert sorted(verdicts(row)) == ["chosen", "too_large"]
    assert (row["size_bytes"], row["candidate_count"], row["chosen_count"]) == (5000, 2, 1)


def test_a_message_that_is_too_large_for_every_taker_is_refused_with_a_decision():
    mesh = line()
    consumers(mesh, "rpc", 10, 10, max_message_bytes=1000)
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    record(mesh, address="rpc")
    mesh.send(sender, b"x" * 5000)
    mesh.run(0.2)
    (row,) = decisions(mesh, address="rpc")
    assert (row["chosen"], verdicts(row), row["delivery"]) == (None, ["too_large", "too_large"], 1)
    assert row["outcome"] is not None


def test_a_delivery_that_came_back_goes_to_somebody_who_had_it_not():
    mesh = line()
    one, other = consumers(mesh, "rpc", 10, 10)
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.5)
    record(mesh, address="rpc")
    mesh.send(sender)
    mesh.run(0.1)
    had, next_one = (one, other) if one.held else (other, one)
    had.settle(RELEASED)
    mesh.run(0.1)
    assert len(next_one.held) == 1
    first, again = decisions(mesh, address="rpc")
    assert (first["delivery"], first["outcome"], verdicts(first)) == (1, "offered_again", ["chosen", "other_turn"])
    assert (again["delivery"], again["outcome"], verdicts(again)) == (0, None, ["chosen", "had_before"])
    assert again["chosen"] != first["chosen"]
    assert (again["candidates"][0]["outstanding"], again["candidates"][0]["credit"]) == (0, 10)
    next_one.settle()
    mesh.run(0.1)
    assert decisions(mesh, address="rpc")[1]["outcome"] == "accepted"


# Many takers
@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize("count", [7, 8, 9, 63, 64, 65, 70])
def test_eight_candidates_are_listed_and_all_are_counted(address: str, count: int):
    mesh = line()
    consumers(mesh, address, *[5] * count)
    sender = mesh.client("r1").sender(address)
    mesh.run(0.5)
    record(mesh, address=address)
    mesh.send(sender)
    mesh.run(0.2)
    (row,) = decisions(mesh, address=address)
    assert (row["candidate_count"], len(row["candidates"])) == (count, min(count, 8))
    assert row["chosen_count"] == (1 if address == "rpc" else count)


@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize("count", [8, 64, 65])
def test_those_that_a_message_waits_for_are_counted(address: str, count: int):
    mesh = line()
    consumers(mesh, address, *[0] * count)
    sender = mesh.client("r1").sender(address)
    mesh.run(0.5)
    record(mesh, address=address)
    sender.send(b"x")
    mesh.run(0.5)
    (row,) = decisions(mesh, address=address)
    assert (row["candidate_count"], row["chosen"], row["chosen_count"]) == (count, None, 0)
    assert verdicts(row) == ["no_credit"] * 8


# Multicast
def test_a_multicast_names_who_got_a_copy_and_who_is_waited_for():
    mesh = line()
    slow, quick = consumers(mesh, "prices", 1, 10)
    far = mesh.client("r3").receiver("prices", credit=10)
    sender = mesh.client("r1").sender("prices")
    mesh.run(1)
    record(mesh, address="prices")
    for _ in range(2):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(b"x")
        mesh.run(0.2)
    first, waits = decisions(mesh, address="prices")
    assert verdicts(first) == ["chosen"] * 3
    assert (first["chosen_count"], first["candidate_count"], first["delivery"]) == (3, 3, 1)
    assert (waits["chosen"], waits["chosen_count"], waits["delivery"]) == (None, 0, 2)
    assert sorted(verdicts(waits)) == ["no_credit", "order", "order"]
    (lacks,) = [each for each in waits["candidates"] if each["verdict"] == "no_credit"]
    ends = mesh.routers["r1"].decisions("prices", 0, mesh.now)["links"]
    roles = [ends[str(each["link"])]["role"] for each in first["candidates"]]
    assert sorted(roles) == ["circuit", "consumer", "consumer"]
    assert ends[str(lacks["link"])]["role"] == "consumer"
    assert [len(each.messages) for each in (slow, quick, far)] == [1, 1, 1]
    slow.link.grant(1)
    mesh.run(0.3)
    *_, goes = decisions(mesh, address="prices")
    assert (verdicts(goes), goes["delivery"]) == (["chosen"] * 3, 2)
    assert goes["waited_us"] > 0
    for each in (slow, quick):
        each.settle()
    mesh.run(0.3)
    assert [row["outcome"] for row in decisions(mesh, address="prices")] == ["accepted", None, "accepted"]
    # The routers on the way have decisions of their own.
    assert [verdicts(row) for row in decisions(mesh, "r3", "prices")] == [["chosen"]] * 2


# A queue on several brokers
def test_decisions_about_a_queue_on_several_brokers_add_up_to_what_each_broker_got(tmp_path: Path):
    mesh = stored(tmp_path)
    sender = mesh.client("r1").sender("sharded")
    mesh.run(1)
    record(mesh, address="sharded")
    sent = 0
    while sent < 20:
        for number in range(sent, min(20, sent + sender.link.credit)):
            sender.send(Message(body=str(number)).encode())
            sent += 1
        mesh.run(0.05)
    mesh.run(1)
    rows = [row for row in decisions(mesh, address="sharded") if row["chosen"]]
    ends = mesh.routers["r1"].decisions("sharded", 0, mesh.now)["links"]
    roles = [ends[str(row["chosen"])]["role"] for row in rows]
    assert [row["delivery"] for row in rows] == list(range(1, 21))
    assert {role: roles.count(role) for role in roles}.keys() == {"broker", "circuit"}
    beyond = [row for row in decisions(mesh, "r2", "sharded") if row["chosen"]]
    assert len(beyond) == roles.count("circuit")
    assert all(row["outcome"] == "accepted" for row in [*rows, *beyond])
    # From the brokers to a consumer, each message has decisions, too.
    receiver = mesh.client("r1").receiver("sharded", credit=100)
    mesh.run_until(lambda: len(receiver.messages) == 20)
    mesh.run(0.5)
    ends = mesh.routers["r1"].decisions("sharded", 20, mesh.now)["links"]
    later = [row for row in decisions(mesh, address="sharded")[len(rows) :] if row["chosen"]]
    to_consumer = [row for row in later if ends.get(str(row["chosen"]), {}).get("role") == "consumer"]
    assert len(to_consumer) == 20


# Circuits that addresses share
def test_circuits_of_a_pattern_are_recorded_where_they_begin_and_the_address_where_they_end():
    mesh = line()
    eu, us = mesh.client("r3").receiver("work.eu", credit=10), mesh.client("r3").receiver("work.us", credit=10)
    sender = mesh.client("r1").sender(None)
    mesh.run(1)
    record(mesh, address="work.eu")
    for address in ("work.eu", "work.us", "work.eu"):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(Message(address=address, body="x").encode())
        mesh.run(0.3)
    assert (len(eu.messages), len(us.messages)) == (2, 1)
    begins = [row for row in decisions(mesh, "r1", "work.eu") if row["chosen"]]
    assert [row["delivery"] for row in begins] == [1, 2, 3]
    ends = [row for row in decisions(mesh, "r3", "work.eu") if row["chosen"]]
    assert [row["outcome"] for row in ends] == ["accepted"] * 2
    named = mesh.routers["r3"].decisions("work.eu", 0, mesh.now)["links"]
    assert {named[str(row["chosen"])]["role"] for row in ends} == {"consumer"}
    assert {named[str(row["from"])]["role"] for row in ends} == {"circuit"}
