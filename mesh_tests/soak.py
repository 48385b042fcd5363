"""Random lives of a mesh, by the ten thousand. `make soak` goes on for nine minutes and knows where it was.

What was tried is in `.soak/`, for one state of the code; a change of it begins anew. docs/proof/soak.md is the summary.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
STATE, REPORT = ROOT / ".soak" / "state.json", ROOT / ".soak" / "junit.xml"
PROOF = ROOT / "docs" / "proof" / "soak.md"
CODE = ("addressing", "wire", "router", "broker", "mesh/simulation", "mesh_tests/sim", "setup.cfg")
MEMORY = Path(f"/dev/shm/amqpmesh-soak-{os.getpid()}")
"""Stores on a disk would sync for most of the time, and no process is killed here."""
BATCH = 200
BATCH_S = 180.0
"""What a batch may take on a slow machine: none is begun that would end after the time is up."""


@dataclass(frozen=True)
class Life:
    """A test file of random lives, and of how many seeds they are to be."""

    file: str
    what: str
    seeds: int
    first: int = 100_000


LIVES = (
    Life("test_walk.py", "clients, trunks, routers, brokers and costs come, fail and change", 2500),
    Life("test_walk_fickle.py", "consumers that take credit back, drain, stall and settle in batches", 2500),
    Life("test_fallback_walk.py", "an anycast address that falls back to a queue, and its order", 2500),
    Life("test_walk_edges.py", "edge routers, and the uplinks of them, with fickle consumers and without", 1000),
    Life("test_vanishing.py", "links, sessions and connections vanish in the middle of anything", 2500),
)


@dataclass
class Tally:
    seeds: int = 0
    lives: int = 0
    failed: list[str] = field(default_factory=list)


@dataclass
class Soak:
    code: str
    revision: str
    tallies: dict[str, Tally] = field(default_factory=lambda: {life.file: Tally() for life in LIVES})

    def next_life(self) -> Life | None:
        """The one that is behind."""
        open_lives = [life for life in LIVES if self.tallies[life.file].seeds < life.seeds]
        return min(open_lives, key=lambda life: self.tallies[life.file].seeds / life.seeds, default=None)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def load() -> Soak:
    """What was tried of this code. Raises UsageError for code that no commit has: its proof would be of nothing."""
    if git("status", "--porcelain", "--", *CODE):
        raise click.UsageError("commit first: a proof names the revision that it is of")
    code = git("rev-parse", *(f"HEAD:{part}" for part in CODE))
    before = json.loads(STATE.read_text()) if STATE.exists() else {}
    if before.get("code") == code:
        return Soak(code, before["revision"], {file: Tally(**tally) for file, tally in before["tallies"].items()})
    return Soak(code, git("rev-parse", "--short", "HEAD"))


def run(life: Life, tally: Tally) -> None:
    count = min(BATCH, life.seeds - tally.seeds)
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
        f"mesh_tests/sim/{life.file}",
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


def has_failed(case: ElementTree.Element) -> bool:
    return any(case.find(kind) is not None for kind in ("failure", "error"))


def summary(soak: Soak) -> str:
    tried, wanted = sum(tally.seeds for tally in soak.tallies.values()), sum(life.seeds for life in LIVES)
    failed = [name for tally in soak.tallies.values() for name in tally.failed]
    rows = [
        f"| {life.what} | {life.first} to {life.first + tally.seeds - 1} | {tally.lives:,} | {len(tally.failed)} |"
        for life in LIVES
        if (tally := soak.tallies[life.file]).seeds
    ]
    return "\n".join(
        [
            "# Soak",
            "",
            "Random lives of small meshes in virtual time, with real engines and stores. What must hold after every",
            "step is in `mesh_tests/sim/invariants.py`, what must hold at the end is in `mesh_tests/sim/walk.py`.",
            "Some tests lead several lives from one seed. Made by `make soak`.",
            "",
            f"Revision {soak.revision}, {datetime.now(UTC):%F}: {tried:,} of {wanted:,} seeds; failed: {len(failed)}.",
            "",
            "| what happens | seeds | lives | failed |",
            "|---|---|---|---|",
            *rows,
            *(["", "Failed:", "", *(f"* `{name}`" for name in failed)] if failed else []),
            "",
        ]
    )


@click.command()
@click.option("--seconds", default=540.0, show_default=True, help="Begin no batch that might end later.")
def main(seconds: float) -> None:
    """Go on with the random lives of this revision. Exit code 1 if one of them failed."""
    soak, began = load(), time.monotonic()
    STATE.parent.mkdir(exist_ok=True)
    PROOF.parent.mkdir(exist_ok=True)
    while (life := soak.next_life()) is not None and time.monotonic() < began + seconds - BATCH_S:
        tally = soak.tallies[life.file]
        run(life, tally)
        STATE.write_text(json.dumps(asdict(soak)))
        PROOF.write_text(summary(soak))
        click.echo(f"{life.file}: {tally.seeds:,} of {life.seeds:,} seeds, {len(tally.failed)} failures")
    failed = [name for tally in soak.tallies.values() for name in tally.failed]
    click.echo("all seeds were tried" if soak.next_life() is None else "run it again for more")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
