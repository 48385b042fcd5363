"""Drills of small meshes of real processes: each kind of fault bites and is healed; a verdict is what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from mesh.terminal.exit_codes import ExitCode
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

DRILL_S = 150.0
RING = """
mesh: ring
node_tls: {tls}
hello_interval_s: 0.2
routers:
  r1: {{connect: [r2, {{to: r3, cost: 4}}], listeners: [{{}}]}}
  r2: {{connect: [r3]}}
  r3:
brokers: {{b1: {{data: ./b1, routers: [r1, r3]}}}}
addresses: {{rpc: anycast, orders: queue, prices: multicast}}
"""
TRAFFIC = """
drill: {name}
topology: ring.yml
steady_state:
  load:
    - {{address: rpc, rate: 200/s, from: r1, to: r3}}
    - {{address: orders, rate: 50/s, from: r1, to: r3}}
  expect: ["lost == 0"]
baseline: 1s
cooldown: {cooldown}
expect: [{expect}]
method:
"""


def drill(folder: Path, method: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    write(folder, method, **more)
    return run(folder, "drill.yml", *arguments)


def write(
    folder: Path,
    method: str,
    *,
    expect: str = "lost == 0",
    tls: bool = False,
    cooldown: str = "2s",
    name: str = "small",
) -> None:
    (folder / "ring.yml").write_text(RING.format(tls=str(tls).lower()))
    (folder / "drill.yml").write_text(TRAFFIC.format(name=name, expect=f'"{expect}"', cooldown=cooldown) + method)


def run(folder: Path, *arguments: str, limit_s: float = DRILL_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [AMQPMESH, "drill", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=limit_s,
        stdin=subprocess.DEVNULL,
        env=environment(folder),
        check=False,
    )


def environment(folder: Path) -> dict[str, str]:
    """Where what it leaves can be seen."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(scratch)}


def left_running(folder: Path) -> list[str]:
    """Command lines of processes that still have to do with the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in words and "pytest" not in words:
            found.append(words)
    return found


@pytest.mark.timeout(DRILL_S + 30)
def test_a_router_that_is_killed_costs_no_message_and_the_report_is_kept(tmp_path: Path):
    done = drill(tmp_path, "  - {fault: kill, router: r2}\n", "--json")
    assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["verdict"], told["passed"], told["faults"][0]["did_bite"]) == ("PASS", True, True)
    wanted = {"detection_ms", "outage_ms", "accepted", "released", "modified", "duplicated", "lost", "passed"}
    for result in told["results"]:
        assert wanted <= result.keys()
        assert result["outage_ms"] < 5000
        assert (result["lost"], result["passed"]) == (0, True)
    (kept,) = (tmp_path / ".amqpmesh" / "drills").iterdir()
    assert {"report.html", "junit.xml", "summary.json", "log"} <= {path.name for path in kept.iterdir()}
    assert ET.parse(kept / "junit.xml").getroot().tag in ("testsuite", "testsuites")
    assert "kill r2" in (kept / "report.html").read_text()
    assert '"neighbor_down"' in (kept / "log" / "r1.jsonl").read_text()
    assert left_running(tmp_path) == []


@pytest.mark.timeout(DRILL_S + 30)
def test_every_fault_of_nodes_and_links_bites_and_is_healed(tmp_path: Path):
    # Of a link that lived less than 5 s the next one comes late, and a fault of a link that is down bites nobody.
    method = """
  - {at: 0s, fault: pause, router: r2, for: 1500ms}
  - {at: 4s, fault: bandwidth, link: [r2, r3], rate: 20kB/s, direction: forth, for: 1s}
  - {at: 8s, fault: blackhole, link: [r1, r2], for: 1500ms}
  - {at: 11s, fault: reset, link: [r2, r3]}
  - {at: 13s, fault: latency, link: [r1, r2], latency: 30ms, jitter: 5ms, for: 1s}
  - {at: 17s, fault: cut, link: [r2, r1], for: 1s}
  - {at: 21s, fault: loss, link: [r1, r2], loss: 20%, for: 1s}
  - {at: 23s, fault: flap, link: [r2, r3], down: 200ms, up: 300ms, for: 1s}
  - {at: 26s, fault: stop, router: r2, for: 1s}
  - {at: 30s, fault: kill, router: r2, for: 1s}
  - {at: 34s, fault: restart, router: r2}
"""
    told = json.loads(drill(tmp_path, method, "--json").stdout)
    toothless = [(fault["label"], fault["evidence"]) for fault in told["faults"] if not fault["did_bite"]]
    assert toothless == []
    assert all(fault["healed_s"] is not None for fault in told["faults"])
    assert told["verdict"] == "PASS", told["reasons"]
    noticed = {fault["kind"] for fault in told["faults"] if fault["detection_ms"] is not None}
    # One that had just come back may not have been anybody's neighbor yet.
    assert noticed >= {"pause", "cut", "blackhole", "reset", "flap", "stop"}
    assert left_running(tmp_path) == []


@pytest.mark.timeout(DRILL_S + 30)
def test_a_full_disk_and_a_broker_that_dies_cost_no_accepted_message(tmp_path: Path):
    method = """
  - {at: 0s, fault: disk_full, broker: b1, for: 3s}
  - {at: 6s, fault: kill, broker: b1, for: 1s}
