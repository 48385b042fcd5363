"""What tests of every kind share: a mesh of processes."""

from collections.abc import Callable, Iterator

import pytest

from mesh_tests.running_mesh import RunningMesh

StartMesh = Callable[[str], RunningMesh]


def _meshes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartMesh]:
    started: list[RunningMesh] = []

    def start(topology: str) -> RunningMesh:
        started.append(RunningMesh(topology, tmp_path_factory.mktemp("mesh")))
        return started[-1]

    yield start
    for mesh in started:
        mesh.down()


@pytest.fixture
def start_mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartMesh]:
    """Starts a mesh from a topology without port numbers; stops it after the test."""
    yield from _meshes(tmp_path_factory)


@pytest.fixture(scope="module")
def start_module_mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartMesh]:
    """The same for a mesh that all tests of a file share."""
    yield from _meshes(tmp_path_factory)
