"""What is told at the end of a drill, as somebody who pipes it sees it."""

import re
from dataclasses import replace

import click
import pytest

from mesh.drills import terminal
from mesh.drills.report import DrillReport, DrillVerdict
from mesh.drills.terminal import tell
from mesh.terminal.output import Output
from mesh_tests import drill_reports


def told(report: DrillReport, capsys: pytest.CaptureFixture[str]) -> list[str]:
    tell(report, Output("drill.run"))
    output = capsys.readouterr()
    assert output.err == ""
    assert "\x1b" not in output.out
    return output.out.splitlines()


def test_results_then_checks_then_the_verdict_as_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(drill_reports.passing(), capsys) == [
        "FAULT      ADDRESS   DETECTED  OUTAGE   RECOVERED  ACCEPTED  OTHER  LOST  TWICE  VERDICT",
        "kill r2    orders    9.2 ms    18.2 ms  54.6 ms    3,000     0      0     0      ok",
        "kill r2    invoices  9.2 ms    15.2 ms  45.6 ms    3,000     0      0     0      ok",
        "cut r3-r4  orders    9.2 ms    18.2 ms  54.6 ms    3,000     0      0     0      ok",
        "cut r3-r4  invoices  9.2 ms    15.2 ms  45.6 ms    3,000     0      0     0      ok",
        "",
        "✓ outage < 500ms    18.2 ms  27x below    kill r2, orders",
        "✓ lost == 0         0                     cut r3-r4, invoices",
        "✓ duplicated <= 10  0        10 to spare  kill r2, orders",
        "✓ p99 < 250ms       16.4 ms  15x below    kill r2, orders",
        "✓ p99 < 50ms        2.1 ms   23x below    before, orders",
        "",
        "PASS: lose-a-router: worst outage 18.2 ms, 0 lost, 0 duplicated (12,034 messages, 24.3 s)",
    ]


def test_advice_stands_below_what_failed_and_reasons_above_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(drill_reports.failing(), capsys)
    at = lines.index("✗ outage < 500ms    2.4 s          4.8x above   cut r3-r4, orders")
    assert lines[at + 1].startswith("    The loss was noticed at once")
    assert lines[at + 2].startswith("    ")
    assert max(map(len, lines[at + 1 : at + 3])) <= terminal.ADVICE_WIDTH
    assert any(line.startswith("? recovery < 5s     not recovered") for line in lines)
    assert lines[-2] == "recovery < 5s: could not be measured"
    assert lines[-1].startswith("FAIL: lose-a-router: worst outage 2.4 s, 26 lost, 4 duplicated")


def test_a_drill_without_any_result_has_a_verdict_still(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(drill_reports.empty(), capsys) == [
        "nothing flowed: no producer got credit in 10 s",
        "INVALID: lose-a-router: worst outage -, - lost, - duplicated (0 messages, 0 ms)",
    ]


@pytest.mark.parametrize("name", drill_reports.ALL)
def test_columns_are_aligned(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = drill_reports.ALL[name]()
    lines = told(report, capsys)
    for row in lines[1 : 1 + len(report.results)]:
        assert row.endswith(("ok", "failed"))
        assert row[lines[0].index("VERDICT") - 2 :].split() in (["ok"], ["failed"])


def test_nobody_may_write_to_the_terminal_through_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    # As it comes to Click, which removes escapes itself where nobody is at a terminal.
    written: list[str] = []
    monkeypatch.setattr(click, "echo", lambda text, **_: written.append(text))
    evil = "r2\x1b[2J\r\nPASS: all is well"
    report = replace(drill_reports.failing(), drill=evil, reasons=(evil,))
    report = replace(report, checks=tuple(replace(each, scope=evil, advice=evil) for each in report.checks))
    results = tuple(replace(each, address=evil) for each in report.results)
    faults = tuple(replace(each, label=evil) for each in report.faults)
    tell(replace(report, results=results, faults=faults), Output("drill.run", is_colored=False))
    lines = "\n".join(written).split("\n")
    assert not any(line.startswith("PASS") for line in lines)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("verdict", DrillVerdict)
def test_colours_are_there_if_wanted_and_say_what_the_words_say(
    verdict: DrillVerdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(click, "echo", lambda text, **_: written.append(text))
    report = replace(drill_reports.passing(), verdict=verdict)
    tell(report, Output("drill.run", is_colored=False))
    plain, written[:] = written[:], []
    tell(report, Output("drill.run", is_colored=True))
    assert "\x1b[" in written[-1]
    assert not any("\x1b" in line for line in plain)
    assert [re.sub(r"\x1b\[\d*m", "", line) for line in written] == plain
