"""Four routers in a ring, each on a host of its own, and a broker.

r1 ---- r2     The way from r1 to r3, and to the broker, leads over r2, else over r4.
 |       |
r4 ---- r3 ---- b1
"""

from __future__ import annotations

from mesh_tests.containers.container_mesh import ContainerMesh

HELLO_MAX_AGE_S = 0.9
OVER_R2, OVER_R4 = ["r1", "r2", "r3"], ["r1", "r4", "r3"]

TOPOLOGY = f"""
mesh: hosts
hello_interval_s: {HELLO_MAX_AGE_S / 3:.1f}
routers:
  r1: {{host: r1, listeners: [{{host: 0.0.0.0}}], connect: [r2, {{to: r4, cost: 5}}]}}
  r2: {{host: r2, connect: [r3]}}
  r3: {{host: r3, listeners: [{{host: 0.0.0.0}}], connect: [r4]}}
  r4: {{host: r4}}
brokers:
  b1: {{host: b1, data: ./data, routers: [r3]}}
addresses:
  work.#: anycast
  again.#: {{type: anycast, retransmit: true}}
  queue.#: queue
"""


def takes(ring: ContainerMesh, path: list[str]) -> bool:
    """In both directions."""
    return ring.path("r1", "r3") == path and ring.path("r3", "r1") == path[::-1]


def is_broker_up(ring: ContainerMesh) -> bool:
    """As its router sees it."""
    (broker,) = ring.snapshot("r3")["node"]["brokers"]
    return bool(broker["is_up"])
