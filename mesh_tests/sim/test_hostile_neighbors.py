"""What does a router do with a neighbor that lies, or speaks nonsense, at its node port?"""

from __future__ import annotations

from typing import Any

import pytest

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import ADDRESSES, line
from router.circuits import neighbor
from router.circuits.neighbor import CONTROL, NeighborConnection
from router.circuits.spec import CIRCUIT
from router.connections.peers import EDGE_ROLE, INSTANCE, ROLE, ROUTER_ROLE
from router.routing.events import ControlMessageRefused
from router.routing.fields import texts
from wire import delivery as deliveries
from wire.endpoint import Endpoint, Peer
from wire.events import Closed, LinkAttached, LinkDetached
from wire.link import IncomingLink
from wire.message import Message, encode
from wire.terminus import source, target
from wire.transport.tls import Role


class Impostor(SimClient):
    """It answers the attaches of the router, as a neighbor does."""

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        for event in endpoint.drain(self):
            match event:
                case LinkAttached(link):
                    link.owner = SimReceiver(link, None) if isinstance(link, IncomingLink) else SimSender(link)
                    link.accept_as_proposed()
                    if isinstance(link, IncomingLink):
                        link.grant(1000)
                case LinkDetached(link, _, error):
                    link.owner.error = error or "detached"
                    link.close()
                case Closed(error):
                    self.closed = error or "closed"


def stranger(
    mesh: SimMesh, name: str = "r9", *, role: str | None = ROUTER_ROLE, certificate: str | None = None
) -> SimClient:
    """A peer at r1's node port that says in OPEN it is router ``name``. ``certificate``: whose it shows."""
    properties: dict[str, Any] = {INSTANCE: 7, **({ROLE: role} if role else {})}
    client = Impostor(mesh, name, properties=properties)
    node = mesh.routers["r1"]
    peer = Peer(is_mesh=True, mesh_name=certificate, mesh_role=Role.ROUTER if certificate else None)
    mesh.add(client)
    client.pipe = mesh.join((client, client.endpoint), (node, node.on_accepted("nodes", peer, mesh.now)))
    mesh.run(0.05)
    return client


def control_link(client: SimClient, name: str = CONTROL) -> SimSender:
    link = client.begin().sender(name)
    link.set_source(source(None))
    link.set_target(target(None, capabilities=(CONTROL,)))
    sender = link.owner = SimSender(link)
    link.open()
    client._settle()
    client.world.run(0.05)
    return sender


def say(mesh: SimMesh, sender: SimSender, data: bytes) -> None:
    sender.send(data, settled=True)
    mesh.run(0.05)


def still_forwards(mesh: SimMesh) -> None:
    receiver = mesh.client("r2", "bystander-c").receiver("rpc")
    sender = mesh.client("r1", "bystander-p").sender("rpc")
    mesh.send(sender, b"still here")
    mesh.run_until(lambda: receiver.messages == [b"still here"])


HELLO = {"id": "r9", "pv": 1, "area": "0", "instance": 7, "seen": ["r1"], "cost": 1}


def control(opcode: str, **body: Any) -> bytes:
    return encode(Message(body={**HELLO, **body}, properties={"opcode": opcode}))


def test_a_router_shows_the_certificate_of_its_own_name() -> None:
    mesh = line(2)
    liar = stranger(mesh, "r9", certificate="r2")
    assert liar.closed.condition == "amqp:unauthorized-access"
    assert "router 'r9', and its certificate is for 'r2'" in liar.closed.description
    assert stranger(mesh, "r9", certificate="r9").closed is None


def test_an_uplink_that_is_not_an_interior_router_is_left() -> None:
    mesh = SimMesh({"mesh": "m", "node_tls": False, "routers": {"e1": {"mode": "edge", "connect": ["r1"]}, "r1": {}}})
    mesh.converge()
    edge = mesh.routers["e1"]
    impostor = Impostor(mesh, "x1", properties={ROLE: EDGE_ROLE, INSTANCE: 7})
    mesh.add(impostor)
    mesh.join((edge, edge.on_connected("router:r1", Peer(is_mesh=True), mesh.now)), (impostor, impostor.endpoint))
    mesh.run(0.1)
    assert impostor.closed.condition == "amqp:not-allowed"
    assert "of this edge router is not an interior router" in impostor.closed.description


def test_a_second_control_link_is_refused_and_the_first_one_goes_on() -> None:
    mesh = line(2)
    peer = stranger(mesh)
    first, second = control_link(peer), control_link(peer, "another")
    assert second.error.condition == "amqp:not-allowed"
    say(mesh, first, control("HELLO"))
    assert peer.closed is None
    still_forwards(mesh)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"nonsense",
        b"\x00\x53\x77\xa1\x02\xff\xfe",
        b"\x00\x53\x77\x73\xff\xff\xff\xff",
        b"\x00\x53\x74\xc1\x0f\x02\xa1\x06opcode\xa1\x03LSU\x00\x53\x77\xc1\x05\x02\x45\x40",
        control("LSU", ls_seq=1, ls={"peers": {"r1": "x"}}),
        control("LSR", have={"r1": [1]}),
        control("MAU", mobile_seq=1, exist="[" * 5000),
        control("HELLO", seen="x", cost=0),
    ],
    ids=lambda message: repr(message[:24]),
)
def test_a_malformed_control_message_ends_its_connection_alone(message: bytes) -> None:
    mesh = line(2)
    peer = stranger(mesh)
    sender = control_link(peer)
    say(mesh, sender, control("HELLO"))
    if not message:
        sender.begin()
        sender.link.finish()
        mesh.flush()
        mesh.run(0.05)
    else:
        say(mesh, sender, message)
    assert peer.closed is not None
    assert peer.closed.condition in ("amqp:decode-error", "amqp:invalid-field")
    still_forwards(mesh)


