"""The demo: a drill that kills one of three routers, under traffic on all four types of address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mesh.deploy.scratch import scratch_folder
from mesh.drills.report_folder import ReportPaths
from mesh.drills.run import DrillRequest
from mesh.drills.run import run as run_drill
from mesh.terminal.output import Output

DRILL = Path(__file__).with_name("demo_drill.yml")

LEGEND = """
DETECTED   until another router noticed          OTHER  not accepted: on its way when the router died, so its
OUTAGE     the longest time without a message           sender is told, and would send it again
RECOVERED  until all came in time again          LOST   accepted, and missed by a consumer; of a multicast,
                                                        accepted says that one consumer has it"""


def run(out: Output, folder: Path | None) -> int:
    """Run the demo and return its exit code; keep the report in ``folder``, or discard the report for None."""
    with _report_folder(folder) as kept:
        code = run_drill(
            DrillRequest(DRILL, None, None, ReportPaths(kept, None, None), None, is_kept=folder is not None), out
        )
    if not out.is_json:
        out.data(LEGEND)
    return code


@contextmanager
def _report_folder(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with scratch_folder("amqpmesh-demo-") as made:
        yield made
