"""A drill of real processes, and the report of what they recorded meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mesh.terminal.exit_codes import ExitCode
from mesh_tests.installed import require
from mesh_tests.live.test_drills import run, write
from mesh_tests.spark.conftest import LONG_S, STARTS_JAVA, java_version

pytestmark = STARTS_JAVA


def test_the_page_of_a_drill_leads_to_what_its_nodes_recorded(tmp_path: Path) -> None:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    write(tmp_path, "  - {fault: kill, router: r2}\n")
    done = run(tmp_path, "drill.yml", "--link-logs", "--json", "-o", "kept", limit_s=LONG_S)
    assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["link_logs"], told["link_log_report"]) == ("linklogs", "linklogs-report/report.html")
    assert '<a href="linklogs-report/report.html">' in (tmp_path / "kept" / "report.html").read_text()
    summary = json.loads((tmp_path / "kept" / "linklogs-report" / "summary.json").read_text())
    sent = {row["side"]: row["messages"] for row in summary["totals"] if row["peer"] == "client"}
    attempted = sum(counts["counts"]["attempted"] for counts in told["addresses"])
    # Traffic flows before the baseline, too, until each consumer has received a message. The drill counts none of these
    # messages, and their number depends on the host.
    assert sent["in"] >= 0.98 * attempted
    assert sent["out"] == pytest.approx(sent["in"], rel=0.05)
    assert summary["tables"]["outages"] > 0


def test_a_mesh_that_runs_elsewhere_keeps_its_link_logs_itself(tmp_path: Path) -> None:
    write(tmp_path, "  - {fault: kill, router: r2}\n")
    done = run(tmp_path, "drill.yml", "--link-logs", "--against", "amqp://127.0.0.1", "--fault", "true")
    assert done.returncode == ExitCode.USAGE
    assert "--link-logs is not allowed with --against" in done.stderr
