"""An edge router is a client of its active uplink: every row of credit and settlement holds for its clients."""

from __future__ import annotations

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.outcomes import told
from mesh_tests.sim.edges import with_edges
from wire.delivery import ACCEPTED, RELEASED, OutcomeCode, rejected
from wire.endpoint import Endpoint, Peer
from wire.errors import AmqpError

EVERYWHERE = ["e1", "e2", "e3", "r1", "r2", "r3"]


def test_an_edge_uses_the_uplink_it_prefers():
    mesh = with_edges()
    assert [mesh.routers[edge].snapshot().active_uplink for edge in ("e1", "e2", "e3")] == ["r1", "r1", "r3"]
    assert mesh.routers["r1"].snapshot().edges == ("e1", "e2")


@pytest.mark.parametrize("consumer", EVERYWHERE)
@pytest.mark.parametrize("producer", EVERYWHERE)
def test_what_is_sent_anywhere_is_settled_by_a_consumer_anywhere(producer: str, consumer: str):
    mesh = with_edges()
    receiver = mesh.client(consumer).receiver("rpc", credit=3)
    sender = mesh.client(producer).sender("rpc")
    numbers = [mesh.send(sender, b"%d" % n) for n in range(10)]
    mesh.run_until(lambda: len(sender.outcomes) == 10)
    assert receiver.taken == [b"%d" % n for n in range(10)]
    assert sender.outcomes == dict.fromkeys(numbers, ACCEPTED)


# Credit
@pytest.mark.parametrize("consumer", ["e1", "e2", "e3", "r1", "r2"])
def test_a_producer_at_an_edge_has_credit_when_a_consumer_comes_and_none_when_it_left(consumer: str):
    mesh = with_edges()
    sender = mesh.client("e1").sender("rpc")
    mesh.run(5)
    assert sender.link.credit == 0
    receiver = mesh.client(consumer).receiver("rpc", credit=5)
    mesh.run(0.3)
    assert sender.link.credit >= 5
    receiver.link.close()
    mesh.run(0.3)
    assert sender.link.credit == 0


def test_a_consumer_at_the_same_edge_alone_is_no_taker_elsewhere():
    """The uplink never gives back what came from there: the interior router has nobody for it."""
    mesh = with_edges()
    receiver = mesh.client("e1").receiver("rpc", credit=2)
    receiver.accepts = False
    sender = mesh.client("e1").sender("rpc")
    mesh.run(0.2)
    for n in range(5):
        if sender.link.credit:
            sender.send(b"%d" % n)
            mesh.run(0.1)
    mesh.run(3)
    assert sender.count == 3, "two that the consumer has credit for, and the float"
    assert all(address.unsettled == 0 for address in mesh.routers["r1"].snapshot().addresses)
    assert receiver.messages == [b"0", b"1"]
    assert sender.outcomes == {}


@pytest.mark.parametrize("producer", EVERYWHERE)
def test_when_the_last_consumer_of_an_edge_leaves_what_is_held_is_released(producer: str):
    mesh = with_edges()
    receiver = mesh.client("e1").receiver("rpc", credit=1)
    receiver.accepts = False
    sender = mesh.client(producer).sender("rpc")
    mesh.send(sender, b"taken")
    mesh.run_until(lambda: bool(receiver.held))
    mesh.send(sender, b"held")
    mesh.run(0.2)
    receiver.settle()
    mesh.run(0.2)
    receiver.link.close()
    mesh.run(6)
    assert sender.outcomes == {1: ACCEPTED, 2: RELEASED}
    assert sender.link.credit == 0


def test_an_edge_with_another_consumer_takes_what_was_held_for_one_that_left():
    mesh = with_edges()
    first = mesh.client("e1").receiver("rpc", credit=1)
    first.accepts = False
    sender = mesh.client("r2").sender("rpc")
    mesh.send(sender, b"taken")
    mesh.run_until(lambda: bool(first.held))
    mesh.send(sender, b"held")
    mesh.run(0.2)
    second = mesh.client("e2").receiver("rpc", credit=5)
    first.link.close()
    mesh.run_until(lambda: 2 in sender.outcomes)
    assert second.taken == [b"held"]
    assert sender.outcomes[2] == ACCEPTED


