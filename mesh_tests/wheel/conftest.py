"""A bare Debian for all tests of this directory, with the wheel that `make pythons` has built."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mesh_tests.installed import require
from mesh_tests.wheel.bare_debian import BareDebian


@pytest.fixture(scope="session")
def wheel() -> Path:
    name = os.environ.get("AMQPMESH_WHEEL", "")
    require(name != "", "a wheel", "make pythons")
    return Path(name)


@pytest.fixture(scope="session")
def debian(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> BareDebian:
    require(os.geteuid() == 0 and shutil.which("mmdebstrap") is not None, "root, and mmdebstrap", "sudo make pythons")
    folder = tmp_path_factory.mktemp("wheel")
    bare = BareDebian(folder / "root", platform.freedesktop_os_release()["VERSION_CODENAME"])
    bare.install(_download(wheel, folder / "wheels"))
    return bare


def _download(wheel: Path, to: Path) -> list[Path]:
    """Bring the wheels of everything that the wheel requires; proton's lies beside the wheel."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", "--find-links", str(wheel.parent)]
    subprocess.run([*pip, "-d", str(to), str(wheel)], check=True)
    return list(to.glob("*.whl"))
