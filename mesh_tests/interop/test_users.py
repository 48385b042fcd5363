"""Do clients that we did not write log in to a mesh with users, and hear why they may not do something?"""

import pytest

from addressing.topology.credentials import make_secret
from mesh_tests.interop.clients.client import that

COUNT = 5
EXPECTED = list(range(1, COUNT + 1))
PASSWORD = "correct-horse"
TOPOLOGY = f"""
mesh: users
routers:
  r1:
  r2: {{connect: [r1]}}
brokers:
  b1: {{routers: [r2]}}
addresses:
  anycast.#: anycast
  queue.#: queue
users:
  alice: {{password: "{make_secret(PASSWORD)}", send: ["anycast.#", "queue.#"], receive: ["anycast.#", "queue.#"]}}
  bob: {{password: "{make_secret(PASSWORD)}", receive: ["anycast.#", "queue.#"]}}
"""

pytestmark = pytest.mark.parametrize("client", that("can_log_in"), indirect=True)


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


@pytest.mark.parametrize("kind", ["anycast", "queue"])
def test_users_send_and_receive_what_they_may(mesh, client, kind):
    address = f"{kind}.{client.name}"
    receiver = client.receive(mesh.url("r1", f"bob:{PASSWORD}"), address, COUNT)
    client.send(mesh.url("r2", f"alice:{PASSWORD}"), address, COUNT).wait_success()
    assert receiver.sequences() == EXPECTED


def test_a_wrong_password_does_not_get_in(mesh, client):
    refused = client.send(mesh.url("r1", "alice:wrong"), "queue.any", 1).wait_failure()
    assert "attached" not in refused


def test_who_does_not_say_who_it_is_does_not_get_in(mesh, client):
    refused = client.send(mesh.url("r1"), "queue.any", 1).wait_failure()
    assert "attached" not in refused


@pytest.mark.parametrize("kind", ["anycast", "queue"])
def test_a_user_is_told_what_it_may_not(mesh, client, kind):
    told = client.send(mesh.url("r1", f"bob:{PASSWORD}"), f"{kind}.any", 1).wait_failure()
    assert "may not send to" in told
    assert f"{kind}.any" in told
