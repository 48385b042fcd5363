"""Shared subscriptions at a broker node: whose are they, who gets what, and when do they end?"""

from typing import Any

import pytest

from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.rig import TOPOLOGY, Client, Consumer, Rig
from wire import routed_name
from wire.delivery import ACCEPTED
from wire.terminus import Durability, Expiry

KEPT: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
SHARED: dict[str, Any] = {"capabilities": ("topic", "shared")}
GLOBAL: dict[str, Any] = {"capabilities": ("topic", "shared", "global")}


def _refused(consumer: Consumer) -> str | None:
    assert consumer.detached is not None, "it was not refused"
    return consumer.detached[1].condition if consumer.detached[1] is not None else None


def _publish(rig: Rig, count: int, address: str = "news.sport") -> None:
    producer = rig.client("publisher").producer(address)
    for number in range(count):
        assert producer.outcomes[producer.send(number)] == ACCEPTED


def _accept_all(*consumers: Consumer) -> list[Any]:
    bodies = []
    for consumer in consumers:
        for received in consumer.received:
            received.give(ACCEPTED)
            bodies.append(received.message.body)
        consumer.received = []
    return sorted(bodies)


def _subscribers(rig: Rig) -> list[str | None]:
    return [queue.subscriber for queue in rig.snapshot().queues]


@pytest.mark.parametrize("kept", [{}, KEPT], ids=["not durable", "durable"])
def test_links_that_share_a_subscription_get_each_message_once_and_both_get_some(
    rig: Rig, kept: dict[str, Any]
) -> None:
    client = rig.client("app")
    one = client.consumer("news.#", name="work|1", **SHARED, **kept)
    two = client.consumer("news.#", name="work|2", **SHARED, **kept)
    _publish(rig, 10)
    assert (len(one.received), len(two.received)) == (5, 5)
    assert _accept_all(one, two) == list(range(10))


def test_the_attach_is_answered_with_the_capabilities_that_are_in_force(rig: Rig) -> None:
    client = rig.client("app")
    consumer = client.consumer("news.#", name="work|global", **GLOBAL, **KEPT)
    assert consumer.link.remote_source.capabilities == ("topic", "shared", "global")
    assert client.near.remote is not None
    assert "SHARED-SUBS" in client.near.remote.offered_capabilities


def test_the_same_name_in_another_container_is_another_subscription_unless_it_is_global(rig: Rig) -> None:
    clients = [rig.client("one"), rig.client("two")]
    apart = [client.consumer("news.#", name="work", **SHARED) for client in clients]
    together = [client.consumer("news.#", name="work|global-volatile1", **GLOBAL) for client in clients]
    _publish(rig, 2)
    assert [consumer.bodies for consumer in apart] == [[0, 1], [0, 1]]
    assert _accept_all(*together) == [0, 1]


def test_a_client_shares_with_itself_whether_it_comes_through_a_router_or_not(rig: Rig) -> None:
    direct = rig.client("a|b%").consumer("news.#", name="work", **SHARED)
    router = rig.client(TOPOLOGY.mesh)
    routed = [
        router.consumer("news.#", name=routed_name.sharing("a|b%", "work|2", f"r1/{n}", is_global=False), **SHARED)
        for n in range(2)
    ]
    _publish(rig, 6)
    assert [len(consumer.received) for consumer in (direct, *routed)] == [2, 2, 2]


def test_clients_of_one_container_id_share_over_two_routers_without_stealing_links(rig: Rig) -> None:
    names = [routed_name.sharing("app", "work", connection, is_global=False) for connection in ("r1/5/1", "r2/6/1")]
    one, two = [rig.client(TOPOLOGY.mesh).consumer("news.#", name=name, **SHARED, **KEPT) for name in names]
    _publish(rig, 4)
    assert (len(one.received), len(two.received)) == (2, 2)
    assert one.detached is None


def test_a_router_that_attaches_a_shared_link_again_steals_it_and_counts_what_it_held(rig: Rig) -> None:
    name = routed_name.sharing("app", "work", "r1/5/1", is_global=False)
    old = rig.client(TOPOLOGY.mesh).consumer("news.#", name=name, **SHARED, **KEPT)
    _publish(rig, 1)
    new = rig.client(TOPOLOGY.mesh).consumer("news.#", name=name, **SHARED, **KEPT)
    assert _refused(old) == "amqp:link:stolen"
    assert new.counts == [1]


