"""`amqpmesh bench` in tiny sizes: on routers of its own, and on a router that runs already.

Most tests ask what is measured and told, which other processes do not change. Those that compare figures run alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from addressing.topology.credentials import make_secret
from mesh.bench.meter import parents_of_all
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.bench.command import COMMAND_S, bench, rows
from mesh_tests.conftest import StartMesh
from mesh_tests.ports import free_port
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

STOPPED_S = 30.0
TOPOLOGY = f"""
mesh: bench-live
routers:
  r1: {{listeners: [{{authentication: required}}]}}
brokers: {{b1: {{data: b1}}}}
addresses:
  load.#: anycast
  alone: anycast
  kept.#: queue
  news: topic
users:
  alice:
    password: "{make_secret("alice's", iterations=4096)}"
    send: &mine [load.#, alone, kept.#, news]
    receive: *mine
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh: StartMesh) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


def at(mesh: RunningMesh, login: str = "alice:alice's", address: str = "load.a") -> str:
    return f"amqp://{login}@127.0.0.1:{mesh.port('r1')}/{address}"


def test_forward_measures_every_mode_and_length_of_line() -> None:
    wanted = ["--mode", "unsettled", "--mode", "presettled", "--mode", "each", "--body", "70000"]
    found = rows("forward", "--messages", "2000", "--repeat", "1", *wanted, "--routers", "1", "--routers", "2", "--tls")
    assert [(row["work"], row["mode"]) for row in found[:-1]] == [
        (f"{line}, 1 to 1, 70,000 B{per}", mode)
        for line, per in (("1 router", ""), ("2 routers in line, TLS between them", ", per router"))
        for mode in ("unsettled", "presettled", "each")
    ]
    assert all(row["lost"] == 0 and row["cpu_us_per_message"] > 0 and row["messages_per_s"] > 0 for row in found[:-1])
    assert found[-1]["work"] == "generator alone, 1 to 1, 100 B"
    assert "cpu_us_per_message" not in found[-1]


def test_forward_measures_routers_that_record() -> None:
    recorded, _ = rows("forward", "--messages", "5000", "--repeat", "1", "--routers", "1", "--records")
    assert recorded["work"] == "1 router, records on, 1 to 1, 100 B"
    assert recorded["lost"] == 0
    assert recorded["cpu_us_per_message"] > 0


def test_forward_counts_copies_of_a_multicast() -> None:
    multicast, alone = rows("forward", "--messages", "5000", "--repeat", "1", "--consumers", "10")
    assert multicast["work"] == "1 router, multicast to 10, 100 B, per copy"
    assert multicast["lost"] == alone["lost"] == 0


@pytest.mark.alone
def test_latency_has_a_floor_and_shows_what_streams_do() -> None:
    streams = ["--streams", "2", "--stream-bytes", "3m", "--stream-rate", "6m"]
    floor, floor_beside, alone, beside = rows("latency", "--rate", "1000/s", "--seconds", "1s", *streams)
    assert floor["work"] == "a relay of bytes, no router: the floor, 100 B"
    assert alone["work"] == "1 router, 100 B"
    assert beside["work"] == "1 router, 100 B beside 2 x 3 MiB at 6 MiB/s"
    for row in (floor, floor_beside, alone, beside):
        assert 0 < row["p50_us"] <= row["p95_us"] <= row["p99_us"] <= row["max_us"]
        assert row["lost"] == 0
    assert beside["stream_s"] > 0.9
    assert beside["grown_bytes"] > 0


