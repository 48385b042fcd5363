"""Subscriptions with filter sets, and their control links, over any routers of a mesh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edges import QUEUES, with_brokers
from router.events import AttachRefused
from wire.codec.values import Described, Symbol
from wire.delivery import ACCEPTED, OutcomeCode
from wire.filter_set import CONTROL, FILTER_SET
from wire.terminus import Durability, Expiry

ADDRESSES = {
    **QUEUES,
    "rpc.#": "anycast",
    "prices.#": "multicast",
    "jobs.*": {"type": "queue", "broker": "b1"},
    "plant/#": {"type": "topic", "broker": "b1"},
}
LOST = "the path to broker b1 was lost: attach again, with the whole filter set"


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    return with_brokers(tmp_path, addresses=ADDRESSES)


def filter_of(*filters: str, kind: str = "mqtt") -> dict[str, Any]:
    return {"f": Described(Symbol(FILTER_SET), [Symbol(kind), list(filters)])}


def subscribe(
    mesh: SimMesh, client: SimClient, *filters: str, address: str = "plant/#", kind: str = "mqtt", **more: Any
) -> SimReceiver:
    receiver = client.receiver(address, name="mine", filter=filter_of(*filters, kind=kind), **more)
    mesh.run_until(lambda: receiver.link.is_open or receiver.error is not None)
    return receiver


def control_of(mesh: SimMesh, client: SimClient, address: str = "plant/#") -> SimSender:
    control = client.sender(address, name="mine", capabilities=(CONTROL,))
    mesh.run_until(lambda: control.link.credit > 0 or control.error is not None)
    return control


def change(mesh: SimMesh, control: SimSender, serial: int, **lists: list[str]) -> Any:
    number = mesh.send(control, bytes(Message({"serial": serial, **lists}).encode()))
    mesh.run_until(lambda: number in control.outcomes)
    return control.outcomes[number]


def publish(mesh: SimMesh, sender: SimSender, *addresses: str) -> None:
    numbers = [mesh.send(sender, bytes(Message(address=address).encode())) for address in addresses]
    mesh.run_until(lambda: all(number in sender.outcomes for number in numbers))
    mesh.run(0.1)


def told(receiver: SimReceiver) -> list[str]:
    """The addresses of the deliveries, as an ordinary client reads them."""
    found = []
    for data in receiver.messages:
        message = Message()
        message.decode(data)
        found.append(str(message.instructions["x-opt-to"]))
    return found


@pytest.mark.parametrize("router", ["r1", "r3", "e1", "e3"])
def test_a_client_anywhere_changes_its_set_and_gets_each_message_once(mesh: SimMesh, router: str) -> None:
    client = mesh.client(router)
    receiver = subscribe(mesh, client, "plant/a", "plant/+")
    assert receiver.link.remote_source.filter == filter_of("plant/a", "plant/+")
    control = control_of(mesh, client)
    assert CONTROL in control.link.remote_target.capabilities
    sender = mesh.client("r2").sender(None)
    publish(mesh, sender, "plant/a", "plant/b/c")
    assert change(mesh, control, 1, add=["plant/b/#"], remove=["plant/+"]) == ACCEPTED
    publish(mesh, sender, "plant/a", "plant/b/c", "plant/b", "plant/d")
    refused = change(mesh, control, 3)
    assert refused.kind is OutcomeCode.REJECTED
    assert refused.error.description == "expected the serial 2 for the next change, got 3"
    assert sorted(told(receiver)) == ["plant/a", "plant/a", "plant/b", "plant/b/c"]


def test_a_receiver_with_many_filters_has_them_by_changes(mesh: SimMesh) -> None:
    client = mesh.client("r3")
    receiver = subscribe(mesh, client)
    control = control_of(mesh, client)
    for part in range(10):
        filters = [f"plant/{number}/state" for number in range(1000 * part, 1000 * (part + 1))]
        assert change(mesh, control, 1 + part, add=filters) == ACCEPTED
    publish(mesh, mesh.client("e1").sender(None), "plant/0/state", "plant/9999/state", "plant/10000/state")
    assert sorted(told(receiver)) == ["plant/0/state", "plant/9999/state"]


def test_a_set_that_does_not_fit_a_frame_is_refused_and_the_connection_stays(tmp_path: Path) -> None:
    listener = {"port": 1, "max_frame_bytes": 65536}
    mesh = with_brokers(tmp_path, addresses=ADDRESSES, listener=listener)
    client = mesh.client("r3", max_frame_bytes=65536)
    plain = client.receiver("plant/#", name="plain")
    mesh.run_until(lambda: plain.link.is_open)
    receiver = subscribe(mesh, client, *[f"plant/{number}/state" for number in range(1500)])
    assert receiver.error.condition == "amqp:frame-size-too-small"
    assert control_of(mesh, client).error.condition == "amqp:not-found"
    again = client.receiver("plant/#", name="again", filter=filter_of("plant/a"))
    mesh.run_until(lambda: again.link.is_open)
    assert plain.error is None


@pytest.mark.parametrize("loss", ["broker", "router"])
def test_links_of_a_set_end_with_their_path_and_the_new_attach_has_the_whole_set(mesh: SimMesh, loss: str) -> None:
    client = mesh.client("r3")
    receiver, plain = subscribe(mesh, client, "plant/a"), client.receiver("plant/#", name="plain")
    control = control_of(mesh, client)
    assert change(mesh, control, 1, add=["plant/b"]) == ACCEPTED
    if loss == "broker":
        mesh.kill_broker("b1")
    else:
        mesh.kill("r2")
    mesh.run_until(lambda: receiver.error is not None and control.error is not None)
    for end in (receiver, control):
        assert (end.error.condition, end.error.description) == ("amqp:link:detach-forced", LOST)
    if loss == "broker":
        mesh.start_broker("b1")
    else:
        mesh.start("r2")
        for edge in mesh.edges_of("r2"):
            mesh.link(edge.dialer, edge.to)
    again = subscribe(mesh, client, "plant/a", "plant/c")
    assert again.error is None
    assert change(mesh, control_of(mesh, client), 1, add=["plant/d"]) == ACCEPTED
    mesh.run_until(lambda: plain.link.is_open)
    publish(mesh, mesh.client("r1").sender(None), "plant/a", "plant/b", "plant/c", "plant/d")
    assert sorted(told(again)) == ["plant/a", "plant/c", "plant/d"]
    assert plain.error is None


def test_an_attach_waits_for_a_broker_that_is_away_as_any_other(mesh: SimMesh) -> None:
    mesh.kill_broker("b1")
    client = mesh.client("r3")
    receiver = client.receiver("plant/#", name="mine", filter=filter_of("plant/a"))
    mesh.run(1)
    assert receiver.error is None
    mesh.start_broker("b1")
    mesh.run_until(lambda: receiver.link.is_open)
    assert receiver.link.remote_source.filter == filter_of("plant/a")


def test_the_control_link_ends_with_the_receiver(mesh: SimMesh) -> None:
    client = mesh.client("r3")
    receiver, control = subscribe(mesh, client, "plant/a"), control_of(mesh, client)
    receiver.link.close()
    mesh.run_until(lambda: control.error is not None)
    assert control.error.condition == "amqp:resource-deleted"


def test_clients_with_equal_names_have_sets_of_their_own(mesh: SimMesh) -> None:
    clients = [mesh.client(router, "same") for router in ("r1", "r1", "r3")]
    receivers = [subscribe(mesh, client, f"plant/{number}") for number, client in enumerate(clients)]
    controls = [control_of(mesh, client) for client in clients]
    for number, control in enumerate(controls):
        assert change(mesh, control, 1, add=[f"plant/{number}/x"]) == ACCEPTED
    publish(mesh, mesh.client("r2").sender(None), *[f"plant/{number}/x" for number in range(3)], "plant/1")
    assert [sorted(told(each)) for each in receivers] == [["plant/0/x"], ["plant/1", "plant/1/x"], ["plant/2/x"]]


def test_the_right_to_receive_from_the_source_is_needed_for_both_links_and_is_enough(tmp_path: Path) -> None:
    users = {
        "reader": {"receive": ["plant/7/#"]},
        "writer": {"send": ["plant/#"]},
    }
    mesh = with_brokers(tmp_path, addresses=ADDRESSES, users=users)
    reader, writer = mesh.client("r3", user="reader"), mesh.client("r3", user="writer")
    receiver = subscribe(mesh, reader, "#", "plant/8/x", address="plant/7/#")
    assert change(mesh, control_of(mesh, reader, "plant/7/#"), 1, add=["plant/#"]) == ACCEPTED
    publish(mesh, writer.sender(None), "plant/7/x", "plant/8/x")
    assert told(receiver) == ["plant/7/x"]
    for client, address in ((reader, "plant/#"), (writer, "plant/#")):
        wide = client.receiver(address, name="wide", filter=filter_of("plant/7/x"))
        control = client.sender(address, name="wide", capabilities=(CONTROL,))
        mesh.run_until(lambda: wide.error is not None and control.error is not None)  # noqa: B023
        for end in (wide, control):
            assert end.error.condition == "amqp:unauthorized-access"
            assert f"may not receive from {address!r}" in end.error.description


@pytest.mark.parametrize("address", ["rpc.#", "jobs.*"])
def test_a_set_at_a_pattern_without_subscriptions_is_refused_as_the_pattern_is(mesh: SimMesh, address: str) -> None:
    client = mesh.client("r3")
    receiver = subscribe(mesh, client, "a", address=address)
    assert receiver.error.description.startswith(f"{address!r} has wildcards, and only topics")


@pytest.mark.parametrize("address", ["rpc.a", "prices.a", "jobs.a", "orders"])
def test_a_set_at_an_address_without_sets_is_not_in_the_answer(mesh: SimMesh, address: str) -> None:
    receiver = subscribe(mesh, mesh.client("r3"), "a", address=address)
    assert (receiver.error, receiver.link.remote_source.filter) == (None, {})


@pytest.mark.parametrize("address", ["rpc.a", "prices.a", "jobs.a", "orders", "sharded"])
def test_a_control_link_to_an_address_without_sets_is_refused_and_nothing_is_sent_there(
    mesh: SimMesh, address: str
) -> None:
    control = control_of(mesh, mesh.client("r3"), address)
    assert control.error.condition == "amqp:not-implemented"
    assert control.error.description.startswith(f"{address!r} has no filter sets")
    assert [event.link for _, _, event in mesh.log if isinstance(event, AttachRefused)] == ["mine"]


def test_a_control_link_without_an_address_is_refused(mesh: SimMesh) -> None:
    control = mesh.client("r3").sender(None, name="mine", capabilities=(CONTROL,))
    mesh.run_until(lambda: control.error is not None)
    assert control.error.condition == "amqp:not-found"


def test_a_durable_source_with_a_set_is_refused_with_the_broker_s_sentence(mesh: SimMesh) -> None:
    receiver = subscribe(mesh, mesh.client("r3"), "plant/a", durability=Durability.UNSETTLED_STATE, expiry=Expiry.NEVER)
    assert receiver.error.condition == "amqp:not-implemented"
    assert receiver.error.description == "a durable subscription cannot have a filter set: no set is stored"


@pytest.mark.parametrize("space", ["", "acme"])
def test_a_set_is_of_the_space_of_its_client(tmp_path: Path, space: str) -> None:
    addresses = {"plant/#": {"type": "topic", "broker": "b1"}}
    routers: dict[str, Any] = {"r1": {"connect": ["r2"]}, "r2": {}}
    topology = {"mesh": "m", "node_tls": False, "routers": routers, "addresses": addresses}
    made = SimMesh({**topology, "brokers": {"b1": {"data": "b1", "routers": ["r2"]}}}, tmp_path)
    declared = made.topology.addresses
    made.close()
    mesh = SimMesh(made.topology, tmp_path / "again", spaces={"acme": declared})
    mesh.converge()
    mesh.run(0.5)
    client = mesh.client("r1", space=space)
    receiver = subscribe(mesh, client, "plant/a")
    assert change(mesh, control_of(mesh, client), 1, add=["plant/b"]) == ACCEPTED
    for number, each in enumerate(("", "acme")):
        for address in ("plant/a", "plant/b", "plant/c"):
            sender = mesh.client("r2", f"publisher{number}", space=each).sender(address)
            mesh.send(sender, bytes(Message(body=each).encode()))
    mesh.run(0.5)
    assert sorted(told(receiver)) == ["plant/a", "plant/b"]
    mesh.close()
