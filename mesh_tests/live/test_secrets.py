"""No command, log or report of a mesh shows a secret of its topology."""

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from addressing.topology.credentials import make_secret
from mesh_tests.ports import free_port
from mesh_tests.running_mesh import AMQPMESH

COMMAND_S = 60.0
URL_PASSWORD, CHANGED_PASSWORD = "canary-of-the-url", "canary-of-another-url"
SALTED = make_secret("canary", iterations=4096)
SECRETS = (URL_PASSWORD, CHANGED_PASSWORD, SALTED, SALTED.partition("$")[2], SALTED.rpartition(":")[2])


@pytest.fixture
def topology(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(
        f"mesh: secrets\nrouters: {{r1: {{port: {free_port()}, listeners: [{free_port()}]}}}}\n"
        f"brokers:\n  old:\n    url: amqp://mesh:{URL_PASSWORD}@127.0.0.1:{free_port()}\n"
        f'users:\n  alice: {{password: "{SALTED}", send: "#"}}\naddresses: {{orders: queue}}\n'
    )
    yield file
    subprocess.run([AMQPMESH, "down", "-t", str(file)], capture_output=True, timeout=COMMAND_S, check=False)


def told(topology: Path, *arguments: str) -> str:
    command = [AMQPMESH, *arguments, "-t", str(topology)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    return f"$ {' '.join(arguments)}\n{done.stdout}{done.stderr}"


@pytest.mark.timeout(300)
def test_a_running_mesh_shows_no_secret_of_its_topology(topology: Path) -> None:
    assert "secrets is" in told(topology, "up", "--detach", "--no-wait")
    commands = [("check",), ("check", "--json"), ("status",), ("status", "--json"), ("status", "r1"), ("doctor",)]
    said = [told(topology, *command) for command in commands]
    text = topology.read_text()
    topology.write_text(text.replace(URL_PASSWORD, CHANGED_PASSWORD).replace(SALTED, make_secret("b", iterations=4096)))
    said += [told(topology, *command) for command in (("up",), ("up", "--json"), ("check",), ("status",))]
    assert "broker old: another password in url" in said[-4]
    topology.write_text(text.replace("send:", "sned:").replace("routers:", "ruoters:").replace("amqp:", "ampq:"))
    said += [told(topology, *command) for command in (("check",), ("check", "--json"), ("up",), ("down",))]
    topology.write_text(text)
    said.append(told(topology, "down"))
    work = topology.parent / ".amqpmesh" / "secrets"
    logs = {path: path.read_text(errors="replace") for path in (work / "log").iterdir()}
    assert logs
    for secret in SECRETS:
        assert [one for one in said if secret in one] == []
        assert [path for path, text in logs.items() if secret in text] == []
    assert stat.S_IMODE((work / "run").stat().st_mode) == 0o700  # where the copy of the topology is
