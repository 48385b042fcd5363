"""A line of three routers that all row tests share: a producer at its first, a consumer one to three routers away."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from mesh_tests.egress import BETWEEN
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh

CAPACITY = 20
MOST_BYTES = 100_000
PLAIN, LIMITED = range(2)

_LISTENERS = f"""
      - {{authentication: none, link_capacity: {CAPACITY}}}
      - {{authentication: none, link_capacity: {CAPACITY}, max_message_bytes: {MOST_BYTES}}}
"""
_OPEN = '["work.#", "near.#", "news.#", "queue.#", "topic.#", "shard.#", closed, unknown]'

TOPOLOGY = f"""
mesh: rows
node_tls: false
routers:
  r1:
    connect: [r2]
    listeners: {_LISTENERS}
  r2:
    connect: [r3]
    listeners: {_LISTENERS}
  r3:
    listeners: {_LISTENERS}
brokers:
  b1: {{routers: [r1]}}
  b2: {{routers: [r2]}}
  b3: {{routers: [r3]}}
addresses:
  work.#: anycast
  secret: anycast
  news.#: multicast
  queue.r1.#: {{type: queue, broker: b1}}
  queue.r2.#: {{type: queue, broker: b2}}
  queue.r3.#: {{type: queue, broker: b3}}
  topic.r1.#: {{type: topic, broker: b1}}
  topic.r2.#: {{type: topic, broker: b2}}
  topic.r3.#: {{type: topic, broker: b3}}
  closed: unavailable
users:
  anonymous: {{send: {_OPEN}, receive: {_OPEN}}}
"""


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    """No test may leave anything behind but addresses; none may kill a router."""
    mesh = RunningMesh(TOPOLOGY, tmp_path_factory.mktemp("rows"))
    yield mesh
    mesh.down()


@pytest.fixture(params=BETWEEN, ids=BETWEEN.values())
def egress(request: pytest.FixtureRequest) -> str:
    """The router of the consumer."""
    return str(request.param)


Scenario = Callable[[RunningMesh, str], Any]


@pytest.fixture(scope="session")
def at_once(rows: RunningMesh) -> Iterator[Callable[[Scenario, str], Any]]:
    """What a scenario returns or raises for an egress. It runs for all of them at the same time: for rows that wait."""
    runs: dict[Scenario, dict[str, Future[Any]]] = {}
    with ThreadPoolExecutor(len(BETWEEN)) as pool:

        def result(scenario: Scenario, egress: str) -> Any:
            if scenario not in runs:
                runs[scenario] = {router: pool.submit(scenario, rows, router) for router in BETWEEN}
            return runs[scenario][egress].result()

        yield result


@pytest.fixture
def producer(rows: RunningMesh) -> Iterator[WireClient]:
    with WireClient(rows.port("r1"), container_id="producer") as client:
        yield client


@pytest.fixture
def consumer(rows: RunningMesh, egress: str) -> Iterator[WireClient]:
    with WireClient(rows.port(egress), container_id="consumer") as client:
        yield client


_numbers = itertools.count(1)


def new_address(kind: str) -> str:
    """One that nobody used before: ``kind`` is work for an anycast, news for a multicast."""
    return f"{kind}.{next(_numbers)}"


@pytest.fixture
def work() -> str:
    return new_address("work")


@pytest.fixture
def news() -> str:
    return new_address("news")
