"""The demo: a mesh in a folder of its own, traffic on all four types of address, and a router killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from addressing.loader import load_topology
from addressing.topology import Topology
from mesh.client import Client
from mesh.connect import connected
from mesh.detached import start_detached
from mesh.display import display
from mesh.exit_codes import ExitCode
from mesh.failure import CommandFailed
from mesh.flow import Flow, FlowPlan
from mesh.free_ports import free_ports
from mesh.node_process import describe_exit
from mesh.output import Output
from mesh.pki import make_pki
from mesh.polling import wait_until
from mesh.running import node_pid, stop_mesh
from mesh.scratch import scratch_folder
from mesh.server import Server
from mesh.unwinding import ended_by_signals
from mesh.workdir import SUPERVISOR, WorkDir

TOPOLOGY = Path(__file__).with_name("demo.yml")
VICTIM = "r1"
FLOWS = (
    FlowPlan("anycast", "rpc.demo", "r2", ("r3",)),
    FlowPlan("multicast", "prices.demo", "r2", ("r2", "r3")),
    FlowPlan("queue", "orders", "r2", ("r3",)),
    FlowPlan("topic", "news.demo", "r2", ("r2", "r3")),
)
RATE_PER_S = 100.0
BEFORE_S = 3.0
AFTER_S = 6.0
# After this the last messages must have arrived.
SETTLE_S = 15.0
LONGEST_OUTAGE_S = 5.0
START_TIMEOUT_S = 60.0
# A multicast message is accepted once one consumer has it; who is just being reached by another way may miss it.
MAY_MISS = frozenset({"multicast"})

LEGEND = """
BEFORE, AFTER  messages received before and after the kill, by all consumers
modified       on its way when the router died: the sender is told, and would send it again
LOST           accepted, and missed by a consumer; of a multicast, accepted says that one consumer has it
OUTAGE         the longest time after the kill in which some consumer got nothing"""

COLUMNS = ("ADDRESS", "TYPE", "SENT", "ACCEPTED", "OTHER", "BEFORE", "AFTER", "LOST", "TWICE", "OUTAGE", "")


@dataclass(frozen=True, slots=True)
class FlowReport:
    address: str
    type: str
    sent: int
    accepted: int
    released: int
    rejected: int
    modified: int
    unknown: int
    received_before: int
    received_after: int
    lost: int
    twice: int
    outage_ms: int
    ok: bool
    reason: str

    def row(self) -> list[object]:
        other = [(name, getattr(self, name)) for name in ("released", "rejected", "modified", "unknown")]
        told = " ".join(f"{name} {count}" for name, count in other if count)
        verdict = "ok" if self.ok else f"failed: {self.reason}"
        figures = (self.received_before, self.received_after, self.lost, self.twice, f"{self.outage_ms} ms")
        return [self.address, self.type, self.sent, self.accepted, told or None, *figures, verdict]


@dataclass(frozen=True, slots=True)
class DemoReport:
    killed: str
    restarted_after_ms: int | None
    """None: its supervisor did not bring it back while the traffic ran."""
    flows: tuple[FlowReport, ...]

    @property
    def ok(self) -> bool:
        return self.restarted_after_ms is not None and all(flow.ok for flow in self.flows)


def run(out: Output, folder: Path | None) -> int:
    with ended_by_signals(), demo_folder(folder) as home:
        file = home / "amqpmesh.yml"
        file.write_text(topology_with_free_ports(TOPOLOGY.read_text()))
        topology = load_topology(file)
        workdir = WorkDir(topology.work_dir)
        try:
            start(topology, file, out)
            report = asyncio.run(traffic(topology, workdir, out))
        finally:
            out.say("stopping the mesh")
            stop_mesh(workdir)
    tell(report, out)
    return ExitCode.OK if report.ok else ExitCode.FAILED


def tell(report: DemoReport, out: Output) -> None:
    if out.is_json:
        out.document({"ok": report.ok, **asdict(report)})
        return
    out.table(COLUMNS, [flow.row() for flow in report.flows], title="what became of the messages")
    out.data(LEGEND)
    back = (
        f"and back {report.restarted_after_ms} ms later" if report.restarted_after_ms is not None else "and never back"
    )
    out.data(f"\n{report.killed} was killed, {back}; {'traffic went on' if report.ok else 'the demo FAILED'}")


@contextmanager
def demo_folder(folder: Path | None) -> Iterator[Path]:
    """A folder that is gone afterwards, or ``folder``, which stays."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with scratch_folder("amqpmesh-demo-") as made:
        yield made


def start(topology: Topology, file: Path, out: Output) -> None:
    workdir = WorkDir(topology.work_dir)
    workdir.make()
    make_pki(topology)
    out.say(f"starting mesh {topology.mesh}: {', '.join(topology.node_names)}, a process each")
    with display(out) as observe:
        arguments = ["--topology", str(file), "--timeout", f"{START_TIMEOUT_S}s"]
        start_detached(arguments, workdir.log_file(SUPERVISOR), observe)


