"""Does a queue catch what an anycast address cannot deliver, and give it back in order, through sockets?

The producers are at r1 and r2; the consumer, and the keeper of the queue, each at one of three routers in line.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from mesh_tests.live.fallback_traffic import Traffic
from mesh_tests.running_mesh import RunningMesh

BROKERS = {"r1": "b1", "r2": "b2", "r3": "b3"}
ADDRESSES = {router: [f"jobs.{router}.{number}" for number in range(20)] for router in BROKERS}
BACKLOG = 200
PATH_WAIT_S = 2.0


def _topology() -> str:
    """Addresses enough for each test to have one of its own."""
    lines = [_MESH]
    for router, addresses in ADDRESSES.items():
        lines += [f"  {address}: {{type: anycast, fallback: kept.{address}}}" for address in addresses]
        lines += [f"  kept.{address}: {{type: queue, broker: {BROKERS[router]}}}" for address in addresses]
    return "\n".join(lines)


_MESH = """
mesh: fallback
node_tls: false
routers:
  r1: {connect: [r2], listeners: [{authentication: none}]}
  r2: {connect: [r3], listeners: [{authentication: none}]}
  r3: {listeners: [{authentication: none}]}
brokers:
  b1: {routers: [r1]}
  b2: {routers: [r2]}
  b3: {routers: [r3]}
addresses:"""
_free = {router: itertools.chain(addresses) for router, addresses in ADDRESSES.items()}


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_module_mesh(_topology())


@pytest.fixture(params=BROKERS, ids=[f"keeper {router}" for router in BROKERS])
def keeper(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def traffic(mesh: RunningMesh, keeper: str, egress: str) -> Iterator[Traffic]:
    traffic = Traffic(mesh, next(_free[keeper]), egress)
    yield traffic
    traffic.end()


def test_a_consumer_gets_what_was_kept_then_what_is_new_and_then_the_queue_is_out_of_it(traffic: Traffic):
    traffic.send_more(BACKLOG)
    traffic.run_until_done()
    kept = set(traffic.accepted)
    assert len(kept) == 2 * BACKLOG
    traffic.attach()
    traffic.send_more(BACKLOG)
    traffic.run_until_done()
    traffic.run_until_seen()
    assert set(traffic.seen[: len(kept)]) == kept
    assert len(traffic.seen) == len(traffic.accepted) == 4 * BACKLOG
    traffic.check_order()
    traffic.run_until(lambda: not traffic.falls_back(), "the producers to send to the consumer again")


def test_what_was_accepted_outlives_a_broker_that_is_killed_and_keeps_its_order(
    mesh: RunningMesh, traffic: Traffic, keeper: str
):
    traffic.send_more(BACKLOG)
    traffic.run_until(lambda: len(traffic.accepted) > BACKLOG, "half of it accepted")
    mesh.kill(BROKERS[keeper])
    traffic.send_more(BACKLOG)
    traffic.run_until_done()
    traffic.attach()
    traffic.run_until_seen()
    traffic.check_order()


def test_nothing_accepted_is_lost_when_the_broker_is_killed_while_it_gives_back(
    mesh: RunningMesh, traffic: Traffic, keeper: str
):
    traffic.send_more(BACKLOG)
    traffic.run_until_done()
    traffic.attach()
    traffic.send_more(BACKLOG)
    traffic.run_until_more_is_seen(BACKLOG // 2)
    mesh.kill(BROKERS[keeper])
    traffic.run_until_done()
    traffic.run_until_seen()
    traffic.run_until(lambda: not traffic.falls_back(), "the producers to send to the consumer again")


def test_while_a_consumer_comes_and_goes_each_producer_is_in_order_and_nothing_is_lost(traffic: Traffic):
    for _ in range(3):
        traffic.send_more(BACKLOG)
        traffic.run_until(lambda: len(traffic.accepted) > len(traffic.seen) + 20, "something kept")
        traffic.attach()
        traffic.run_until_more_is_seen(BACKLOG)
        traffic.detach()
    traffic.run_until_done()
    traffic.attach()
    traffic.run_until_seen()
    assert len(traffic.accepted) == 6 * BACKLOG
    traffic.check_order()


def test_nothing_accepted_is_lost_when_consumers_vanish_with_what_they_had(traffic: Traffic):
    for _ in range(3):
        traffic.send_more(BACKLOG)
        traffic.attach()
        traffic.run_until_more_is_seen(BACKLOG)
        traffic.vanish()
    traffic.run_until_done()
    traffic.attach()
    traffic.run_until_seen()