@pytest.mark.alone
def test_a_broker_is_measured_at_all_that_it_does() -> None:
    found = rows("broker", "--messages", "2000", "--repeat", "1")
    assert [row["work"].removesuffix(", 1 KB").removesuffix(", 1 KB, fill") for row in found][:4] == [
        "1 broker, 1 to 1",
        "1 broker, 4 pairs on 4 queues",
        "1 broker, 1 to 1, waiting for each accept",
        "1 broker, 1 to 1",
    ]
    assert all(row["cpu_us_per_message"] > 0 and row["messages_per_s"] > 0 for row in found)
    assert all(row.get("lost", 0) == 0 for row in found)
    pair, pairs, awaited, fill, drain = found[:5]
    assert 0 < pair["accept_p50_us"] <= pair["accept_p99_us"]
    assert 1 < pair["in_flight"] <= 250
    assert pairs["in_flight"] > pair["in_flight"]
    assert 0 < awaited["in_flight"] <= 1
    assert fill["resident_bytes"] > 0
    assert fill["work"].endswith("fill")
    assert drain["work"].endswith("drain")
    assert found[-2]["work"] == "1 broker behind 1 router, 1 to 1, 1 KB"
    assert found[-1]["work"] == "a queue on 2 brokers behind 1 router, 1 to 1, 1 KB"


def test_a_running_broker_is_measured_behind_its_router(mesh: RunningMesh) -> None:
    (pair, _) = rows("broker", at(mesh, address="kept.a"), "--work", "pair", "-c", "500", "-n", "1")
    assert pair["work"] == "kept.a at 127.0.0.1, 1 to 1, 1 KB"
    assert pair["lost"] == 0
    assert "cpu_us_per_message" not in pair


def test_durable_subscriptions_end_with_the_measurement(mesh: RunningMesh) -> None:
    where = at(mesh, address="kept.b")
    *_, lasting = rows("broker", where, "--work", "topic", "--topic", "news", "-c", "500", "-n", "1")
    assert (lasting["work"], lasting["mode"]) == (
        "kept.b at 127.0.0.1, topic to 100 durable subscriptions, per copy, 1 KB",
        "durable",
    )
    wait_until(lambda: "news" not in mesh.run("broker", "list", "--json"), STOPPED_S, "no subscription")


def test_links_are_attached_kept_and_detached() -> None:
    shared, each, circuits = rows("links", "--links", "600", "--connections", "2", "--per-session", "50")
    assert "one address" in shared["work"]
    assert "an address each" in each["work"]
    assert "300 circuits" in circuits["work"]
    for row in (shared, each, circuits):
        assert row["bytes_each"] > 0
        assert row["cpu_us_each"] > 0
        assert row["attaches_per_s"] > 0
    assert shared["detaches_per_s"] > 0


def test_connections_are_opened_and_kept() -> None:
    (row,) = rows("connections", "--connections", "150")
    assert row["work"] == "1 router, 150 connections with a receiver each"
    assert row["bytes_each"] > 0
    assert row["connections_per_s"] > 0


@pytest.mark.alone
def test_connections_with_tls_cost_more_to_open_and_to_keep() -> None:
    (plain,) = rows("connections", "--connections", "100")
    (encrypted,) = rows("connections", "--connections", "100", "--tls")
    assert encrypted["work"] == "1 router, TLS, 100 connections with a receiver each"
    assert encrypted["cpu_us_each"] > plain["cpu_us_each"]
    assert encrypted["bytes_each"] > plain["bytes_each"]


def test_a_table_is_for_people() -> None:
    done = bench("forward", "--messages", "1000", "--repeat", "2", "--mode", "unsettled")
    assert done.returncode == ExitCode.OK, done.stderr
    head, row, _ = done.stdout.splitlines()
    assert head.split()[:4] == ["WORK", "MODE", "CPU/MSG", "(SPREAD)"]
    assert row.startswith("1 router, 1 to 1, 100 B")


# A router that runs already
def test_a_running_router_is_measured_as_a_user_of_it(mesh: RunningMesh) -> None:
    pid = str(mesh.pid("r1"))
    (row,) = rows("forward", "--messages", "2000", "--repeat", "1", "--url", at(mesh), "--pid", pid)
    assert row["work"] == "load.a at 127.0.0.1, 1 to 1, 100 B"
    assert row["cpu_us_per_message"] > 0
    (without,) = rows("forward", "--messages", "2000", "--repeat", "1", "--url", at(mesh))
    assert without["messages_per_s"] > 0
    assert "cpu_us_per_message" not in without
    (slow,) = rows("latency", "--rate", "500/s", "--seconds", "1s", "--url", at(mesh))
    assert slow["lost"] == 0
    (links,) = rows("links", "--links", "10", "--connections", "1", "--url", at(mesh))
    assert "bytes_each" not in links
    (connections,) = rows("connections", "--connections", "5", "--url", at(mesh), "--pid", pid)
    assert connections["connections_per_s"] > 0


