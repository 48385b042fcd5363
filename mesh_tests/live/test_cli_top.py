"""`amqpmesh top` against real nodes: one table, JSON, and live tables on a terminal until Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh.terminal.exit_codes import ExitCode
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

WAIT_S = 60.0
TOPOLOGY = """
mesh: busy
routers:
  r1: {listeners: [{authentication: none}]}
  r2: {connect: [r1], listeners: [{authentication: none}]}
brokers:
  b1: {routers: [r2]}
addresses: {rpc.#: anycast, orders.#: queue}
"""


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[RunningMesh]:
    running = RunningMesh(TOPOLOGY, tmp_path)
    yield running
    running.down()


def top(mesh: RunningMesh, clients: list[WireClient], *arguments: str) -> str:
    """Standard output of `amqpmesh top`; the clients send their heartbeats meanwhile."""
    command = [AMQPMESH, "top", *arguments, "-t", str(mesh.topology_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as running:
        wait_with(clients, lambda: running.poll() is not None, "the end of `top`", WAIT_S)
        assert running.returncode == ExitCode.OK
        assert running.stdout is not None
        return running.stdout.read()


def test_what_clients_do_is_in_the_tables_and_on_a_terminal_until_interrupted(mesh: RunningMesh) -> None:
    with WireClient(mesh.port("r2")) as consumer, WireClient(mesh.port("r1"), container_id="till") as producer:
        both = [producer, consumer]
        consumer.receiver("rpc.1", credit=100)
        sender, storing = producer.sender("rpc.1"), producer.sender("orders.1")
        for _ in range(20):
            producer.send_when_due(sender)
        for _ in range(3):
            producer.send_when_due(storing)
        wait_with(both, lambda: len(consumer.arrived) == 20, "20 deliveries")
        consumer.settle_all()
        wait_with(both, lambda: len(producer.outcomes) == 23, "all outcomes")

        def rows(*arguments: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = json.loads(top(mesh, both, *arguments, "--json"))["rows"]
            return found

        def addresses() -> dict[str, tuple[object, ...]]:
            columns = ("producers", "consumers", "depth", "in_accepted", "out_accepted")
            return {row["address"]: tuple(row[name] for name in columns) for row in rows("addresses")}

        wanted = {"rpc.1": (1, 1, None, 20, 20), "orders.1": (1, 0, 3, 3, 0)}
        wait_until(lambda: addresses() == wanted, WAIT_S, f"{wanted}")
        (queue,) = [row for row in rows("queues") if row["address"] == "orders.1"]
        assert (queue["node"], queue["depth"], queue["enqueued"]) == ("b1", 3, 3)
        assert {row["name"]: row["state"] for row in rows("nodes")} == dict.fromkeys(("r1", "r2", "b1"), "running")
        clients = rows("clients", "--sort", "container")
        assert [(row["container"], row["node"]) for row in clients] == [("by-hand", "r2"), ("till", "r1")]
        assert "rpc.1" in top(mesh, both, "links", "--limit", "9")
        check_live(mesh, both, lambda shown: "busy: 2 addresses by in_rate" in shown and "orders.1" in shown)


def check_live(mesh: RunningMesh, clients: list[WireClient], holds: Callable[[str], bool]) -> None:
    main, other = pty.openpty()
    command = [AMQPMESH, "top", "--every", "500ms", "-t", str(mesh.topology_file)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "40"}
    with subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=environment) as running:
        os.close(other)
        shown = b""

        def has_shown(condition: Callable[[str], bool]) -> bool:
            nonlocal shown
            if select.select([main], [], [], 0.05)[0]:
                shown += os.read(main, 1 << 16)
            return condition(shown.decode(errors="replace"))

        wait_with(clients, lambda: has_shown(holds), "a table", WAIT_S)
        first = shown.count(b"by in_rate")
        wait_with(clients, lambda: has_shown(lambda text: text.count("by in_rate") > first), "a second table", WAIT_S)
        running.send_signal(signal.SIGINT)
        wait_with(clients, lambda: has_shown(lambda text: "\x1b[?1049l" in text), "the terminal as it was", WAIT_S)
        assert running.wait(WAIT_S) == ExitCode.OK
        assert "Traceback" not in shown.decode(errors="replace")
    os.close(main)


def test_with_an_observer_counts_go_on_when_a_node_starts_again(tmp_path: Path) -> None:
    mesh = RunningMesh('watch: "on"\n' + TOPOLOGY, tmp_path)
    try:
        assert mesh.observer_url
        with WireClient(mesh.port("r2")) as consumer, WireClient(mesh.port("r1")) as producer:
            consumer.receiver("rpc.1", credit=100)
            sender = producer.sender("rpc.1")
            for _ in range(20):
                producer.send_when_due(sender)
            wait_with([producer, consumer], lambda: len(consumer.arrived) == 20, "20 deliveries")
            consumer.settle_all()
            wait_with([producer, consumer], lambda: len(producer.outcomes) == 20, "all outcomes")

        def from_clients() -> dict[str, int]:
            rows = json.loads(top(mesh, [], "nodes", "--json"))["rows"]
            return {row["name"]: row["ingress_deliveries"] for row in rows if row["state"] == "running"}

        wanted = {"r1": 20, "r2": 0, "b1": 0}
        wait_until(lambda: from_clients() == wanted, WAIT_S, f"{wanted}")
        old = mesh.pid("r1")
        mesh.kill("r1")
        wait_until(lambda: mesh.pid("r1") != old and mesh.is_up("r1"), WAIT_S, "r1 to be back")
        wait_until(lambda: from_clients() == wanted, WAIT_S, f"{wanted}")
    finally:
        mesh.down()
