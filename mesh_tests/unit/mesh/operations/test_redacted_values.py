"""`amqpmesh linklogs hash` finds what redacted link logs have in place of a value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from linklogs.writer.redaction import Redactor
from mesh.commands.cli import cli
from recording.columns import RecordKind

KEY = b"not for everybody"


def mesh(directory: Path, link_logs: Any) -> Path:
    (directory / "key").write_bytes(KEY + b"\n")
    path = directory / "amqpmesh.yml"
    path.write_text(json.dumps({"mesh": "m", "routers": {"r1": {}}, "link_logs": link_logs}))
    return path


def hashes(topology: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["linklogs", "hash", "-t", str(topology), *arguments])


def test_hashes_are_those_that_the_writer_makes(tmp_path: Path) -> None:
    topology = mesh(tmp_path, {"redact": "key"})
    values = {"address": "orders", "user": "alice", "remote_address": "10.0.0.1:5672", "container": "app", "name": "l"}
    written = Redactor(KEY).row({"kind": RecordKind.LINK, **values})
    for column, value in values.items():
        done = hashes(topology, "--column", column, value)
        assert (done.exit_code, done.stdout) == (0, f"{written[column]}\n"), column
    assert hashes(topology, "orders", "_amqpmesh/probe/r1").stdout == (
        f"{written['address']}\n{Redactor(KEY).row({'address': '_amqpmesh/probe/r1'})['address']}\n"
    )


def test_there_is_one_line_for_each_value(tmp_path: Path) -> None:
    lines = hashes(mesh(tmp_path, {"redact": "key"}), "a", "a", "b").stdout.splitlines()
    assert len(lines) == 3
    assert lines[0] == lines[1] != lines[2]


def test_programs_get_them_by_value(tmp_path: Path) -> None:
    told = json.loads(hashes(mesh(tmp_path, {"redact": "key"}), "--json", "a", "b").stdout)
    assert (told["schema"], told["column"], list(told["hashes"])) == ("amqpmesh.linklogs.hash/1", "address", ["a", "b"])


@pytest.mark.parametrize(
    ("link_logs", "said"),
    [
        ("full", "link_logs: redact hides nothing: link logs show address unchanged, and need no hash"),
        (
            {"redact": {"key": "key", "columns": ["user"]}},
            "link_logs: redact hides user: link logs show address unchanged, and need no hash",
        ),
        ({"redact": "lost"}, "No such file"),
    ],
)
def test_what_is_not_hashed_is_said(tmp_path: Path, link_logs: Any, said: str) -> None:
    done = hashes(mesh(tmp_path, link_logs), "orders")
    assert done.exit_code != 0
    assert said in done.stderr
