"""Do JMS clients share subscriptions of an existing broker through routers, which name links at it?"""

import pytest

from mesh_tests.interop.clients.client import Jms

COUNT = 20
EXPECTED = list(range(1, COUNT + 1))
TOPOLOGY = """
mesh: existing
routers:
  r1:
  r2: {{connect: [r1]}}
  r3: {{connect: [r2]}}
brokers:
  artemis: {{url: "{artemis}", routers: [r3]}}
addresses:
  news.#: {{type: topic, broker: artemis}}
"""
ONE_ID = {"container_id": "id-sharing"}


@pytest.fixture(scope="module")
def mesh(start_module_mesh, artemis):
    return start_module_mesh(TOPOLOGY.format(artemis=artemis.url))


@pytest.mark.parametrize("share", ["durable", "volatile"])
def test_consumers_without_a_client_id_share_at_two_routers(mesh, new_client, share):
    jms, address = new_client(Jms), f"news.global.{share}"
    me = {"subscription": f"global-{share}", "share": share, "kind": "topic"}
    pair = [jms.receive(mesh.url(router), address, COUNT // 2, **me) for router in ("r1", "r3")]
    jms.send(mesh.url("r2"), address, COUNT, kind="topic").wait_success()
    assert sorted(number for sharer in pair for number in sharer.sequences()) == EXPECTED


@pytest.mark.parametrize("share", ["durable", "volatile"])
def test_subscriptions_of_different_names_and_client_ids_are_apart(mesh, new_client, share):
    jms, address = new_client(Jms), f"news.apart.{share}"
    whose = [("one", "id-one"), ("two", "id-two"), ("one", "id-three")]
    subscribers = [
        jms.receive(
            mesh.url("r1"), address, COUNT, subscription=name, container_id=f"{id_}-{share}", share=share, kind="topic"
        )
        for name, id_ in whose
    ]
    jms.send(mesh.url("r2"), address, COUNT, kind="topic").wait_success()
    assert [sorted(subscriber.sequences()) for subscriber in subscribers] == [EXPECTED] * 3


def test_two_durable_subscriptions_of_one_client_are_kept_apart(mesh, new_client):
    jms, address = new_client(Jms), "news.kept"
    me = {"share": "durable", "kind": "topic", **ONE_ID}
    for name in ("one", "two"):
        first = jms.receive(mesh.url("r1"), address, 1, subscription=name, **me)
        jms.send(mesh.url("r2"), address, 1, kind="topic").wait_success()
        assert first.sequences() == [1]
    jms.send(mesh.url("r2"), address, COUNT, kind="topic").wait_success()
    assert jms.receive(mesh.url("r3"), address, COUNT, subscription="two", **me).sequences() == EXPECTED
    assert jms.receive(mesh.url("r3"), address, COUNT + 1, subscription="one", **me).sequences() == [1, *EXPECTED]