def test_a_delivery_lured_to_the_uplink_comes_back_for_a_consumer_at_the_edge():
    mesh = with_edges()
    far = mesh.client("r3").receiver("rpc", credit=0)
    near = mesh.client("e1").receiver("rpc", credit=0)
    sender = mesh.client("e1").sender("rpc")
    mesh.run(0.5)
    mesh.send(sender, b"lured")
    mesh.run(1)
    assert not far.messages
    near.link.grant(5)
    mesh.run_until(lambda: 1 in sender.outcomes, 15)
    assert near.taken == [b"lured"]


def test_a_delivery_lured_to_an_edge_comes_back_for_a_consumer_elsewhere():
    mesh = with_edges()
    resting = mesh.client("e1").receiver("rpc", credit=0)
    busy = mesh.client("r3").receiver("rpc", credit=0)
    sender = mesh.client("r2").sender("rpc")
    mesh.run(0.5)
    mesh.send(sender, b"1"), mesh.send(sender, b"2")
    mesh.run(1)
    busy.link.grant(5)
    mesh.run_until(lambda: len(sender.outcomes) == 2, 15)
    assert sorted(busy.taken) == [b"1", b"2"]
    assert not resting.messages


def test_what_went_up_for_a_consumer_that_left_is_released_though_one_at_the_same_edge_is_left():
    mesh = with_edges()
    left = mesh.client("r1").receiver("rpc", credit=0)
    mesh.client("e1").receiver("rpc", credit=0)
    sender = mesh.client("e1").sender("rpc")
    mesh.run(0.5)
    mesh.send(sender, b"lured")
    mesh.run(0.5)
    left.link.close()
    mesh.run(5)
    assert sender.outcomes == {1: RELEASED}


def test_nothing_goes_up_and_comes_back_to_the_same_edge():
    """What waits at the uplink is recalled for the consumer at the edge: it is the edge that sends it there."""
    mesh = with_edges()
    mesh.client("r1").receiver("rpc", credit=0)
    near = mesh.client("e1").receiver("rpc", credit=0)
    sender = mesh.client("e1").sender("rpc")
    mesh.run(0.5)
    mesh.send(sender, b"lured")
    mesh.run(0.5)
    near.link.grant(5)
    mesh.run_until(lambda: bool(sender.outcomes), 15)
    assert near.taken == [b"lured"]
    (at_uplink,) = (each for each in mesh.routers["r1"].snapshot().addresses if each.address == "rpc")
    assert at_uplink.deliveries_out == 0


# Settlement
def test_outcomes_pass_unchanged():
    mesh = with_edges()
    receiver = mesh.client("e3").receiver("rpc", credit=5)
    receiver.accepts = False
    sender = mesh.client("e1").sender("rpc")
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    receiver.settle(rejected("app:wrong", "no such order"))
    mesh.run_until(lambda: bool(sender.outcomes))
    assert told(sender.outcomes[1]) == told(rejected("app:wrong", "no such order"))


def test_presettled_deliveries_arrive_in_order():
    mesh = with_edges()
    receiver = mesh.client("e3").receiver("rpc", credit=20)
    sender = mesh.client("e1").sender("rpc")
    for n in range(20):
        mesh.send(sender, b"%d" % n, settled=True)
    mesh.run_until(lambda: len(receiver.messages) == 20)
    assert receiver.messages == [b"%d" % n for n in range(20)]


def test_a_consumer_that_is_lost_leaves_its_deliveries_in_doubt():
    mesh = with_edges()
    client = mesh.client("e3")
    receiver = client.receiver("rpc", credit=5)
    receiver.accepts = False
    sender = mesh.client("e1").sender("rpc")
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    mesh.cut(client.pipe)
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes[1].kind is OutcomeCode.MODIFIED
    assert sender.outcomes[1].delivery_failed


@pytest.mark.parametrize("producer", ["e1", "e2", "r1", "r2"])
def test_a_consumer_that_is_lost_has_its_deliveries_sent_again_if_the_address_says_so(producer: str):
    mesh = with_edges()
    client = mesh.client("e3")
    lost = client.receiver("again", credit=5)
    lost.accepts = False
    sender = mesh.client(producer).sender("again")
    message = b"\x00\x53\x77\xa1\x01x"
    mesh.send(sender, message)
    mesh.run_until(lambda: bool(lost.held))
    other = mesh.client("e1").receiver("again", credit=5)
    mesh.run(0.3)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes == {1: ACCEPTED}
    assert len(other.taken) == 1


