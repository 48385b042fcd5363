"""Do a hundred producers at ten routers each get their turn at one consumer with credit 1? Through sockets."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from mesh_tests.live.row_mesh import new_address
from mesh_tests.live.wire_client import WireClient, wait_with

INGRESSES = [f"r{number}" for number in range(1, 11)]
PRODUCERS_EACH = 10
TURNS = 3
MOST_TIMES_THE_LEAST = 4
DONE_S = 30.0

TOPOLOGY = f"""
mesh: star
node_tls: false
routers:
  r0:
  {
    "".join(
        f'''
  {router}: {{connect: [r0]}}'''
        for router in INGRESSES
    )
}
addresses:
  work.#: anycast
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


@pytest.mark.parametrize("at", ["r0", "r1"], ids=["in the middle", "at one of them"])
def test_a_hundred_producers_at_ten_routers_share_a_consumer_with_credit_one(mesh, at):
    address = new_address("work")
    with ExitStack() as stack:
        consumer, *clients = (stack.enter_context(WireClient(mesh.port(router))) for router in (at, *INGRESSES))
        receiver = consumer.receiver(address, credit=1)
        links = {client.sender(address): client for client in clients for _ in range(PRODUCERS_EACH)}
        turns = dict.fromkeys(range(len(links)), 0)

        def go_on():
            for number, (link, client) in enumerate(links.items()):
                while link.credit > 0:
                    client.send(link, number)
            for _ in range(len(links)):
                consumer.step(0.001)
                for each in consumer.settle_all():
                    turns[each.body] += 1
                    receiver.grant(1)
            return min(turns.values()) >= TURNS

        wait_with((*clients, consumer), go_on, f"{TURNS} turns of each", DONE_S)
        assert max(turns.values()) <= MOST_TIMES_THE_LEAST * min(turns.values())
