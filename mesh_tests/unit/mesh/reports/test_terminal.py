"""What a report tells on the terminal, and where the rest of it is."""

import json
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from mesh.reports.finding import ReportFinding
from mesh.reports.terminal import MOST_FINDINGS, MOST_ROWS, tell
from mesh.terminal.output import Output
from mesh_tests.unit.mesh.reports.tables import MOVED, at, summary


@pytest.mark.parametrize("more", [0, 12])
def test_what_is_left_out_on_the_terminal_is_counted_and_where_it_is_is_told(
    capsys: pytest.CaptureFixture[str], more: int
) -> None:
    made = summary(mesh=[MOVED], addresses=[{**MOVED, "address": f"a{number}"} for number in range(MOST_ROWS + more)])
    tell(made, [ReportFinding(0.5, "x", "y")] * (MOST_FINDINGS + more), Output("report"))
    told = capsys.readouterr().out
    assert ("12 more findings: out/report.html lists all of them" in told) == bool(more)
    assert ("12 more rows: out/tables/addresses.csv lists all of them" in told) == bool(more)


def test_a_finding_has_the_time_since_when_it_is_so_where_the_reader_is(capsys: pytest.CaptureFixture[str]) -> None:
    made = summary(mesh=[MOVED])
    made = replace(made, order=replace(made.order, tz=ZoneInfo("Europe/Vienna")))
    found = [ReportFinding(0.5, "r1 lost r2", "y", at(9)), ReportFinding(0.5, "more", "y")]
    tell(made, found, Output("report"))
    assert capsys.readouterr().out.splitlines()[1:3] == ["- r1 lost r2 (2026-11-24 01:00:09+01:00)", "- more"]
    tell(made, found, Output("report", is_json=True))
    told = json.loads(capsys.readouterr().out)["findings"]
    assert [each["since"] for each in told] == ["2026-11-24 01:00:09+01:00", None]


def test_what_clients_named_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    address = "rpc.\x1b]0;owned\x07\x1b[31mred\r\nmine"
    made = summary(mesh=[MOVED], addresses=[{**MOVED, "address": address}])
    tell(made, [ReportFinding(0.5, f"most of {address}", "y")], Output("report"))
    told = capsys.readouterr().out
    assert "most of rpc. ]0;owned [31mred mine\n" in told
    assert all(line.isprintable() for line in told.splitlines())
