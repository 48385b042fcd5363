"""Random lives of a mesh, by the ten thousand, and crashes of a broker. `make soak` goes on for nine minutes.

Two lives of half an hour over sockets, and one of the console's pages, run beside the batches, in the background:
`mesh_tests/background.py` has them.

Each soak has seeds that nobody has tried: they follow from the day, the revision and the test. A soak that is not over
goes on with its own seeds as long as the code of its lives stays as it is; `.soak/` knows how far it came.
docs/proof/soak.md has a row for each soak, and rows are only added. `mesh_tests/lives.py` lists the lives.
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
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from mesh_tests.background import CHURN, LONG_LIVES, LongLife
from mesh_tests.churn.page import CHART, chart, page
from mesh_tests.churn.samples import from_maps
from mesh_tests.lives import LIVES, Life

ROOT = Path(__file__).parents[1]
STATE, REPORT = ROOT / ".soak" / "state.json", ROOT / ".soak" / "junit.xml"
PROOF = ROOT / "docs" / "proof" / "soak.md"
MEMORY = Path(f"/dev/shm/amqpmesh-soak-{os.getpid()}")
"""Stores on a disk would sync for most of the time, and no process is killed here."""
PYTEST = (sys.executable, "-m", "pytest", "-q")
SEEDS = 10**9
COLUMNS = ("date", "revision", "what happens", "seeds", "lives", "failed", "counted, and which failed")


@dataclass
class Tally:
    """How far one soak of a test came."""

    code: str
    revision: str
    date: str
    first: int
    seeds: int = 0
    lives: int = 0
    failed: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Sums of what the lives report."""


@dataclass
class Soak:
    tallies: dict[str, Tally]
    lives: Sequence[Life] = LIVES

    def next_life(self, left_s: float) -> Life | None:
        """The one that is behind, of those of which a batch ends within ``left_s``."""
        behind = [life for life in self.lives if not self.is_over(life) and life.batch_s <= left_s]
        return min(behind, key=lambda life: self.tallies[life.test].seeds / life.seeds, default=None)

    def is_over(self, life: Life) -> bool:
        return self.tallies[life.test].seeds >= life.seeds


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def load() -> Soak:
    """What was tried of this code. Raises UsageError for code that no commit has: its proof would be of nothing."""
    if git("status", "--porcelain", "--", *{part for life in LIVES for part in life.code}):
        raise click.UsageError("commit first: a proof names the revision that it is of")
    before = json.loads(STATE.read_text()) if STATE.exists() else {}
    revision, date = git("rev-parse", "--short", "HEAD"), f"{datetime.now(UTC):%F}"
    return Soak({life.test: tally_of(life, before.get(life.test), revision, date) for life in LIVES})


def tally_of(life: Life, before: dict[str, Any] | None, revision: str, date: str) -> Tally:
    """The soak of this code that is not over yet, or a new one. One that was over is another day's beginning."""
    code = git("rev-parse", *(f"HEAD:{part}" for part in life.code))
    if before and before["code"] == code and (before["seeds"] < life.seeds or before["date"] == date):
        return Tally(**before)
    return Tally(code, revision, date, first_seed(life, revision, date))


def first_seed(life: Life, revision: str, date: str) -> int:
    return int.from_bytes(sha256(f"{date} {revision} {life.test}".encode()).digest()[:8]) % SEEDS


def run(life: Life, tally: Tally) -> None:
    count = min(life.batch, life.seeds - tally.seeds)
    environment = {"LIFE_FIRST": str(tally.first + tally.seeds), "LIFE_COUNT": str(count), **dict(life.environment)}
    if life.is_sanitized:
        command = ["bash", "tools/asan.sh"]
        environment |= {"ASAN_TESTS": f"mesh_tests/{life.test}", "ASAN_REPORT": str(REPORT)}
    else:
        command = [*PYTEST, "-n", life.workers, f"--junitxml={REPORT}", *_in_memory(), f"mesh_tests/{life.test}"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=False)
    shutil.rmtree(MEMORY, ignore_errors=True)
    suite = ElementTree.parse(REPORT).getroot().find("testsuite")
    if suite is None:
        raise click.ClickException(f"pytest left no report of {life.test}")
    REPORT.unlink()
    add(tally, count, suite)


