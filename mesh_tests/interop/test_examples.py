"""The programs in examples/ against a mesh: they send and receive, and say what went wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mesh_tests.conftest import StartMesh
from mesh_tests.installed import PEERS, require
from mesh_tests.ports import free_port
from mesh_tests.programs import Program
from mesh_tests.running_mesh import RunningMesh

EXAMPLES = Path(__file__).parents[2] / "examples"
CLIENTS = Path(__file__).parent / "clients"
COUNT = 5
DONE_S = 60.0
MESH = """
mesh: examples
routers:
  r1: {connect: [r2]}
  r2: {}
brokers:
  b1: {routers: [r2]}
addresses:
  service.#: anycast
  orders.#: queue
  full.#: {type: queue, max_messages: 1, when_full: reject}
"""


@dataclass(frozen=True)
class Example:
    name: str
    command: tuple[str, ...]
    needs: Path = EXAMPLES
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *words],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=DONE_S,
            check=False,
        )

    def start(self, directory: Path, *words: str) -> Program:
        return Program(self.name, [*self.command, *words], directory, self.environment)


def _python(name: str) -> tuple[str, ...]:
    return (sys.executable, str(EXAMPLES / "python" / name))


SMALL_JAVA = ("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
ALL = [
    Example("proton", _python("proton_client.py")),
    Example("mesh", _python("mesh_client.py")),
    Example(
        "rhea",
        ("node", str(EXAMPLES / "javascript" / "client.js")),
        PEERS / "rhea" / "node_modules" / "rhea",
        {"NODE_PATH": str(PEERS / "rhea" / "node_modules")},
    ),
    Example(
        "jms",
        (*SMALL_JAVA, "-cp", f"{PEERS}/jms/lib/*", str(EXAMPLES / "java" / "Client.java")),
        PEERS / "jms" / "lib" / "done",
    ),
    Example("go_amqp", (str(PEERS / "go_amqp" / "example"),), PEERS / "go_amqp" / "example"),
]


@pytest.fixture(scope="module")
def mesh(start_module_mesh: StartMesh) -> RunningMesh:
    return start_module_mesh(MESH)


@pytest.fixture(params=ALL, ids=lambda example: example.name)
def example(request: pytest.FixtureRequest) -> Example:
    found: Example = request.param
    if found.name == "go_amqp" and not found.needs.exists():
        # Debian 12 has no Go that builds it: `make peers` may have left the client out.
        pytest.skip("needs go-amqp: run `make peers`")
    require(found.needs.exists(), found.name)
    return found


def messages(count: int = COUNT) -> str:
    return "".join(f"message {number}\n" for number in range(1, count + 1)) + f"received {count}\n"


def test_what_an_example_sends_to_a_queue_is_received_at_another_router(mesh: RunningMesh, example: Example) -> None:
    address = f"orders.{example.name}"
    sent = example.run("send", mesh.url("r1"), address, str(COUNT))
    assert (sent.stdout, sent.stderr, sent.returncode) == (f"sent {COUNT}, all accepted\n", "", 0)
    received = example.run("receive", mesh.url("r2"), address, str(COUNT))
    assert (received.stdout, received.stderr, received.returncode) == (messages(), "", 0)


def test_an_example_receives_what_another_one_sends_to_a_consumer(
    mesh: RunningMesh, example: Example, tmp_path: Path
) -> None:
    address = f"service.{example.name}"
    receiver = example.start(tmp_path, "receive", mesh.url("r2"), address, str(COUNT))
    try:
        # Without a consumer there is no credit: the sender waits for the receiver.
        sent = ALL[0].run("send", mesh.url("r1"), address, str(COUNT))
        assert (sent.stdout, sent.stderr) == (f"sent {COUNT}, all accepted\n", "")
        assert receiver.wait_success(DONE_S) == messages()
    finally:
        receiver.stop()


def test_an_example_says_in_a_sentence_why_it_failed(mesh: RunningMesh, example: Example) -> None:
    nobody = f"amqp://bob:secret@127.0.0.1:{free_port()}"
    full = f"full.{example.name}"
    for words, said in (
        (("send", mesh.url("r1"), "nowhere", "1"), "the topology declares no address 'nowhere'"),
        (("receive", mesh.url("r1"), "nowhere", "1"), "the topology declares no address 'nowhere'"),
        (("send", nobody, "orders", "1"), "connection refused|ECONNREFUSED"),
        (("send", mesh.url("r1"), full, "2"), "message 2 of 2 was not accepted"),
    ):
        failed = example.run(*words)
        assert (failed.stdout, failed.returncode) == ("", 1), failed
        assert re.fullmatch(f"error: .*({said}).*\n", failed.stderr, re.IGNORECASE), failed
        assert "secret" not in failed.stderr


@pytest.mark.parametrize("words", [(), ("listen",), ("send", "amqp://127.0.0.1:1", "orders", "many")])
def test_words_that_an_example_does_not_take_are_answered_with_its_usage(
    example: Example, words: tuple[str, ...]
) -> None:
    refused = example.run(*words)
    assert (refused.stdout, refused.returncode) == ("", 2)
    assert refused.stderr.startswith("usage: ")


def test_the_readme_has_a_row_for_each_example_and_the_versions_are_those_of_the_tests() -> None:
    rows = re.findall(r"^\| .*\]\((\w+/[\w.]+)\) \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    programs = [path for path in EXAMPLES.glob("*/*") if path.suffix in (".py", ".js", ".java", ".go")]
    assert sorted(rows) == sorted(str(path.relative_to(EXAMPLES)) for path in programs)
    requirement = re.compile(r"rhea\": .*|<version>.*</version>|^require .*", re.MULTILINE)
    for ours, theirs in (
        ("javascript/package.json", "package.json"),
        ("java/pom.xml", "pom.xml"),
        ("go/go.mod", "go_client/go.mod"),
    ):
        wanted = requirement.findall((EXAMPLES / ours).read_text())
        tested = requirement.findall((CLIENTS / theirs).read_text())
        assert wanted
        assert set(wanted) <= set(tested)
