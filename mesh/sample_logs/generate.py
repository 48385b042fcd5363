"""Runs `amqpmesh linklogs generate`: makes a plan and writes its link logs, with a progress bar on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from addressing.records import Level
from addressing.topology.model import Topology
from linklogs.generating.plan import LogPlan
from linklogs.generating.run import TRUTH_NAME, GenerationProgress, generate
from mesh.sample_logs.plan import make_plan
from mesh.sample_logs.profile import Profile
from mesh.sample_logs.times import Times
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output, is_terminal

LEAST_S: Final = 1
NOTHING: Final = (
    "the topology has no traffic to record: expected at least one recorded address with producers, and consumers or "
    "a broker"
)


def run(
    topology: Topology,
    profile: Profile,
    directory: Path,
    *,
    begins_us: int,
    duration_s: float,
    records: int | None,
    seed: int,
    level: Level,
    out: Output,
) -> None:
    """Generate link logs in ``directory``.

    Raise CommandFailed if ``directory`` is not empty, if the duration is below 1 s, or if the topology has no traffic.
    """
    if directory.exists() and any(directory.iterdir()):
        raise CommandFailed(f"{directory} is not empty: expected a new or empty directory")
    if duration_s < LEAST_S:
        raise CommandFailed(
            f"no link logs to generate: expected a duration of at least {LEAST_S} s, got {duration_s:g} s"
        )
    times = Times(begins_us, begins_us + int(duration_s * 1e6))
    if not topology.addresses:
        raise CommandFailed(NOTHING)
    plan = make_plan(topology, profile, times, seed, records)
    if not len(plan.pieces.route):
        raise CommandFailed(NOTHING)
    began = time.monotonic()
    with _shown(out, plan) as on_progress:
        truth = generate(plan, directory, seed, level, on_progress)
    _tell(directory, truth, time.monotonic() - began, out)


def _tell(directory: Path, truth: dict[str, Any], took_s: float, out: Output) -> None:
    files = [path.stat().st_size for path in directory.rglob("*.parquet")]
    if out.is_json:
        out.document({
            "directory": str(directory), "truth": str(directory / TRUTH_NAME), "level": truth["level"],
            "seed": truth["seed"], "begins": truth["begins"], "ends": truth["ends"], "nodes": len(truth["nodes"]),
            "records": truth["records"], "files": len(files), "size_bytes": sum(files), "took_s": round(took_s, 3),
        })  # fmt: skip
        return
    written = f"{len(files):,} files of {sum(files):,} bytes, in {took_s:.1f} s"
    out.say(
        f"{truth['records']:,} records of what moved, of {len(truth['nodes'])} nodes, in {written}; their "
        f"expected sums are in {directory / TRUTH_NAME}"
    )


@contextmanager
def _shown(out: Output, plan: LogPlan) -> Iterator[Callable[[GenerationProgress], None]]:
    if not is_terminal(sys.stderr) or out.is_quiet or out.is_json:
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True, no_color=not out.is_colored, highlight=False)
    columns = (TextColumn("{task.fields[records]:>13,} records"), BarColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=plan.ends_us - plan.begins_us, records=0)
        yield lambda progress: bar.update(task, completed=progress.at_us - plan.begins_us, records=progress.records)
