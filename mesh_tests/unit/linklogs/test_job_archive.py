"""What spark-submit is given has all that a job needs of amqpmesh."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from click.testing import CliRunner

from linklogs.job_archive import pack
from mesh.commands.cli import cli
from mesh.terminal.exit_codes import ExitCode

# Where the project is installed, a module that the zip lacks would be found all the same, elsewhere.
FROM_WHERE = """
import runpy, sys
archive, job = sys.argv[1:]
sys.path.insert(0, archive)
runpy.run_path(job)
ours = ("addressing", "wire", "router", "broker", "linklogs", "mesh")
origins = {name: module.__spec__.origin for name, module in sys.modules.items() if name.partition(".")[0] in ours}
print(sorted(name for name, origin in origins.items() if not origin.startswith(archive)), len(origins))
"""


def test_all_that_a_job_imports_of_amqpmesh_is_in_the_zip(tmp_path: Path) -> None:
    packed = pack(tmp_path / "job")
    command = [sys.executable, "-P", "-c", FROM_WHERE, str(packed.archive), str(packed.job)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env={"PATH": "/usr/bin"})
    elsewhere, _, count = done.stdout.strip().rpartition(" ")
    assert elsewhere == "[]"
    assert int(count) > 20


def test_the_same_modules_make_the_same_zip(tmp_path: Path) -> None:
    one, other = (pack(tmp_path / name).archive for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()
    # None of when it was made, in whole seconds.
    assert {info.date_time for info in ZipFile(one).infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_zip_has_modules_of_a_report_and_no_others(tmp_path: Path) -> None:
    names = ZipFile(pack(tmp_path).archive).namelist()
    assert {"recording/columns.py", "linklogs/job.py", "linklogs/replay/run.py"} <= set(names)
    assert [name for name in names if "writer/" in name or "generating/" in name or not name.endswith(".py")] == []


def test_packing_says_how_to_submit_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["linklogs", "pack", str(tmp_path / "my job")])
    assert done.exit_code == ExitCode.OK
    assert done.stdout == (
        f"spark-submit --py-files '{tmp_path}/my job/linklogs.zip' '{tmp_path}/my job/amqpmesh_report.py' LOGS OUT\n"
    )
    told = json.loads(CliRunner().invoke(cli, ["linklogs", "pack", str(tmp_path), "--json"]).stdout)
    assert told == {
        "schema": "amqpmesh.linklogs.pack/1",
        "archive": f"{tmp_path}/linklogs.zip",
        "job": f"{tmp_path}/amqpmesh_report.py",
    }


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(cli, ["linklogs", "pack", str(tmp_path / "file" / "job")])
    assert done.exit_code == ExitCode.FAILED
    assert "expected a writable folder" in done.stderr
