"""A router is started again: do the others know it from the one before, and does traffic come back to it?"""

from __future__ import annotations

import time

from mesh_tests.containers.container_mesh import ContainerMesh
from mesh_tests.containers.ring import HELLO_MAX_AGE_S, OVER_R2, takes
from mesh_tests.containers.traffic import Traffic

OUTAGE_S = 3 * HELLO_MAX_AGE_S
OTHERS = ("r1", "r3", "r4")


def test_all_routers_hear_of_a_restart_and_traffic_comes_back(ring: ContainerMesh) -> None:
    def instances() -> list[int]:
        """Of r2, as the others know it; 0 for none."""
        return [ring.routers(other).get("r2", {}).get("instance", 0) for other in OTHERS]

    with Traffic(ring, "restarted") as traffic:
        traffic.flow()
        (before,) = set(instances())
        since = time.monotonic()
        ring.hosts["r2"].restart()
        traffic.run_until_known(lambda: min(instances()) > before, f"{OTHERS} to know the new r2")
        traffic.run_until_known(lambda: takes(ring, OVER_R2), f"r1 and r3 to take {OVER_R2} again")
        traffic.run_until_known(lambda: ring.snapshot("r2")["node"]["transit_circuits"] > 0, "traffic to go over r2")
        traffic.flow()
        assert traffic.outage_s(since) < OUTAGE_S
        traffic.finish()
