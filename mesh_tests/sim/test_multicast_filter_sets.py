"""Receivers of multicasts with filter sets, and their control links, at any router of a mesh."""

from __future__ import annotations

import pytest
from proton import Message

from addressing.filter_kinds import FilterKind
from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.filter_lives import mesh_of
from mesh_tests.sim.test_filter_sets import change, control_of, filter_of, publish, subscribe, told
from mesh_tests.unit.addressing.filters import NAIVE
from wire.delivery import ACCEPTED, OutcomeCode
from wire.terminus import Durability, Expiry

ROUTERS = ("r1", "r2", "r3", "r4", "e1", "e3")


@pytest.fixture
def mesh() -> SimMesh:
    return mesh_of()


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("other", ROUTERS)
def test_a_client_anywhere_changes_its_set_and_gets_each_message_once(mesh: SimMesh, router: str, other: str) -> None:
    client = mesh.client(router)
    sender = mesh.client(other).sender(None)
    receiver = subscribe(mesh, client, "prices.tea", "prices.*", address="prices.#", kind="amqp")
    assert receiver.error is None
    assert receiver.link.remote_source.filter == filter_of("prices.tea", "prices.*", kind="amqp")
    control = control_of(mesh, client, "prices.#")
    publish(mesh, sender, "prices.tea", "prices.oil.eu", "prices.oil")
    assert change(mesh, control, 1, add=["prices.oil.#"], remove=["prices.*"]) == ACCEPTED
    publish(mesh, sender, "prices.tea", "prices.oil.eu", "prices.oil", "prices.gas")
    assert change(mesh, control, 2, remove=["prices.tea"]) == ACCEPTED
    publish(mesh, sender, "prices.tea", "prices.oil.us")
    expected = ["prices.oil", "prices.oil", "prices.oil.eu", "prices.oil.us", "prices.tea", "prices.tea"]
    assert sorted(told(receiver)) == expected


@pytest.mark.parametrize("home", ["r1", "e1"])
@pytest.mark.parametrize("slow", [("r1", "r2"), ("r1", "r4"), ("r2", "r3"), ("e1", "r1"), ("e3", "r3"), None])
def test_what_producers_send_once_a_change_is_accepted_comes(home: str, slow: tuple[str, str] | None) -> None:
    """Producers everywhere wait without a consumer, and send in the moment in which the client sees the outcome."""
    mesh = mesh_of()
    client = mesh.client(home)
    receiver = subscribe(mesh, client, address="prices.#", kind="amqp", credit=100)
    control = control_of(mesh, client, "prices.#")
    clients = [mesh.client(router) for router in ROUTERS]
    senders = [each.sender(target) for each in clients for target in (None, "prices.oil")]
    mesh.run(1)
    if slow is not None:
        trunk = mesh.trunks[frozenset(slow)]
        assert trunk is not None
        trunk.delay_s = 0.2
    assert change(mesh, control, 1, add=["prices.oil", "prices.*"]) == ACCEPTED
    for sender in senders:
        mesh.send(sender, bytes(Message(address="prices.oil").encode()))
    mesh.run(3)
    assert told(receiver) == ["prices.oil"] * len(senders)
    assert all(each.outcomes == {1: ACCEPTED} for each in senders)


@pytest.mark.parametrize("home", ["r1", "r2", "e1"])
@pytest.mark.parametrize("slow", [("e1", "r1"), ("r2", "r3")])
def test_what_producers_send_once_the_attach_is_answered_comes(home: str, slow: tuple[str, str]) -> None:
    mesh = mesh_of()
    client = mesh.client(home)
    senders = [each.sender(target) for each in map(mesh.client, ROUTERS) for target in (None, "prices.oil")]
    mesh.run(1)
    trunk = mesh.trunks[frozenset(slow)]
    assert trunk is not None
    trunk.delay_s = 0.2
    receiver = subscribe(mesh, client, "prices.oil", "prices.*", address="prices.#", kind="amqp", credit=100)
    for sender in senders:
        mesh.send(sender, bytes(Message(address="prices.oil").encode()))
    mesh.run(3)
    assert told(receiver) == ["prices.oil"] * len(senders)
    assert all(each.outcomes == {1: ACCEPTED} for each in senders)


