"""A mesh of containers, where an engine answers: one for all tests of a worker, which leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mesh_tests.containers.container_mesh import ContainerMesh
from mesh_tests.containers.engine import Engine, engine_answers
from mesh_tests.containers.partition import can_partition, remove_left_rules
from mesh_tests.containers.ring import OVER_R2, TOPOLOGY, takes
from mesh_tests.installed import require
from mesh_tests.waiting import wait_until

START_S = 30.0


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    require(engine_answers(), "a Docker Engine on this machine", "make hosts")
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def ring(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerMesh]:
    mesh = ContainerMesh(engine, TOPOLOGY, tmp_path_factory.mktemp("hosts"))
    wait_until(lambda: takes(mesh, OVER_R2), START_S, f"r1 and r3 to take {OVER_R2}")
    yield mesh
    mesh.down()


@pytest.fixture(scope="session")
def partitions(engine: Engine) -> None:
    """What `silenced` needs."""
    require(can_partition(), "the right to use iptables", "make hosts")
    remove_left_rules()
