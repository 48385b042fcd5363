"""Do clients that we did not write exchange messages through three routers, on every type of address?"""

import pytest

from mesh_tests.interop.clients.client import ALL, Jms, ProtonCpp, that

COUNT = 20
EXPECTED = list(range(1, COUNT + 1))
TOPOLOGY = """
mesh: interop
routers:
  r1:
  r2: {connect: [r1]}
  r3: {connect: [r2]}
brokers:
  b1: {routers: [r2]}
  b2: {routers: [r3]}
addresses:
  anycast.#: anycast
  multicast.#: multicast
  queue.#: {type: queue, broker: b1}
  sharded.#: {type: queue, brokers: [b1, b2]}
  topic.#: {type: topic, broker: b1}
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


def test_anycast_goes_from_one_end_to_the_other(mesh, client):
    address = f"anycast.{client.name}"
    receiver = client.receive(mesh.url("r3"), address, COUNT)
    client.send(mesh.url("r1"), address, COUNT).wait_success()
    assert receiver.sequences() == EXPECTED


def test_multicast_reaches_every_receiver(mesh, client):
    address = f"multicast.{client.name}"
    # Both at one router: it advertises the address once, so a sender that has credit reaches both.
    receivers = [client.receive(mesh.url("r3"), address, COUNT, kind="topic") for _ in range(2)]
    client.send(mesh.url("r1"), address, COUNT, kind="topic").wait_success()
    assert [receiver.sequences() for receiver in receivers] == [EXPECTED, EXPECTED]


def test_queue_keeps_messages_until_a_receiver_comes_at_another_router(mesh, client):
    address = f"queue.{client.name}"
    client.send(mesh.url("r1"), address, COUNT).wait_success()
    assert client.receive(mesh.url("r3"), address, COUNT).sequences() == EXPECTED


@pytest.mark.parametrize("client", that("takes_any_order"), indirect=True)
def test_queue_over_two_brokers_loses_nothing(mesh, client):
    address = f"sharded.{client.name}"
    client.send(mesh.url("r1"), address, COUNT).wait_success()
    assert sorted(client.receive(mesh.url("r3"), address, COUNT).sequences()) == EXPECTED


def test_topic_reaches_every_subscriber(mesh, client):
    address = f"topic.{client.name}"
    subscribers = [client.receive(mesh.url(router), address, COUNT, kind="topic") for router in ("r1", "r3")]
    client.send(mesh.url("r1"), address, COUNT, kind="topic").wait_success()
    assert [subscriber.sequences() for subscriber in subscribers] == [EXPECTED, EXPECTED]


@pytest.mark.parametrize("client", that("can_subscribe"), indirect=True)
def test_durable_subscriber_comes_back_at_another_router(mesh, client):
    address = f"topic.durable.{client.name}"
    me = {"subscription": "mine", "container_id": f"id-{client.name}", "kind": "topic"}
    first = client.receive(mesh.url("r3"), address, 1, **me)
    client.send(mesh.url("r1"), address, 1, kind="topic").wait_success()
    assert first.sequences() == [1]
    client.send(mesh.url("r1"), address, COUNT, kind="topic").wait_success()
    assert client.receive(mesh.url("r1"), address, COUNT, **me).sequences() == EXPECTED


@pytest.mark.parametrize("client", that("can_request"), indirect=True)
@pytest.mark.parametrize("kind", ["anycast", "queue"])
def test_replies_come_back_to_a_dynamic_address(mesh, client, kind):
    address = f"{kind}.service.{client.name}"
    responder = client.respond(mesh.url("r3"), address, 4)
    replies = client.request(mesh.url("r1"), address, 4).replies()
    assert len(replies) == 4
    assert replies == [reply.upper() for reply in replies]
    if client.name != ProtonCpp.name:
        responder.wait_success()


# Each sends to the one before it, so that every client is once a sender and once a receiver for another library.
@pytest.mark.parametrize("pair", list(zip(ALL, [*ALL[-1:], *ALL[:-1]], strict=True)), ids=lambda pair: pair[0].name)
@pytest.mark.parametrize("kind", ["anycast", "queue"])
def test_clients_of_different_libraries_understand_each_other(mesh, new_client, pair, kind):
    sender, receiver = map(new_client, pair)
    address = f"{kind}.{sender.name}.{receiver.name}"
    receiving = receiver.receive(mesh.url("r1"), address, COUNT)
    sender.send(mesh.url("r3"), address, COUNT).wait_success()
    assert receiving.sequences() == EXPECTED


def test_a_jms_durable_subscription_ends_when_it_is_unsubscribed(mesh, new_client):
    jms = new_client(Jms)
    address = "topic.unsubscribed"
    me = {"subscription": "mine", "container_id": "id-unsubscribing", "kind": "topic"}
    first = jms.receive(mesh.url("r3"), address, 1, **me)
    jms.send(mesh.url("r1"), address, 1, kind="topic").wait_success()
    assert first.sequences() == [1]
    jms.start("unsubscribe", mesh.url("r3"), address, 0, **me).wait_success()
    jms.send(mesh.url("r1"), address, 1, kind="topic").wait_success()
    again = jms.receive(mesh.url("r1"), address, COUNT, **me)
    jms.send(mesh.url("r1"), address, COUNT, kind="topic").wait_success()
    assert again.sequences() == EXPECTED


JMS_SHARERS = {"with a client id": {"container_id": "id-sharing"}, "without": {}}


@pytest.mark.parametrize("share", ["durable", "volatile"])
@pytest.mark.parametrize("client_id", JMS_SHARERS)
def test_jms_consumers_share_a_subscription(mesh, new_client, share, client_id):
    jms = new_client(Jms)
    address = f"topic.shared.{share}.{client_id.replace(' ', '-')}"
    me = {"subscription": "work", "share": share, "kind": "topic", "consumers": "2", **JMS_SHARERS[client_id]}
    # JMS allows one connection for each client id.
    places = ("r1", "r3") if client_id == "without" else ("r1",)
    sharers = [jms.receive(mesh.url(router), address, COUNT // len(places), **me) for router in places]
    jms.send(mesh.url("r2"), address, COUNT, kind="topic").wait_success()
    assert sorted(number for sharer in sharers for number in sharer.sequences()) == EXPECTED


@pytest.mark.parametrize("client_id", JMS_SHARERS)
def test_a_shared_durable_subscription_of_jms_keeps_messages_until_it_is_unsubscribed(mesh, new_client, client_id):
    jms = new_client(Jms)
    address = f"topic.kept.{client_id.replace(' ', '-')}"
    me = {"subscription": f"kept {client_id}", "share": "durable", "kind": "topic", **JMS_SHARERS[client_id]}

    def publish(count):
        jms.send(mesh.url("r1"), address, count, kind="topic").wait_success()

    first = jms.receive(mesh.url("r3"), address, 1, **me)
    refused = (
        jms.start("unsubscribe", mesh.url("r2"), address, 0, **me).wait_failure() if client_id == "without" else ""
    )
    assert client_id != "without" or "amqp:resource-locked" in refused
    publish(1)
    assert first.sequences() == [1]
    publish(COUNT)
    assert jms.receive(mesh.url("r1"), address, COUNT, **me).sequences() == EXPECTED
    publish(1)
    jms.start("unsubscribe", mesh.url("r3"), address, 0, **me).wait_success()
    last = jms.receive(mesh.url("r1"), address, COUNT, **me)
    publish(COUNT)
    assert last.sequences() == EXPECTED


@pytest.mark.parametrize("router", ["r1", "r2", "r3"])
def test_a_jms_client_is_told_that_there_is_no_such_subscription(mesh, new_client, router):
    me = {"subscription": "nobody's", "container_id": "id-nobody", "kind": "topic"}
    told = new_client(Jms).start("unsubscribe", mesh.url(router), "topic.any", 0, **me).wait_failure()
    assert "amqp:not-found" in told


@pytest.mark.parametrize(
    "me", [{}, {"subscription": "mine", "container_id": "id-no-local"}], ids=["passing", "durable"]
)
def test_a_jms_consumer_without_local_messages_gets_those_of_others_only(mesh, new_client, me):
    jms = new_client(Jms)
    address = f"topic.no-local.{'durable' if me else 'passing'}"
    subscriber = jms.receive(mesh.url("r3"), address, COUNT, kind="topic", no_local="true", **me)
    jms.send(mesh.url("r1"), address, COUNT, kind="topic").wait_success()
    assert subscriber.sequences() == EXPECTED


def test_a_second_jms_connection_with_a_client_id_is_refused_until_the_first_is_gone(mesh, new_client):
    jms = new_client(Jms)
    address, me = "anycast.sole", {"container_id": "id-sole"}
    first = jms.receive(mesh.url("r1"), address, 1, **me)
    told = jms.start("send", mesh.url("r1"), address, 1, **me).wait_failure()
    assert "InvalidClientID" in told
    jms.send(mesh.url("r1"), address, 1).wait_success()
    assert first.sequences() == [1]
    again = jms.receive(mesh.url("r1"), address, 1, **me)
    jms.send(mesh.url("r1"), address, 1).wait_success()
    assert again.sequences() == [1]
