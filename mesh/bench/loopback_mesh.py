"""Runs nodes on loopback for a benchmark: starts the nodes, waits until all are ready, stops the nodes afterwards.

    producers -> r1 -> r2 -> r3 -> consumers        running_line
    producers (-> r1) -> b1 (-> r1) -> consumers    running_broker
    producers -> r1 (-> b1)                         running_type
    producers -> r1 -> r2 -> r3 -> consumers        running_typed_line

The nodes work in a temporary folder, which is removed. In whichever way this process ends, the nodes end, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from addressing.topology.loader import load_topology
from mesh.bench.dial import BenchServer
from mesh.bench.meter import Meter
from mesh.bench.recorded_router import RING_BYTES, emptied
from mesh.bench.target import BenchAddresses, BenchTarget, MeteredPart
from mesh.client.errors import MeshError, TimedOut
from mesh.deploy import log_tail
from mesh.deploy.control import ask_async
from mesh.deploy.free_ports import free_ports
from mesh.deploy.node_kind import NodePlan
from mesh.deploy.node_kinds import all_nodes, kind_of
from mesh.deploy.node_process import describe_exit, node_environment
from mesh.deploy.pki import make_pki
from mesh.deploy.polling import wait_until
from mesh.deploy.readiness import MeshReadiness
from mesh.deploy.scratch import scratch_folder
from mesh.deploy.workdir import WorkDir
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output

MESH = "bench"
START_TIMEOUT_S = 60.0
STOP_GRACE_S = 15.0
LOG_LINES = 40
ADDRESSES = BenchAddresses("bench.anycast", "bench.multicast")
KEPT = BenchAddresses("bench.queue", "bench.topic")
SPREAD = BenchAddresses("bench.spread", "bench.topic")
"""Addresses of a queue on both brokers, and of a topic."""
TYPED = BenchAddresses("bench", "bench")
HOST = "127.0.0.1"
MOST_QUEUES = 1_000_000
"""Most queues that a benchmark makes at its broker; by default one user may make only 20,000."""


@dataclass(frozen=True, slots=True)
class LoopbackPlan:
    routers: int
    is_tls: bool = False
    """Whether the routers connect to each other with mutual TLS; clients connect without TLS in either case."""
    is_client_tls: bool = False
    """Whether clients connect with TLS, with the certificates of the mesh."""
    has_tls_listener: bool = False
    """Whether each router has a second listener, for clients with TLS."""
    max_connections: int = 10_000
    max_links: int = 10_000
    has_records: bool = False
    """Whether the routers record every delivery for link logs."""
    has_broker: bool = False
    type: str = ""
    """The type of all addresses below `bench`, at one router and, for queues and topics, one broker."""

    @property
    def is_kept(self) -> bool:
        return self.type in ("queue", "topic")

    @property
    def name(self) -> str:
        if self.is_kept:
            return "1 router and 1 broker"
        if self.has_broker:
            return "1 router and 2 brokers"
        records = ", records on" if self.has_records else ""
        if self.routers == 1:
            return "1 router" + (", TLS" if self.is_client_tls else "") + records
        return f"{self.routers} routers in line" + (", TLS between them" if self.is_tls else "") + records


@contextmanager
def running_line(plan: LoopbackPlan, out: Output) -> Iterator[BenchTarget]:
    with scratch_folder("amqpmesh-bench-") as folder:
        line = LoopbackMesh(plan, folder, out)
        out.say(f"starting {plan.name}")
        with line.started():
            yield line.target()


@contextmanager
def running_broker(out: Output) -> Iterator[tuple[BenchTarget, BenchTarget, BenchTarget]]:
    """Run a router and two brokers, and yield three targets for measurements.

    The targets are the broker b1 itself, the same broker behind the router, and the router before a queue on both
    brokers.
    """
    plan = LoopbackPlan(1, has_broker=True)
    with scratch_folder("amqpmesh-bench-") as folder:
        line = LoopbackMesh(plan, folder, out)
        out.say(f"starting {plan.name}")
        with line.started():
            yield line.broker_target(), line.routed_target(KEPT, ["b1"]), line.routed_target(SPREAD, ["b1", "b2"])


@contextmanager
def running_typed_line(kind: str, links: int, out: Output) -> Iterator[tuple[BenchTarget, list[MeteredPart]]]:
    """Run three routers in line whose addresses below `bench` have the type ``kind``, each with up to ``links`` links.

    Yield the line as target, and a part for each router.
    """
    plan = LoopbackPlan(3, type=kind, max_links=links)
    with scratch_folder("amqpmesh-bench-") as folder:
        mesh = LoopbackMesh(plan, folder, out)
        out.say(f"starting {plan.name}")
        with mesh.started():
            parts = [
                MeteredPart(part, mesh.meter_of([name]))
                for part, name in (("ingress", "r1"), ("transit", "r2"), ("egress", "r3"))
            ]
            yield replace(mesh.target(), addresses=TYPED), parts


@contextmanager
def running_type(kind: str, out: Output) -> Iterator[tuple[BenchTarget, list[MeteredPart]]]:
    """Run a router whose addresses below `bench` all have the type ``kind``, and a broker if the type needs one.

    Yield the router as target, and a part for each node.
    """
    plan = LoopbackPlan(1, type=kind)
    with scratch_folder("amqpmesh-bench-") as folder:
        mesh = LoopbackMesh(plan, folder, out)
        out.say(f"starting {plan.name}")
        with mesh.started():
            names = ["r1", *(["b1"] if plan.is_kept else [])]
            parts = [
                MeteredPart(part, mesh.meter_of([name]))
                for part, name in zip(("router", "broker"), names, strict=False)
            ]
            yield mesh.routed_target(TYPED, names[1:]), parts


class LoopbackMesh:
    def __init__(self, plan: LoopbackPlan, folder: Path, out: Output) -> None:
        self._out = out
        self._is_client_tls = plan.is_client_tls
        self._has_records = plan.has_records
        self._file = folder / "amqpmesh.yml"
        # The topology file is written as JSON, which is valid YAML.
        self._file.write_text(json.dumps(topology_of(plan)))
        self._topology = load_topology(self._file)
        self._workdir = WorkDir(self._topology.work_dir)
        self._nodes = all_nodes(self._topology)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @contextmanager
    def started(self) -> Iterator[None]:
        self._workdir.make()
        make_pki(self._topology)
        try:
            for node in self._nodes:
                self._processes[node.name] = self._start(node)
            asyncio.run(self._become_ready())
            with emptied(self._workdir.rings) if self._has_records else nullcontext():
                yield
        except MeshError as failed:
            # After the death of a node, the load generator reports only a lost connection: raise the cause of the death
            # instead.
            death = self._death()
            if death is not None:
                self._show_logs()
            raise death or failed from None
        finally:
            self._stop()

    def target(self) -> BenchTarget:
        routers = list(self._topology.routers)
        pids = [process.pid for process in self._processes.values()]
        first, last = self._place(routers[0]), self._place(routers[-1])
        return BenchTarget(first, last, Meter(pids), len(routers), ADDRESSES, self._tls_place(routers[0]))

    def broker_target(self) -> BenchTarget:
        place = BenchServer(HOST, self._topology.brokers["b1"].port)
        return BenchTarget(place, place, Meter([self._processes["b1"].pid]), 1, KEPT)

    def routed_target(self, addresses: BenchAddresses, brokers: Sequence[str]) -> BenchTarget:
        place = self._place("r1")
        return BenchTarget(place, place, self.meter_of(["r1", *brokers]), 1, addresses)

    def meter_of(self, names: Sequence[str]) -> Meter:
        return Meter([self._processes[name].pid for name in names])

    def _place(self, router: str) -> BenchServer:
        return BenchServer(HOST, self._topology.routers[router].listeners[0].port, is_tls=self._is_client_tls)

    def _tls_place(self, router: str) -> BenchServer | None:
        others = self._topology.routers[router].listeners[1:]
        return BenchServer(HOST, others[0].port, is_tls=True) if others else None

    def _start(self, node: NodePlan) -> subprocess.Popen[bytes]:
        arguments = [str(os.getpid()), "node", node.name, "--topology", str(self._file)]
        with self._workdir.log_file(node.name).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-X", "faulthandler", "-m", "mesh.bench.orphan_guard", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                env=node_environment(),
            )

    async def _become_ready(self) -> None:
        ready = asyncio.create_task(self._wait_ready())
        died = asyncio.create_task(self._wait_death())
        done, pending = await asyncio.wait({ready, died}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()

    async def _wait_ready(self) -> None:
        readiness = MeshReadiness(self._topology, self._workdir)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await wait_until(self._do_all_answer)
                await readiness.wait_linked()
                await readiness.wait_probed()
        except TimeoutError:
            raise TimedOut(
                f"the nodes of the benchmark were not ready after {START_TIMEOUT_S:g} s: {readiness.missing()}"
            ) from None

    async def _do_all_answer(self) -> bool:
        try:
            for node in self._nodes:
                await ask_async(self._workdir.control_socket(node.name), "snapshot")
        except OSError:
            return False
        return True

    async def _wait_death(self) -> None:
        async def has_died() -> bool:
            return self._death() is not None

        await wait_until(has_died)
        raise self._death() or CommandFailed("a node died")

    def _death(self) -> CommandFailed | None:
        """Return the error for the first node that has ended, with the cause from its log; None if all nodes run."""
        for name, process in self._processes.items():
            exit_code = process.poll()
            if exit_code is not None:
                cause = log_tail.first_cause(self._workdir.log_file(name))
                what = f"{kind_of(self._topology, name).name} {name} {describe_exit(exit_code)}"
                return CommandFailed(f"{what}: {cause}" if cause else what)
        return None

    def _show_logs(self) -> None:
        """Print the last lines of the logs of dead nodes, because the folder with the logs is about to be removed."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                lines = self._workdir.log_file(name).read_text(errors="replace").splitlines()
                self._out.say("\n".join([f"--- last lines of the log of {name} ---", *lines[-LOG_LINES:], "---"]))

    def _stop(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(STOP_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def topology_of(plan: LoopbackPlan) -> dict[str, Any]:
    ports = free_ports()
    limits: dict[str, Any] = {"max_connections": plan.max_connections, "max_links": plan.max_links}
    if plan.is_client_tls:
        limits["tls"] = {}

    def router(number: int) -> dict[str, Any]:
        listener = {"host": HOST, "port": next(ports), **limits}
        return {
            "port": next(ports),
            "listeners": [listener, {**listener, "port": next(ports), "tls": {}}]
            if plan.has_tls_listener
            else [listener],
            "connect": [f"r{number - 1}"] if number > 1 else [],
        }

    topology: dict[str, Any] = {
        "mesh": MESH,
        "watch": "off",
        "node_tls": plan.is_tls or plan.is_client_tls or plan.has_tls_listener,
        "routers": {f"r{number}": router(number) for number in range(1, plan.routers + 1)},
        "addresses": {f"{ADDRESSES.anycast}.#": "anycast", f"{ADDRESSES.multicast}.#": "multicast"},
    }
    if plan.type:
        options: dict[str, Any] = {"broker": "b1"} if plan.is_kept else {}
        if plan.type == "queue":
            options |= {"max_queues": MOST_QUEUES, "max_queues_per_user": MOST_QUEUES}
        topology["addresses"] = {f"{MESH}.#": {"type": plan.type, **options}}
    if plan.is_kept:
        topology["brokers"] = {"b1": {"port": next(ports), "data": "b1", "routers": ["r1"]}}
    if plan.has_records:
        topology["link_logs"] = {"level": "full", "ring_bytes": RING_BYTES}
    if plan.has_broker:
        brokers = {name: {"port": next(ports), "data": name, "routers": ["r1"]} for name in ("b1", "b2")}
        topology["brokers"] = brokers
        topology["addresses"] |= {
            f"{KEPT.anycast}.#": {"type": "queue", "broker": "b1"},
            f"{KEPT.multicast}.#": {"type": "topic", "broker": "b1"},
            f"{SPREAD.anycast}.#": {"type": "queue", "brokers": list(brokers)},
        }
    return topology
