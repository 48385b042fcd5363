"""How long does `amqpmesh report` take from a cold start, and in how much memory?

`python -m mesh_tests.bench.report --help`. `amqpmesh linklogs generate` makes up the records first. The memory is
that of all processes of the report together, Java and its Python workers included, looked at ten times a second.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from mesh.bench.meter import Meter

LOOK_EVERY_S = 0.1
TOPOLOGY = Path(__file__).parents[2] / "topologies" / "star_5.yml"
MASTER = "local[2]"
AMQPMESH = (sys.executable, "-P", "-m", "mesh")


@click.command()
@click.option("--records", default="10m", show_default=True, help="About so many.")
@click.option("--runs", default=3, show_default=True)
@click.option("--json", "is_json", is_flag=True, help="Print JSON: median, least and most.")
def main(records: str, runs: int, is_json: bool) -> None:
    """Print the time and memory of each report."""
    took_s: list[float] = []
    peaks: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        words = ["linklogs", "generate", "-t", str(TOPOLOGY), "--out", str(logs), "--records", records]
        subprocess.run([*AMQPMESH, *words], check=True, stdout=sys.stderr)
        size_bytes = sum(path.stat().st_size for path in logs.rglob("*.parquet"))
        for number in range(runs):
            seconds, peak_bytes = run(logs, Path(folder) / f"report{number}")
            took_s.append(seconds)
            peaks.append(peak_bytes)
            click.echo(f"{seconds:.1f} s, at most {peak_bytes / 1e6:.0f} MB", err=is_json)
    if is_json:
        spread = {"median": statistics.median(took_s), "least": min(took_s), "most": max(took_s)}
        click.echo(json.dumps({"size_bytes": size_bytes, "took_s": spread, "peak_bytes": max(peaks)}))


def run(logs: Path, out: Path) -> tuple[float, int]:
    """Make one report; return the seconds that it took, and the most memory of its processes, in bytes."""
    peak_bytes = 0
    began = time.monotonic()
    words = ["report", str(logs), "--out", str(out), "--master", MASTER, "--json"]
    with subprocess.Popen([*AMQPMESH, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as report:
        meter = Meter([report.pid])
        while report.poll() is None:
            peak_bytes = max(peak_bytes, sum(meter.resident_bytes()))
            time.sleep(LOOK_EVERY_S)
        took_s = time.monotonic() - began
    if report.returncode != 0:
        raise click.ClickException(f"the report ended with exit code {report.returncode}")
    return took_s, peak_bytes


if __name__ == "__main__":
    main()
