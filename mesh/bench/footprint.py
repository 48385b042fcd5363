"""Runs `bench footprint`: measures the memory of the processes of `amqpmesh up`, idle and after a while of messages.

The proportional set size (PSS) counts a page that n processes share as an n-th of a page in each; so the sizes of the
processes may be added.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from addressing.topology.loader import load_topology
from linklogs.writer.encoders import MODULE as ENCODER_PROGRAM
from mesh.bench.bystander import MOST_SECONDS, Bystander
from mesh.bench.dial import BenchServer
from mesh.bench.loopback_mesh import (
    ADDRESSES,
    HOST,
    LOG_LINES,
    START_TIMEOUT_S,
    STOP_GRACE_S,
    LoopbackPlan,
    topology_of,
)
from mesh.bench.meter import PROC, Meter, parents_of_all, resident_bytes, tree
from mesh.bench.processes import BenchProcesses
from mesh.bench.repetition import Figures, merged
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget
from mesh.client.errors import TimedOut
from mesh.deploy.control import ask
from mesh.deploy.link_log_writer_process import PROGRAM as WRITER_PROGRAM
from mesh.deploy.mesh_status import MeshPhase, MeshStatus
from mesh.deploy.node_process import OBSERVER_PROGRAM, describe_exit, node_environment
from mesh.deploy.scratch import scratch_folder
from mesh.deploy.workdir import SUPERVISOR, WorkDir
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output

IDLE = "idle"
TOGETHER = "together"
LOOK_S = 0.1
MESSAGES_PER_S = 1.0


@dataclass(frozen=True, slots=True)
class FootprintBenchRequest:
    """The request for a measurement of memory.

    ``idle_s``: the time in s that the processes are left alone first. ``busy_s``: the time in s for which one message a
    second is sent afterwards; 0 leaves these rows out.
    """

    idle_s: float
    busy_s: float
    repeat: int
    stall_s: float

    @property
    def busy_mode(self) -> str:
        return f"after {self.busy_s:g} s, 1/s"


Footprint = dict[str, dict[str, float | None]]
"""The figures of each process by its name, in the order of their start, and of all together."""


def measure_ours(order: FootprintBenchRequest, out: Output) -> Iterator[BenchRow]:
    runs = []
    for number in range(order.repeat):
        with running_mesh(out if number == 0 else None) as (target, pid):
            runs.append(measure_once(target, [pid], order))
    yield from rows_of("up of 1 router", order, runs)


def measure_theirs(
    target: BenchTarget | None, line: str, pids: Sequence[int], order: FootprintBenchRequest, out: Output
) -> Iterator[BenchRow]:
    """Measure the memory of running processes and their children: idle, and after a busy time, if there is one.

    The messages of the busy time go to ``target``; without a target there is no busy time.
    """
    out.say(line)
    runs = [measure_once(target, pids, order) for _ in range(order.repeat)]
    yield from rows_of(line, order, runs)


def measure_once(target: BenchTarget | None, pids: Sequence[int], order: FootprintBenchRequest) -> list[Footprint]:
    Meter(pids).wait_idle()
    time.sleep(order.idle_s)
    found = [footprint(pids)]
    if order.busy_s and target is not None:
        with BenchProcesses() as sides:
            most_seconds = order.busy_s + MOST_SECONDS
            bystander = Bystander(sides, target, max(order.stall_s, 5.0), MESSAGES_PER_S, most_seconds)
            time.sleep(order.busy_s)
            found.append(footprint(pids))
            lost = bystander.stop().lost
        found[-1][TOGETHER]["lost"] = lost
    return found


def footprint(pids: Sequence[int]) -> Footprint:
    """Measure the memory of the processes and their children. Raise CommandFailed if a process may not be inspected."""
    parents = parents_of_all()
    found: Footprint = {}
    for pid in (each for root in pids for each in tree(root, parents)):
        name = name_of(pid)
        found[f"{name} ({pid})" if name in found else name] = {
            "pss_bytes": pss_bytes(pid),
            "resident_bytes": resident_bytes(pid),
        }
    found[TOGETHER] = {"pss_bytes": sum(each["pss_bytes"] or 0 for each in found.values())}
    return found


def pss_bytes(pid: int) -> int:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError as error:
        raise CommandFailed(f"the memory of process {pid} cannot be read: {error.strerror}") from None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def name_of(pid: int) -> str:
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return f"process {pid}"
    return name_in(words) or f"process {pid}"


def name_in(words: Sequence[str]) -> str | None:
    """Return the name of one of our own processes by the words of its command line, such as `node r1`; or None."""
    for first, second in pairwise(words):
        if (first, second) == ("-m", WRITER_PROGRAM):
            return "link log writer"
        if (first, second) == ("-m", ENCODER_PROGRAM):
            return "link log encoder"
        if first == "node":
            return f"node {second}"
        if first == "up":
            return "supervisor"
        if (first, second) == ("-m", OBSERVER_PROGRAM):
            return "observer"
    return None


def rows_of(line: str, order: FootprintBenchRequest, runs: Sequence[Sequence[Footprint]]) -> Iterator[BenchRow]:
    for number, mode in enumerate((IDLE, order.busy_mode)[: len(runs[0])]):
        for name in runs[0][number]:
            figures: list[Figures] = [run[number][name] for run in runs if name in run[number]]
            merged_figures = merged(figures)
            lost = merged_figures.get("lost")
            wrongs = (f"{line}, {mode}: {lost} messages lost",) if lost else ()
            yield BenchRow(f"{line}: {name}", mode, merged_figures, wrongs)


@contextmanager
def running_mesh(out: Output | None) -> Iterator[tuple[BenchTarget, int]]:
    """Run `amqpmesh up` with one router, and yield the router as target and the process id of the supervisor."""
    with scratch_folder("amqpmesh-bench-") as folder:
        file, log = folder / "amqpmesh.yml", folder / "up.log"
        topology_map: dict[str, Any] = topology_of(LoopbackPlan(1)) | {"watch": "on"}
        # JSON is valid YAML.
        file.write_text(json.dumps(topology_map))
        topology = load_topology(file)
        if out is not None:
            out.say("starting 1 router with `amqpmesh up`")
        with log.open("ab") as talk:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mesh.bench.orphan_guard", str(os.getpid()), "up", "-t", str(file)],
                stdin=subprocess.DEVNULL,
                stdout=talk,
                stderr=talk,
                process_group=0,
                env=node_environment(),
            )
        try:
            wait_ready(process, WorkDir(topology.work_dir), log)
            place = BenchServer(HOST, topology.routers["r1"].listeners[0].port)
            yield BenchTarget(place, place, Meter([process.pid]), 1, ADDRESSES), process.pid
        finally:
            stop(process)


def wait_ready(process: subprocess.Popen[bytes], workdir: WorkDir, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if (exit_code := process.poll()) is not None:
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
            raise CommandFailed("\n".join([f"`amqpmesh up` {describe_exit(exit_code)}", *lines]))
        try:
            status = MeshStatus.from_map(ask(workdir.control_socket(SUPERVISOR), "status"))
        except OSError:
            status = None
        # The observer starts once the mesh is ready, and belongs to what is measured.
        if status is not None and status.phase is MeshPhase.READY and workdir.observer_file.exists():
            return
        time.sleep(LOOK_S)
    raise TimedOut(f"`amqpmesh up` was not ready after {START_TIMEOUT_S:g} s")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