def test_a_consumer_of_an_address_that_a_set_has_just_left_misses_nothing(mesh: SimMesh) -> None:
    client, sender = mesh.client("r1"), mesh.client("r3").sender("prices.oil")
    other = mesh.client("r3").receiver("prices.oil")
    subscribe(mesh, client, "prices.oil", address="prices.#", kind="amqp")
    control = control_of(mesh, client, "prices.#")
    publish_to(mesh, sender)
    number = mesh.send(control, bytes(Message({"serial": 1, "remove": ["prices.oil"]}).encode()))
    while number not in control.outcomes:
        mesh.step()
    consumer = client.receiver("prices.oil")
    while not consumer.link.is_open:
        mesh.step()
    publish_to(mesh, sender)
    mesh.run(0.5)
    assert (len(other.messages), len(consumer.messages)) == (2, 1)


def publish_to(mesh: SimMesh, sender: SimSender) -> None:
    """Send a message over a link with an address, and wait for its outcome."""
    number = mesh.send(sender)
    mesh.run_until(lambda: number in sender.outcomes)


def test_a_message_that_the_source_leaves_out_goes_to_the_others_and_not_to_the_set(mesh: SimMesh) -> None:
    other = mesh.client("r2").receiver("prices.gas.eu")
    receiver = subscribe(mesh, mesh.client("r1"), "#", "prices.gas.eu", "x.eu", address="prices.*", kind="amqp")
    sender = mesh.client("r3").sender(None)
    publish(mesh, sender, "prices.gas.eu", "prices.gas", "x.eu", "prices.oil.eu")
    assert [sender.outcomes[number].kind for number in (1, 2, 3, 4)] == [
        OutcomeCode.ACCEPTED,
        OutcomeCode.ACCEPTED,
        OutcomeCode.RELEASED,
        OutcomeCode.RELEASED,
    ]
    assert len(other.messages) == 1
    assert told(receiver) == ["prices.gas"]
    assert keys_of(mesh, "r1") == {f"S0prices.* amqp {text}" for text in ("#", "prices.gas.eu", "x.eu")}


def keys_of(mesh: SimMesh, router: str, seen_by: str = "r4") -> set[str]:
    """The keys of filters of sets that a router advertises, as another router knows them."""
    (view,) = [each for name, each in mesh.routers[seen_by]._routing.snapshot().routers.items() if name == router]
    return {key for key in view.addresses if key.startswith("S0")}


def test_a_filter_of_several_consumers_is_advertised_until_the_last_one_leaves(mesh: SimMesh) -> None:
    clients = [mesh.client(router) for router in ("r1", "r1", "e1")]
    receivers = [subscribe(mesh, each, "prices.tea", address="prices.#", kind="amqp") for each in clients]
    for receiver in receivers:
        assert keys_of(mesh, "r1") == {"S0prices.# amqp prices.tea"}
        publish(mesh, mesh.client("r3").sender(None), "prices.tea")
        receiver.link.close()
        mesh.run(0.5)
    assert keys_of(mesh, "r1") == set()
    assert [len(each.messages) for each in receivers] == [1, 2, 3]


def test_a_client_whose_connection_is_lost_attaches_again_with_the_whole_set(mesh: SimMesh) -> None:
    client = mesh.client("r1")
    subscribe(mesh, client, "prices.tea", address="prices.#", kind="amqp")
    assert change(mesh, control_of(mesh, client, "prices.#"), 1, add=["prices.oil"]) == ACCEPTED
    mesh.cut(client.pipe)
    mesh.run(0.5)
    assert keys_of(mesh, "r1") == set()
    again = mesh.client("r3")
    receiver = subscribe(mesh, again, "prices.tea", "prices.oil", address="prices.#", kind="amqp")
    assert change(mesh, control_of(mesh, again, "prices.#"), 1, remove=["prices.tea"]) == ACCEPTED
    publish(mesh, mesh.client("r2").sender(None), "prices.tea", "prices.oil")
    assert told(receiver) == ["prices.oil"]


