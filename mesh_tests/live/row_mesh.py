"""Which mesh do all row tests share, and how do they wait for many slow things at once?"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

from mesh_tests.crash.broker_process import BrokerProcess
from mesh_tests.egress import BETWEEN
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

CAPACITY = 20
MOST_BYTES = 100_000
PLAIN, LIMITED, IMPATIENT = range(3)

_LISTENERS = f"""
      - {{authentication: none, link_capacity: {CAPACITY}}}
      - {{authentication: none, link_capacity: {CAPACITY}, max_message_bytes: {MOST_BYTES}}}
      - {{authentication: none, link_capacity: {CAPACITY}, idle_timeout_s: 4}}
"""
_OPEN = """[
  "work.#", "near.#", "news.#", "queue.#", "topic.#", "mortal.#", "doomed.#", "shards.#", "heap.#", closed, unknown
]"""

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
  b4: {{routers: [r2]}}
  m1: {{routers: [r1]}}
  m2: {{routers: [r2]}}
  m3: {{routers: [r3]}}
  x1: {{url: "amqp://127.0.0.1:DOOMED", routers: [r1]}}
  x2: {{url: "amqp://127.0.0.1:DOOMED", routers: [r2]}}
  x3: {{url: "amqp://127.0.0.1:DOOMED", routers: [r3]}}
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
  shards.#: {{type: queue, brokers: [b1, b2, b3, b4]}}
  heap: {{type: queue, brokers: [b1, b2, b3, b4]}}
  heap.b2: {{type: queue, broker: b2, broker_address: heap}}
  heap.b4: {{type: queue, broker: b4, broker_address: heap}}
  mortal.r1.#: {{type: queue, broker: m1}}
  mortal.r2.#: {{type: queue, broker: m2}}
  mortal.r3.#: {{type: queue, broker: m3}}
  doomed.r1: {{type: queue, broker: x1, broker_address: orders}}
  doomed.r2: {{type: queue, broker: x2, broker_address: orders}}
  doomed.r3: {{type: queue, broker: x3, broker_address: orders}}
  closed: unavailable
users:
  anonymous: {{send: {_OPEN}, receive: {_OPEN}}}
"""

_numbers = itertools.count(1)


def new_address(kind: str) -> str:
    """Never used before: ``kind`` is work for an anycast, news for a multicast, shards for a queue of many."""
    return f"{kind}.{next(_numbers)}"


class RowMesh(RunningMesh):
    """Its routers and b1 to b4 live as long as it; m1 to m3 are killed, and come back.

    ``doomed`` is a broker that nobody starts again; killed when ``all_attached`` was reached by every egress.
    """

    def __init__(self, directory: Path, *, is_slow_wanted: bool) -> None:
        """``is_slow_wanted``: some test asks for what slow scenarios return, so they begin now."""
        self.doomed = BrokerProcess(directory)
        self.doomed.start()
        self.all_attached = Barrier(len(BETWEEN), self.doomed.kill)
        self.restart = Lock()
        """Held by who kills a broker, until it is back: three that start at once are slow."""
        self._pool = ThreadPoolExecutor(max(1, len(_slow) * len(BETWEEN)))
        super().__init__(TOPOLOGY.replace("DOOMED", str(self.doomed.port)), directory)
        self._runs: dict[tuple[Scenario, str], Future[Any]] = {
            (scenario, egress): self._pool.submit(scenario, self, egress)
            for scenario in (_slow if is_slow_wanted else ())
            for egress in BETWEEN
        }

    def at_once(self, scenario: Scenario, egress: str) -> Any:
        """What a slow scenario returned or raised for that egress."""
        return self._runs[scenario, egress].result()

    def lose(self, client: WireClient, router: str) -> None:
        """Kill it, and wait until its router knows."""
        peer = client.local_name
        client.kill()

        def is_forgotten() -> bool:
            known = self.snapshot(router)["node"]["connections"]
            return all(each["remote_address"] != peer for each in known)

        wait_until(is_forgotten, 30.0, f"{router} to hear of the loss")

    def down(self) -> None:
        self._pool.shutdown()
        self.doomed.kill()
        super().down()


Scenario = Callable[[RowMesh, str], Any]
_slow: list[Scenario] = []


def slow(scenario: Scenario) -> Scenario:
    """One that mostly waits: it runs for every egress when the tests begin, and its tests ask for what it returned."""
    _slow.append(scenario)
    return scenario
