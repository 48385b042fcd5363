"""Options of `amqpmesh bench` at scale that mean nothing together are refused before anything starts."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from mesh.commands.cli import cli
from mesh.terminal.exit_codes import ExitCode


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["addresses", "--pid", "1"], "--pid is only for a server at --url"),
        (["attaches", "--pid", "1"], "--pid is only for a server at --url"),
        (["addresses", "--type", "stream"], "stream"),
        (["fan", "--consumers", "5", "--connections", "6"], "expected 1 to 250 consumers on each connection"),
        (["footprint", "--url", "amqp://h/a"], "--url needs --pid"),
        (["footprint", "--pid", "1", "--for", "1s"], "--for with --pid needs --url"),
        (["handshakes", "--url", "amqp://h/a"], "expected both --url and --tls-port"),
        (["handshakes", "-d", "0s"], "must be longer than 0"),
        (["busy", "-r", "1/s", "-d", "100ms"], "--rate times --seconds must be at least 1"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_starts(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(cli, ["bench", *arguments])
    assert result.exit_code == ExitCode.USAGE
    assert words in result.stderr
