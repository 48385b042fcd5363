"""With `subscriptions: by_user` users of one container-id and link name have subscriptions of their own at Artemis."""

import pytest

from addressing.topology.credentials import make_secret
from mesh_tests.interop.clients.client import that

COUNT = 5
PASSWORD = "correct-horse"
USERS = ("alice", "bob")
TOPOLOGY = """
mesh: byuser
routers:
  r1:
  r2: {{connect: [r1]}}
brokers:
  artemis: {{url: "{artemis}", routers: [r2], subscriptions: by_user}}
addresses:
  news.#: {{type: topic, broker: artemis}}
users:
  alice: {{password: "{secret}", send: ["news.#"], receive: ["news.#"]}}
  bob: {{password: "{secret}", receive: ["news.#"]}}
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh, artemis):
    return start_module_mesh(TOPOLOGY.format(artemis=artemis.url, secret=make_secret(PASSWORD)))


@pytest.mark.parametrize("client", that("can_subscribe"), indirect=True)
def test_users_with_one_client_id_and_subscription_name_have_subscriptions_of_their_own(mesh, client):
    address = f"news.{client.name}"
    me = {"subscription": "mine", "container_id": f"id-{client.name}", "kind": "topic"}
    urls = {user: [mesh.url(router, f"{user}:{PASSWORD}") for router in ("r1", "r2")] for user in USERS}

    def publish(count):
        client.send(urls["alice"][0], address, count, kind="topic").wait_success()

    for user in USERS:
        first = client.receive(urls[user][0], address, 1, **me)
        publish(1)
        assert first.sequences() == [1]
    publish(COUNT)
    # The second message was for bob, who came last; alice had her subscription, too.
    whole = list(range(1, COUNT + 1))
    assert client.receive(urls["bob"][1], address, COUNT, **me).sequences() == whole
    assert client.receive(urls["alice"][1], address, COUNT + 1, **me).sequences() == [1, *whole]
