"""Half an hour of churn on a mesh of real processes, whose memory, descriptors and objects must stay as they are.

`python -m mesh_tests.churn.churn SECONDS --seed N --report FILE` leads one life, and writes what came of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mesh_tests.churn.population import DECLARED, TOPOLOGY, Population
from mesh_tests.churn.samples import Sample, Sampler, Trend, to_maps, trends
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

ROUTERS, BROKERS = ("r1", "r2", "r3"), ("b1",)
SAMPLES = 180
RESTS = 15
"""So many times everybody leaves, and the processes are looked at while they rest."""
REST_S = 60.0


@dataclass
class ChurnRecord:
    """What came of a life so far. ``rests``: samples while no client was there, and unreachable objects collected."""

    samples: list[Sample] = field(default_factory=list)
    rests: list[Sample] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    delayed_s: float = 0.0


def lead(
    seed: int,
    seconds: float,
    folder: Path,
    on_sample: Callable[[ChurnRecord], None] = lambda _: None,
    *,
    rests: int = RESTS,
) -> ChurnRecord:
    """One life, to its end. Raises AssertionError if a process ended, or if something of clients is left behind."""
    mesh = RunningMesh(TOPOLOGY, folder)
    try:
        record = _live(mesh, seed, seconds, on_sample, rests)
    except BaseException:
        mesh.run("down", is_checked=False)
        raise
    mesh.down()
    return record


def _live(
    mesh: RunningMesh, seed: int, seconds: float, on_sample: Callable[[ChurnRecord], None], rests: int
) -> ChurnRecord:
    sampler, record = Sampler(mesh, (*ROUTERS, *BROKERS)), ChurnRecord()
    population = Population({router: mesh.port(router) for router in ROUTERS}, seed, record.counts)
    began = time.monotonic()
    for number in range(1, SAMPLES + 1):
        population.live(began + number * seconds / SAMPLES - time.monotonic())
        record.samples.append(sampler.sample(time.monotonic() - began))
        record.counts["names"], record.delayed_s = population.names.count, round(population.delayed_s, 1)
        if number % (SAMPLES // rests) == 0:
            population.leave()
            wait_until(lambda: not left_behind(mesh), REST_S, "routers to let go of all clients and their addresses")
            record.rests.append(sampler.sample(time.monotonic() - began, is_rest=True))
            if number < SAMPLES:
                population.come()
        on_sample(record)
    return record


def left_behind(mesh: RunningMesh) -> list[str]:
    """Connections of clients that routers still have, addresses of the topology with links or circuits, and
    subscriptions at brokers.
    """
    found = []
    for router in ROUTERS:
        node = mesh.snapshot(router)["node"]
        found += [f"{router}: {each}" for each in node["connections"] if each["kind"] == "client"]
        found += [f"{router}: {each}" for each in node["addresses"] if each["address"].partition(".")[0] in DECLARED]
    for broker in BROKERS:
        queues = mesh.snapshot(broker)["node"]["queues"]
        found += [f"{broker}: {each}" for each in queues if each["is_subscription"]]
    return found


def not_flat(found: list[Trend]) -> list[str]:
    return [
        f"{each.process}: {each.measure} grew by {each.growth:,.0f} at a level of {each.level:,.0f}, "
        f"expected {each.allowed:,.0f} at most"
        for each in found
        if not each.is_flat
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--report", type=Path, required=True)
    given = parser.parse_args()
    found: dict[str, Any] = {"seed": given.seed, "seconds": given.seconds, "state": "running"}

    def report(record: ChurnRecord) -> None:
        found["counts"], found["delayed_s"] = dict(record.counts), record.delayed_s
        found["samples"], found["rests"] = to_maps(record.samples), to_maps(record.rests)
        write(given.report, found)

    write(given.report, found)
    folder = Path(tempfile.mkdtemp(prefix="amqpmesh-churn-"))
    try:
        record = lead(given.seed, given.seconds, folder, report)
        wrong = not_flat(trends(record.samples, record.rests))
        found |= {"state": "failed", "why": "; ".join(wrong)} if wrong else {"state": "passed"}
    except Exception:  # noqa: BLE001 - the report tells it
        found |= {"state": "failed", "why": traceback.format_exc()[-4000:], "kept": str(folder)}
    write(given.report, found)


def write(report: Path, found: dict[str, Any]) -> None:
    """Replace the report in one step: somebody may read it meanwhile."""
    new = report.with_suffix(".new")
    new.write_text(json.dumps(found))
    new.replace(report)


if __name__ == "__main__":
    main()
