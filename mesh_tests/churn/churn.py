"""Half an hour of churn on a mesh of real processes, whose memory, descriptors and objects must stay as they are.

`python -m mesh_tests.churn.churn SECONDS --seed N --report FILE` leads one life, and writes what came of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mesh_tests.churn.population import TOPOLOGY, Population
from mesh_tests.churn.samples import Sample, Sampler, Trend, to_maps, trends
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

ROUTERS, BROKERS = ("r1", "r2", "r3"), ("b1",)
SAMPLES = 180
LEFT_S = 30.0


def lead(
    seed: int, seconds: float, folder: Path, on_sample: Callable[[list[Sample], Population], None] | None = None
) -> tuple[list[Sample], Population]:
    """One life, to its end. Raises AssertionError if a process ended, or if a client is left behind at the end."""
    mesh = RunningMesh(TOPOLOGY, folder)
    try:
        samples, population = _live(mesh, seed, seconds, on_sample)
    except BaseException:
        mesh.run("down", is_checked=False)
        raise
    mesh.down()
    return samples, population


def _live(
    mesh: RunningMesh, seed: int, seconds: float, on_sample: Callable[[list[Sample], Population], None] | None
) -> tuple[list[Sample], Population]:
    sampler = Sampler(mesh, (*ROUTERS, *BROKERS))
    population = Population({router: mesh.port(router) for router in ROUTERS}, seed)
    began, samples = time.monotonic(), list[Sample]()
    for number in range(1, SAMPLES + 1):
        population.live(began + number * seconds / SAMPLES - time.monotonic())
        samples.append(sampler.sample(time.monotonic() - began))
        if on_sample is not None:
            on_sample(samples, population)
    population.leave()
    wait_until(lambda: not clients_left(mesh), LEFT_S, "routers to let go of all clients")
    return samples, population


def clients_left(mesh: RunningMesh) -> list[str]:
    """Connections and dynamic addresses that routers still have."""
    found = []
    for router in ROUTERS:
        node = mesh.snapshot(router)["node"]
        found += [f"{router}: {each}" for each in node["connections"] if each["kind"] == "client"]
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

    def report(samples: list[Sample], population: Population) -> None:
        found["counts"] = {"names": population.names.count, **population.counts}
        found["delayed_s"], found["samples"] = round(population.delayed_s, 1), to_maps(samples)
        write(given.report, found)

    write(given.report, found)
    folder = Path(tempfile.mkdtemp(prefix="amqpmesh-churn-"))
    try:
        samples, population = lead(given.seed, given.seconds, folder, report)
        report(samples, population)
        wrong = not_flat(trends(samples))
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
