"""The JUnit file as those who read such files read it."""

from dataclasses import replace

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestSuite

from mesh.drills.junit import junit
from mesh.drills.report import DrillReport, DrillVerdict
from mesh_tests import drill_reports

TestSuite.__test__ = False


def read(report: DrillReport) -> TestSuite:
    (suite,) = JUnitXml.fromstring(junit(report).encode())
    return suite


def outcomes(suite: TestSuite) -> dict[str, list[type]]:
    return {case.name: [type(each) for each in case.result] for case in suite}


def test_a_drill_that_passed_is_green() -> None:
    report = drill_reports.passing()
    suite = read(report)
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (8, 0, 0, 0)
    assert suite.time == pytest.approx(report.took_s)
    assert not any(case.result for case in suite)


def test_a_check_that_failed_is_a_failure_with_its_advice() -> None:
    suite = read(drill_reports.failing())
    (case,) = [case for case in suite if case.name == "outage < 500ms (cut r3-r4, orders)"]
    (failure,) = case.result
    assert isinstance(failure, Failure)
    assert "observed 2.4 s, 4.8x above" in failure.message
    assert "`connect`" in failure.text


def test_a_check_that_failed_counts_once() -> None:
    suite = read(drill_reports.failing())
    verdict = next(iter(suite))
    # Two failed, one was not measured, and there is no more to say for the verdict.
    assert (suite.failures, suite.errors, suite.skipped) == (2, 0, 2)
    assert verdict.result[0].message == "FAIL: see the failed cases"
    assert verdict.result[0].text.startswith("FAIL: lose-a-router: worst outage 2.4 s")


def test_the_verdict_has_the_reasons_that_no_other_case_has() -> None:
    failing = drill_reports.failing()
    verdict = next(iter(read(replace(failing, reasons=(*failing.reasons, "kill r2 could not be healed")))))
    assert [type(each) for each in verdict.result] == [Failure]
    assert verdict.result[0].message == "kill r2 could not be healed"


def test_what_was_not_steady_from_the_start_is_one_error() -> None:
    report = drill_reports.passing()
    check = replace(report.checks[-1], passed=False, observed="60 ms")
    reason = "not steady before the first fault: p99 < 50ms, observed 60 ms (before, orders)"
    report = replace(report, verdict=DrillVerdict.INVALID, reasons=(reason,), checks=(*report.checks[:-1], check))
    suite = read(report)
    assert (suite.failures, suite.errors, suite.skipped) == (0, 1, 1)
    assert outcomes(suite)["p99 < 50ms (before, orders)"] == [Error]


def test_a_check_without_a_measurement_is_skipped() -> None:
    assert outcomes(read(drill_reports.unknown()))["recovery < 5s (kill r2, orders)"] == [Skipped]


@pytest.mark.parametrize(
    ("verdict", "kind"), [(DrillVerdict.FAIL, Failure), (DrillVerdict.INVALID, Error), (DrillVerdict.UNKNOWN, Error)]
)
def test_the_verdict_shows_even_where_all_else_is_well(verdict: DrillVerdict, kind: type) -> None:
    report = replace(drill_reports.passing(), verdict=verdict, reasons=("it went wrong",))
    first, *others = read(report)
    assert [type(each) for each in first.result] == [kind]
    assert first.result[0].message == "it went wrong"
    assert not any(case.result for case in others)


def test_a_fault_that_did_not_bite_is_one_error() -> None:
    suite = read(drill_reports.invalid())
    assert outcomes(suite)["2: cut r3-r4 bites"] == [Error]
    assert (suite.failures, suite.errors, suite.skipped) == (0, 1, 1)


def test_properties_say_how_to_repeat_it() -> None:
    report = drill_reports.passing()
    properties = {each.name: each.value for each in read(report).properties()}
    assert properties["seed"] == "7"
    assert properties["verdict"] == "PASS"
    assert properties["command"] == report.command
    assert properties["sha256.topology"] == report.digests["topology"]


@pytest.mark.parametrize("name", drill_reports.ALL)
def test_its_totals_are_what_is_in_it(name: str) -> None:
    suite = read(drill_reports.ALL[name]())
    kinds = [kind for each in outcomes(suite).values() for kind in each]
    assert suite.tests == len(list(suite))
    assert (suite.failures, suite.errors, suite.skipped) == tuple(map(kinds.count, (Failure, Error, Skipped)))


def test_what_xml_cannot_say_is_replaced() -> None:
    report = replace(drill_reports.failing(), title="bell \a, nul \0, half \ud800", reasons=("\x1b[31m]]>",))
    case = next(iter(read(report)))
    assert case.name == "bell \ufffd, nul \ufffd, half \ufffd"
    assert case.result[0].message == "\ufffd[31m]]>"
