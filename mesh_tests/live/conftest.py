"""What row tests share: a line of three routers, a producer at its first, a consumer one to three routers away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mesh_tests.egress import BETWEEN
from mesh_tests.live.row_mesh import RowMesh, Scenario, new_address
from mesh_tests.live.wire_client import WireClient


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Iterator[RowMesh]:
    """No test may kill a router of it. Nor may several workers have one each: they would take each other's time."""
    (tmp_path_factory.getbasetemp().parent / f"rows-of-{testrun_uid}").touch(exist_ok=False)
    mesh = RowMesh(tmp_path_factory.mktemp("rows"))
    yield mesh
    mesh.down()


@pytest.fixture
def at_once(rows: RowMesh) -> Callable[[Scenario, str], Any]:
    return rows.at_once


@pytest.fixture(params=BETWEEN, ids=BETWEEN.values())
def egress(request: pytest.FixtureRequest) -> str:
    """The router of the consumer."""
    return str(request.param)


@pytest.fixture
def producer(rows: RowMesh) -> Iterator[WireClient]:
    with WireClient(rows.port("r1"), container_id="producer") as client:
        yield client


@pytest.fixture
def consumer(rows: RowMesh, egress: str) -> Iterator[WireClient]:
    with WireClient(rows.port(egress), container_id="consumer") as client:
        yield client


@pytest.fixture
def work() -> str:
    """The address of an anycast."""
    return new_address("work")


@pytest.fixture
def news() -> str:
    """The address of a multicast."""
    return new_address("news")
