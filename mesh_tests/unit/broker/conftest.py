from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh_tests.unit.broker.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data")
    yield rig
    rig.store.close()