# Anonymous producers
def message_to(address: str) -> bytes:
    to = address.encode()
    return b"\x00\x53\x73\xc0" + bytes([len(to) + 5, 3, 0x40, 0x40, 0xA1, len(to)]) + to + b"\x00\x53\x77\xa1\x01x"


@pytest.mark.parametrize("consumer", ["e1", "e2", "e3", "r2"])
def test_an_anonymous_producer_reaches_consumers_everywhere(consumer: str):
    mesh = with_edges()
    receiver = mesh.client(consumer).receiver("rpc", credit=5)
    mesh.run(0.3)
    sender = mesh.client("e1").sender(None)
    mesh.send(sender, message_to("rpc"))
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes == {1: ACCEPTED}
    assert len(receiver.taken) == 1


def test_what_an_anonymous_producer_sends_to_nobody_is_released_at_once():
    mesh = with_edges()
    sender = mesh.client("e1").sender(None)
    mesh.send(sender, message_to("rpc"))
    mesh.run(0.3)
    assert sender.outcomes == {1: RELEASED}


def test_what_an_anonymous_producer_sends_to_an_unknown_address_is_rejected():
    mesh = with_edges()
    sender = mesh.client("e1").sender(None)
    mesh.send(sender, message_to("nobody.knows"))
    mesh.run(0.3)
    assert sender.outcomes[1].kind is OutcomeCode.REJECTED


# Dynamic addresses
@pytest.mark.parametrize("service", EVERYWHERE)
def test_a_reply_finds_its_way_to_an_edge(service: str):
    mesh = with_edges()
    client = mesh.client("e1")
    replies = client.receiver(None, dynamic=True)
    mesh.run(0.3)
    address = replies.link.remote_source.address
    assert address.startswith("amqp:/_topo/0/e1/")
    sender = mesh.client(service).sender(None)
    mesh.send(sender, message_to(address))
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes == {1: ACCEPTED}
    assert len(replies.taken) == 1


@pytest.mark.parametrize("service", EVERYWHERE)
def test_a_reply_to_an_edge_whose_client_is_gone_is_released_at_once(service: str):
    mesh = with_edges()
    client = mesh.client("e1")
    replies = client.receiver(None, dynamic=True)
    sender = mesh.client(service).sender(None)
    mesh.run(0.3)
    address = replies.link.remote_source.address
    mesh.send(sender, message_to(address))
    mesh.run_until(lambda: bool(sender.outcomes))
    mesh.cut(client.pipe)
    mesh.run(0.5)
    mesh.send(sender, message_to(address))
    mesh.run(0.6)
    assert sender.outcomes == {1: ACCEPTED, 2: RELEASED}


# Multicast
def everywhere(mesh: SimMesh, address: str = "prices") -> list:
    return [mesh.client(router).receiver(address, credit=100) for router in [*EVERYWHERE, "e1", "e3"]]


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("producer", EVERYWHERE)
def test_each_consumer_of_a_multicast_has_one_copy(producer: str, settled: bool):
    mesh = with_edges()
    receivers = everywhere(mesh)
    mesh.run(0.5)
    sender = mesh.client(producer).sender("prices")
    mesh.run(0.5)
    for n in range(10):
        mesh.send(sender, b"%d" % n, settled=settled)
    mesh.run(2)
    assert [receiver.taken for receiver in receivers] == [[b"%d" % n for n in range(10)]] * len(receivers)
    assert sender.outcomes == ({} if settled else dict.fromkeys(range(1, 11), ACCEPTED))


@pytest.mark.parametrize("is_anonymous", [False, True])
def test_the_first_copy_waits_until_the_edge_knows_who_else_is_to_have_one(is_anonymous: bool):
    mesh = with_edges()
    near, far = (mesh.client(router).receiver("prices", credit=10) for router in ("e1", "r3"))
    mesh.run(1)
    sender = mesh.client("e1").sender(None if is_anonymous else "prices")
    while sender.link.credit <= 0:
        mesh.run(0.0005)
    sender.send(message_to("prices"))
    mesh.run(1)
    assert near.taken == far.taken == [message_to("prices")]
    assert sender.outcomes == {1: ACCEPTED}