def test_the_control_link_ends_with_the_receiver_and_is_replaced_by_a_second_one(mesh: SimMesh) -> None:
    client = mesh.client("r2")
    receiver = subscribe(mesh, client, "prices.tea", address="prices.#", kind="amqp")
    first = control_of(mesh, client, "prices.#")
    assert change(mesh, first, 1, add=["prices.oil"]) == ACCEPTED
    second = control_of(mesh, client, "prices.#")
    mesh.run_until(lambda: first.error is not None)
    assert first.error.condition == "amqp:link:stolen"
    assert change(mesh, second, 2, remove=["prices.tea"]) == ACCEPTED
    receiver.link.close()
    mesh.run_until(lambda: second.error is not None)
    assert second.error.condition == "amqp:resource-deleted"
    refused = control_of(mesh, client, "prices.#")
    assert refused.error.condition == "amqp:not-found"


def test_a_control_link_without_its_receiver_or_of_another_address_is_refused(mesh: SimMesh) -> None:
    client = mesh.client("r2")
    plain = client.receiver("prices.#", name="mine")
    mesh.run_until(lambda: plain.link.is_open)
    assert control_of(mesh, client, "prices.#").error.condition == "amqp:not-found"
    plain.link.close()
    mesh.run(0.1)
    subscribe(mesh, client, "prices.tea", address="prices.#", kind="amqp")
    assert control_of(mesh, client, "prices.*").error.condition == "amqp:not-found"
    assert control_of(mesh, mesh.client("r2"), "prices.#").error.condition == "amqp:not-found"
    exact = control_of(mesh, client, "prices.tea")
    assert exact.error.condition == "amqp:not-implemented"
    assert exact.error.description.startswith("'prices.tea' has no filter sets")


def test_wrong_changes_are_rejected_with_the_sentences_of_the_broker(mesh: SimMesh) -> None:
    client = mesh.client("e3")
    receiver = subscribe(mesh, client, "prices.tea", address="prices.#", kind="amqp")
    control = control_of(mesh, client, "prices.#")
    for serial, lists, sentence in (
        (2, {}, "expected the serial 1 for the next change, got 2"),
        (1, {"add": ["a*"]}, "add: filter 'a*': the wildcard '*' must stand for a whole level"),
        (1, {"add": ["a"], "remove": ["a"]}, "filter 'a' is both in add and in remove"),
        (1, {"more": ["a"]}, "unknown key 'more' of a change: expected serial, add, remove"),
    ):
        refused = change(mesh, control, serial, **lists)
        assert refused.kind is OutcomeCode.REJECTED
        assert refused.error.description.startswith(sentence)
    assert change(mesh, control, 1, add=["prices.oil"]) == ACCEPTED
    publish(mesh, mesh.client("r2").sender(None), "prices.oil")
    assert told(receiver) == ["prices.oil"]


