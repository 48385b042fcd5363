"""What does `amqpmesh linklogs compact` say?"""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from mesh.commands.cli import cli
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.unit.linklogs.host import Host

HOUR = "hour=2026-01-01T00"


def invoke(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, ["linklogs", "compact", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_there_is_nothing_to_do_in_an_empty_folder(tmp_path: Path):
    code, _, said = invoke(str(tmp_path))
    assert code == ExitCode.OK
    assert "nothing to do" in said


def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    code, _, said = invoke(str(tmp_path / "nowhere"))
    assert code == ExitCode.FAILED
    assert str(tmp_path / "nowhere") in said


def test_what_cannot_be_read_stays_and_is_said(tmp_path: Path):
    folder = tmp_path / "node=r1" / HOUR
    folder.mkdir(parents=True)
    for name in ("1-000000000000.parquet", "1-000000000001.parquet"):
        (folder / name).write_bytes(b"no parquet")
    code, out, _ = invoke(str(tmp_path), "--json")
    assert code == ExitCode.FAILED
    found = json.loads(out.splitlines()[0])
    assert found["findings"]
    assert len(list(folder.iterdir())) == 2


def test_files_of_an_hour_become_one_and_a_second_time_there_is_nothing_to_do(host: Host):
    node = host.node()
    for number in range(3):
        node.delivery(number)
        host.step(after_s=61)
        host.step(after_s=61)
    host.stop()
    assert len(list(host.out.rglob("*.parquet"))) == 3
    code, _, said = invoke(str(host.out))
    assert code == ExitCode.OK
    assert said.startswith("3 files became 1, ")
    assert len(list(host.out.rglob("*.parquet"))) == 1
    assert "nothing to do" in invoke(str(host.out))[2]