async def traffic(topology: Topology, workdir: WorkDir, out: Output) -> DemoReport:
    async with AsyncExitStack() as stack:
        routers = {name for plan in FLOWS for name in (plan.producer, *plan.consumers)}
        clients = {name: await stack.enter_async_context(client_of(topology, name)) for name in sorted(routers)}
        flows = [Flow(plan, clients, RATE_PER_S) for plan in FLOWS]
        return await drill(flows, clients, workdir, out)


def client_of(topology: Topology, router: str) -> Any:
    listener = topology.routers[router].listeners[0]
    return connected(Server(listener.host, listener.port), 10.0)


async def drill(flows: Sequence[Flow], clients: dict[str, Client], workdir: WorkDir, out: Output) -> DemoReport:
    started_at = time.monotonic()
    for flow in flows:
        await flow.start()
    out.say(f"traffic: {RATE_PER_S:g} messages a second on {', '.join(flow.plan.address for flow in flows)}")
    await asyncio.sleep(BEFORE_S)
    killed_at = time.monotonic()
    pid = kill(workdir, VICTIM)
    out.say(f"killed {VICTIM} (process {pid}, {describe_exit(-signal.SIGKILL)}); traffic goes on")
    back = asyncio.create_task(wait_back(workdir, pid))
    await asyncio.sleep(AFTER_S)
    stopped_at = time.monotonic()
    for flow in flows:
        await flow.stop_producing()
    await settle(flows)
    back.cancel()
    back_at = back.result() if back.done() and not back.cancelled() else None
    for flow in flows:
        await flow.stop()
    reports = tuple(judge(flow, started_at, killed_at, stopped_at) for flow in flows)
    return DemoReport(VICTIM, None if back_at is None else round((back_at - killed_at) * 1000), reports)


def kill(workdir: WorkDir, router: str) -> int:
    pid = node_pid(workdir, router)
    if pid is None:
        raise CommandFailed(f"{router} does not run: there is nothing to kill")
    os.kill(pid, signal.SIGKILL)
    return pid


async def wait_back(workdir: WorkDir, old_pid: int) -> float:
    """When the supervisor has started it again."""

    async def is_back() -> bool:
        return node_pid(workdir, VICTIM) not in (None, old_pid)

    await wait_until(is_back)
    return time.monotonic()


async def settle(flows: Sequence[Flow]) -> None:
    """Until everything has arrived; what is missing then is judged."""

    async def is_complete() -> bool:
        return all(flow.ledger.is_settled and (flow.plan.kind in MAY_MISS or flow.ledger.lost() == 0) for flow in flows)

    try:
        async with asyncio.timeout(SETTLE_S):
            await wait_until(is_complete)
    except TimeoutError:
        return


def judge(flow: Flow, started_at: float, killed_at: float, stopped_at: float) -> FlowReport:
    ledger = flow.ledger
    outcomes = ledger.outcomes
    report = FlowReport(
        address=flow.plan.address,
        type=flow.plan.kind,
        sent=ledger.attempted,
        accepted=outcomes["accepted"],
        released=outcomes["released"],
        rejected=outcomes["rejected"],
        modified=outcomes["modified"],
        unknown=outcomes["unknown"],
        received_before=ledger.received_between(started_at, killed_at),
        received_after=ledger.received_between(killed_at, float("inf")),
        lost=ledger.lost(),
        twice=ledger.twice(),
        outage_ms=round(ledger.outage_s(killed_at, stopped_at) * 1000),
        ok=True,
        reason="",
    )
    reason = complaint(report)
    return FlowReport(**{**asdict(report), "ok": not reason, "reason": reason})


def complaint(report: FlowReport) -> str:
    """What an application would have a right to complain about; empty if nothing."""
    if not report.received_before or not report.received_after:
        return "nothing arrived " + ("before" if not report.received_before else "after") + " the kill"
    if report.outage_ms > LONGEST_OUTAGE_S * 1000:
        return f"nothing arrived for {report.outage_ms} ms"
    if report.lost and report.type not in MAY_MISS:
        return f"{report.lost} were accepted and never arrived"
    if report.rejected:
        return f"{report.rejected} were rejected"
    return ""


def topology_with_free_ports(text: str) -> str:
    """The topology, so that it disturbs nothing that runs on this machine."""
    yaml = YAML(typ="safe")
    topology = yaml.load(text)
    ports = free_ports()
    for router in topology["routers"].values():
        router["port"] = next(ports)
        router["listeners"] = [next(ports) for _ in router.get("listeners", [])]
    for broker in topology.get("brokers", {}).values():
        broker["port"] = next(ports)
    with tempfile.TemporaryFile("w+") as written:
        yaml.dump(topology, written)
        written.seek(0)
        return written.read()
