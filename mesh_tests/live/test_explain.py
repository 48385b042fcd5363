"""`amqpmesh explain address` and `client` of a mesh that runs."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from mesh.terminal.exit_codes import ExitCode
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: explained
watch: WATCH
routers: {r1: {connect: [{to: r2, cost: 3}]}, r2: }
brokers: {b1: {data: ./data, routers: [r2]}}
addresses:
  rpc: {type: anycast, distribution: closest}
  orders.#: queue
  news.#: topic
  shut: unavailable
"""
WITHIN_S = 60.0


@pytest.fixture(scope="module", params=["on", "off"])
def mesh(start_module_mesh: Any, request: pytest.FixtureRequest) -> RunningMesh:
    """With an observer, which is asked, and without one: then the command reads the rings."""
    running: RunningMesh = start_module_mesh(TOPOLOGY.replace("WATCH", f'"{request.param}"'))
    return running


def told(mesh: RunningMesh, clients: list[WireClient], *words: str) -> str:
    """Standard output of `amqpmesh explain`; the clients send their heartbeats meanwhile."""
    command = [AMQPMESH, "explain", *words, "-t", str(mesh.topology_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        wait_with(clients, lambda: running.poll() is not None, "the end of `explain`", WITHIN_S)
        assert running.stdout is not None
        return running.stdout.read()


def explained(mesh: RunningMesh, clients: list[WireClient], *words: str) -> dict[str, Any]:
    """The document of `explain --json`; {} if the command failed."""
    output = told(mesh, clients, *words, "--json")
    found: dict[str, Any] = json.loads(output) if output else {}
    return found


def test_an_address_is_explained_with_its_line_producers_and_takers(mesh: RunningMesh):
    with (
        WireClient(mesh.port("r1"), container_id="till") as till,
        WireClient(mesh.port("r2"), container_id="far") as far,
        WireClient(mesh.port("r1"), container_id="near") as near,
    ):
        every = [till, far, near]
        till.sender("rpc")

        def wait_for(holds: Any) -> dict[str, Any]:
            found: dict[str, Any] = {}

            def look() -> bool:
                found.update(explained(mesh, every, "address", "rpc"))
                return bool(holds(found))

            wait_until(look, WITHIN_S, "the explanation")
            return found

        waiting = wait_for(lambda found: any("no consumer takes" in note for note in found["notes"]))
        assert waiting["declared"][0].startswith("rpc: anycast, declared by its name (amqpmesh.yml:")
        assert waiting["producers"][0]["waits_for"] == "no_taker"
        far.receiver("rpc", credit=5)
        found = wait_for(lambda found: any(taker["cost"] == 3 for taker in found["takers"] if taker["router"] == "r1"))
        (circuit,) = [taker for taker in found["takers"] if taker["router"] == "r1"]
        assert (circuit["note"], circuit["to"]) == ("next", "r2 over r1>r2")
        near.receiver("rpc", credit=5)
        found = wait_for(lambda found: sum(taker["router"] == "r1" for taker in found["takers"]) == 2)
        notes = {taker["cost"]: taker["note"] for taker in found["takers"] if taker["router"] == "r1"}
        assert notes == {0: "next", 3: "3 against 0"}
        text = told(mesh, every, "address", "rpc")
        assert "consumer r1/" in text
        assert "each message goes to the taker with the least path cost" in text


def test_a_client_is_explained_with_its_links(mesh: RunningMesh):
    with WireClient(mesh.port("r1"), container_id="worker") as worker:
        worker.receiver("orders.eu", credit=3)

        def look() -> dict[str, Any] | None:
            found = explained(mesh, [worker], "client", "worker")
            return found if found.get("links") else None

        found = wait_until(look, WITHIN_S, "the client")
        assert [(link["role"], link["address"]) for link in found["links"]] == [("consumer", "orders.eu")]
        assert "orders.eu" in told(mesh, [worker], "client", found["connections"][0]["id"])

        def with_queue() -> dict[str, Any] | None:
            queue = explained(mesh, [worker], "address", "orders.eu")
            return queue if queue.get("queues") else None

        queue = wait_until(with_queue, WITHIN_S, "the queue of the address")
        assert "tied to a link of its own at broker b1" in queue["declared"][1]
        assert [each["node"] for each in queue["queues"]] == ["b1"]


def test_a_delivery_is_explained_with_its_candidates(mesh: RunningMesh):
    with (
        WireClient(mesh.port("r1"), container_id="near") as near,
        WireClient(mesh.port("r1"), container_id="till") as till,
    ):
        near.receiver("rpc", credit=1000)
        sender = till.sender("rpc")
        command = [AMQPMESH, "explain", "delivery", "rpc", "--seconds", "60", "--count", "1", "--json"]
        with subprocess.Popen(
            [*command, "-t", str(mesh.topology_file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as running:

            def send_until_told() -> bool:
                if sender.credit > 0:
                    till.send(sender, "x")
                return running.poll() is not None

            wait_with([near, till], send_until_told, "the end of `explain delivery`", 2 * WITHIN_S)
            assert running.stdout is not None
            found = json.loads(running.stdout.read())
    (row,) = found["decisions"]
    assert row["router"] == "r1"
    assert row["candidates"][0]["verdict"] == "chosen"
    assert found["links"]["r1"][str(row["chosen"])]["container"] == "near"


@pytest.mark.parametrize(
    ("address", "code", "sentence"),
    [
        ("orders.eu", ExitCode.OK, "a producer's link leads to queue orders.eu of broker b1, and a consumer's link"),
        ("news.eu", ExitCode.OK, "topic news.eu of broker b1, which keeps a copy for each subscription"),
        ("orders.#", ExitCode.OK, "orders.# is a pattern, and decisions are recorded by address"),
        ("rpc", ExitCode.OK, "within 1 s, no router here decided about a delivery of rpc"),
        ("nothing", ExitCode.FAILED, "nothing: the topology declares no such address"),
        ("shut", ExitCode.FAILED, "the topology says that the address is unavailable"),
    ],
)
def test_who_decides_about_deliveries_is_said_for_each_address(
    mesh: RunningMesh, address: str, code: ExitCode, sentence: str
):
    done = run(mesh, "delivery", address, "--seconds", "1")
    assert done.returncode == code, done.stderr
    assert sentence in (done.stderr if code else done.stdout)


def run(mesh: RunningMesh, *words: str) -> subprocess.CompletedProcess[str]:
    command = [AMQPMESH, "explain", *words, "-t", str(mesh.topology_file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("client", "nobody"), ExitCode.FAILED, "no client 'nobody': "),
        (("address",), ExitCode.USAGE, "`explain address` expects ADDRESS, got nothing"),
        (("access", "alice"), ExitCode.USAGE, "`explain access` expects USER ADDRESS, got 1 arguments"),
        (
            ("addres", "rpc"),
            ExitCode.USAGE,
            "expected one code, event or condition, or address, client, access, delivery first",
        ),
    ],
)
def test_bad_input_gets_a_sentence(mesh: RunningMesh, words: tuple[str, ...], code: ExitCode, sentence: str):
    done = run(mesh, *words)
    assert done.returncode == code
    assert sentence in done.stderr


def test_an_address_that_nobody_declares_is_explained(mesh: RunningMesh):
    assert "the topology declares no such address" in mesh.run("explain", "address", "nothing")
