"""Do brokers that we did not write serve queues of the mesh to clients that we did not write?"""

import pytest

from mesh_tests.interop.clients.client import Azure, GoAmqp, Jms

COUNT = 20
EXPECTED = list(range(1, COUNT + 1))
TOPOLOGY = """
mesh: existing
routers:
  r1:
  r2: {{connect: [r1]}}
  r3: {{connect: [r2]}}
brokers:
  rabbit: {{url: "{rabbitmq}", routers: [r2], address_prefix: "/queue/"}}
  artemis: {{url: "{artemis}", routers: [r3]}}
addresses:
  rabbit.#: {{type: queue, broker: rabbit}}
  artemis.#: {{type: queue, broker: artemis}}
  news.#: {{type: topic, broker: artemis}}
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh, rabbitmq, artemis):
    return start_module_mesh(TOPOLOGY.format(rabbitmq=rabbitmq.url, artemis=artemis.url))


@pytest.mark.parametrize("broker", ["rabbit", "artemis"])
def test_queue_of_an_existing_broker_is_an_address_of_the_mesh(mesh, client, broker):
    address = f"{broker}.{client.name}"
    client.send(mesh.url("r1"), address, COUNT).wait_success()
    assert client.receive(mesh.url("r3"), address, COUNT).sequences() == EXPECTED


def test_message_sent_through_the_mesh_is_in_the_queue_of_the_broker(mesh, client, artemis):
    address = f"artemis.seen.{client.name}"
    client.send(mesh.url("r1"), address, COUNT).wait_success()
    assert client.receive(artemis.anonymous_url, address, COUNT, kind="queue").sequences() == EXPECTED


def test_topic_of_an_existing_broker_is_an_address_of_the_mesh(mesh, new_client):
    jms = new_client(Jms)
    subscriber = jms.receive(mesh.url("r1"), "news.today", COUNT, kind="topic")
    jms.send(mesh.url("r3"), "news.today", COUNT, kind="topic").wait_success()
    assert subscriber.sequences() == EXPECTED


def test_durable_subscription_at_an_existing_broker_comes_back_at_another_router(mesh, new_client):
    jms = new_client(Jms)
    address, me = "news.durable", {"subscription": "mine", "container_id": "id-existing", "kind": "topic"}
    first = jms.receive(mesh.url("r3"), address, 1, **me)
    jms.send(mesh.url("r1"), address, 1, kind="topic").wait_success()
    assert first.sequences() == [1]
    jms.send(mesh.url("r1"), address, COUNT, kind="topic").wait_success()
    assert jms.receive(mesh.url("r1"), address, COUNT, **me).sequences() == EXPECTED


SEND_MODES = ("unsettled", "settled", "mixed")


@pytest.mark.parametrize("broker", ["rabbit", "artemis"])
@pytest.mark.parametrize("sends", SEND_MODES)
@pytest.mark.parametrize("settles", ["first", "second"])
@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_go_amqp_gets_each_settle_mode_that_it_asks_for_or_is_refused_by_the_broker(
    mesh, new_client, broker, sends, settles, role
):
    address = f"{broker}.go.{role}.{sends}.{settles}"
    asks = {"settles": f"{sends},{settles}"}
    if broker == "rabbit" and settles == "second" and sends != "settled":
        mode = "send" if role == "sender" else "receive"
        told = new_client(GoAmqp).start(mode, mesh.url("r1"), address, COUNT, **asks).wait_failure()
        assert "rcv-settle-mode second not supported" in told
        return
    new_client(GoAmqp).send(mesh.url("r1"), address, COUNT, **(asks if role == "sender" else {})).wait_success()
    receiver = new_client(GoAmqp).receive(mesh.url("r3"), address, COUNT, **(asks if role == "receiver" else {}))
    assert receiver.sequences() == EXPECTED


def test_azure_sends_to_and_receives_from_artemis(mesh, new_client):
    new_client(Azure).send(mesh.url("r1"), "artemis.azure", COUNT).wait_success()
    assert new_client(Azure).receive(mesh.url("r3"), "artemis.azure", COUNT).sequences() == EXPECTED
