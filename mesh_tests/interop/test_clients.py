"""Do the clients and brokers of others understand each other, with no mesh between them?

What fails here is not the mesh's doing: these tests hold the other interop tests to account.
"""

import pytest

from mesh_tests.interop.clients.client import ALL, that

COUNT = 10
EXPECTED = list(range(1, COUNT + 1))


def test_client_sends_to_and_receives_from_an_artemis_queue(client, artemis):
    address = f"queue.{client.name}"
    sender = client.send(artemis.anonymous_url, address, COUNT)
    sender.wait_success()
    assert client.receive(artemis.anonymous_url, address, COUNT).sequences() == EXPECTED


# go-amqp waits for this RabbitMQ until its deadline though it has sent all, with no mesh between them.
@pytest.mark.parametrize("client", [client for client in ALL if client.name != "go_amqp"], indirect=True)
def test_client_sends_to_and_receives_from_a_rabbitmq_queue(client, rabbitmq):
    address = f"/queue/{client.name}"
    url = rabbitmq.anonymous_url if client.name.startswith("proton_c") else rabbitmq.url
    sender = client.send(url, address, COUNT)
    sender.wait_success()
    assert client.receive(url, address, COUNT).sequences() == EXPECTED


@pytest.mark.parametrize("client", that("can_request"), indirect=True)
def test_client_gets_replies_at_a_dynamic_address_of_artemis(client, artemis):
    responder = client.respond(artemis.anonymous_url, f"queue.service.{client.name}", 4)
    replies = client.request(artemis.anonymous_url, f"queue.service.{client.name}", 4).replies()
    assert len(replies) == 4
    assert replies == [reply.upper() for reply in replies]
    if client.name != "proton_cpp":
        responder.wait_success()


@pytest.mark.parametrize("client", that("can_subscribe"), indirect=True)
def test_durable_subscriber_gets_what_was_sent_while_it_was_away(client, artemis):
    address, me = f"news.{client.name}", {"subscription": "mine", "container_id": f"id-{client.name}", "kind": "topic"}
    first = client.receive(artemis.anonymous_url, address, 1, **me)
    client.send(artemis.anonymous_url, address, 1, kind="topic").wait_success()
    assert first.sequences() == [1]
    client.send(artemis.anonymous_url, address, COUNT, kind="topic").wait_success()
    assert client.receive(artemis.anonymous_url, address, COUNT, **me).sequences() == EXPECTED
