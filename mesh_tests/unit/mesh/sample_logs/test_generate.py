"""What cannot be made up is said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from mesh.commands.cli import cli

MESH = "mesh: m\nrouters: {r1: {listeners: [{authentication: none}]}}\n"


@pytest.mark.parametrize(
    ("addresses", "duration", "said"),
    [
        ("addresses: {a: anycast}", "0s", "expected a duration of at least 1 s, got 0 s"),
        ("addresses: {a: anycast}", "300ms", "expected a duration of at least 1 s, got 0.3 s"),
        ("addresses: {}", "1m", "no traffic to record: expected at least one recorded address"),
        (
            "addresses: {a: {type: anycast, link_log: off}}",
            "1m",
            "no traffic to record: expected at least one recorded address",
        ),
    ],
)
def test_where_nothing_would_be_sent_that_is_said(tmp_path: Path, addresses: str, duration: str, said: str) -> None:
    (tmp_path / "m.yml").write_text(MESH + addresses)
    arguments = ["-t", str(tmp_path / "m.yml"), "--out", str(tmp_path / "logs"), "--duration", duration]
    done = CliRunner().invoke(cli, ["linklogs", "generate", *arguments])
    assert done.exit_code != 0
    assert said in done.output
    assert not (tmp_path / "logs").exists()