@pytest.mark.parametrize(
    "message",
    [
        b"\x00\x53\x77",
        b"\x00\x53\x77\xd1\xff\xff\xff\xff\x00\x00\x00\x02\x40\x40",
        b"\x00\x53\x77" + b"\xc0\x08\x01" * 40 + b"\x40",
        control("LATER", anything=1),
    ],
    ids=["no body", "false size", "nested", "later opcode"],
)
def test_a_control_message_without_a_known_opcode_is_ignored(message: bytes) -> None:
    mesh = line(2)
    peer = stranger(mesh)
    sender = control_link(peer)
    say(mesh, sender, control("HELLO"))
    say(mesh, sender, message)
    assert any(isinstance(event, ControlMessageRefused) for _, _, event in mesh.log)
    still_forwards(mesh)


def test_a_control_message_without_an_end_is_not_kept_beyond_the_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbor, "MAX_CONTROL_BYTES", 100_000)
    mesh = line(2)
    peer = stranger(mesh)
    sender = control_link(peer)
    sender.begin()
    sent = 0
    while peer.closed is None and sent < 1_000_000:
        sender.link.send(bytes(10_000))
        sent += 10_000
        mesh.flush()
        mesh.run(0.01)
    assert peer.closed.condition == "amqp:link:message-size-exceeded"
    assert sent < 300_000
    still_forwards(mesh)


def test_the_largest_control_message_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    message = control("MAU", mobile_seq=1, exist=[f"M0rpc.{number}" for number in range(5_000)])
    monkeypatch.setattr(neighbor, "MAX_CONTROL_BYTES", len(message))
    mesh = line(2)
    peer = stranger(mesh)
    sender = control_link(peer)
    say(mesh, sender, control("HELLO"))
    say(mesh, sender, control("LSU", ls_seq=1, ls={"peers": {"r1": 1}}))
    say(mesh, sender, message)
    mesh.run(0.2)
    assert peer.closed is None


def test_a_neighbor_with_another_topology_harms_no_address_of_this_mesh() -> None:
    """It knows routers and addresses that this mesh has not declared, and says that it has takers of all."""
    mesh = line(2)
    peer = stranger(mesh)
    sender = control_link(peer)
    say(mesh, sender, control("HELLO"))
    say(mesh, sender, control("LSU", ls_seq=1, ls={"peers": {"r1": 1, "somewhere": 1}}))
    say(
        mesh,
        sender,
        control(
            "MAU",
            mobile_seq=1,
            exist=["M0undeclared", "Zrpc", "", "B:b7", "E:r2", "M7rpc", "X0rpc", "M", "B:", "E", "M٣rpc"],
        ),
    )
    assert peer.closed is None
    still_forwards(mesh)
    mesh.client("r1", "p").sender("undeclared")
    mesh.run(3)
    still_forwards(mesh)


def test_an_edge_router_hears_of_malformed_keys_that_they_have_no_taker(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ["", "M", "M0", "Zrpc", "B:b7", "E:r2", "M٣rpc", "X0rpc", "M0undeclared", "M0closed"]
    answers: dict[str, str] = {}

    def note(self: NeighborConnection, opcode: str, body: dict[str, Any]) -> None:
        if opcode == "REACH":
            answers.update({key: level for level in ("none", "taken") for key in texts(body, level)})

    monkeypatch.setattr(NeighborConnection, "send_control", note)
    mesh = SimMesh({"mesh": "m", "node_tls": False, "routers": {"r1": {}}, "addresses": ADDRESSES})
    peer = stranger(mesh, "e9", role=EDGE_ROLE)
    sender = control_link(peer)
    say(mesh, sender, control("HELLO", id="e9"))
    say(mesh, sender, control("MAU", id="e9", mobile_seq=1, exist=keys))
    say(mesh, sender, control("ASK", id="e9", exist=keys))
    assert peer.closed is None
    assert answers == dict.fromkeys(keys, "none")


@pytest.mark.parametrize(
    "circuit",
    [
        "{}",
        "[]",
        "{",
        '{"kind":"anycast","address":"rpc","ingress":"r9","path":[]}',
        '{"kind":"anycast","address":"rpc","ingress":"r9","path":["r9","r2"]}',
        '{"kind":"anycast","address":"rpc","ingress":"r9","path":["r1","r9"]}',
        '{"kind":"route","address":"rpc","ingress":"r9","path":["r9","r1"],"broker":"b"}',
        '{"kind":"multicast","address":"prices","ingress":"r1","tree":{"r2":{}}}',
        '{"kind":"anycast","address":"undeclared","ingress":"r9","path":["r9","r1"]}',
        '{"kind":"anycast","address":"rpc","ingress":"r9","path":["r9","r1"],"phase":9}',
    ],
)
@pytest.mark.parametrize("is_sender", [True, False])
def test_a_circuit_that_leads_nowhere_is_refused_or_waits_and_the_connection_stays(
    circuit: str, is_sender: bool
) -> None:
    mesh = line(2)
    peer = stranger(mesh)
    control_link(peer)
    link = (peer.begin().sender if is_sender else peer.begin().receiver)("c")
    link.set_source(source(None))
    link.set_target(target("rpc"))
    link.set_property(CIRCUIT, circuit)
    link.owner = SimSender(link)
    link.open()
    peer._settle()
    mesh.run(0.1)
    assert peer.closed is None
    if is_sender and link.owner.error is None and link.credit > 0:
        delivery = link.start(b"1")
        link.send(b"\x00\x53\x75\xa0\x01x")
        link.finish()
        deliveries.settle(delivery)
    mesh.run(1)
    assert peer.closed is None
    still_forwards(mesh)
