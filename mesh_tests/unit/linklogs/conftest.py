"""Fixtures of the link logs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh_tests.unit.linklogs.host import Host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.stop()
