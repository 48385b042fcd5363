"""What the nodes of a drill recorded is kept with its report, which leads there."""

from __future__ import annotations

from pathlib import Path

import pytest

from addressing.topology.loader import load_topology
from mesh.deploy.free_ports import free_ports
from mesh.drills import link_logs
from mesh.drills.link_logs import keep_link_logs
from mesh.drills.mesh_copy import copied
from mesh.drills.page import page
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output
from mesh_tests import drill_reports

OUT = Output("drill", is_quiet=True)
TOPOLOGY = """
mesh: m
routers: {r1: {}}
link_logs: {level: full, folder: /var/log/mine, redact: {key: keys/mine, columns: [user]}}
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    file = tmp_path / "copy" / "node=r1" / "hour=2026-11-24T00" / "1-0.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"records")
    return tmp_path / "copy"


def test_a_copy_records_in_a_folder_of_its_own_with_the_key_of_the_original(tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(TOPOLOGY)
    made = copied(load_topology(file), {}, free_ports())
    key = str(tmp_path / "keys" / "mine")
    assert made["link_logs"] == {"level": "full", "redact": {"key": key, "columns": ["user"]}}


def test_what_was_recorded_is_kept_and_the_page_says_where(recorded: Path, tmp_path: Path) -> None:
    kept = keep_link_logs(recorded, tmp_path / "drill", is_reported=False, out=OUT)
    assert (tmp_path / "drill" / "linklogs" / "node=r1" / "hour=2026-11-24T00" / "1-0.parquet").exists()
    report = kept.told_by(drill_reports.passing(), tmp_path / "pages" / "mine.html")
    assert (report.link_logs, report.link_log_report) == ("../drill/linklogs", "")
    assert "<code>../drill/linklogs</code>" in page(report)


def test_what_the_run_before_recorded_in_the_same_folder_is_gone(recorded: Path, tmp_path: Path) -> None:
    before = tmp_path / "drill" / "linklogs" / "node=r2"
    before.mkdir(parents=True)
    stale = tmp_path / "drill" / "linklogs-report" / "report.html"
    stale.parent.mkdir()
    stale.touch()
    keep_link_logs(recorded, tmp_path / "drill", is_reported=False, out=OUT)
    assert (before.exists(), stale.exists()) == (False, False)


def test_the_page_leads_to_the_report_whatever_its_folder_is_called(recorded: Path, tmp_path: Path) -> None:
    kept = link_logs.DrillLinkLogs(recorded, tmp_path / "my #1 drill" / "report.html")
    html = page(kept.told_by(drill_reports.passing(), tmp_path / "page.html"))
    assert '<a href="my%20%231%20drill/report.html">What the nodes recorded</a>' in html
    assert '<a href="#link-logs">' in html


def test_a_drill_counts_though_no_report_of_its_link_logs_can_be_made(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise CommandFailed("no memory")

    monkeypatch.setattr("mesh.reports.report.make", fails)
    kept = keep_link_logs(recorded, tmp_path / "drill", is_reported=True, out=Output("drill"))
    assert (kept.logs, kept.page) == (tmp_path / "drill" / "linklogs", None)
    assert "link logs: cannot make their report: no memory" in capsys.readouterr().err


def test_a_file_that_cannot_be_copied_is_named_with_the_reason(recorded: Path, tmp_path: Path) -> None:
    lost = recorded / "node=r1" / "lost.parquet"
    lost.symlink_to(tmp_path / "nowhere")
    with pytest.raises(CommandFailed) as failed:
        keep_link_logs(recorded, tmp_path / "drill", is_reported=False, out=OUT)
    assert failed.value.message.startswith(f"the link logs of the drill cannot be kept: {lost}: ")
    assert "No such file or directory" in failed.value.message


@pytest.mark.parametrize("is_there", [True, False])
def test_where_nothing_was_recorded_nothing_is_kept_and_who_wants_a_report_is_told(
    is_there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    empty = tmp_path / "empty" if is_there else None
    kept = keep_link_logs(empty, tmp_path / "drill", is_reported=True, out=Output("drill"))
    assert kept.told_by(drill_reports.passing(), tmp_path / "page.html") == drill_reports.passing()
    assert "no records, since `link_logs` of the topology is off" in capsys.readouterr().err