def test_a_router_advertises_a_limited_number_and_size_of_filters(
    mesh: SimMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.distribution.set_consumers.MOST_TOLD", 3)
    client, other = mesh.client("r1"), mesh.client("r1")
    subscribe(mesh, client, "a", "b", address="prices.#", kind="amqp")
    control = control_of(mesh, client, "prices.#")
    refused = change(mesh, control, 1, add=["c", "d"])
    assert refused.error.condition == "amqp:resource-limit-exceeded"
    assert refused.error.description == "this router would advertise 4 filters of sets: expected at most 3"
    assert change(mesh, control, 1, add=["c", "d"], remove=["a"]) == ACCEPTED
    over = subscribe(mesh, other, "e", address="prices.#", kind="amqp")
    assert over.error.condition == "amqp:resource-limit-exceeded"
    monkeypatch.setattr("router.distribution.set_consumers.MOST_TOLD_BYTES", 90)
    refused = change(mesh, control, 2, add=["prices.a.long.name.of.a.filter"], remove=["b"])
    assert refused.error.description.startswith("this router would advertise 97")
    assert "bytes of filters of sets: expected at most 90" in refused.error.description
    assert keys_of(mesh, "r1") == {f"S0prices.# amqp {text}" for text in "bcd"}


def test_a_router_that_does_not_answer_holds_no_change_up_for_long(mesh: SimMesh) -> None:
    client = mesh.client("r1")
    receiver = subscribe(mesh, client, address="prices.#", kind="amqp")
    control = control_of(mesh, client, "prices.#")
    for pipe in mesh.pipes_of(mesh.routers["r3"]):
        mesh.cut(pipe, silently=True)
    began = mesh.now
    assert change(mesh, control, 1, add=["prices.tea"]) == ACCEPTED
    assert 1.9 < mesh.now - began < 2.2
    publish(mesh, mesh.client("r2").sender(None), "prices.tea")
    assert told(receiver) == ["prices.tea"]


def test_a_client_may_leave_before_its_attach_is_answered(mesh: SimMesh) -> None:
    client, other = mesh.client("r1"), mesh.client("r1")
    link = client.receiver("prices.#", name="mine", filter=filter_of("prices.tea", kind="amqp")).link
    cut = other.receiver("prices.#", name="mine", filter=filter_of("prices.oil", kind="amqp")).link
    mesh.run_until(lambda: len(keys_of(mesh, "r1", seen_by="r1")) == 2)
    assert not link.is_open
    assert not cut.is_open
    link.close()
    mesh.cut(other.pipe)
    mesh.run(1)
    assert keys_of(mesh, "r1") == set()


@pytest.mark.parametrize("kind", list(FilterKind))
def test_each_kind_of_filter_has_its_own_wildcards(kind: FilterKind) -> None:
    mesh = SimMesh(
        {
            "mesh": "m",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
            "addresses": {"plant/#": "multicast"},
        }
    )
    mesh.converge()
    receiver = subscribe(
        mesh, mesh.client("r1"), f"plant/{kind.one_level}/alarm", address="plant/#", kind=kind.value, credit=10
    )
    addresses = ["plant/7/alarm", "plant/a.b/alarm", "plant/+/alarm", "plant/7/x/alarm"]
    publish(mesh, mesh.client("r2").sender(None), *addresses)
    assert told(receiver) == [each for each in addresses if NAIVE[kind](f"plant/{kind.one_level}/alarm", each)]


def test_a_durable_source_with_a_set_is_refused(mesh: SimMesh) -> None:
    durable = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
    receiver = subscribe(mesh, mesh.client("r1"), "prices.tea", address="prices.#", **durable)
    assert receiver.error.condition == "amqp:not-implemented"
    assert receiver.error.description == "a durable subscription cannot have a filter set: no set is stored"


def test_the_status_of_a_router_has_a_row_for_each_set(mesh: SimMesh) -> None:
    subscribe(mesh, mesh.client("r1"), "prices.tea", "prices.oil", address="prices.#", kind="amqp")
    rows = [each for each in mesh.routers["r1"].snapshot().addresses if each.address == "prices.#"]
    assert [(each.takers, each.treatment) for each in rows] == [(1, "multicast")]


def test_a_set_of_many_filters_that_ends_is_withdrawn_in_turns(mesh: SimMesh) -> None:
    client = mesh.client("r1")
    receiver = subscribe(mesh, client, address="prices.#", kind="amqp")
    control = control_of(mesh, client, "prices.#")
    for part in range(3):
        filters = [f"prices.{number}" for number in range(1500 * part, 1500 * (part + 1))]
        assert change(mesh, control, 1 + part, add=filters) == ACCEPTED
    assert len(keys_of(mesh, "r1")) == 4500
    publish(mesh, mesh.client("r3").sender(None), "prices.0", "prices.4499", "prices.4500")
    assert told(receiver) == ["prices.0", "prices.4499"]
    receiver.link.close()
    mesh.run(1)
    assert keys_of(mesh, "r1") == set()
    assert not mesh.routers["r3"]._addresses._filters.sets._known
