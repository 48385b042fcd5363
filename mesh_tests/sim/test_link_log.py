"""What does the link log hear of a router's connections, links, neighbors and paths?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from addressing.topology.model import Topology
from linklogs.writer.live_state import LiveState
from mesh.simulation.clients import SimClient
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Record, Ring, read_ring
from mesh_tests.sim.line import ADDRESSES, line
from mesh_tests.sim.recorded import router, told
from recording import ring_format as layout
from recording.recorder import recording
from recording.records import Recorder
from router.circuits.spec import CIRCUIT
from wire.delivery import ACCEPTED
from wire.endpoint import Peer
from wire.errors import AmqpError
from wire.link import RECEIVE_FIRST, RECEIVE_SECOND, SEND_MIXED, SEND_SETTLED, SEND_UNSETTLED
from wire.message import Message, encode
from wire.terminus import source, target
from wire.transport.tls import TlsAgreement

PATIENT_S = 1.5


def test_a_client_is_told_of_once_it_says_who_it_is_and_when_it_goes(ring: Ring):
    mesh = router(ring)
    client = mesh.client("r1")
    mesh.run(0.1)
    (opened,) = told(ring, "connection")
    assert opened["event"] == "opened"
    assert opened["role"] == "client"
    assert opened["container"] == client.endpoint.settings.container_id
    mesh.cut(client.pipe)
    mesh.run(0.1)
    (closed,) = told(ring, "connection")
    assert (closed["event"], closed["connection"]) == ("closed", opened["connection"])
    assert closed["cause"]


def test_a_connection_is_told_of_with_how_it_was_made(ring: Ring):
    mesh = router(ring)
    peer = Peer("alice", listener="clients", mechanism="PLAIN", tls=TlsAgreement("TLSv1.3", "TLS_AES_256_GCM_SHA384"))
    node, client = mesh.routers["r1"], SimClient(mesh, "client")
    mesh.add(client)
    mesh.join((client, client.endpoint), (node, node.on_accepted("clients", peer, mesh.now)))
    mesh.client("r1")
    mesh.run(0.1)
    by_user = {row.get("user"): row for row in told(ring, "connection")}
    names = ("direction", "mechanism", "tls_version", "tls_cipher")
    assert [by_user["alice"][name] for name in names] == ["incoming", "PLAIN", "TLSv1.3", "TLS_AES_256_GCM_SHA384"]
    assert [by_user[None].get(name) for name in names] == ["incoming", None, None, None]


def test_one_of_two_routers_accepted_the_connection_between_them_and_the_other_dialed():
    rings = {name: Ring(4096) for name in ("r1", "r2")}
    line(2, recorder_of=lambda name: Recorder(rings[name].memory, "full"))
    directions = {name: {row["direction"] for row in told(ring, "connection")} for name, ring in rings.items()}
    assert directions == {"r1": {"outgoing"}, "r2": {"incoming"}}


@pytest.mark.parametrize(
    ("modes", "words"),
    [
        ((SEND_SETTLED, RECEIVE_FIRST), ("settled", "first")),
        ((SEND_UNSETTLED, RECEIVE_SECOND), ("unsettled", "second")),
        ((SEND_MIXED, RECEIVE_FIRST), ("mixed", "first")),
    ],
)
def test_links_are_told_of_with_the_settle_modes_that_the_client_asked_for(
    ring: Ring, modes: tuple[int, int], words: tuple[str, str]
):
    mesh = router(ring)
    mesh.client("r1").receiver("rpc", modes=modes)
    mesh.run(0.1)
    (opened,) = told(ring, "link")
    assert (opened["sender_settle_mode"], opened["receiver_settle_mode"]) == words


def test_links_are_told_of_by_the_numbers_that_records_of_deliveries_have(ring: Ring):
    mesh = router(ring)
    mesh.client("r1").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, b"x")
    mesh.run_until(lambda: bool(sender.outcomes))
    records, rows = ring.take()
    links = {row["role"]: row for row in rows if row["kind"] == "link"}
    assert {role: (row["direction"], row["address"], row["treatment"]) for role, row in links.items()} == {
        "producer": ("incoming", "rpc", "balanced"),
        "consumer": ("outgoing", "rpc", "balanced"),
    }
    (found,) = records
    assert (found.incoming, found.outgoing) == (links["producer"]["link"], links["consumer"]["link"])
    connections = {row["connection"] for row in rows if row["kind"] == "connection"}
    assert {row["connection"] for row in links.values()} == connections


def test_a_link_that_is_detached_is_told_of_with_its_reason_and_only_once(ring: Ring):
    mesh = router(ring)
    client = mesh.client("r1")
    sender = client.sender("rpc")
    mesh.run(0.1)
    (opened,) = told(ring, "link")
    sender.link.close()
    mesh.flush()
    mesh.run(0.1)
    (closed,) = told(ring, "link")
    assert (closed["event"], closed["link"]) == ("closed", opened["link"])
    mesh.cut(client.pipe)
    mesh.run(0.1)
    assert told(ring, "link") == []


@pytest.mark.parametrize(
    ("condition", "cause"), [("amqp:resource-deleted", "amqp:resource-deleted"), ("alice", "by the peer: alice")]
)
def test_a_reason_that_a_client_made_up_is_told_as_its_own(ring: Ring, condition: str, cause: str):
    mesh = router(ring)
    sender = mesh.client("r1").sender("rpc")
    mesh.run(0.1)
    told(ring, "link")
    sender.link.close(AmqpError(condition, "of bob"))
    mesh.flush()
    mesh.run(0.1)
    assert [row["cause"] for row in told(ring, "link")] == [cause]


def test_links_end_with_their_connection(ring: Ring):
    mesh = router(ring)
    client = mesh.client("r1")
    client.receiver("rpc")
    client.sender("rpc")
    mesh.run(0.1)
    opened = {row["link"] for row in told(ring, "link")}
    mesh.cut(client.pipe)
    mesh.run(0.1)
    closed = [row for row in ring.take()[1] if row["kind"] in ("link", "connection")]
    assert [row["kind"] for row in closed] == ["link", "link", "connection"]
    assert {row["link"] for row in closed[:2]} == opened
    # No path was lost: its links went because it did.
    assert len({row["cause"] for row in closed}) == 1


def test_each_address_that_a_sender_without_one_sends_to_counts_as_a_link(ring: Ring):
    mesh = router(ring)
    for address in ("rpc", "near"):
        mesh.client("r1").receiver(address)
    client = mesh.client("r1")
    sender = client.sender(None)
    mesh.run(0.1)
    told(ring, "link")
    for address in ("rpc", "near"):
        mesh.send(sender, encode(Message(to=address, body="x")))
    mesh.run_until(lambda: len(sender.outcomes) == 2)
    records, rows = ring.take()
    by_number = {row["link"]: row["address"] for row in rows if row["kind"] == "link"}
    assert sorted(by_number[each.incoming] for each in records) == ["near", "rpc"]
    mesh.cut(client.pipe)
    mesh.run(0.1)
    assert {row["link"] for row in told(ring, "link")} >= by_number.keys()


def test_alike_deliveries_of_a_second_are_one_record_at_level_summary(ring: Ring):
    mesh = router(ring, "summary")
    mesh.client("r1").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    for _ in range(20):
        mesh.send(sender, bytes(100))
    mesh.run_until(lambda: len(sender.outcomes) == 20)
    mesh.run(PATIENT_S)
    mesh.send(sender, bytes(100))
    mesh.run_until(lambda: len(sender.outcomes) == 21)
    records, _ = ring.take()
    assert {each.kind for each in records} == {layout.TRAFFIC}
    assert len(records) < 20
    assert sum(each.count for each in records) == 20
    assert sum(each.size_bytes for each in records) == 2000
    assert all(each.start_us % 1_000_000 == 0 for each in records)


def test_an_address_may_have_a_level_of_its_own(ring: Ring):
    levels = {
        "quiet": {"type": "anycast", "link_log": "off"},
        "loud": {"type": "anycast", "link_log": "full"},
    }
    mesh = router(ring, "summary", addresses=levels)
    senders = []
    for address in ("quiet", "loud", "rpc"):
        mesh.client("r1").receiver(address)
        senders.append(mesh.client("r1").sender(address))
    for sender in senders:
        mesh.send(sender, b"x")
    mesh.run_until(lambda: all(sender.outcomes for sender in senders))
    mesh.run(PATIENT_S)
    mesh.client("r1").receiver("rpc")
    mesh.run(0.1)
    records, rows = ring.take()
    addresses = {row["link"]: row["address"] for row in rows if row["kind"] == "link"}
    assert sorted((addresses[each.incoming], each.kind) for each in records) == [
        ("loud", layout.DELIVERY),
        ("rpc", layout.TRAFFIC),
    ]


def test_what_has_no_room_is_dropped_and_counted_and_nothing_else_is_harmed(ring: Ring):
    small = Ring(8)
    mesh = router(small)
    mesh.client("r1").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    for _ in range(100):
        mesh.send(sender, b"x")
    mesh.run_until(lambda: len(sender.outcomes) == 100)
    records, rows = small.take()
    assert len(records) + small.number(layout.DROPPED_AT) + len(rows) >= 100
    assert small.number(layout.WRITTEN_AT) <= 8
    mesh.send(sender, b"x")
    mesh.run_until(lambda: len(sender.outcomes) == 101)
    (last,) = small.take()[0]
    assert isinstance(last, Record)
    assert last.kind == layout.DELIVERY


@pytest.mark.parametrize(("level", "own", "count"), [("full", "off", 0), ("off", "full", 4), ("full", "full", 4)])
@pytest.mark.parametrize("who", ["r1", "r2", "r3"])
def test_links_of_an_address_are_told_of_at_its_own_level_at_each_router(
    ring: Ring, level: str, own: str, count: int, who: str
):
    model = {"mesh": "line", "node_tls": False, "addresses": {"rpc": {"type": "anycast", "link_log": own}}}
    routers = {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}}
    recorders = {name: Recorder(ring.memory, level) if name == who else Recorder() for name in routers}
    mesh = SimMesh({**model, "routers": routers}, recorder_of=recorders.__getitem__)
    mesh.converge()
    receiver = mesh.client("r3").receiver("rpc", credit=10)
    receiver.accepts = receiver.tops_up = False
    sender = mesh.client("r1").sender("rpc")
    mesh.run(3.0)
    for _ in range(4):
        mesh.send(sender, b"x")
    for _ in range(14):
        mesh.run(1.0)
        mesh.tell_second(who)
    rows = [row for row in told(ring, "credit") if "unsettled_count" in row]
    assert max((row["unsettled_count"] for row in rows), default=0) == count
    if own == "off":
        assert rows == []


def test_a_router_that_is_stopped_says_so_behind_all_that_it_closes_and_one_that_is_killed_does_not(tmp_path: Path):
    model = {"mesh": "one", "node_tls": False, "routers": {"r1": {}}, "addresses": ADDRESSES, "link_logs": "full"}
    topology = Topology.model_validate(model)
    for name, is_stopped in (("stopped", True), ("killed", False)):
        with recording(topology, "r1", "router", tmp_path / name, lambda event: None) as (recorder, _):
            mesh = SimMesh(topology, recorder_of={"r1": recorder}.__getitem__)
            client = mesh.client("r1")
            client.sender("rpc")
            mesh.run(0.1)
            (path,) = (tmp_path / name).glob("*.ring")
            found = read_ring(path)
            if is_stopped:
                mesh.cut(client.pipe)
                mesh.tell_second("r1")
        found = read_ring(path) if is_stopped else found
        events = [(row["kind"], row["event"]) for row in found if row["kind"] != "credit"]
        opened = [("connection", "opened"), ("link", "opened")]
        ends = [("link", "closed"), ("connection", "closed"), ("node", "closed")]
        assert events == (opened + ends if is_stopped else opened)


def test_what_goes_on_after_the_ring_is_gone_is_not_recorded_and_harms_nobody(ring: Ring):
    recorder = Recorder(ring.memory, "full")
    mesh = line(1, recorder_of=lambda name: recorder)
    receiver = mesh.client("r1").receiver("rpc")
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, b"x")
    mesh.run_until(lambda: bool(receiver.held))
    recorder.close()
    before = ring.number(layout.WRITTEN_AT)
    receiver.settle(ACCEPTED)
    mesh.flush()
    mesh.run_until(lambda: bool(sender.outcomes))
    assert ring.number(layout.WRITTEN_AT) == before


@pytest.mark.parametrize(
    "text", ["garbage", '{"phase": 1e999}', '{"kind": "anycast", "address": "a", "ingress": "r9"}']
)
def test_what_a_client_says_of_circuits_is_not_believed(ring: Ring, text: str):
    mesh = router(ring)
    client = mesh.client("r1")
    mesh.run(0.1)
    link = client.endpoint.begin().sender("evil")
    link.set_target(target("rpc"))
    link.set_source(source(None))
    link.set_property(CIRCUIT, text)
    link.open()
    mesh.flush()
    mesh.run(0.5)
    (told_of,) = told(ring, "link")
    assert (told_of["name"], told_of.get("ingress"), told_of.get("path")) == ("evil", None, None)
    assert client.endpoint.is_open


def test_the_first_messages_to_an_address_are_recorded_at_its_level_too(ring: Ring):
    levels = {"quiet": {"type": "anycast", "link_log": "off"}, "loud": {"type": "anycast", "link_log": "full"}}
    mesh = router(ring, "summary", addresses=levels)
    for address in levels:
        mesh.client("r1").receiver(address)
    sender = mesh.client("r1").sender(None)
    mesh.run(0.1)
    for address in levels:
        mesh.send(sender, encode(Message(to=address, body="x")))
    mesh.run_until(lambda: len(sender.outcomes) == 2)
    mesh.run(PATIENT_S)
    mesh.client("r1")
    mesh.run(0.1)
    assert [each.kind for each in ring.take()[0]] == [layout.DELIVERY]


def live_after(rows: list[dict[str, Any]]) -> dict[str, set[Any]]:
    """What a reader takes to be there, by kind."""
    live = LiveState({})
    for row in rows:
        live.on_row(row, 0)
    found: dict[str, set[Any]] = {}
    for row in live.rows(0, 0)[1:]:
        found.setdefault(str(row["kind"]), set()).add(row[str(row["kind"])])
    return found


def test_what_came_and_went_while_there_was_no_room_is_known_once_there_is_some(ring: Ring):
    small = Ring(64)
    mesh = router(small)
    stays, goes = mesh.client("r1"), mesh.client("r1")
    kept = stays.receiver("rpc")
    goes.sender("rpc")
    mesh.run(0.1)
    told_before = small.take()[1]
    ghosts = live_after(told_before)
    for _ in range(20):
        mesh.client("r1").sender("rpc")
    mesh.cut(goes.pipe)
    passing = mesh.client("r1")
    passing.sender("rpc")
    mesh.run(0.1)
    mesh.cut(passing.pipe)
    kept.link.close()
    mesh.flush()
    mesh.run(0.1)
    assert small.number(layout.DROPPED_AT) > 0
    rows = told_before + small.take()[1]
    for _ in range(100):
        mesh.tell_second("r1")
        rows += small.take()[1]
    found = live_after(rows)
    assert len(found["connection"]) == 21
    assert len(found["link"]) == 20
    assert ghosts["connection"] - found["connection"] != set()
    assert ghosts["link"] & found["link"] == set()
    mesh.tell_second("r1")
    assert [row for row in small.take()[1] if row["kind"] != "credit"] == []