def test_a_consumer_that_comes_to_an_edge_later_gets_copies_from_then_on():
    mesh = with_edges()
    first = mesh.client("e3").receiver("prices", credit=100)
    sender = mesh.client("r2").sender("prices")
    mesh.send(sender, b"1")
    mesh.run(0.5)
    second = mesh.client("e2").receiver("prices", credit=100)
    mesh.run(1)
    mesh.send(sender, b"2")
    mesh.run(0.5)
    second.link.close()
    mesh.run(1)
    mesh.send(sender, b"3")
    mesh.run(0.5)
    assert (first.taken, second.taken) == ([b"1", b"2", b"3"], [b"2"])
    assert sender.outcomes == dict.fromkeys((1, 2, 3), ACCEPTED)


def test_a_multicast_producer_at_an_edge_has_no_credit_for_itself_alone():
    mesh = with_edges()
    sender = mesh.client("e1").sender("prices")
    mesh.run(1)
    assert sender.link.credit == 0
    receiver = mesh.client("e1").receiver("prices", credit=3)
    mesh.run(0.5)
    mesh.send(sender, b"1")
    mesh.run(0.5)
    assert receiver.taken == [b"1"]
    assert sender.outcomes == {1: ACCEPTED}


# Large messages
@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize(("producer", "consumer"), [("e1", "e3"), ("e1", "e2"), ("r2", "e1"), ("e1", "r2")])
def test_large_and_small_messages_keep_their_order(producer: str, consumer: str, address: str):
    mesh = with_edges()
    receiver = mesh.client(consumer).receiver(address, credit=100)
    sender = mesh.client(producer).sender(address)
    sent = [bytes([65 + n]) * (300_000 if n % 3 == 1 else 100) for n in range(12)]
    for body in sent:
        mesh.send(sender, body)
    mesh.run_until(lambda: len(sender.outcomes) == len(sent))
    assert [message[:1] for message in receiver.taken] == [body[:1] for body in sent]
    assert receiver.taken == sent
    assert {outcome.kind for outcome in sender.outcomes.values()} == {OutcomeCode.ACCEPTED}


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_large_message_streams_before_its_end_is_sent(address: str):
    mesh = with_edges()
    receiver = mesh.client("e3").receiver(address, credit=10)
    sender = mesh.client("e1").sender(address)
    mesh.run(0.5)
    sender.begin()
    sender.link.send(b"x" * 1_000_000)
    mesh.run(1)
    assert len(receiver.partial) > 500_000
    sender.link.finish()
    mesh.run_until(lambda: bool(sender.outcomes))
    assert receiver.taken == [b"x" * 1_000_000]


# What edges may not
def test_a_router_does_not_connect_to_an_edge(monkeypatch: pytest.MonkeyPatch):
    told: list[AmqpError | None] = []
    monkeypatch.setattr(Endpoint, "close", lambda endpoint, error=None: told.append(error))
    mesh = with_edges()
    node, edge = mesh.routers["r2"], mesh.routers["e1"]
    accepted = edge.on_accepted("nodes", Peer(is_mesh=True), mesh.now)
    mesh.join((node, node.on_connected("router:r3", Peer(is_mesh=True), mesh.now)), (edge, accepted))
    mesh.run(0.1)
    assert [error.description for error in told if error] == ["e1 is an edge router, to which no router may connect"]


@pytest.mark.parametrize(("router", "neighbor"), [("e1", "r1"), ("r1", "e1")])
def test_the_cost_of_an_uplink_is_not_changed_while_it_runs(router: str, neighbor: str):
    mesh = with_edges()
    with pytest.raises(ValueError, match="e1 is an edge router"):
        mesh.routers[router].set_cost(neighbor, 5, mesh.now)


def test_what_a_user_may_do_is_judged_at_the_edge():
    users = {"ann": {"send": "rpc", "receive": "prices"}}
    mesh = with_edges(users=users)
    ann = mesh.client("e1", user="ann")
    assert ann.sender("rpc").error is ann.receiver("prices").error is None
    wrong = ann.sender("prices"), ann.receiver("rpc")
    mesh.run(0.1)
    assert [end.error.condition for end in wrong] == ["amqp:unauthorized-access"] * 2
