"""Reports beside a topology file are listed, and served in a sandbox; nothing else of the folder is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from addressing.topology.credentials import make_secret
from mesh.watch.kept_reports import DRILL, LINK_LOGS, MAX_REPORTS, kept_reports, page_of
from mesh.watch.report_pages import REPORT_POLICY
from mesh_tests.unit.mesh.watch.console_host import TRIANGLE, ConsoleHost

HOSTILE = ("../secret", "..", ".", "%2e%2e", "a/b", "a\x00b", "/etc", "x" * 5000)


def drill(folder: Path, name: str, at: float = 1.0, **summary: Any) -> Path:
    kept = folder / ".amqpmesh" / "drills" / name
    kept.mkdir(parents=True)
    page = kept / "report.html"
    page.write_text(f"<!doctype html><title>{name}</title>")
    os.utime(page, (at, at))
    if summary:
        (kept / "summary.json").write_text(json.dumps(summary))
    return kept


def link_logs(folder: Path, name: str, at: float = 1.0) -> None:
    (folder / name / "tables").mkdir(parents=True)
    page = folder / name / "report.html"
    page.write_text("page")
    os.utime(page, (at, at))
    (folder / name / "summary.json").write_text(
        json.dumps({"from": "2026-01-01", "to": "2026-01-02", "records": 1234, "findings": [{}]})
    )


def test_reports_are_listed_newest_first_with_what_they_say(tmp_path: Path) -> None:
    results = [{"fault": "kill r1", "lost": 2, "outage_ms": 812.4}, {"fault": "kill r1", "lost": 1, "outage_ms": None}]
    drill(tmp_path, "1-lose", 10, verdict="FAIL", summary={"results": results})
    link_logs(tmp_path, "report", 20)
    found, left_out = kept_reports(tmp_path)
    assert left_out == 0
    assert [(each.kind, each.name, each.verdict, each.says) for each in found] == [
        (LINK_LOGS, "report", None, "2026-01-01 to 2026-01-02: 1,234 records, 1 finding"),
        (DRILL, "1-lose", "FAIL", "1 fault, 3 lost messages, longest outage 812 ms"),
    ]
    assert found[1].made == "1970-01-01 00:00:10 UTC"


@pytest.mark.parametrize("summary", [b"", b"[]", b"{", b"[" * 100_000, b'{"summary": {"results": [1, null]}}', b"\xff"])
def test_a_summary_that_is_none_leaves_the_report_in_the_list(summary: bytes, tmp_path: Path) -> None:
    (drill(tmp_path, "1-a") / "summary.json").write_bytes(summary)
    assert [each.says for each in kept_reports(tmp_path)[0]] == ["its summary cannot be read"]


def test_older_reports_are_left_out_and_counted(tmp_path: Path) -> None:
    for number in range(MAX_REPORTS + 3):
        drill(tmp_path, f"{number}-a", number)
    found, left_out = kept_reports(tmp_path)
    assert (found[0].name, len(found), left_out) == (f"{MAX_REPORTS + 2}-a", MAX_REPORTS, 3)


def test_links_to_other_places_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "report.html").write_text("secret")
    beside = tmp_path / "mesh"
    kept = drill(beside, "1-a")
    (beside / ".amqpmesh" / "drills" / "2-b").symlink_to(secret)
    (kept / "report.html").unlink()
    (kept / "report.html").symlink_to(secret / "report.html")
    assert kept_reports(beside) == ([], 0)
    assert page_of(beside, DRILL, "1-a") is page_of(beside, DRILL, "2-b") is None


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_no_report_gives_nothing(name: str, tmp_path: Path) -> None:
    drill(tmp_path, "1-a")
    (tmp_path / "report.html").write_text("not a report")
    assert page_of(tmp_path, DRILL, name) is None
    assert page_of(tmp_path, "other", "1-a") is None


def test_a_folder_without_tables_is_no_report_of_link_logs(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "report.html").write_text("of somebody else")
    assert kept_reports(tmp_path) == ([], 0)


def test_a_report_is_served_without_an_origin(tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(TRIANGLE)
    drill(tmp_path, "1-a b")
    host = ConsoleHost(file)
    told = host.ask("/console/reports").content
    (report,) = told["reports"]
    assert told["folders"] == [str(tmp_path / ".amqpmesh" / "drills"), str(tmp_path)]
    answer = host.ask(report["href"].replace("%20", " "))
    assert answer.status == 200
    assert b"1-a b" in answer.body
    assert answer.headers["content-security-policy"] == REPORT_POLICY
    assert "sandbox allow-scripts;" in REPORT_POLICY
    assert "allow-same-origin" not in REPORT_POLICY
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    missing = host.ask("/console/reports/drill/nothing")
    assert missing.status == 404
    assert "nothing" in missing.content["error"]


def test_a_topology_without_a_file_has_no_reports() -> None:
    assert ConsoleHost().ask("/console/reports").content["reports"] == []
    assert ConsoleHost().ask("/console/reports/drill/x").status == 404


def test_with_users_reports_need_a_login_and_the_right_to_see_everything(tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    secret = make_secret("hers", iterations=4096)
    file.write_text(
        f'{TRIANGLE}\nusers:\n  alice: {{password: "{secret}", view: [orders]}}\n'
        f'  bob: {{password: "{secret}", view: ["#"]}}\n'
    )
    drill(tmp_path, "1-a")
    host = ConsoleHost(file)
    for path in ("/console/reports", "/console/reports/drill/1-a"):
        found = []
        for user in ("", "alice", "bob"):
            session = (
                {"cookie": f"{host.access.sessions.cookie}={host.access.sessions.new_session(user)}"} if user else {}
            )
            found.append(host.ask(path, **session).status)
        assert found == [401, 403, 200]


def test_each_command_of_the_page_is_one_that_amqpmesh_takes() -> None:
    import shlex

    from mesh.commands.cli import cli

    context = cli.make_context("amqpmesh", ["help"], resilient_parsing=True)
    for each in ConsoleHost().ask("/console/reports").content["commands"]:
        program, name, *arguments = shlex.split(each["command"])
        command = cli.get_command(context, name)
        assert program == "amqpmesh"
        assert command is not None
        assert command.make_context(name, arguments, resilient_parsing=True).args == []