@pytest.mark.parametrize("way", ["close", "detach", "vanish"])
def test_a_shared_subscription_that_is_not_durable_ends_with_its_last_consumer(rig: Rig, way: str) -> None:
    clients = [rig.client("app"), rig.client("app")]
    consumers = [client.consumer("news.#", name=f"work|volatile{n}", **SHARED) for n, client in enumerate(clients)]
    _leave(clients[0], consumers[0], way)
    _publish(rig, 1)
    assert consumers[1].bodies == [0]
    _leave(clients[1], consumers[1], way)
    assert _subscribers(rig) == []


def _leave(client: Client, consumer: Consumer, way: str) -> None:
    {"close": consumer.close, "detach": consumer.detach, "vanish": client.vanish}[way]()


def test_what_a_consumer_that_leaves_had_goes_to_the_others(rig: Rig) -> None:
    client = rig.client("app")
    leaver = client.consumer("news.#", name="work|1", **SHARED)
    _publish(rig, 3)
    stayer = client.consumer("news.#", name="work|2", **SHARED)
    leaver.close()
    assert stayer.bodies == [0, 1, 2]


@pytest.mark.parametrize("kind", [SHARED, GLOBAL], ids=["of a client", "global"])
def test_a_shared_durable_subscription_collects_without_consumers_and_over_a_crash(
    rig: Rig, kind: dict[str, Any]
) -> None:
    client = rig.client("app")
    for suffix in ("", "|2"):
        client.consumer("news.#", name=f"work{suffix}", **kind, **KEPT).detach()
    _publish(rig, 4)
    rig.crash()
    client = rig.client("app")
    both = [client.consumer("news.#", 2, name=f"work{suffix}", **kind, **KEPT) for suffix in ("", "|2")]
    assert [len(consumer.received) for consumer in both] == [2, 2]
    assert _accept_all(*both) == list(range(4))


def test_durable_and_not_durable_ones_of_one_name_are_two_and_read_apart(rig: Rig) -> None:
    client = rig.client("app")
    passing = client.consumer("news.#", name="work|volatile1", **SHARED)
    kept = client.consumer("news.#", name="work", **SHARED, **KEPT)
    everybodys = client.consumer("news.#", name="work|global", **GLOBAL, **KEPT)
    _publish(rig, 1)
    assert [passing.bodies, kept.bodies, everybodys.bodies] == [[0], [0], [0]]
    assert _subscribers(rig) == ["app|work (shared, not durable)", "app|work (shared)", "work (shared, global)"]


def test_a_shared_durable_subscription_is_on_disk_before_anybody_is_told_of_it(rig: Rig) -> None:
    client = rig.client("app")
    rig.is_disk_held = True
    both = [client.consumer("news.#", name=f"work|{n}", **SHARED, **KEPT) for n in range(2)]
    assert [consumer.is_established for consumer in both] == [False, False]
    rig.is_disk_held = False
    rig.run()
    assert [consumer.is_established for consumer in both] == [True, True]


# Changing it
@pytest.mark.parametrize("kept", [{}, KEPT], ids=["not durable", "durable"])
@pytest.mark.parametrize("is_disk_held", [False, True])
def test_another_topic_is_refused_while_there_is_a_consumer(
    rig: Rig, kept: dict[str, Any], *, is_disk_held: bool
) -> None:
    client = rig.client("app")
    rig.is_disk_held = is_disk_held
    first = client.consumer("news.#", name="work|1", **SHARED, **kept)
    assert _refused(client.consumer("news.art", name="work|2", **SHARED, **kept)) == "amqp:resource-locked"
    rig.is_disk_held = False
    _publish(rig, 1)
    assert first.bodies == [0]


def test_another_topic_replaces_the_old_one_when_nobody_is_there(rig: Rig) -> None:
    client = rig.client("app")
    client.consumer("news.#", name="work|1", **SHARED, **KEPT).detach()
    _publish(rig, 1)
    assert client.consumer("news.art", name="work|2", **SHARED, **KEPT).bodies == []
    assert [queue.address for queue in rig.snapshot().queues] == ["news.art"]
    assert held_by(rig.store.load()).messages == []


