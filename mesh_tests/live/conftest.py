"""What row tests share: a line of three routers, a producer at its first, a consumer one to three routers away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mesh_tests.egress import BETWEEN
from mesh_tests.live.row_mesh import RowMesh, Scenario, new_address
from mesh_tests.live.wire_client import WireClient


@pytest.fixture(scope="session")
def rows(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, testrun_uid: str
) -> Iterator[RowMesh]:
    """No test may kill a router of it. Nor may several workers have one each: they would take each other's time.

    Slow scenarios would take time from tests that measure, so they run only for tests that ask for them.
    """
    (tmp_path_factory.getbasetemp().parent / f"rows-of-{testrun_uid}").touch(exist_ok=False)
    is_slow_wanted = any("at_once" in getattr(item, "fixturenames", ()) for item in request.session.items)
    mesh = RowMesh(tmp_path_factory.mktemp("rows"), is_slow_wanted=is_slow_wanted)
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
