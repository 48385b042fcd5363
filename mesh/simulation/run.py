"""Runs `amqpmesh simulate`: runs a simulation, prints its report, and measures its cost in time, CPU and memory."""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from mesh.deploy.scratch import scratch_folder
from mesh.simulation.display import display
from mesh.simulation.simulation import ATTACH_S, Simulation, SimulationReport, SimulationRequest
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.output import Output

CHANGE_COLUMNS = ("AT", "CHANGE", "CONVERGED", "ROUTERS", "")
FLOW_COLUMNS = (
    "ADDRESS",
    "TYPE",
    "ATTEMPTED",
    "ACCEPTED",
    "RELEASED",
    "REJECTED",
    "MODIFIED",
    "UNKNOWN",
    "RECEIVED",
    "AGAIN",
    "LOST",
    "TWICE",
    "",
)
LEGEND = """
AT, CONVERGED  virtual seconds from the start; until the last router whose picture of the mesh had to change knew of it
ROUTERS        those whose picture changed
UNKNOWN        the producer lost its connection before it heard the outcome
RECEIVED       by all consumers; each of them gets its own copy of a multicast or topic
AGAIN          redelivered, and marked so: its consumer was lost before its acceptance had come through
LOST           accepted, and never received; of a topic, not by every subscriber
TWICE          received again without a mark"""


@dataclass(frozen=True, slots=True)
class Machine:
    """The cost of a simulation for this machine.

    ``learning``: a router's CPU time to handle the input by which it learns of a change; ``paths``: a router's CPU time
    to compute all paths.
    """

    wall_s: float
    cpu_s: float
    memory_mib: int
    learning_median_ms: float | None
    learning_worst_ms: float | None
    paths_median_ms: float | None
    paths_worst_ms: float | None


def run(order: SimulationRequest, out: Output, *, is_measured: bool) -> int:
    began, cpu = time.monotonic(), time.process_time()
    total_s = ATTACH_S + order.duration_s
    with scratch_folder("amqpmesh-simulate-") as folder, display(out, total_s) as observe, rare_collections():
        report = Simulation(order, folder, observe).run()
    machine = machine_of(report, time.monotonic() - began, time.process_time() - cpu)
    if out.is_json:
        measured = {"machine": asdict(machine)} if is_measured else {}
        out.document({"ok": report.ok, **summary(order), **report.to_map(), **measured})
    else:
        tell(report, out)
    out.say(describe(machine))
    return ExitCode.OK if report.ok else ExitCode.FAILED


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python's garbage collector run rarely in the context: a large mesh makes millions of objects, which stay."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def summary(order: SimulationRequest) -> dict[str, object]:
    topology = order.topology
    return {
        "mesh": topology.mesh,
        "routers": len(topology.routers),
        "connections": len(list(topology.edges())),
        "brokers": [name for name, broker in topology.brokers.items() if broker.is_embedded],
        "seed": order.seed,
        "duration_s": order.duration_s,
        "faults": list(order.faults),
    }


def tell(report: SimulationReport, out: Output) -> None:
    out.table(CHANGE_COLUMNS, [change.row() for change in report.changes], title="what happened")
    out.data("")
    out.table(FLOW_COLUMNS, [flow.row() for flow in report.flows], title="what became of the messages")
    out.data(LEGEND)
    if report.left_out:
        out.data(f"\nno traffic on: {', '.join(report.left_out)}")
    out.data("\nthe mesh kept its promises" if report.ok else "\nthe simulation FAILED")


def machine_of(report: SimulationReport, wall_s: float, cpu_s: float) -> Machine:
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    figures = (*median_and_worst_ms(report.learning_cpu_s), *median_and_worst_ms(report.paths_cpu_s))
    return Machine(round(wall_s, 1), round(cpu_s, 1), memory_mib, *figures)


def median_and_worst_ms(times_s: Sequence[float]) -> tuple[float | None, float | None]:
    if not times_s:
        return None, None
    return round(statistics.median(times_s) * 1000, 2), round(max(times_s) * 1000, 2)


def describe(machine: Machine) -> str:
    taken = f"took {machine.wall_s} s, {machine.cpu_s} s of CPU, {machine.memory_mib} MiB"
    if machine.learning_median_ms is None or machine.paths_median_ms is None:
        return taken
    learning = f"a router takes in a change in {machine.learning_median_ms} ms ({machine.learning_worst_ms} at worst)"
    paths = f"computes its paths in {machine.paths_median_ms} ({machine.paths_worst_ms})"
    return f"{taken}; {learning} and {paths} of CPU"
