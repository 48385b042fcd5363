"""Are the import contracts of setup.cfg held to in compiled code as in Python?"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import contracts

ROOT = Path(__file__).parents[2]
CONTRACTS = ROOT / "tools" / "contracts.py"
PACKAGES = ("addressing", "wire", "recording", "router", "broker", "linklogs", "mesh")
LAYERS = "Dependencies point one way"
ENGINE = "Only wire imports proton"
IO = "Cores take inputs and return actions"
TRANSPORT = "Transport knows bytes only"


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
        ("wire/transport/connection.py", "from wire.endpoint import Endpoint", TRANSPORT),
        ("wire/transport/listener.py", "def refuse():\n    from wire.sasl.headers import AMQP", TRANSPORT),
        ("wire/transport/tls_session.py", "import wire.codec.scan", TRANSPORT),
        ("wire/transport/connector.py", "from wire import node", TRANSPORT),
        ("wire/transport/connector.py", "from wire.log_events import ConnectorUp", TRANSPORT),
        ("wire/transport/tls.py", "import cffi", TRANSPORT),
        ("wire/transport/specs.py", "from addressing.topology.model import Listener", TRANSPORT),
    ],
)
def test_an_import_that_breaks_one_is_told_with_its_module(
    checkout: Path, file: str, planted: str, contract: str
) -> None:
    exit_code, said = check_with(checkout, file, planted)
    assert exit_code == 1
    assert [line for line in said.splitlines() if line.startswith(contract) and " BROKEN" in line], said
    assert f"{file.rpartition('.')[0].replace('/', '.')} ->" in said


def circles_with(root: Path, mirror: Path, file: str, planted: str) -> list[frozenset[str]]:
    """Return the circles in the copy while ``planted`` stands at the end of ``file``."""
    path = root / file
    before = path.read_text()
    path.write_text(f"{before}\n{planted}\n")
    try:
        contracts.write_mirror(root, list(PACKAGES), mirror)
    finally:
        path.write_text(before)
    return contracts.circles(mirror)


@pytest.mark.parametrize(
    ("file", "planted", "circle"),
    [
        ("addressing/topology/model.py", "import addressing.book", {"addressing.book", "addressing.topology.model"}),
        (
            "addressing/topology/model.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from addressing.book import AddressBook",
            {"addressing.book", "addressing.topology.model"},
        ),
        (
            "router/distribution/waiting_consumer.py",
            "def entry():\n    from router.distribution import entries",
            {"router.distribution.entries", "router.distribution.waiting_consumer"},
        ),
        (
            "router/forwarding/tags.pyx",
            "from router.forwarding.ends cimport Taker",
            {"router.forwarding.ends", "router.forwarding.tags"},
        ),
        (
            "router/forwarding/words.pxd",
            "from router.forwarding.move cimport Move",
            {"router.forwarding.move", "router.forwarding.words"},
        ),
    ],
)
def test_modules_that_import_each_other_are_a_circle(
    checkout: Path, tmp_path: Path, file: str, planted: str, circle: set[str]
) -> None:
    found = circles_with(checkout, tmp_path, file, planted)
    assert [group for group in found if circle <= group]


def test_a_circle_that_is_not_known_and_a_known_one_that_is_gone_break_the_check(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contracts.write_mirror(checkout, list(PACKAGES), tmp_path)
    assert contracts.check_circles(tmp_path) == 0
    monkeypatch.setattr(contracts, "KNOWN_CIRCLES", {frozenset({"wire.a", "wire.b"})})
    capsys.readouterr()
    assert contracts.check_circles(tmp_path) == 1
    said = capsys.readouterr().out
    assert "modules import each other in a circle: wire.endpoint, wire.events, wire.link\n" in said
    assert "no circle now, take it out of KNOWN_CIRCLES: wire.a, wire.b\n" in said


def test_a_circle_breaks_the_command(checkout: Path) -> None:
    exit_code, said = check_with(checkout, "addressing/kinds.py", "import addressing.book")
    assert exit_code == 1
    assert "modules import each other in a circle: addressing.book, addressing.kinds, " in said


def test_what_stands_in_strings_and_comments_is_no_import(checkout: Path) -> None:
    planted = '"""\nimport asyncio\n"""\n# import proton\nIMPORT = "\\\nimport broker.node"'
    exit_code, said = check_with(checkout, "router/forwarding/tags.pyx", planted)
    assert exit_code == 0, said
