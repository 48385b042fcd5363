"""Does a subscription with a no-local filter get nothing of its own connection, and everything else?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimClient, SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_answered_modes import TOPOLOGY, is_answered
from wire.codec.values import Described, Symbol, ULong
from wire.delivery import ACCEPTED
from wire.terminus import Durability, Expiry

FILTERS = {
    "by symbol": Described(Symbol("apache.org:no-local-filter:list"), []),
    "by number": Described(ULong(0x0000468C00000003), ["NoLocalFilter{}"]),
}
DURABLE = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[SimMesh]:
    made = SimMesh(TOPOLOGY, tmp_path)
    made.converge()
    made.run_until(lambda: all(broker.is_up for node in made.routers.values() for broker in node.snapshot().brokers))
    made.run(0.2)
    yield made
    made.close()


@pytest.fixture(params=["r1", "r2"], ids=["at the broker's router", "at another router"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def subscribe(mesh: SimMesh, client: SimClient, filter_: Any = FILTERS["by symbol"], **terminus: Any) -> SimReceiver:
    receiver = client.receiver("news.#", name="mine", filter={"no-local": filter_}, **terminus)
    mesh.run_until(lambda: is_answered(receiver))
    return receiver


def publish(mesh: SimMesh, client: SimClient, body: str) -> None:
    sender = client.sender("news.today")
    mesh.send(sender, bytes(Message(body=body).encode()))
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    mesh.run(0.2)


def bodies(receiver: SimReceiver) -> list[str]:
    found = []
    for data in receiver.messages:
        message = Message()
        message.decode(data)
        found.append(message.body)
    return found


@pytest.mark.parametrize("terminus", [{}, DURABLE], ids=["passing", "durable"])
@pytest.mark.parametrize("filter_", FILTERS)
def test_a_subscription_with_no_local_gets_what_others_publish_only(
    mesh: SimMesh, place: str, filter_: str, terminus: dict[str, Any]
) -> None:
    me, other = mesh.client(place, "me"), mesh.client(place, "other")
    mine = subscribe(mesh, me, FILTERS[filter_], **terminus)
    theirs = other.receiver("news.#")
    mesh.run_until(lambda: is_answered(theirs))
    assert list(mine.link.remote_source.filter) == ["no-local"]
    publish(mesh, me, "mine"), publish(mesh, other, "theirs")
    assert bodies(mine) == ["theirs"]
    assert bodies(theirs) == ["mine", "theirs"]


def test_without_the_filter_a_connection_gets_what_it_publishes(mesh: SimMesh, place: str) -> None:
    me = mesh.client(place, "me")
    mine = me.receiver("news.#", name="mine")
    mesh.run_until(lambda: is_answered(mine))
    publish(mesh, me, "mine")
    assert bodies(mine) == ["mine"]


def test_a_durable_subscription_keeps_what_is_published_while_its_consumer_is_away(mesh: SimMesh, place: str) -> None:
    me = mesh.client(place, "me")
    mine = subscribe(mesh, me, **DURABLE)
    mine.link.detach()
    me._settle()
    mesh.run(0.2)
    publish(mesh, me, "away")
    again = subscribe(mesh, me, **DURABLE)
    publish(mesh, me, "back")
    assert bodies(again) == ["away"]


def test_a_consumer_that_takes_a_durable_subscription_without_the_filter_gets_everything(
    mesh: SimMesh, place: str
) -> None:
    me = mesh.client(place, "me")
    mine = subscribe(mesh, me, **DURABLE)
    mine.link.detach()
    me._settle()
    mesh.run(0.2)
    again = me.receiver("news.#", name="mine", **DURABLE)
    mesh.run_until(lambda: is_answered(again))
    assert again.link.remote_source.filter == {}
    publish(mesh, me, "mine")
    assert bodies(again) == ["mine"]


@pytest.mark.parametrize(
    ("address", "capabilities"), [("rpc", ()), ("prices", ()), ("orders", ()), ("news.#", ("shared",))]
)
def test_where_no_local_is_not_in_force_the_answer_does_not_claim_it(
    mesh: SimMesh, place: str, address: str, capabilities: tuple[str, ...]
) -> None:
    receiver = mesh.client(place, "me").receiver(
        address, filter={"no-local": FILTERS["by symbol"]}, capabilities=capabilities
    )
    mesh.run_until(lambda: is_answered(receiver))
    assert not receiver.error
    assert receiver.link.remote_source.filter == {}
