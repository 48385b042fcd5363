"""What tests of every kind share: a mesh of processes, and who runs them when several workers do."""

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

import mesh as mesh_package
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.share import Share

# No test is about the time of a single example, which a busy machine stretches.
settings.register_profile("mesh", deadline=None)
settings.load_profile("mesh")

StartMesh = Callable[[str], RunningMesh]


def pytest_configure() -> None:
    """A shell ignores Ctrl-C for what it starts in the background, and programs inherit that: tests send it."""
    # Until all tests are collected nothing is garbage: looking for it takes a sixth of the time.
    gc.disable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    installed_in = os.environ.get("AMQPMESH_INSTALLED_IN")
    if installed_in is not None and not Path(mesh_package.__file__).is_relative_to(installed_in):
        pytest.exit(f"{mesh_package.__file__} is not in {installed_in}, where the wheel is installed", returncode=4)


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


def pytest_collection_finish() -> None:
    """Keep what was collected, which stays to the end, out of each search for garbage while tests run."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write each test that failed to the file that tools/stages.sh prints last, with the first lines of its message."""
    file = os.environ.get("AMQPMESH_FAILED_TESTS")
    if file is None:
        return
    failed = [report for word in ("failed", "error") for report in terminalreporter.getreports(word)]
    with Path(file).open("a") as told:
        for report in failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(report.longrepr if crash is None else crash.message).strip().splitlines()
            told.write(f"{report.nodeid}: {' | '.join(message[:3])[:600]}\n")


def _is_of_the_fast_tier(path: Path) -> bool:
    return any(path.is_relative_to(Path(__file__).parent / tier) for tier in ("unit", "sim"))


def _group(items: list[pytest.Item]) -> None:
    """Decide what goes to one worker when there are several: a group that is marked, tests of the rows, or of a file.

    With `--no-loadscope-reorder` workers take groups in this order: a group with a long test that came last would leave
    the other workers idle.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(_group_of(item), []).append(item)
    for name, group in groups.items():
        for item in group:
            item.add_marker(pytest.mark.xdist_group(name))
    longest_first = sorted(groups.values(), key=lambda group: (max(map(_timeout_s, group)), len(group)), reverse=True)
    items[:] = [item for group in longest_first for item in group]


def _group_of(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    if marker is not None:
        return str(marker.args[0])
    return "rows" if "rows" in getattr(item, "fixturenames", ()) else str(item.path)


def _timeout_s(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker is not None else item.config.getini("timeout"))


def _meshes(tmp_path_factory: pytest.TempPathFactory, session: pytest.Session) -> Iterator[StartMesh]:
    def stop(mesh: RunningMesh) -> None:
        mesh.down()
        # What a mesh stored and recorded may be large, and is kept only if it may explain a failure.
        if not session.testsfailed:
            shutil.rmtree(mesh.topology_file.parent)

    # Each mesh is stopped, also if something is wrong with another one.
    with ExitStack() as stopping:

        def start(topology: str) -> RunningMesh:
            mesh = RunningMesh(topology, tmp_path_factory.mktemp("mesh"))
            stopping.callback(stop, mesh)
            return mesh

        yield start


@pytest.fixture
def start_mesh(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[StartMesh]:
    """Starts a mesh from a topology without port numbers; stops it after the test."""
    yield from _meshes(tmp_path_factory, request.session)


@pytest.fixture(scope="module")
def start_module_mesh(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[StartMesh]:
    """The same for a mesh that all tests of a file share."""
    yield from _meshes(tmp_path_factory, request.session)
