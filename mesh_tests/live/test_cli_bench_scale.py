"""`amqpmesh bench` of many addresses, links, connections and consumers, in tiny sizes."""

from __future__ import annotations

import pytest

from addressing.topology.credentials import make_secret
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.bench.command import bench, rows
from mesh_tests.conftest import StartMesh
from mesh_tests.running_mesh import RunningMesh

TOPOLOGY = f"""
mesh: bench-scale
routers:
  r1: {{listeners: [{{authentication: required}}]}}
addresses:
  load.#: anycast
users:
  alice:
    password: "{make_secret("alice's", iterations=4096)}"
    send: [load.#]
    receive: [load.#]
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh: StartMesh) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


@pytest.mark.parametrize(("kind", "parts"), [("topic", ["router", "broker"]), ("multicast", ["router"])])
def test_messages_to_many_addresses_have_a_row_for_each_process(kind: str, parts: list[str]) -> None:
    sizes = ["--addresses", "50", "--messages", "200", "--senders", "2", "--idle", "100ms", "--repeat", "1"]
    found = rows("addresses", "--type", kind, *sizes)
    assert [(row["work"].rpartition(": ")[2], row["mode"]) for row in found] == [(part, kind) for part in parts]
    for row in found:
        assert row["cpu_us_per_message"] > 0
        assert {"bytes_per_address", "idle_bytes_per_address"} <= row.keys()


def test_commands_over_three_routers_have_a_row_for_each_router() -> None:
    sizes = ["--addresses", "120", "--messages", "600", "--senders", "2", "--idle", "0", "--repeat", "1"]
    found = rows("addresses", "--type", "anycast", "--line", *sizes)
    assert [row["work"].rpartition(": ")[2] for row in found] == ["ingress", "transit", "egress"]
    for row in found:
        assert row["cpu_us_per_message"] > 0


def test_a_line_is_for_anycast_addresses_of_our_own_routers() -> None:
    refused = bench("addresses", "--line", "--type", "topic")
    assert refused.returncode == ExitCode.USAGE
    assert "expected --type anycast, and no --url" in refused.stderr


def test_messages_that_do_not_end_by_the_deadline_are_a_sentence() -> None:
    late = bench("addresses", "--messages", "100000000", "--addresses", "10", "--deadline", "1s", "--type", "multicast")
    assert late.returncode != ExitCode.OK
    assert "of 100,000,000 messages to bench.<number> were sent" in late.stderr
    assert "when the deadline of 1 s passed" in late.stderr


def test_attaches_are_measured_and_what_others_wait_meanwhile() -> None:
    sizes = ["--connections", "3", "--links", "50", "--crowd", "2", "--repeat", "1"]
    opened, attached, alone, beside = rows("attaches", *sizes)
    assert opened["connections_per_s"] > 0
    assert attached["attaches_per_s"] > 0
    assert "cpu_us_each" in opened.keys() & attached.keys()
    assert alone["work"] == "1 router, others alone"
    assert beside["work"] == "1 router, others while 2 connections attach 50 links each, an address each"
    assert 0 < beside["p50_us"] <= beside["p99_us"] <= beside["max_us"]
    assert beside["lost"] == 0


def test_cycles_are_measured_one_after_the_other_and_at_once() -> None:
    alone, at_once = rows("cycles", "--cycles", "30", "--at-once", "1", "--at-once", "4", "--repeat", "1")
    assert alone["work"].endswith("one after the other")
    assert at_once["work"].endswith("4 at once")
    for row in (alone, at_once):
        assert row["cpu_us_each"] > 0
        assert row["cycles_per_s"] > 0
        assert row["lost"] == 0


def test_a_fan_has_a_row_for_each_number_of_connections() -> None:
    sizes = ["--consumers", "20", "--connections", "20", "--connections", "2", "--messages", "2000", "--repeat", "1"]
    many, few = rows("fan", *sizes)
    assert many["work"] == "1 router, 1 to 20 consumers on 20 connections, 100 B"
    assert few["work"] == "1 router, 1 to 20 consumers on 2 connections, 100 B"
    for row in (many, few):
        assert row["cpu_us_per_message"] > 0
        assert row["lost"] == 0
        assert row["shares_differ_percent"] >= 0


def test_the_processes_of_up_have_their_memory_measured_idle_and_after_messages() -> None:
    found = rows("footprint", "--idle", "100ms", "--for", "1s", "--repeat", "1")
    names = [row["work"].removeprefix("up of 1 router: ") for row in found]
    assert set(names) == {"supervisor", "node r1", "link log writer", "observer", "together"}
    assert len(names) == 10
    assert {row["mode"] for row in found} == {"idle", "after 1 s, 1/s"}
    for row in found:
        assert row["pss_bytes"] > 1_000_000
    assert found[-1]["lost"] == 0


def test_handshakes_are_counted_and_what_others_wait_beside_them() -> None:
    shaken, alone, beside = rows("handshakes", "--seconds", "1s", "--at-once", "2", "--repeat", "1")
    assert shaken["work"] == "1 router, handshakes, 2 at once"
    assert shaken["handshakes_per_s"] > 0
    assert shaken["cpu_us_each"] > 0
    assert 0 < alone["p50_us"] <= alone["p99_us"]
    assert 0 < beside["p50_us"] <= beside["p99_us"]
    assert beside["lost"] == 0


def test_busy_connections_send_in_turn_and_each_message_is_timed() -> None:
    (row,) = rows("busy", "--connections", "30", "--consumers", "2", "--rate", "300/s", "-d", "1s", "--repeat", "1")
    assert row["work"] == "1 router, 30 connections send in turn to 2 consumers, 100 B"
    assert row["cpu_us_per_message"] > 0
    assert 0 < row["p50_us"] <= row["p99_us"]
    assert row["lost"] == 0


# A router that runs already
def test_a_running_router_is_measured_at_scale(mesh: RunningMesh) -> None:
    pid, url = str(mesh.pid("r1")), f"amqp://alice:alice's@127.0.0.1:{mesh.port('r1')}/load.a"
    few = ["--type", "anycast", "-c", "50", "-a", "10", "-n", "1", "--idle", "0"]
    (many,) = rows("addresses", *few, "--url", url, "--pid", pid)
    assert many["work"].endswith(f": process {pid}")
    *_, beside = rows("attaches", "--links", "10", "--crowd", "2", "-n", "1", "--url", url)
    assert beside["max_us"] > 0
    cycled = rows("cycles", "-c", "5", "--at-once", "2", "-n", "1", "--url", url, "--pid", pid)
    assert cycled[0]["lost"] == 0
    sizes = ["--consumers", "4", "--connections", "2", "-c", "100", "-n", "1"]
    (fan,) = rows("fan", *sizes, "--url", url, "--pid", pid)
    assert fan["lost"] == 0
    (busy,) = rows("busy", "--connections", "4", "-y", "1", "-r", "100/s", "-d", "500ms", "-n", "1", "--url", url)
    assert busy["lost"] == 0
    measured = rows("footprint", "--pid", pid, "--idle", "0", "-n", "1")
    assert [row["work"].rpartition(": ")[2] for row in measured] == ["node r1", "together"]
