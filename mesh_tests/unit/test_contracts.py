"""Are the import contracts of setup.cfg held to in compiled code as in Python?"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = ROOT / "tools" / "contracts.py"
PACKAGES = ("addressing", "wire", "recording", "router", "broker", "linklogs", "mesh")
LAYERS = "Dependencies point one way"
ENGINE = "Only wire imports proton"
IO = "Cores take inputs and return actions"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources. A test changes one file at a time."""
    root = tmp_path_factory.mktemp("checkout")
    for package in PACKAGES:
        files = [path for path in (ROOT / package).rglob("*") if path.suffix in (".py", ".pyx", ".pxd")]
        for path in files:
            goal = root / path.relative_to(ROOT)
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, goal)
    shutil.copy(ROOT / "setup.cfg", root)
    return root


def check(root: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, str(CONTRACTS), str(root)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def check_with(root: Path, file: str, planted: str) -> tuple[int, str]:
    """Check the copy while ``planted`` stands at the end of ``file``."""
    path = root / file
    before = path.read_text()
    path.write_text(f"{before}\n{planted}\n")
    try:
        return check(root)
    finally:
        path.write_text(before)


def test_the_code_as_it_is_keeps_all_of_them(checkout: Path) -> None:
    exit_code, said = check(checkout)
    assert exit_code == 0, said
    assert ", 0 broken" in said


@pytest.mark.parametrize(
    ("file", "planted", "contract"),
    [
        ("router/forwarding/tags.pyx", "import broker.node", LAYERS),
        ("router/forwarding/tags.pyx", "from broker.queueing.queue cimport Queue", LAYERS),
        ("wire/core.pxd", "from router.forwarding.ends cimport Taker", LAYERS),
        ("wire/codec/scan.pyx", "cimport broker.queueing.queue, router.forwarding.ends", LAYERS),
        ("router/forwarding/tags.pyx", "def engine():\n    import proton", ENGINE),
        ("broker/queueing/queue.pyx", "import asyncio, time", IO),
        ("router/forwarding/move.pyx", "from time import (\n    monotonic,  # a clock\n    sleep,\n)", IO),
        ("router/forwarding/fan.pyx", "if True: import socket", IO),
        ("router/forwarding/fan.pyx", "cdef int one = 1; import os; import wire.link", IO),
        ("router/routing/spf.py", "import random", IO),
    ],
)
def test_an_import_that_breaks_one_is_told_with_its_module(
    checkout: Path, file: str, planted: str, contract: str
) -> None:
    exit_code, said = check_with(checkout, file, planted)
    assert exit_code == 1
    assert [line for line in said.splitlines() if line.startswith(contract) and " BROKEN" in line], said
    assert f"{file.rpartition('.')[0].replace('/', '.')} ->" in said


def test_what_stands_in_strings_and_comments_is_no_import(checkout: Path) -> None:
    planted = '"""\nimport asyncio\n"""\n# import proton\nIMPORT = "\\\nimport broker.node"'
    exit_code, said = check_with(checkout, "router/forwarding/tags.pyx", planted)
    assert exit_code == 0, said
