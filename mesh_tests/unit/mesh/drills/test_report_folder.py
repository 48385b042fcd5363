"""Where a report is kept, and which one is that of the run before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mesh.drills.circumstances import previous_run
from mesh.drills.report_folder import ReportPaths, keep, make_places
from mesh.terminal.failure import CommandFailed
from mesh_tests import drill_reports

NOWHERE = ReportPaths(None, None, None)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_two_drills_of_one_second_have_a_folder_each():
    report = drill_reports.passing()
    assert keep(report, NOWHERE, None) != keep(report, NOWHERE, None)


def test_the_run_before_is_of_the_same_drill():
    keep(replace(drill_reports.passing(), drill="lose-a-router"), NOWHERE, None)
    assert previous_run("router") is None
    assert previous_run("lose-a-router") is not None


def test_a_place_that_cannot_be_written_to_is_told_before_the_drill(tmp_path: Path):
    (tmp_path / "file").touch()
    for places in (
        ReportPaths(tmp_path / "file" / "x", None, None),
        ReportPaths(None, tmp_path / "file" / "x.html", None),
    ):
        with pytest.raises(CommandFailed, match="cannot be kept"):
            make_places(places)
