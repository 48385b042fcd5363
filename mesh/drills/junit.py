"""Makes the JUnit XML of a drill for CI servers: a test case for the verdict, for each check, and for each fault.

FAIL is a failure; INVALID and UNKNOWN are errors; a check that could not be measured is skipped. Each reason counts
once: the case of the verdict has the reasons that no other case has, and is skipped if no reason is left. The verdict's
case passes only if the verdict is PASS, even if all other cases passed, because a drill that proves nothing must not
look green.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as xml

from mesh.drills import words
from mesh.drills.report import Check, DrillReport, DrillVerdict, FaultReport

OUTCOMES = {DrillVerdict.FAIL: "failure", DrillVerdict.INVALID: "error", DrillVerdict.UNKNOWN: "error"}
TAGS = {"failures": "failure", "errors": "error", "skipped": "skipped"}
# Characters that XML 1.0 cannot contain, not even escaped; each is replaced. [https://www.w3.org/TR/xml/#charsets]
UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: DrillReport) -> str:
    suite = xml.Element("testsuite", name=f"drill {report.drill}", hostname=report.host, timestamp=report.started_at)
    properties = xml.SubElement(suite, "properties")
    for name, value in _properties(report):
        xml.SubElement(properties, "property", name=name, value=value)
    suite.extend(_cases(report))
    totals = {
        "tests": str(len(suite.findall("testcase"))),
        **{total: str(len(suite.findall(f"testcase/{tag}"))) for total, tag in TAGS.items()},
        "time": f"{report.took_s:.3f}",
    }
    suites = xml.Element("testsuites", name="amqpmesh drill")
    suites.append(suite)
    for element in (suites, suite):
        element.attrib.update(totals)
    _make_writable(suites)
    xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(suites, encoding="unicode") + "\n"


def _properties(report: DrillReport) -> Iterator[tuple[str, str]]:
    yield "verdict", str(report.verdict)
    yield "seed", str(report.seed)
    yield "command", report.command
    for name, digest in report.digests.items():
        yield f"sha256.{name}", digest
    for name, version in report.versions.items():
        yield f"version.{name}", version


def _cases(report: DrillReport) -> Iterator[xml.Element]:
    yield _verdict_case(report)
    for check in report.checks:
        yield _check_case(report, check)
    for fault in report.faults:
        yield _fault_case(report, fault)


def _verdict_case(report: DrillReport) -> xml.Element:
    case = _case(report, "verdict", report.title or report.drill)
    case.set("time", f"{report.took_s:.3f}")
    if report.verdict is not DrillVerdict.PASS:
        own = _reasons_without_case(report)
        tag = OUTCOMES[report.verdict] if own else "skipped"
        reasons = "; ".join(own) or f"{report.verdict}: see the failed cases"
        _end(case, tag, reasons, words.Headline.of(report).sentence(report))
    return case


def _reasons_without_case(report: DrillReport) -> list[str]:
    """Return the reasons for a verdict other than PASS that stand in no test case of a check or fault. If no such case
    failed, return all reasons or, without any, the verdict.
    """
    failed = [check for check in report.checks if check.passed is False]
    toothless = [fault for fault in report.faults if not fault.did_bite]
    if not failed and not toothless:
        return [*report.reasons] or [str(report.verdict)]
    told = {words.not_measured(check) for check in report.checks if check.passed is None}
    told.update(*((words.not_held(check), words.not_steady(check)) for check in failed))
    told.update(map(words.not_shown, toothless))
    return [reason for reason in report.reasons if reason not in told]


def _check_case(report: DrillReport, check: Check) -> xml.Element:
    case = _case(report, "check", f"{check.text} ({check.scope})")
    if check.passed is None:
        _end(case, "skipped", f"could not be measured: {check.text}", check.advice)
    elif not check.passed:
        margin = f", {check.margin}" if check.margin else ""
        tag = OUTCOMES[DrillVerdict.INVALID if words.not_steady(check) in report.reasons else DrillVerdict.FAIL]
        _end(case, tag, f"{check.text}: observed {check.observed}{margin} ({check.scope})", check.advice)
    return case


def _fault_case(report: DrillReport, fault: FaultReport) -> xml.Element:
    case = _case(report, "fault", f"{fault.id}: {fault.label} bites")
    if not fault.did_bite:
        _end(case, "error", words.not_shown(fault), "\n".join(fault.evidence))
    return case


def _case(report: DrillReport, group: str, name: str) -> xml.Element:
    return xml.Element("testcase", classname=f"{report.drill}.{group}", name=name, time="0.000")


def _end(case: xml.Element, tag: str, message: str, text: str) -> None:
    ended = xml.SubElement(case, tag, message=message)
    ended.text = text or None
    if tag != "skipped":
        ended.set("type", tag)


def _make_writable(root: xml.Element) -> None:
    for element in root.iter():
        for name, value in element.attrib.items():
            element.set(name, UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", value))
        if element.text:
            element.text = UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", element.text)
