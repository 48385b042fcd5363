"""The host of a broker hangs, or crashes, while its queue is in use: is anything lost, and does anybody else wait?"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from mesh_tests.containers.container_mesh import ContainerMesh
from mesh_tests.containers.losses import Loss, killed, paused
from mesh_tests.containers.ring import HELLO_MAX_AGE_S, is_broker_up
from mesh_tests.containers.traffic import Traffic

STOCK = 50
BACK_S = 10.0
OTHERS_S = 3 * HELLO_MAX_AGE_S

Sign = Callable[[ContainerMesh, Traffic], bool]


def no_answer(_: ContainerMesh, traffic: Traffic) -> bool:
    return traffic.queue.is_stuck


def no_connection(ring: ContainerMesh, _: Traffic) -> bool:
    return not is_broker_up(ring)


@pytest.mark.parametrize(("lost", "sign"), [(paused, no_answer), (killed, no_connection)])
def test_all_that_a_broker_accepted_comes_when_it_is_back_and_nobody_else_waits(
    ring: ContainerMesh, lost: Loss, sign: Sign
) -> None:
    with Traffic(ring, lost.__name__) as traffic:
        traffic.flow()
        traffic.queue.take(False)
        traffic.run_until(lambda: len(traffic.queue.missing) >= STOCK, f"{STOCK} in the queue")
        since = time.monotonic()
        with lost(ring.hosts["b1"]):
            traffic.run_until_known(lambda: sign(ring, traffic), "the loss to show")
            traffic.flow(traffic.work, traffic.again)
        back = time.monotonic()
        traffic.queue.take(True)
        traffic.flow()
        assert traffic.queue.outage_s(back) < BACK_S
        assert max(traffic.work.outage_s(since), traffic.again.outage_s(since)) < OTHERS_S
        traffic.finish()
