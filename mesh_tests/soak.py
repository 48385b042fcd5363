"""Random lives of a mesh, by the ten thousand, and crashes of a broker. `make soak` goes on for nine minutes.

What was tried is in `.soak/`, so that it knows where it was; a change of the code that a life is of begins that anew.
docs/proof/soak.md is the summary.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).parents[1]
STATE, REPORT = ROOT / ".soak" / "state.json", ROOT / ".soak" / "junit.xml"
PROOF = ROOT / "docs" / "proof" / "soak.md"
SIMULATION = ("addressing", "wire", "router", "broker", "mesh/simulation", "mesh_tests/sim", "setup.cfg")
BROKER = ("wire", "broker", "mesh_tests/crash", "setup.cfg")
MEMORY = Path(f"/dev/shm/amqpmesh-soak-{os.getpid()}")
"""Stores on a disk would sync for most of the time, and no process is killed here."""
BATCH_S = 180.0
"""What a batch may take on a slow machine: none is begun that would end after the time is up."""


@dataclass(frozen=True)
class Life:
    """A test file of random lives: of how many seeds, how many of them in one go, and which code they are of."""

    file: str
    what: str
    seeds: int
    code: tuple[str, ...] = SIMULATION
    batch: int = 200
    first: int = 100_000


LIVES = (
    Life("sim/test_walk.py", "clients, trunks, routers, brokers and costs come, fail and change", 2500),
    Life("sim/test_walk_fickle.py", "consumers that take credit back, drain, stall and settle in batches", 2500),
    Life("sim/test_fallback_walk.py", "an anycast address that falls back to a queue, and its order", 2500),
    Life("sim/test_walk_edges.py", "edge routers, and the uplinks of them, with fickle consumers and without", 1000),
    Life("sim/test_vanishing.py", "links, sessions and connections vanish in the middle of anything", 2500),
    Life("crash/test_broker_crash.py", "20 times kill -9 of a broker, at random moments and failpoints", 25, BROKER, 4),
    Life("crash/storage/test_power_cuts.py", "the power goes while a store is written", 200, BROKER, 20),
)


@dataclass
class Tally:
    code: str
    revision: str
    seeds: int = 0
    lives: int = 0
    failed: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Sums of what the lives report."""


@dataclass
class Soak:
    tallies: dict[str, Tally]

    def next_life(self) -> Life | None:
        """The one that is behind."""
        open_lives = [life for life in LIVES if self.tallies[life.file].seeds < life.seeds]
        return min(open_lives, key=lambda life: self.tallies[life.file].seeds / life.seeds, default=None)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def load() -> Soak:
    """What was tried of this code. Raises UsageError for code that no commit has: its proof would be of nothing."""
    if git("status", "--porcelain", "--", *SIMULATION, *BROKER):
        raise click.UsageError("commit first: a proof names the revision that it is of")
    before = json.loads(STATE.read_text()) if STATE.exists() else {}
    revision = git("rev-parse", "--short", "HEAD")
    return Soak({life.file: tally_of(life, before.get(life.file), revision) for life in LIVES})


def tally_of(life: Life, before: dict[str, Any] | None, revision: str) -> Tally:
    code = git("rev-parse", *(f"HEAD:{part}" for part in life.code))
    return Tally(**before) if before and before["code"] == code else Tally(code, revision)


def run(life: Life, tally: Tally) -> None:
    count = min(life.batch, life.seeds - tally.seeds)
    environment = {"LIFE_FIRST": str(life.first + tally.seeds), "LIFE_COUNT": str(count)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "auto",
        f"--junitxml={REPORT}",
        *([f"--basetemp={MEMORY}"] if MEMORY.parent.is_dir() else []),
        f"mesh_tests/{life.file}",
    ]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=False)
    shutil.rmtree(MEMORY, ignore_errors=True)
    suite = ElementTree.parse(REPORT).getroot().find("testsuite")
    if suite is None:
        raise click.ClickException(f"pytest left no report of {life.file}")
    REPORT.unlink()
    cases = suite.findall("testcase")
    tally.seeds += count
    tally.lives += len(cases)
    tally.failed += [str(case.get("name")) for case in cases if has_failed(case)]
    counts = Counter(tally.counts)
    for reported in suite.iter("property"):
        counts[str(reported.get("name"))] += int(reported.get("value") or 0)
    tally.counts = dict(counts)


def has_failed(case: ElementTree.Element) -> bool:
    return any(case.find(kind) is not None for kind in ("failure", "error"))


def row_of(life: Life, tally: Tally) -> str:
    seeds = f"{life.first} to {life.first + tally.seeds - 1}"
    return f"| {life.what} | {tally.revision} | {seeds} | {tally.lives:,} | {len(tally.failed)} |"


def summary(soak: Soak) -> str:
    tallies = [(life, soak.tallies[life.file]) for life in LIVES if soak.tallies[life.file].seeds]
    tried, wanted = sum(tally.seeds for _, tally in tallies), sum(life.seeds for life in LIVES)
    failed = [name for _, tally in tallies for name in tally.failed]
    counts = [f"{name} {count:,}" for _, tally in tallies for name, count in tally.counts.items()]
    return "\n".join(
        [
            "# Soak",
            "",
            "Random lives of small meshes in virtual time, with real engines and stores. What must hold after every",
            "step is in `mesh_tests/sim/invariants.py`, what must hold at the end is in `mesh_tests/sim/walk.py`.",
            "Some tests lead several lives from one seed. Then a broker as a process that is killed again and again;",
            "`mesh_tests/crash/ledger.py` has what must hold. Made by `make soak`.",
            "",
            f"{datetime.now(UTC):%F}: {tried:,} of {wanted:,} seeds; failed: {len(failed)}.",
            "",
            "| what happens | revision | seeds | lives | failed |",
            "|---|---|---|---|---|",
            *(row_of(life, tally) for life, tally in tallies),
            *(["", f"What the broker's clients were told: {', '.join(counts)}."] if counts else []),
            *(["", "Failed:", "", *(f"* `{name}`" for name in failed)] if failed else []),
            "",
        ]
    )


@click.command()
@click.option("--seconds", default=540.0, show_default=True, help="Begin no batch that might end later.")
def main(seconds: float) -> None:
    """Go on with the random lives of this code. Exit code 1 if one of them failed."""
    soak, began = load(), time.monotonic()
    STATE.parent.mkdir(exist_ok=True)
    PROOF.parent.mkdir(exist_ok=True)
    while (life := soak.next_life()) is not None and time.monotonic() < began + seconds - BATCH_S:
        tally = soak.tallies[life.file]
        run(life, tally)
        STATE.write_text(json.dumps(asdict(soak)["tallies"]))
        PROOF.write_text(summary(soak))
        click.echo(f"{life.file}: {tally.seeds:,} of {life.seeds:,} seeds, {len(tally.failed)} failures")
    failed = [name for tally in soak.tallies.values() for name in tally.failed]
    click.echo("all seeds were tried" if soak.next_life() is None else "run it again for more")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
