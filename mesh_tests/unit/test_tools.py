"""What the Makefile and the scripts in tools promise."""

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mesh_tests.installed import require

ROOT = Path(__file__).parents[2]
SOURCES = ("wire/core.pyx", "broker/store/a.py", "mesh/pages/b.js", "mesh_tests/c.py", "tools/d.sh", "README.md")
KEPT = (".amqpmesh/m/pki/ca.pem", "data/b1/store.db")
MADE = (
    *(".venv/bin/python", ".venv-asan/x", ".venv-3.12/x", ".peers/x", ".soak/state.json", "build/x", "dist/x"),
    *("amqpmesh.egg-info/x", ".mypy_cache/x", ".ruff_cache/x", ".pytest_cache/x", ".import_linter_cache/x"),
    *(".hypothesis/x", "wire/core.cpython-311-x86_64-linux-gnu.so", "broker/store/x.cpython-313-x86_64-linux-gnu.so"),
    *("mesh/__pycache__/a.pyc", "mesh_tests/unit/wire/__pycache__/a.pyc", "linklogs/replay/__pycache__/a.pyc"),
)
MAKE_TOLD = ("MAKEFLAGS", "MAKEOVERRIDES", "WITHOUT", "ARGS")


def run(*command: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    # What the make that runs the tests was told is not meant for the make that a test runs.
    inherited = {name: value for name, value in os.environ.items() if name not in MAKE_TOLD}
    return subprocess.run(
        command, cwd=cwd, env={**inherited, **environment}, capture_output=True, text=True, check=False
    )


def test_make_clean_leaves_what_was_written_and_nothing_that_was_made(tmp_path: Path) -> None:
    for name in (*SOURCES, *KEPT, *MADE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    cleaned = run("make", "clean", cwd=tmp_path)
    assert cleaned.returncode == 0, cleaned.stderr
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*SOURCES, *KEPT, "Makefile"}


def test_a_stage_that_fails_stops_no_other_and_is_told_at_the_end() -> None:
    done = run("bash", "tools/stages.sh", "true", "bash -c 'exit 3'", "echo third")
    assert done.returncode == 1
    *_, first, second, third = done.stdout.splitlines()
    assert first.split()[0] == "ok"
    assert second.startswith("FAILED (3)")
    assert third.split()[0] == "ok"
    assert "\nthird\n" in done.stdout
    assert run("bash", "tools/stages.sh", "true", "true").returncode == 0


def test_the_last_lines_of_all_stages_name_each_test_that_failed_once(tmp_path: Path) -> None:
    failing = tmp_path / "test_planted.py"
    failing.write_text("def test_holds(): pass\ndef test_fails():\n    left, right = 17, 4\n    assert left == right\n")
    options = f"-q -p mesh_tests.conftest --rootdir={tmp_path} -c {os.devnull} -o timeout=60"
    pytest_run = f"{sys.executable} -m pytest {options} {failing}"
    done = run("bash", "tools/stages.sh", f"bash tools/stages.sh '{pytest_run}'", "true", AMQPMESH_FAILED_TESTS="")
    assert done.returncode == 1
    _, told = done.stdout.split("### all tests that failed\n")
    assert told == "test_planted.py::test_fails: assert 17 == 4\n"
    assert "all tests that failed" not in run("bash", "tools/stages.sh", "false", AMQPMESH_FAILED_TESTS="").stdout


def test_every_check_runs_though_an_earlier_one_failed(tmp_path: Path) -> None:
    """The recipes of the Makefile, with tools that only say that they were called, and fail."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("setup.cfg", "setup.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("ruff", "cython-lint", "mypy", "python", "pytest"):
        (tmp_path / ".venv" / "bin" / name).write_text(f'#!/bin/sh\necho "called {name} $@"\nexit 1\n')
        (tmp_path / ".venv" / "bin" / name).chmod(0o755)
    (tmp_path / ".venv" / "ready").touch()
    done = run("make", "test", "ARGS=--durations=3", cwd=tmp_path)
    assert done.returncode != 0
    called = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("called ")]
    assert called == ["ruff", "ruff", "cython-lint", "mypy", "python", "python", *["pytest"] * 5]
    assert (
        "called pytest -n 3 --dist loadgroup --no-loadscope-reorder -m not quiet and not alone --ignore" in done.stdout
    )
    assert done.stdout.count("FAILED (1)") == len(called)


@pytest.mark.parametrize("library", ["libsasl2", "openssl", "libuv"])
def test_a_build_alone_finds_no_library_that_lies_about(tmp_path: Path, library: str) -> None:
    require(shutil.which("pkg-config") is not None, "pkg-config")
    (tmp_path / f"{library}.pc").write_text(f"Name: {library}\nDescription: planted\nVersion: 99\nLibs: -l{library}\n")
    find = f"pkg-config --modversion {library}"
    assert run("bash", "-c", find, PKG_CONFIG_PATH=str(tmp_path)).stdout == "99\n"
    alone = run("bash", "-c", f"source tools/proton.sh; alone {find}", PKG_CONFIG_PATH=str(tmp_path))
    assert (alone.returncode != 0, alone.stdout) == (True, "")


def build_c(tree: Path, given: Path, **environment: str) -> Path:
    """Build what is compiled, with a compiler that does nothing; return the C file that Cython would have written."""
    (tree / "wire").mkdir(parents=True, exist_ok=True)
    (tree / "wire" / "x.pyx").write_text("from wire.y cimport Number\ncpdef Number two(): return 2\n")
    shutil.copy(ROOT / "setup.py", tree)
    nothing = {"CC": "true", "LDSHARED": "true", "AMQPMESH_C_FILES": str(given), **environment}
    done = run(sys.executable, "setup.py", "-q", "build_ext", cwd=tree, **nothing)
    assert done.returncode == 0, done.stderr
    return tree / "build" / "cython" / "wire" / "x.c"


def test_c_files_of_another_build_are_taken_only_if_they_are_of_the_same_sources(tmp_path: Path) -> None:
    trees = [tmp_path / name for name in ("first", "same", "other")]
    for tree, number in zip(trees, ("int", "int", "long"), strict=True):
        (tree / "wire").mkdir(parents=True)
        (tree / "wire" / "y.pxd").write_text(f"ctypedef {number} Number\n")
        os.utime(tree / "wire" / "y.pxd", (0, 0))
    first, same, other = (build_c(tree, trees[0] / "build" / "cython") for tree in trees)
    assert first.exists()
    assert not same.exists(), "translated again"
    assert "long" in other.read_text()


@pytest.mark.parametrize(("flags", "expected"), [(None, True), ("-g0", True), ("-O1 -g0", False)])
def test_compiled_modules_are_optimized_unless_flags_say_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str | None, expected: bool
) -> None:
    tree, compiler = tmp_path / "tree", tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/flags\n')
    compiler.chmod(0o755)
    (tree / "wire").mkdir(parents=True)
    (tree / "wire" / "y.pxd").write_text("ctypedef int Number\n")
    monkeypatch.delenv("CFLAGS", raising=False)
    build_c(tree, tmp_path, CC=str(compiler), **({"CFLAGS": flags} if flags is not None else {}))
    (used,) = (tmp_path / "flags").read_text().splitlines()
    assert ("-O3" in used) is expected


def test_the_licences_of_all_that_is_installed_are_named() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    licences = [path.relative_to(ROOT) for path in ROOT.glob("mesh/**/*LICENSE*")]
    assert licences
    named = config["metadata"]["license_files"].split("\n")
    assert {"LICENSE", *map(str, licences)} <= set(named)
    assert config["metadata"]["license_expression"] == "Apache-2.0 AND MIT"
