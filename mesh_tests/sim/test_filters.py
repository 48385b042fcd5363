"""Consumers of a multicast that name a filter: what reaches them from all routers, once, in order, with its address."""

from __future__ import annotations

import random
from itertools import product

import pytest
from proton import Message

from addressing.topology.model import Topology
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.filter_lives import ADDRESSES, Life, mesh_of, told
from wire.delivery import ACCEPTED, RELEASED
from wire.delivery_address import with_delivery_address

ROUTERS = ("r1", "r3", "e1", "e3")


@pytest.mark.parametrize(("ingress", "egress"), list(product(ROUTERS, ROUTERS)))
@pytest.mark.parametrize("target", ["prices.tea", None])
def test_a_filter_gets_messages_from_all_routers_with_their_address(
    ingress: str, egress: str, target: str | None
) -> None:
    mesh = mesh_of()
    receiver = mesh.client(egress).receiver("prices.#")
    mesh.run_until(lambda: receiver.link.is_open)
    mesh.run(0.2)
    sender = mesh.client(ingress).sender(target)
    messages = [Message(address="prices.tea", body=number).encode() for number in range(10)]
    for message in messages:
        mesh.send(sender, message)
    mesh.run_until(lambda: not sender.open)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert receiver.messages == [with_delivery_address(bytes(message), b"prices.tea") for message in messages]


@pytest.mark.parametrize("egress", ROUTERS)
def test_exact_consumers_beside_a_filter_get_the_messages_to_the_byte(egress: str) -> None:
    mesh = mesh_of()
    receivers = [mesh.client(egress).receiver(name) for name in ("prices.#", "prices.tea")]
    mesh.run_until(lambda: all(each.link.is_open for each in receivers))
    sender = mesh.client("r2").sender("prices.tea")
    messages = [Message(body=number).encode() for number in range(10)]
    for message in messages:
        mesh.send(sender, message)
    mesh.run_until(lambda: not sender.open)
    assert receivers[1].messages == messages
    assert told(receivers[0]) == ["prices.tea"] * 10


def test_messages_to_other_addresses_do_not_come() -> None:
    mesh = mesh_of()
    receiver = mesh.client("r3").receiver("prices.*")
    mesh.run_until(lambda: receiver.link.is_open)
    mesh.run(0.2)
    sender = mesh.client("r1").sender(None)
    for name in ("prices.tea.eu", "prices", "prices.oil", "wind.eu"):
        mesh.send(sender, Message(address=name).encode())
    mesh.run_until(lambda: not sender.open)
    assert told(receiver) == ["prices.oil"]
    assert sorted(outcome.kind for outcome in sender.outcomes.values()) == sorted(
        outcome.kind for outcome in (RELEASED, RELEASED, RELEASED, ACCEPTED)
    )


@pytest.mark.parametrize("router", ["r3", "e3"])
def test_a_filter_that_no_entry_covers_gets_the_messages_of_all_multicast_patterns(router: str) -> None:
    mesh = mesh_of()
    everything, some = mesh.client(router).receiver("#"), mesh.client(router).receiver("*.eu")
    mesh.run_until(lambda: everything.link.is_open and some.link.is_open)
    mesh.run(0.2)
    sender = mesh.client("e1").sender(None)
    names = ["prices.eu", "prices", "wind.eu", "rpc"]
    for name in names:
        mesh.send(sender, Message(address=name).encode())
    mesh.run_until(lambda: len(sender.outcomes) == 4)
    assert sorted(told(everything)) == ["prices", "prices.eu", "wind.eu"]
    assert sorted(told(some)) == ["prices.eu", "wind.eu"]