"""
    told = json.loads(drill(tmp_path, method, "--json", cooldown="8s").stdout)
    assert [fault["did_bite"] for fault in told["faults"]] == [True, True], told["faults"]
    assert told["verdict"] == "PASS", told["reasons"]
    assert sum(result["accepted"] for result in told["results"] if result["address"] == "orders") > 100


@pytest.mark.timeout(DRILL_S + 30)
def test_a_router_with_an_expired_certificate_is_refused_until_it_has_another(tmp_path: Path):
    method = "  - {fault: expire_certificate, router: r2, for: 1s}\n"
    told = json.loads(drill(tmp_path, method, "--json", tls=True).stdout)
    assert told.get("verdict") == "PASS", told
    assert any("expired" in sentence for sentence in told["faults"][0]["evidence"])


# A pause of the machine looks like an effect of the fault.
@pytest.mark.quiet
@pytest.mark.timeout(DRILL_S + 30)
def test_what_does_not_hold_fails_and_a_fault_without_effect_proves_nothing(tmp_path: Path):
    failed = drill(tmp_path, "  - {fault: restart, router: r2}\n", expect="outage < 1ms")
    assert failed.returncode == ExitCode.EXPECTATION_FAILED
    assert "outage < 1ms" in failed.stdout
    assert "FAIL: small" in failed.stdout
    toothless = drill(tmp_path, "  - {fault: command, run: 'true'}\n")
    assert toothless.returncode == ExitCode.DRILL_INVALID
    assert "true had no proven effect" in toothless.stdout


@pytest.mark.timeout(DRILL_S + 30)
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["Ctrl-C", "told", "killed"])
def test_however_a_drill_ends_what_it_broke_is_healed_and_stopped(end: signal.Signals, tmp_path: Path):
    write(tmp_path, "  - {fault: pause, router: r2, for: 100s}\n")
    started = subprocess.Popen(
        [AMQPMESH, "drill", "drill.yml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
    )
    assert started.stderr is not None
    assert any("pause r2" in line for line in started.stderr)
    started.send_signal(end)
    out, _ = started.communicate(timeout=DRILL_S)
    wait_until(lambda: left_running(tmp_path) == [], 60.0, "all that it started to be stopped")
    if end is not signal.SIGKILL:
        assert started.returncode == ExitCode.INTERRUPTED
        assert "UNKNOWN: small" in out
        assert list((tmp_path / ".amqpmesh" / "drills").glob("*/report.html"))


@pytest.mark.timeout(DRILL_S + 30)
def test_a_mesh_that_runs_is_drilled_with_a_command_as_the_fault(tmp_path: Path):
    mesh = RunningMesh(RING.format(tls="false"), tmp_path)
    try:
        write(tmp_path, "  - {fault: kill, router: r2}\n")
        victim = mesh.pid("r2")
        urls = f"{mesh.url('r1')},{mesh.url('r3')}"
        fault = ["--fault", f"kill -STOP {victim}", "--heal", f"kill -CONT {victim}", "--for", "2s"]
        done = run(tmp_path, "drill.yml", "--against", urls, *fault, "--json")
        told = json.loads(done.stdout)
        assert told["verdict"] == "PASS", told["reasons"]
        assert told["results"][0]["outage_ms"] > 300
        assert mesh.pid("r2") == victim
    finally:
        mesh.down()


def test_wrong_usage_is_told_before_anything_is_started(tmp_path: Path):
    assert drill(tmp_path, "  - {fault: kill, router: r9}\n").returncode == ExitCode.TOPOLOGY_INVALID
    assert drill(tmp_path, "  - {fault: kil, router: r2}\n").returncode == ExitCode.TOPOLOGY_INVALID
    assert run(tmp_path, "none.yml").returncode == ExitCode.USAGE
    write(tmp_path, "  - {fault: kill, router: r2}\n")
    nobody = ["--against", "amqp://127.0.0.1:1", "--fault", "true"]
    assert run(tmp_path, "drill.yml", *nobody).returncode == ExitCode.UNREACHABLE
    empty = ["--against", "amqp://127.0.0.1,", "--fault", "true"]
    for wrong in (
        empty,
        ["--heal", "true"],
        ["--against", "amqp://127.0.0.1"],
        ["--against", "http://x", "--fault", "true"],
    ):
        done = run(tmp_path, "drill.yml", *wrong)
        assert done.returncode == ExitCode.USAGE, wrong
