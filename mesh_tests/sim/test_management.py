"""Requests of clients to `$management`: who may send them, what an observer gets of them, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Message as ProtonMessage

from addressing.management import REQUESTS_ADDRESS
from addressing.topology.loader import parse_topology
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from router.clients.management import (
    BURST,
    CREDIT,
    MAX_PACED,
    OBSERVER_S,
    REQUEST_BYTES,
    REQUEST_S,
)
from wire.delivery import ACCEPTED, OutcomeCode, rejected
from wire.endpoint import Peer
from wire.message import Message, decode, encode

TOPOLOGY = """
mesh: shop
routers:
  r1: {connect: [r2]}
  r2: {}
  e1: {mode: edge, connect: [r2]}
addresses: {'#': anycast}
users:
  viv: {send: ['a.#'], view: ['a.#']}
  max: {send: ['a.#'], manage: ['#']}
  eve: {send: ['#'], receive: ['#']}
"""
OPEN = TOPOLOGY.partition("users:")[0]
ROUTERS = ("r1", "e1")


def mesh_of(topology: str = TOPOLOGY) -> SimMesh:
    mesh = SimMesh(parse_topology(topology))
    mesh.converge()
    return mesh


@pytest.fixture
def mesh() -> SimMesh:
    return mesh_of()


def observer_at(mesh: SimMesh, router: str, credit: int = 10, **peer: Any) -> SimReceiver:
    """Attach an observer, as an operator at the node port of ``router``; ``peer`` replaces what it is to the router."""
    node, client = mesh.routers[router], SimClient(mesh, f"observer of {router}")
    mesh.add(client)
    endpoint = node.on_accepted("nodes", Peer(**{"is_mesh": True, "listener": "nodes", **peer}), mesh.now)
    client.pipe = mesh.join((client, client.endpoint), (node, endpoint))
    receiver = client.receiver(REQUESTS_ADDRESS, credit)
    mesh.run_until(lambda: receiver.link.is_open or receiver.error is not None)
    return receiver


def asks(mesh: SimMesh, router: str, address: str = "$management", user: str | None = "viv") -> tuple[SimSender, str]:
    """Attach a client for requests at ``router``; return its link, and the dynamic address of its replies."""
    client = mesh.client(router, user=user)
    replies, sender = client.receiver(None, dynamic=True), client.sender(address)
    mesh.run_until(lambda: sender.link.credit > 0 or sender.error is not None)
    return sender, replies.link.remote_source.address


def request(reply_to: str | None, **properties: Any) -> bytes:
    return encode(Message({"attributeNames": []}, reply_to=reply_to, properties=properties))


def outcome_of(mesh: SimMesh, sender: SimSender, message: bytes) -> Any:
    number = mesh.send(sender, message)
    mesh.run_until(lambda: number in sender.outcomes or sender.error is not None)
    return sender.outcomes.get(number)


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize(
    ("address", "node"),
    [
        ("$management", None),
        ("amqp:/$management", None),
        ("amqp://host:5672/$management", None),
        ("_topo/0/r2/$management", "r2"),
        ("amqp:/_topo/0/r2/$management", "r2"),
        ("_topo/all/nobody/$management", "nobody"),
        ("_edge/e1/$management", "e1"),
    ],
)
def test_an_observer_gets_the_request_with_the_node_and_the_user(
    mesh: SimMesh, router: str, address: str, node: str | None
) -> None:
    observer = observer_at(mesh, router)
    sender, reply_to = asks(mesh, router, address)
    message = request(reply_to, operation="QUERY")
    assert outcome_of(mesh, sender, message) == ACCEPTED
    [given] = map(decode, observer.messages)
    assert given.body == message
    assert given.properties == {"node": node or router, "user": "viv", "is_owner": False}
    assert given.reply_to == reply_to


@pytest.mark.parametrize("name", ["$managements", "x/$management", "_topo/0/$management", "_topo/0/a/b/$management"])
def test_an_address_that_looks_similar_is_an_address_of_the_mesh(name: str) -> None:
    mesh = mesh_of(OPEN)
    observer, consumer = observer_at(mesh, "r1"), mesh.client("r2").receiver(name)
    mesh.run(1)
    sender = mesh.client("r1").sender(name)
    mesh.run(2)
    if sender.error is None:
        assert outcome_of(mesh, sender, request(None)) == ACCEPTED
        assert len(consumer.messages) == 1
    else:
        assert name.startswith("_topo")
    assert observer.messages == []


def test_no_client_can_name_another_user(mesh: SimMesh) -> None:
    """A client's message may have all fields that the router's own message around it has."""
    observer = observer_at(mesh, "r1")
    sender, reply_to = asks(mesh, "r1")
    inner = request(reply_to, node="r2", user="max", is_owner=True)
    assert (
        outcome_of(mesh, sender, encode(Message(inner, reply_to=reply_to, properties={"is_owner": True}))) == ACCEPTED
    )
    assert decode(observer.messages[0]).properties == {"node": "r1", "user": "viv", "is_owner": False}


@pytest.mark.parametrize("address", [REQUESTS_ADDRESS, "_amqpmesh/management/r1"])
@pytest.mark.parametrize("user", ["max", "eve", None])
def test_no_client_reaches_the_addresses_between_router_and_observer(
    mesh: SimMesh, address: str, user: str | None
) -> None:
    observer = observer_at(mesh, "r1")
    client = mesh.client("r1", user=user)
    ends = client.receiver(address), client.sender(address)
    mesh.run_until(lambda: all(each.error is not None for each in ends))
    assert [each.error.condition for each in ends] == ["amqp:unauthorized-access"] * 2
    relay = mesh.client("r1", user=user).sender(None)
    mesh.run_until(lambda: relay.link.credit > 0)
    relay.send(bytes(ProtonMessage(address=address).encode()))
    mesh.run(1)
    assert observer.messages == []


@pytest.mark.parametrize("user", ["eve", None])
def test_a_user_without_a_right_is_refused_with_what_is_missing(mesh: SimMesh, user: str | None) -> None:
    observer_at(mesh, "r1")
    sender, _ = asks(mesh, "r1", user=user)
    assert sender.error.condition == "amqp:unauthorized-access"
    assert "may not manage the mesh: expected a user with `view`, `browse` or `manage`" in sender.error.description


def test_everybody_may_ask_in_a_mesh_without_users() -> None:
    mesh = mesh_of(OPEN)
    observer = observer_at(mesh, "r1")
    sender, reply_to = asks(mesh, "r1", user=None)
    assert outcome_of(mesh, sender, request(reply_to)) == ACCEPTED
    assert decode(observer.messages[0]).properties == {"node": "r1", "is_owner": False}


@pytest.mark.parametrize("address", ["$management", "_topo/0/r2/$management"])
def test_without_an_observer_the_attach_is_refused_with_what_to_do(mesh: SimMesh, address: str) -> None:
    observer_at(mesh, "r2")
    sender, _ = asks(mesh, "r1", address)
    assert sender.error.condition == "amqp:not-found"
    assert "start one with `amqpmesh watch`" in sender.error.description


def test_a_client_that_comes_before_the_observer_waits_for_it(mesh: SimMesh) -> None:
    client = mesh.client("r1", user="viv")
    replies, sender = client.receiver(None, dynamic=True), client.sender("$management")
    mesh.run(OBSERVER_S / 2)
    assert (sender.link.is_open, sender.error) == (False, None)
    observer = observer_at(mesh, "r1")
    mesh.run_until(lambda: sender.link.credit > 0)
    assert outcome_of(mesh, sender, request(replies.link.remote_source.address)) == ACCEPTED
    assert len(observer.messages) == 1
    mesh.run(OBSERVER_S)
    assert sender.error is None


def test_a_client_that_leaves_while_it_waits_for_an_observer_is_forgotten(mesh: SimMesh) -> None:
    client, other = mesh.client("r1", user="viv"), mesh.client("r1", user="viv")
    waiting, left = client.sender("$management"), other.sender("$management")
    mesh.run(OBSERVER_S / 2)
    left.link.close()
    mesh.touch(other)
    mesh.cut(client.pipe)
    mesh.run(OBSERVER_S / 4)
    observer_at(mesh, "r1")
    mesh.run(OBSERVER_S)
    assert not waiting.link.is_open
    sender, reply_to = asks(mesh, "r1")
    assert outcome_of(mesh, sender, request(reply_to)) == ACCEPTED


def test_a_client_that_asks_without_a_pause_is_served_at_a_pace(mesh: SimMesh) -> None:
    observer = observer_at(mesh, "r1", credit=1000)
    sender, reply_to = asks(mesh, "r1")
    for _ in range(BURST):
        outcome_of(mesh, sender, request(reply_to))
    began = mesh.now
    for _ in range(40):
        assert outcome_of(mesh, sender, request(reply_to)) == ACCEPTED
    # Some places came back while the first requests were answered.
    assert 30 * REQUEST_S <= mesh.now - began <= 42 * REQUEST_S
    assert len(observer.messages) == BURST + 40
    mesh.run(BURST * REQUEST_S)
    began = mesh.now
    for _ in range(BURST):
        outcome_of(mesh, sender, request(reply_to))
    assert mesh.now - began < BURST * REQUEST_S / 2


def test_more_requests_than_can_wait_are_rejected_and_those_before_come_in_order(mesh: SimMesh) -> None:
    observer = observer_at(mesh, "r1", credit=1000)
    asking = [asks(mesh, "r1") for _ in range(BURST // CREDIT + MAX_PACED // CREDIT + 2)]
    numbered = [
        (sender, mesh.send(sender, request(reply_to, number=number * CREDIT + each)))
        for number, (sender, reply_to) in enumerate(asking)
        for each in range(CREDIT)
    ]
    mesh.run_until(lambda: all(number in sender.outcomes for sender, number in numbered))
    kinds = [sender.outcomes[number].kind for sender, number in numbered]
    assert kinds.count(OutcomeCode.ACCEPTED) == len(observer.messages) >= BURST + MAX_PACED
    assert kinds.count(OutcomeCode.REJECTED) == len(kinds) - len(observer.messages) > 0
    refused = next(sender.outcomes[number] for sender, number in numbered if sender.outcomes[number].error is not None)
    assert refused.error.condition == "amqp:resource-limit-exceeded"
    mesh.run(BURST * REQUEST_S)
    sender, number = asking[0][0], mesh.send(asking[0][0], request(asking[0][1]))
    mesh.run_until(lambda: number in sender.outcomes)
    assert sender.outcomes[number] == ACCEPTED


def test_a_request_is_rejected_when_the_observer_goes_before_or_after_it(mesh: SimMesh) -> None:
    observer = observer_at(mesh, "r1")
    observer.accepts = False
    sender, reply_to = asks(mesh, "r1")
    before = mesh.send(sender, request(reply_to))
    mesh.run_until(lambda: bool(observer.held))
    assert before not in sender.outcomes
    observer.link.close()
    mesh.run(1)
    after = mesh.send(sender, request(reply_to))
    mesh.run(1)
    for number in (before, after):
        assert sender.outcomes[number].kind is OutcomeCode.REJECTED
        assert "start one with `amqpmesh watch`" in sender.outcomes[number].error.description
    observer_at(mesh, "r1")
    assert outcome_of(mesh, sender, request(reply_to)) == ACCEPTED


def test_the_outcome_is_that_of_the_observer(mesh: SimMesh) -> None:
    observer = observer_at(mesh, "r1")
    observer.accepts = False
    sender, reply_to = asks(mesh, "r1")
    number = mesh.send(sender, request(reply_to))
    mesh.run_until(lambda: bool(observer.held))
    observer.settle(rejected("amqp:decode-error", "no such thing"))
    observer.link.endpoint.mark_dirty()
    mesh.run(1)
    assert sender.outcomes[number].error.description == "no such thing"


def test_an_observer_that_takes_no_more_has_the_client_ask_again(mesh: SimMesh) -> None:
    observer = observer_at(mesh, "r1", credit=1)
    observer.accepts = False
    sender, reply_to = asks(mesh, "r1")
    mesh.send(sender, request(reply_to))
    found = outcome_of(mesh, sender, request(reply_to))
    assert (found.kind, found.error.condition) == (OutcomeCode.REJECTED, "amqp:resource-limit-exceeded")
    assert "ask again" in found.error.description
    assert len(observer.messages) == 1


@pytest.mark.parametrize(
    "reply_to", [None, "a.b", "orders", "_amqpmesh/control", "_topo/0/r1/$management", "_topo/0/r1"]
)
def test_the_answer_goes_to_a_dynamic_address_only(mesh: SimMesh, reply_to: str | None) -> None:
    """The observer may send to every address, and a client must not send through it to where the client may not."""
    observer = observer_at(mesh, "r1")
    sender, _ = asks(mesh, "r1")
    found = outcome_of(mesh, sender, request(reply_to))
    assert (found.kind, found.error.condition) == (OutcomeCode.REJECTED, "amqp:invalid-field")
    assert "expected the address of a dynamic source of this mesh" in found.error.description
    assert observer.messages == []


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x00\x53\x73", b"not a message", bytes(1000), b"\x00\x53\x73\xc0\xff"]
)
def test_bytes_that_are_not_a_message_are_rejected(mesh: SimMesh, data: bytes) -> None:
    observer = observer_at(mesh, "r1")
    sender, reply_to = asks(mesh, "r1")
    found = outcome_of(mesh, sender, data)
    assert found.kind is OutcomeCode.REJECTED
    assert found.error.description
    assert outcome_of(mesh, sender, request(reply_to)) == ACCEPTED
    assert len(observer.messages) == 1


def test_a_request_that_is_too_large_ends_the_link(mesh: SimMesh) -> None:
    observer = observer_at(mesh, "r1")
    sender, reply_to = asks(mesh, "r1")
    mesh.send(sender, encode(Message("x" * REQUEST_BYTES, reply_to=reply_to)))
    mesh.run_until(lambda: sender.error is not None)
    assert sender.error.condition == "amqp:link:message-size-exceeded"
    assert observer.messages == []


def test_a_pre_settled_request_is_given_too_and_a_refusal_ends_the_link(mesh: SimMesh) -> None:
    observer = observer_at(mesh, "r1")
    sender, reply_to = asks(mesh, "r1")
    mesh.send(sender, request(reply_to), settled=True)
    mesh.run(1)
    assert len(observer.messages) == 1
    mesh.send(sender, request(None), settled=True)
    mesh.run_until(lambda: sender.error is not None)
    assert "reply-to of the request is none" in sender.error.description


@pytest.mark.parametrize("who_goes", ["client", "observer"])
def test_a_lost_connection_with_a_request_under_way_leaves_a_router_that_answers(mesh: SimMesh, who_goes: str) -> None:
    observer = observer_at(mesh, "r1")
    observer.accepts = False
    sender, reply_to = asks(mesh, "r1")
    mesh.send(sender, request(reply_to))
    mesh.run_until(lambda: bool(observer.held))
    clients = {"client": sender, "observer": observer}
    pipe = next(
        each.pipe
        for each in mesh.nodes
        if isinstance(each, SimClient) and clients[who_goes] in [*each.senders, *each.receivers]
    )
    mesh.cut(pipe)
    mesh.run(1)
    if who_goes == "client":
        observer.settle()
        observer.link.endpoint.mark_dirty()
        mesh.run(1)
    else:
        observer_at(mesh, "r1")
    again, reply_to = asks(mesh, "r1")
    observer.accepts = True
    assert outcome_of(mesh, again, request(reply_to)) == ACCEPTED


def test_the_address_of_a_node_reaches_its_observer_from_everywhere(mesh: SimMesh) -> None:
    """Observers of two hosts pass requests on over an address of the mesh."""
    serving = observer_at(mesh, "r2").link.endpoint
    node = next(each for each in mesh.nodes if isinstance(each, SimClient) and each.endpoint is serving)
    receiver = node.receiver("_amqpmesh/management/r2")
    mesh.run(1)
    other = observer_at(mesh, "e1").link.endpoint
    client = next(each for each in mesh.nodes if isinstance(each, SimClient) and each.endpoint is other)
    sender = client.sender("_amqpmesh/management/r2")
    assert outcome_of(mesh, sender, request("amqp:/_topo/0/r1/temp.t1")) == ACCEPTED
    assert len(receiver.messages) == 1
