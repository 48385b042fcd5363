"""What the tutorial and the README say to paste works, and prints what the pages show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mesh_tests.installed import require
from mesh_tests.live.pasted import is_as_shown
from mesh_tests.running_mesh import AMQPMESH
from mesh_tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
README, TUTORIAL = ROOT / "README.md", ROOT / "docs" / "tutorial.md"
ALL_S = 240.0
DOWN = "amqpmesh down"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    topology = re.search(r"```yaml\n(mesh: shop\n.*?)```", README.read_text(), re.DOTALL)
    assert topology is not None
    (tmp_path / "amqpmesh.yml").write_text(topology[1])
    return tmp_path


@pytest.mark.timeout(ALL_S)
@pytest.mark.parametrize("page", [README, TUTORIAL], ids=lambda page: page.stem)
def test_the_commands_of_a_page_work_as_pasted(folder: Path, page: Path) -> None:
    can_part = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    require(can_part.returncode == 0, "a network namespace of its own, for pages name ports", "sudo make test")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    pasted = subprocess.run(
        ["unshare", "--net", sys.executable, "-m", "mesh_tests.live.pasted", page, folder, "amqpmesh check", DOWN],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert pasted.returncode == 0, pasted.stdout + pasted.stderr
    if page == TUTORIAL:
        multicast = pasted.stdout.partition("--ready-file ready-2")[2].partition("## ")[0]
        assert len(re.findall(r"^3\.20$", multicast, re.MULTILINE)) == 2, pasted.stdout


@pytest.mark.parametrize(
    ("shown", "printed", "is_it"),
    [
        ("a  b\n", "a    b \n", True),
        ("a\n...\nb\n", "a\nb\n", True),
        ("a\n...\nb\n", "a\n1\n2\nb\n", True),
        ("a\nb\n", "a\nb\nc\n", False),
        ("a 8302 b\n", "a 17 b\n", True),
        ("accepted 1\n", "accepted 2\n", False),
    ],
)
def test_what_is_shown_is_compared(shown: str, printed: str, is_it: bool) -> None:
    assert is_as_shown(shown, printed) is is_it


@pytest.mark.parametrize("is_fifo", [False, True])
def test_receive_says_that_it_is_ready_once_messages_can_come(start_mesh, tmp_path: Path, is_fifo: bool) -> None:
    mesh = start_mesh("mesh: ready\nrouters: {r1: {}}\naddresses: {prices.#: multicast}\n")
    ready = tmp_path / "ready"
    if is_fifo:
        os.mkfifo(ready)
    else:
        ready.write_text("of a run before\n")
    address = f"{mesh.url('r1')}/prices.tea"
    with subprocess.Popen(
        [AMQPMESH, "receive", address, "-c", "1", "--ready-file", str(ready)], stdout=subprocess.PIPE, text=True
    ) as receiver:
        try:
            if is_fifo:
                assert ready.read_text() == "prices.tea\n"
            else:
                wait_until(lambda: ready.exists() and ready.read_text() == "prices.tea\n", 60, "the file")
            mesh.run("send", "prices.tea", "-m", "3.20")
            assert receiver.communicate(timeout=60)[0] == "3.20\n"
        finally:
            receiver.kill()