def test_all_messages_come_that_are_sent_after_the_answer_to_the_attach() -> None:
    mesh = mesh_of()
    # Clients hear an answer long before other routers hear any news.
    for pipe in mesh.trunks.values():
        pipe.delay_s = 0.02
    names = ("prices.a", "prices.b")
    exact = [mesh.client("r2").receiver(name) for name in names]
    senders = [(name, mesh.client(at).sender(name)) for at in ("r1", "r2", "r4") for name in names]
    mesh.run(1)
    receiver = mesh.client("r3").receiver("prices.#", credit=100)
    began = mesh.now
    mesh.run_until(lambda: receiver.link.is_open)
    assert began + 0.04 < mesh.now < began + 1
    for name, sender in senders:
        assert sender.link.credit > 0
        sender.send(Message(body=name).encode())
    mesh.run_until(lambda: sum(len(each.messages) for each in exact) == len(senders))
    mesh.run(1)
    assert sorted(told(receiver)) == sorted(name for name, _ in senders)


def test_an_attach_is_answered_at_once_while_nobody_produces_what_the_filter_matches() -> None:
    mesh = mesh_of()
    mesh.client("r1").sender("wind.eu")
    mesh.run(0.2)
    began = mesh.now
    receiver = mesh.client("r3").receiver("prices.*")
    mesh.run_until(lambda: receiver.link.is_open)
    assert mesh.now < began + 0.01


def test_when_the_last_consumer_leaves_the_messages_are_released_and_nothing_is_left() -> None:
    mesh = mesh_of()
    receivers = [mesh.client(router).receiver("prices.#") for router in ("r3", "e1")]
    sender = mesh.client("r1").sender("prices.tea")
    mesh.run_until(lambda: sender.link.credit > 1)
    for receiver in receivers:
        receiver.link.close()
    mesh.run(3)
    assert sender.link.credit == 0
    sender.link.close()
    mesh.run(20)
    for name, node in mesh.routers.items():
        assert [address.address for address in node.snapshot().addresses] == [], name


def test_a_user_needs_the_right_to_all_addresses_of_the_filter() -> None:
    mesh = SimMesh(
        Topology.model_validate(
            {
                "mesh": "m",
                "node_tls": False,
                "routers": {"r1": {}},
                "addresses": ADDRESSES,
                "users": {"some": {"receive": ["prices.*"]}, "all": {"receive": ["prices.#"]}},
            }
        )
    )
    some, every = mesh.client("r1", user="some"), mesh.client("r1", user="all")
    refused = some.receiver("prices.#")
    granted = [some.receiver("prices.*"), every.receiver("prices.#"), every.receiver("prices.*.eu")]
    mesh.run_until(lambda: refused.error is not None and all(each.link.is_open for each in granted))
    assert refused.error.condition == "amqp:unauthorized-access"


@pytest.mark.parametrize("size", [1, 300_000])
def test_large_messages_have_the_address_too(size: int) -> None:
    mesh = mesh_of()
    receivers = [mesh.client(router).receiver("prices.#") for router in ROUTERS]
    mesh.run_until(lambda: all(each.link.is_open for each in receivers))
    sender = mesh.client("r2").sender("prices.tea")
    for number in range(3):
        mesh.send(sender, Message(body=f"{number}" * size).encode())
    mesh.run_until(lambda: not sender.open)
    for receiver in receivers:
        assert told(receiver) == ["prices.tea"] * 3


def test_a_filter_joins_a_stream_of_a_hundred_addresses_with_little_credit() -> None:
    mesh = mesh_of()
    receiver = mesh.client("r3").receiver("prices.#", credit=2)
    mesh.run_until(lambda: receiver.link.is_open)
    mesh.run(0.2)
    senders = [mesh.client(("r1", "r2", "r4")[number % 3]).sender(None) for number in range(3)]
    mesh.run_until(lambda: all(sender.link.credit > 0 for sender in senders))
    for number in range(100):
        for sender in senders:
            mesh.send(sender, Message(address=f"prices.{number}", body=number).encode())
    mesh.run_until(lambda: len(receiver.messages) == 300, 120)
    assert set(told(receiver)) == {f"prices.{number}" for number in range(100)}
    mesh.run_until(lambda: not any(sender.open for sender in senders))
    assert all(set(sender.outcomes.values()) == {ACCEPTED} for sender in senders)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("with_losses", [False, True])
def test_each_copy_comes_once_in_order_with_its_address(seed: int, with_losses: bool) -> None:
    life = Life(mesh_of(), random.Random(seed))
    life.run(150, with_losses=with_losses)
    assert life.judge() > 20
