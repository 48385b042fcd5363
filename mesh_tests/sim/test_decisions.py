"""Does the decision record say where each delivery went, and why it did not go elsewhere?"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line

ADDRESS = "near"
MOST = 4096


def decisions(mesh: SimMesh, router: str = "r1", address: str = ADDRESS) -> list[dict[str, Any]]:
    """All decisions that the router has of the address."""
    found: list[dict[str, Any]] = []
    after = 0
    while True:
        answer = mesh.routers[router].decisions(address, after, mesh.now)
        found += answer["decisions"]
        if answer["next"] == after or not answer["decisions"]:
            return found
        after = answer["next"]


def record(mesh: SimMesh, seconds: float = 60, address: str = ADDRESS) -> None:
    for router in mesh.routers.values():
        router.record_decisions(address, seconds, mesh.now)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("address", ["near", "spilling"])
def test_the_chosen_candidate_is_where_the_message_went(seed: int, address: str):
    rng = random.Random(seed)
    mesh = line()
    receivers: list[SimReceiver] = [mesh.client("r1").receiver(address, credit=0) for _ in range(rng.randint(1, 10))]
    far = mesh.client("r3").receiver(address, credit=5) if rng.random() < 0.5 else None
    for receiver in receivers:
        receiver.accepts = rng.random() < 0.7
    sender = mesh.client("r1").sender(address)
    mesh.run(0.5)
    record(mesh, address=address)
    sent: list[bytes] = []
    for number in range(60):
        rng.choice(receivers).link.grant(rng.randint(1, 3))
        mesh.run(0.01)
        if sender.link.credit > 0:
            sent.append(b"%d" % number)
            sender.send(sent[-1])
        mesh.run(0.01)
        held = rng.choice(receivers)
        if held.held:
            held.settle()
    mesh.run(0.2)
    rows = decisions(mesh, address=address)
    chosen = [row for row in rows if row["chosen"]]
    assert [row["delivery"] for row in chosen] == list(range(1, len(sent) + 1))
    takers = [*receivers, *([far] if far is not None else [])]
    place_of = {message: place for place, taker in enumerate(takers) for message in taker.messages}
    links_of = {(row["chosen"], place_of[sent[row["delivery"] - 1]]) for row in chosen if row["outcome"]}
    assert links_of
    assert len({link for link, _ in links_of}) == len({place for _, place in links_of}) == len(links_of)
    ends = mesh.routers["r1"].decisions(address, 0, mesh.now)["links"]
    assert all(
        ends[str(link)]["role"] == ("circuit" if takers[place] is far else "consumer") for link, place in links_of
    )
    for row in chosen:
        (first, *others) = row["candidates"]
        assert first["verdict"] == "chosen"
        assert first["credit"] > 0
        assert all(other["verdict"] != "chosen" for other in others)
        assert all(other["credit"] <= 0 for other in others if other["verdict"] == "no_credit")


def test_a_delivery_that_waits_is_noted_once_and_says_what_takers_lack():
    mesh = line()
    receiver = mesh.client("r1").receiver(ADDRESS, credit=0)
    sender = mesh.client("r1").sender(ADDRESS)
    mesh.run(0.5)
    record(mesh)
    sender.send(b"1")
    mesh.run(0.5)
    (waits,) = decisions(mesh)
    assert (waits["chosen"], waits["candidates"][0]["verdict"], waits["outcome"]) == (None, "no_credit", None)
    receiver.link.grant(1)
    mesh.run(0.5)
    _, goes = decisions(mesh)
    assert goes["delivery"] == waits["delivery"]
    assert goes["waited_us"] >= 400_000
    assert goes["outcome"] == "accepted"


def test_the_ring_wraps_and_says_how_many_decisions_are_lost():
    mesh = line()
    mesh.client("r1").receiver(ADDRESS, credit=10_000)
    sender = mesh.client("r1").sender(ADDRESS)
    mesh.run(0.5)
    record(mesh)
    sent = 0
    while sent < MOST + 500:
        for _ in range(min(sender.link.credit, MOST + 500 - sent)):
            sender.send(b"x")
            sent += 1
        mesh.run(0.005)
    mesh.run(0.5)
    first = mesh.routers["r1"].decisions(ADDRESS, 0, mesh.now)
    rows = decisions(mesh)
    assert len(rows) == MOST
    assert first["lost"] == first["decisions"][0]["number"] - 1
    assert first["lost"] >= 500


def test_it_goes_off_by_itself_and_what_comes_later_is_not_noted():
    mesh = line()
    mesh.client("r1").receiver(ADDRESS, credit=100)
    sender = mesh.client("r1").sender(ADDRESS)
    mesh.run(0.5)
    sender.send(b"before")
    mesh.run(0.1)
    record(mesh, 5)
    sender.send(b"while")
    mesh.run(6)
    sender.send(b"after")
    mesh.run(1)
    assert [row["delivery"] for row in decisions(mesh)] == [2]
    mesh.run(130)
    with pytest.raises(ValueError, match="is not recorded"):
        decisions(mesh)


def test_an_address_that_goes_and_comes_back_is_recorded_again():
    mesh = line()
    record(mesh)
    for _ in range(2):
        receiver = mesh.client("r1").receiver(ADDRESS, credit=100)
        sender = mesh.client("r1").sender(ADDRESS)
        mesh.run(0.5)
        sender.send(b"x")
        mesh.run(0.2)
        receiver.link.close()
        sender.link.close()
        mesh.run(2)
        assert not any(each.address == ADDRESS for each in mesh.routers["r1"].snapshot().addresses)
    assert [row["outcome"] for row in decisions(mesh) if row["chosen"]] == ["accepted", "accepted"]


@pytest.mark.parametrize(
    ("address", "seconds", "sentence"),
    [
        ("near", 61, "seconds: expected a number above 0, and at most 60, got 61"),
        ("near", True, "seconds: expected"),
        ("unheard/of", 10, "the topology makes no address 'unheard/of' available"),
    ],
)
def test_bad_requests_get_a_sentence(address: str, seconds: object, sentence: str):
    mesh = line()
    with pytest.raises(ValueError, match=sentence):
        mesh.routers["r1"].record_decisions(address, seconds, mesh.now)


STORED: dict[str, Any] = {
    "mesh": "stored",
    "node_tls": False,
    "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
    "brokers": {"b1": {"data": "b1", "routers": ["r2"]}, "b2": {"data": "b2", "routers": ["r1"]}},
    "default_broker": "b1",
    "addresses": {
        "orders": "queue",
        "jobs.#": "queue",
        "news.#": "topic",
        "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
        "rpc": "anycast",
        "prices": "multicast",
    },
}


def stored(folder: Path) -> SimMesh:
    mesh = SimMesh(STORED, folder)
    mesh.converge()
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
    return mesh


@pytest.mark.parametrize("has_address", [True, False], ids=["link with an address", "link without"])
@pytest.mark.parametrize("address", ["orders", "jobs.eu", "news.eu", "sharded", "rpc", "prices"])
def test_only_deliveries_of_links_that_lead_to_one_broker_have_no_decision(
    tmp_path: Path, address: str, has_address: bool
):
    mesh = stored(tmp_path)
    receiver = mesh.client("r2").receiver(address, credit=10)
    sender = mesh.client("r1").sender(address if has_address else None)
    mesh.run(1)
    record(mesh, address=address)
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(address=address, body="x").encode())
    mesh.run_until(lambda: len(receiver.messages) == 1)
    mesh.run(0.2)
    is_led = has_address and address in ("orders", "jobs.eu", "news.eu")
    assert bool(decisions(mesh, address=address)) is not is_led
