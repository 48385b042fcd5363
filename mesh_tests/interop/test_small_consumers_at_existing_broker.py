"""A consumer that takes small messages only, at a broker that heeds max-message-size, or does not: nothing is lost."""

import pytest

from mesh_tests.live.wire_client import WireClient
from wire.delivery import ACCEPTED
from wire.message import decode

COUNT, MOST = 10, 1000
LARGE = "L" * 5000
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
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh, rabbitmq, artemis):
    return start_module_mesh(TOPOLOGY.format(rabbitmq=rabbitmq.url, artemis=artemis.url))


@pytest.mark.parametrize("router", ["r1", "r2", "r3"])
@pytest.mark.parametrize("broker", ["rabbit", "artemis"])
def test_a_queue_of_large_messages_keeps_them_uncounted_and_the_consumer_hears_why(mesh, broker, router):
    address = f"{broker}.small.{router}"
    with WireClient(mesh.port("r1")) as producer:
        sender = producer.sender(address)
        outcomes = [producer.send_when_due(sender, LARGE) for _ in range(COUNT)]
        assert {producer.wait_outcome(number) for number in outcomes} == {ACCEPTED}
    for _ in range(3):
        with WireClient(mesh.port(router)) as consumer:
            receiver = consumer.receiver(address, 2 * COUNT, max_message_bytes=MOST, is_awaited=False)
            detached = consumer.wait_detached(receiver)
            assert detached.error is not None
            assert detached.error.condition == "amqp:link:message-size-exceeded"
            assert consumer.arrived == []
    with WireClient(mesh.port(router)) as consumer:
        consumer.receiver(address, 2 * COUNT)
        arrived = consumer.wait_arrived(COUNT)
        assert [decode(each.data).delivery_count for each in arrived] == [0] * COUNT
        consumer.settle_all()
