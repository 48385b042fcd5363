"""A router between producers and consumers, or the way to it, is lost: how soon does traffic take the other path?"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

import pytest

from mesh_tests.containers.container_mesh import ContainerMesh
from mesh_tests.containers.losses import disconnected, killed, paused
from mesh_tests.containers.partition import silenced
from mesh_tests.containers.ring import HELLO_MAX_AGE_S, OVER_R2, OVER_R4, takes
from mesh_tests.containers.traffic import Traffic

OUTAGE_S = 3 * HELLO_MAX_AGE_S
NEITHER_HEARS = [("r1", "r2"), ("r2", "r1")]
R2_DOES_NOT_HEAR = [("r1", "r2")]
R1_DOES_NOT_HEAR = [("r2", "r1")]


@pytest.mark.parametrize("lost", [paused, killed, disconnected])
def test_traffic_takes_another_path_when_a_router_is_lost_and_comes_back_with_it(ring, lost) -> None:
    check_traffic(ring, lost(ring.hosts["r2"]), lost.__name__)


@pytest.mark.usefixtures("partitions")
@pytest.mark.parametrize("pairs", [NEITHER_HEARS, R2_DOES_NOT_HEAR, R1_DOES_NOT_HEAR], ids=["both", "r2", "r1"])
def test_traffic_takes_another_path_when_routers_do_not_hear_each_other(ring, pairs) -> None:
    loss = silenced(*((ring.hosts[sender], ring.hosts[receiver]) for sender, receiver in pairs))
    check_traffic(ring, loss, f"{len(pairs)}{pairs[0][0]}")


def check_traffic(ring: ContainerMesh, loss: AbstractContextManager[None], name: str) -> None:
    """Before, during and after ``loss``; what it was like depends on how soon routers notice, and nothing else."""
    with Traffic(ring, name) as traffic:
        traffic.flow()
        since = time.monotonic()
        with loss:
            traffic.flow()
            traffic.run_until_known(lambda: takes(ring, OVER_R4), f"r1 and r3 to take {OVER_R4}")
            traffic.flow()
        traffic.run_until_known(lambda: takes(ring, OVER_R2), f"r1 and r3 to take {OVER_R2} again")
        traffic.run_until_known(lambda: ring.snapshot("r2")["node"]["transit_circuits"] > 0, "traffic to go over r2")
        traffic.flow()
        assert traffic.outage_s(since) < OUTAGE_S
        traffic.finish()
