"""What tests of every kind share: a mesh of processes, and who runs them when several workers do."""

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mesh_tests.running_mesh import RunningMesh
from mesh_tests.share import Share

StartMesh = Callable[[str], RunningMesh]


def pytest_configure() -> None:
    """A shell ignores Ctrl-C for what it starts in the background, and programs inherit that: tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share",
        metavar="COUNT/WORD",
        type=Share.parse,
        help="run one of COUNT tests of mesh_tests/unit and mesh_tests/sim; another WORD takes others",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share: Share | None = config.getoption("--share")
    if share is not None:
        left = [item for item in items if _is_of_the_fast_tier(item.path) and not share.has(item.nodeid)]
        config.hook.pytest_deselected(items=left)
        without = set(left)
        items[:] = [item for item in items if item not in without]
    _group(items)


def _is_of_the_fast_tier(path: Path) -> bool:
    return any(path.is_relative_to(Path(__file__).parent / tier) for tier in ("unit", "sim"))


def _group(items: list[pytest.Item]) -> None:
    """Decide what goes to one worker when there are several: those that share the mesh of rows, or a file."""
    for item in items:
        shares_rows = "rows" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("rows" if shares_rows else str(item.path)))


def _meshes(tmp_path_factory: pytest.TempPathFactory, session: pytest.Session) -> Iterator[StartMesh]:
    started: list[RunningMesh] = []

    def start(topology: str) -> RunningMesh:
        started.append(RunningMesh(topology, tmp_path_factory.mktemp("mesh")))
        return started[-1]

    yield start
    for mesh in started:
        mesh.down()
        # What a mesh stored and recorded may be large, and is kept only if it may explain a failure.
        if not session.testsfailed:
            shutil.rmtree(mesh.topology_file.parent)


@pytest.fixture
def start_mesh(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[StartMesh]:
    """Starts a mesh from a topology without port numbers; stops it after the test."""
    yield from _meshes(tmp_path_factory, request.session)


@pytest.fixture(scope="module")
def start_module_mesh(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[StartMesh]:
    """The same for a mesh that all tests of a file share."""
    yield from _meshes(tmp_path_factory, request.session)