def test_streams_use_addresses_of_their_own_which_are_looked_at_first(mesh: RunningMesh) -> None:
    options = ["latency", "--rate", "500/s", "--seconds", "1s", "--streams", "2", "--stream-bytes", "1m"]
    alone, beside = rows(*options, "--url", at(mesh))
    assert (alone["lost"], beside["lost"]) == (0, 0)
    assert beside["stream_s"] > 0
    refused = bench(*options, "--url", at(mesh, address="alone"))
    assert refused.returncode == ExitCode.FAILED
    assert "cannot receive from alone.stream0" in refused.stderr
    assert "alone at" not in refused.stderr


COMMANDS = (["forward", "--messages", "10"], ["latency", "--seconds", "1s"], ["links"], ["connections"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_cannot_be_measured_is_a_sentence_and_an_exit_code(command: list[str], mesh: RunningMesh) -> None:
    refused = bench(*command, "--url", at(mesh, address="nowhere"), "--json")
    assert refused.returncode == ExitCode.FAILED
    assert json.loads(refused.stdout)["error"]["code"] in ("amqp:not-found", "amqp:unauthorized-access")

    wrong = bench(*command, "--url", at(mesh, login="alice:wrong"))
    assert wrong.returncode == ExitCode.UNREACHABLE
    assert "authentication failed" in wrong.stderr
    assert "wrong@" not in wrong.stderr

    port = free_port()
    nobody = bench(*command, "--url", f"amqp://127.0.0.1:{port}/load.a")
    assert nobody.returncode == ExitCode.UNREACHABLE
    assert nobody.stderr.splitlines()[-1] == f"error: 127.0.0.1:{port}: cannot connect: connection refused"


# What is left behind


def children_of(pid: int) -> list[int]:
    return [child for child, parent in parents_of_all().items() if parent == pid]


class Running:
    """A bench command in the middle of its first measurement."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._talk = folder / "talk"
        with self._talk.open("w") as talk:
            self.process = subprocess.Popen(
                [AMQPMESH, "bench", *arguments],
                stdout=talk,
                stderr=talk,
                env={**os.environ, "TMPDIR": str(folder)},
            )

    @property
    def talk(self) -> str:
        return self._talk.read_text()

    def wait_children(self, count: int) -> list[int]:
        def found() -> list[int] | None:
            assert self.process.poll() is None, self.talk
            children = children_of(self.process.pid)
            return children if len(children) == count else None

        try:
            return wait_until(found, COMMAND_S, f"{count} processes") or []
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.talk}") from None


@pytest.fixture
def start_bench(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(*arguments: str) -> Running:
        started.append(Running(tmp_path, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_however_it_ends(
    number: signal.Signals, start_bench: Callable[..., Running], tmp_path: Path
) -> None:
    bench = start_bench("forward", "--routers", "2")
    # Two routers, a sender and a receiver.
    children = bench.wait_children(4)
    bench.process.send_signal(number)
    code = bench.process.wait(STOPPED_S)
    wait_until(lambda: not any(is_alive(child) for child in children), STOPPED_S, "all to be gone")
    assert code == {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: 128 + number, signal.SIGKILL: -number}[number]
    left = list(tmp_path.glob("amqpmesh-bench-*"))
    assert len(left) == (number == signal.SIGKILL)
    for folder in left:
        start_bench("forward", "--routers", "1").wait_children(3)
        assert not folder.exists()


def test_a_router_that_dies_is_what_the_command_fails_of(start_bench: Callable[..., Running]) -> None:
    bench = start_bench("forward", "--mode", "unsettled")
    router = min(bench.wait_children(3))
    os.kill(router, signal.SIGSEGV)
    assert bench.process.wait(COMMAND_S) == ExitCode.FAILED
    assert bench.talk.splitlines()[-1].startswith("error: router r1 was ended by SIGSEGV")
    assert "Fatal Python error: Segmentation fault" in bench.talk


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
