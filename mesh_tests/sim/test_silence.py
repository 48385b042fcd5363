"""A neighbor says nothing any more, and nobody closes the connection: what counts as hearing it, and what does not?"""

from __future__ import annotations

import pytest

from mesh_tests.sim.line import line
from router.routing.events import NeighborExpired


@pytest.mark.parametrize("hello_interval_s", [1.0, 0.1])
def test_the_clock_of_our_own_engine_is_not_heard(hello_interval_s: float):
    """The driver gives the node a turn at each heartbeat that is due, when no byte has come."""
    mesh = line(2, hello_interval_s=hello_interval_s)
    mesh.run(1)
    pipe = mesh.trunks[frozenset({"r1", "r2"})]
    mesh.cut(pipe, silently=True)
    silent_at = mesh.now
    while not (expired := [(at, event) for at, _, event in mesh.log if isinstance(event, NeighborExpired)]):
        assert mesh.now < silent_at + 10 * hello_interval_s
        mesh.run(hello_interval_s / 2)
        for node, endpoint in pipe.ends:
            if not endpoint.is_freed:
                endpoint.tick(mesh.now)
                node.on_input(endpoint, mesh.now)
    assert expired[0][0] - silent_at < 3.1 * hello_interval_s