def _in_memory() -> list[str]:
    return [f"--basetemp={MEMORY}"] if MEMORY.parent.is_dir() else []


def add(tally: Tally, count: int, suite: ElementTree.Element) -> None:
    """``count`` seeds more, of which pytest reported ``suite``."""
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
    seeds = f"{tally.first} to {tally.first + tally.seeds - 1}"
    counted = ", ".join(f"{name} {count:,}" for name, count in tally.counts.items())
    failed = ", ".join(f"`{name}`" for name in tally.failed)
    told = "; ".join(filter(None, (counted, failed)))
    cells = (tally.date, tally.revision, life.what, seeds, f"{tally.lives:,}", str(len(tally.failed)), told)
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def with_row(proof: str, life: Life, tally: Tally) -> str:
    """The page with the row of this soak, in place of the one that it had; all other lines stay as they are."""
    head, rule = f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"
    if head not in proof:
        proof = f"{proof.rstrip()}\n\n{head}\n{rule}\n"
    begun = f"| {tally.date} | {tally.revision} | {life.what} | {tally.first} to "
    lines = [line for line in proof.rstrip().split("\n") if not line.startswith(begun)]
    return "\n".join([*lines, row_of(life, tally), ""])


def go_on_in_background(long_life: LongLife) -> str:
    """Start a long life of this revision in the background, or add a row for it once it is over; a sentence."""
    revision, date = git("rev-parse", "--short", "HEAD"), f"{datetime.now(UTC):%F}"
    life = long_life.life
    long_life.start(STATE.parent, revision, first_seed(life, revision, date))
    found = long_life.found(STATE.parent, revision)
    if found["state"] == "running":
        at_s = found["samples"][-1]["at_s"] if found.get("samples") else 0
        so_far = f" ({at_s:,.0f} of {found['seconds']:,.0f} s)" if at_s else ""
        return (
            f"{long_life.name}: a life runs in the background, of seed {found['seed']}{so_far}: run this "
            "again for what came of it"
        )
    failed = [f"seed {found['seed']}"] if found["state"] == "failed" else []
    PROOF.write_text(with_row(PROOF.read_text(), life, tally_of_long(found, revision, date, failed)))
    if long_life is CHURN and found.get("samples"):
        (PROOF.parent / CHART).write_text(chart(from_maps(found["samples"])))
        (PROOF.parent / "churn.md").write_text(page(found, revision, date))
    why = f": {found['why']}" if failed else ""
    return f"{long_life.name}: the life of seed {found['seed']} {found['state']}{why}"


def tally_of_long(found: dict[str, Any], revision: str, date: str, failed: list[str]) -> Tally:
    counted = {**found, **found.get("counts", {})}
    names = (
        "steps", "connections", "links", "names", "sent", "accepted", "arrived",
        "pages", "seconds watched", "changes", "bytes at first", "bytes at last",
    )  # fmt: skip
    counts = {name: counted[name] for name in names if name in counted}
    return Tally("", revision, date, found["seed"], 1, 1, failed, counts)


@click.command()
@click.option("--seconds", default=540.0, show_default=True, help="Begin no batch that might end later.")
@click.option(
    "--only",
    default="",
    help="Lead only lives of tests with this in their names; in the background: `faults`, `churn`, `heaps`.",
)
def main(seconds: float, only: str) -> None:
    """Go on with the random lives of this code. Exit code 1 if one of them failed."""
    soak, ends_at = load(), time.monotonic() + seconds
    soak.lives = [life for life in LIVES if only in life.test]
    STATE.parent.mkdir(exist_ok=True)
    PROOF.parent.mkdir(exist_ok=True)
    for long_life in LONG_LIVES:
        if only in long_life.life.test:
            click.echo(go_on_in_background(long_life))
    while (life := soak.next_life(ends_at - time.monotonic())) is not None:
        tally = soak.tallies[life.test]
        run(life, tally)
        STATE.write_text(json.dumps(asdict(soak)["tallies"]))
        PROOF.write_text(with_row(PROOF.read_text(), life, tally))
        click.echo(f"{life.test}: {tally.seeds:,} of {life.seeds:,} seeds, {len(tally.failed)} failures")
    failed = [name for life in soak.lives for name in soak.tallies[life.test].failed]
    click.echo("all seeds were tried" if all(map(soak.is_over, soak.lives)) else "run it again for more")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
