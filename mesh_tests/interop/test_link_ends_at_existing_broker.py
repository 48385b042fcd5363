"""What stays at an Artemis when a link through routers ends: only a close of the link deletes a subscription.

Artemis deletes no subscription that is not shared and has ``|`` in the name of its link, though the link is closed.
Names of routers have it, but for those by user. RabbitMQ is not asked: its plugin keeps no subscription beyond a link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mesh_tests.live.wire_client import WireClient
from wire.delivery import ACCEPTED
from wire.link import IncomingLink
from wire.terminus import Durability, Expiry

COUNT = 3
TOPOLOGY = """
mesh: existing
routers:
  r1:
  r2: {{connect: [r1]}}
  r3: {{connect: [r2]}}
brokers:
  artemis: {{url: "{artemis}", routers: [{router}]{settings}}}
addresses:
  news.#: {{type: topic, broker: artemis}}
"""
LASTING: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
TERMINI: dict[str, dict[str, Any]] = {
    "durable": {**LASTING, "capabilities": ("topic",)},
    "durable and shared": {**LASTING, "capabilities": ("shared", "topic")},
    "durable, shared by all": {**LASTING, "capabilities": ("shared", "global", "topic")},
}


def _detach(client: WireClient, link: IncomingLink) -> None:
    link.detach()
    client.step(1.0)


def _close_link(client: WireClient, link: IncomingLink) -> None:
    link.close()
    client.step(1.0)


def _end(client: WireClient, link: IncomingLink) -> None:
    link.session.end()
    with pytest.raises(AssertionError, match="SessionEnded"):
        client.wait(lambda: False, "the other end of the session")


def _close(client: WireClient, link: IncomingLink) -> None:
    client.endpoint.close()
    client.wait(lambda: client.has_ended, "the end of the connection")


def _lose_socket(client: WireClient, link: IncomingLink) -> None:
    client.kill()


Way = Callable[[WireClient, IncomingLink], None]
KEEPING: dict[str, Way] = {"detach": _detach, "end": _end, "close": _close, "its socket goes": _lose_socket}
WAYS: dict[str, Way] = {**KEEPING, "detach with closed": _close_link}


BY_USER = ", subscriptions: by_user"
MESHES = {"one router": ("r1", ""), "three routers": ("r3", ""), "by user": ("r1", BY_USER)}


@pytest.fixture(scope="module", params=MESHES)
def named(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def mesh(start_module_mesh, artemis, named):
    router, settings = MESHES[named]
    return start_module_mesh(TOPOLOGY.format(artemis=artemis.url, router=router, settings=settings))


def _subscribe(client: WireClient, address: str, terminus: str) -> IncomingLink:
    return client.receiver(address, 10, name=f"sub-{address}", **TERMINI[terminus])


def _publish(mesh: Any, address: str) -> None:
    with WireClient(mesh.port("r2"), container_id="publisher") as producer:
        sender = producer.sender(address, capabilities=("topic",))
        outcomes = [producer.send_when_due(sender, number) for number in range(COUNT)]
        assert {producer.wait_outcome(number) for number in outcomes} == {ACCEPTED}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("terminus", TERMINI)
def test_only_a_close_of_the_link_deletes_a_subscription_at_artemis(mesh, named, request, terminus, way):
    is_kept = way in KEEPING or (terminus == "durable" and named != "by user")
    address = "news." + request.node.name.partition("[")[2].translate(str.maketrans(" ,-]", "...."))
    first = WireClient(mesh.port("r1"), container_id="me")
    try:
        WAYS[way](first, _subscribe(first, address, terminus))
    finally:
        first.kill()
    _publish(mesh, address)
    with WireClient(mesh.port("r1"), container_id="me") as client:
        link = _subscribe(client, address, terminus)
        if is_kept:
            client.wait_arrived(COUNT)
        else:
            client.step(1.0)
        assert sorted(each.body for each in client.arrived) == list(range(COUNT)) * is_kept
        client.settle_all()
        link.close()
        client.step(0.5)