@pytest.mark.parametrize("is_active", [True, False])
@pytest.mark.parametrize("order", [({}, SHARED), (SHARED, {})], ids=["to shared", "from shared"])
@pytest.mark.parametrize("container_id", ["app", TOPOLOGY.mesh], ids=["direct", "routed"])
def test_one_name_is_not_both_shared_and_not_shared(
    rig: Rig, container_id: str, order: tuple[dict[str, Any], dict[str, Any]], *, is_active: bool
) -> None:
    def subscribe(kind: dict[str, Any]) -> Consumer:
        name = "work" if kind or container_id == "app" else routed_name.lasting("app", "work")
        if kind:
            # Of another name than the link that shares with nobody, which it would steal.
            name = "work|1" if container_id == "app" else routed_name.sharing("app", name, "r1/5/1", is_global=False)
        return rig.client(container_id).consumer("news.#", name=name, **kind, **KEPT)

    first = subscribe(order[0])
    if not is_active:
        first.detach()
    assert _refused(subscribe(order[1])) == "amqp:resource-locked"
    assert len(_subscribers(rig)) == 1


# Ending it
def test_closing_ends_a_shared_durable_subscription_only_with_its_last_consumer(rig: Rig) -> None:
    client = rig.client("app")
    one, two = [client.consumer("news.#", name=f"work|{n}", **SHARED, **KEPT) for n in range(2)]
    one.close()
    _publish(rig, 1)
    assert two.bodies == [0]
    two.close()
    assert held_by(rig.store.load()).queues == []


RECALLS = [
    ("app", "work", SHARED, "work"),
    ("app", "work|global", GLOBAL, "work|global"),
    (TOPOLOGY.mesh, routed_name.sharing("app", "work", "r1/5/1", is_global=False), SHARED, "app|work"),
    (TOPOLOGY.mesh, routed_name.sharing("app", "work|global", "r1/5/1", is_global=True), GLOBAL, "x|work|global"),
]


@pytest.mark.parametrize(("container_id", "name", "kind", "recalled"), RECALLS)
def test_a_shared_durable_subscription_is_unsubscribed_as_jms_does(
    rig: Rig, container_id: str, name: str, kind: dict[str, Any], recalled: str
) -> None:
    rig.client(container_id).consumer("news.#", name=name, **kind, **KEPT).detach()
    looked_up = rig.client(container_id).consumer(None, name=recalled, credit=0, is_null=True)
    assert looked_up.link.remote_source.address == "news.#"
    looked_up.close()
    assert held_by(rig.store.load()).queues == []


def test_a_global_subscription_is_not_ended_by_a_client_of_its_name_that_has_one_called_global(rig: Rig) -> None:
    rig.client("app").consumer("news.#", name="work|global", **GLOBAL, **KEPT).detach()
    recall = routed_name.lasting("work", "global")
    looked_up = rig.client(TOPOLOGY.mesh).consumer(None, name=recall, credit=0, is_null=True)
    assert _refused(looked_up) == "amqp:not-found"


@pytest.mark.parametrize("is_disk_held", [False, True])
def test_unsubscribing_is_refused_while_somebody_consumes(rig: Rig, *, is_disk_held: bool) -> None:
    client = rig.client("app")
    rig.is_disk_held = is_disk_held
    consumer = client.consumer("news.#", name="work|2", **SHARED, **KEPT)
    assert _refused(client.consumer(None, name="work", credit=0, is_null=True)) == "amqp:resource-locked"
    rig.is_disk_held = False
    _publish(rig, 1)
    assert consumer.bodies == [0]


def test_who_looked_a_subscription_up_does_not_end_it_when_a_consumer_came_since(rig: Rig) -> None:
    client = rig.client("app")
    client.consumer("news.#", name="work|2", **SHARED, **KEPT).detach()
    looked_up = client.consumer(None, name="work", credit=0, is_null=True)
    consumer = client.consumer("news.#", name="work|2", **SHARED, **KEPT)
    looked_up.close()
    assert looked_up.link.is_gone
    _publish(rig, 1)
    assert consumer.bodies == [0]
