"""The wheel on a bare Debian: the command works there, beside whatever files a user has."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from mesh_tests.wheel.bare_debian import BareDebian

# The first test waits for a Debian to be made.
pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[2]
USERS_FILES = ("addressing", "bench", "broker", "client", "linklogs", "mesh", "recording", "router", "wire")
PACKAGES = sorted({*USERS_FILES} - {"bench", "client"})
FOLDER = "/home/shop"
TOPOLOGY = """
mesh: shop
routers:
  r1: {listeners: [5672], connect: [r2]}
  r2: {listeners: [5682]}
brokers:
  b1: {data: ./data/b1, routers: [r2]}
addresses:
  orders: queue
"""


@pytest.fixture
def folder(debian: BareDebian) -> Path:
    """A user's folder whose files are named as packages and modules of ours, and say when they are imported."""
    here = debian.path(FOLDER)
    here.mkdir(parents=True, exist_ok=True)
    for name in USERS_FILES:
        (here / f"{name}.py").write_text(f'raise SystemExit("imported the user\'s {name}.py")\n')
    (here / "amqpmesh.yml").write_text(TOPOLOGY)
    return here


def test_the_wheel_has_every_file_of_its_packages_but_sources_of_what_is_compiled(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()]
    expected = {str(path.relative_to(ROOT)) for path in tracked if path.suffix not in (".pyx", ".so", ".pyc", ".md")}
    assert len(expected) > 600
    assert expected - names == set()
    compiled = {name.partition(".")[0] for name in names if name.endswith(".so")}
    assert compiled == {str(path.relative_to(ROOT).with_suffix("")) for path in tracked if path.suffix == ".pyx"}


def test_a_bare_debian_has_nothing_that_could_compile(debian: BareDebian) -> None:
    assert debian.run("command -v cc || command -v gcc || command -v git || ls /usr/include/python3*").stdout == ""


def test_a_mesh_runs_in_a_folder_whose_files_are_named_as_our_packages(debian: BareDebian, folder: Path) -> None:
    """Nodes, the writer of link logs, the probe and clients are processes of their own: each imports the wheel."""
    ran = debian.run(
        "amqpmesh check && amqpmesh up --detach && amqpmesh send orders -m coffee -c 2 && "
        "amqpmesh receive amqp://127.0.0.1:5682/orders -c 2 && amqpmesh status && amqpmesh down",
        FOLDER,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "sent 2  accepted 2\ncoffee\ncoffee\n" in ran.stdout
    logs = [log.read_text() for log in folder.glob(".amqpmesh/shop/log/*")]
    assert len(logs) > 3
    assert not any("imported" in text for text in (ran.stdout, ran.stderr, *logs))


def test_the_demo_runs_in_such_a_folder(debian: BareDebian, folder: Path) -> None:
    demo = debian.run("amqpmesh demo --json", FOLDER)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert all(result["passed"] for result in json.loads(demo.stdout)["results"])


@pytest.mark.parametrize("command", ["bench forward -c 500 -n 1 --mode each -s 100", "simulate --duration 10s"])
def test_other_commands_run_in_such_a_folder(debian: BareDebian, folder: Path, command: str) -> None:
    ran = debian.run(f"amqpmesh {command}", FOLDER)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "imported" not in ran.stdout + ran.stderr


def test_python_m_imports_from_the_current_folder_first_unless_told_otherwise(debian: BareDebian, folder: Path) -> None:
    """docs/how-to/install.md says so."""
    ran = debian.run("python -m mesh check", FOLDER)
    assert (ran.returncode, ran.stderr) == (1, "imported the user's mesh.py\n")
    (folder / "mesh.py").unlink()
    ran = debian.run("python -m mesh check", FOLDER)
    assert (ran.returncode, ran.stderr) == (1, "imported the user's addressing.py\n")
    for name in PACKAGES:
        (folder / f"{name}.py").unlink(missing_ok=True)
    # The others are modules within packages of ours.
    assert debian.run("ls *.py && python -m mesh check", FOLDER).returncode == 0


def test_python_m_with_a_safe_path_imports_none_of_the_users_files(debian: BareDebian, folder: Path) -> None:
    for command in ("python -P -m mesh check", "PYTHONSAFEPATH=1 python -m mesh check"):
        ran = debian.run(command, FOLDER)
        assert (ran.returncode, "imported" in ran.stderr) == (0, False), ran


def test_a_program_of_the_user_imports_the_files_beside_it(debian: BareDebian, folder: Path) -> None:
    (folder / "app.py").write_text("import router\n")
    ran = debian.run("python app.py", FOLDER)
    assert (ran.returncode, ran.stderr) == (1, "imported the user's router.py\n")
