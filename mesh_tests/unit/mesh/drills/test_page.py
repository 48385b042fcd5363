"""The page: what is in it, what is not, and its data read back."""

import hashlib
import html
import json
import math
import re
from configparser import ConfigParser
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mesh.drills.page import HERE, page, read_back
from mesh.drills.report import DrillReport, Series
from mesh.pages import embedding
from mesh.pages.embedding import DATA_BEGINS
from mesh_tests import drill_reports

VENDORED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
MOST_BYTES = 300_000
EVERY_REPORT = pytest.mark.parametrize("name", drill_reports.ALL)


class Text(HTMLParser):
    """The words of a page, without its scripts, styles and data; the elements by name."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._silent = False
        self.feed(source)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@cache
def made_of(name: str) -> str:
    return page(drill_reports.ALL[name]())


def as_json(report: DrillReport) -> object:
    return json.loads(json.dumps(report.to_map()))


@pytest.mark.parametrize("file", VENDORED)
def test_what_others_wrote_is_as_they_published_it(file: str) -> None:
    assert hashlib.sha256((embedding.HERE / file).read_bytes()).hexdigest() == VENDORED[file]


@pytest.mark.parametrize(("package", "directory"), [("mesh.drills", HERE), ("mesh.pages", embedding.HERE)])
def test_an_installed_package_has_every_file_of_the_page(package: str, directory: Path) -> None:
    config = ConfigParser()
    config.read(Path(__file__).parents[4] / "setup.cfg")
    patterns = ["*.py", "__pycache__", *config["options.package_data"][package].split(", ")]
    assert [file.name for file in directory.iterdir() if not any(file.match(pattern) for pattern in patterns)] == []


def test_the_licence_of_what_others_wrote_goes_with_it() -> None:
    assert (embedding.HERE / "uPlot.LICENSE.txt").read_text() in page(drill_reports.passing())


@EVERY_REPORT
def test_its_data_can_be_read_back(name: str) -> None:
    assert read_back(made_of(name)) == as_json(drill_reports.ALL[name]())


@EVERY_REPORT
def test_without_its_data_it_is_small(name: str) -> None:
    made = made_of(name)
    data = made.partition(DATA_BEGINS)[2].partition("</script>")[0]
    assert len(made.encode()) - len(data.encode()) < MOST_BYTES


@EVERY_REPORT
def test_it_asks_for_nothing(name: str) -> None:
    for tag, attributes in Text(made_of(name)).elements:
        assert "src" not in attributes, tag
        assert "style" not in attributes, tag
        assert not any(attribute.startswith("on") for attribute in attributes), tag
        assert (attributes.get("href") or "#").startswith(("#", "data:")), tag


def test_scripts_and_styles_run_by_their_hash_only() -> None:
    elements = Text(page(drill_reports.passing())).elements
    (policy,) = [each["content"] for tag, each in elements if each.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


@EVERY_REPORT
def test_the_data_cannot_end_its_element(name: str) -> None:
    data = made_of(name).partition(DATA_BEGINS)[2].partition("</script>")[0]
    assert not re.search("[<>&\u2028\u2029]", data)


def test_what_comes_from_the_drill_is_text_wherever_it_stands() -> None:
    parsed = Text(page(drill_reports.hostile()))
    assert sorted(tag for tag, _ in parsed.elements if tag in ("script", "img")) == ["script", "script"]
    assert parsed.text.count("document.title='owned'") > 30


def test_the_verdict_comes_first_and_then_its_reasons() -> None:
    text = Text(page(drill_reports.failing())).text
    parts = ("✗ FAIL", "lost == 0: observed 13 (kill r2, orders)", "Expected")
    verdict, reason, checks = (text.index(each) for each in parts)
    assert verdict < reason < checks


@EVERY_REPORT
def test_every_table_has_a_caption_and_every_drawing_a_name(name: str) -> None:
    made = made_of(name)
    assert made.count("<table") == made.count("<caption>")
    for tag, attributes in Text(made).elements:
        if attributes.get("role") in ("img", "region", "group"):
            assert attributes.get("aria-label"), tag
        if tag == "th":
            assert attributes.get("scope"), tag


def test_failed_checks_have_their_advice_with_options_as_code() -> None:
    assert "See that each router can <code>connect</code> to two others" in page(drill_reports.failing())


def test_what_advice_has_in_backticks_is_escaped_too() -> None:
    report = drill_reports.failing()
    report = replace(report, checks=(replace(report.checks[0], advice="try `<b>` & <i>"),))
    assert "try <code>&lt;b&gt;</code> &amp; &lt;i&gt;" in page(report)


def test_everything_needed_to_repeat_it_is_there() -> None:
    report = drill_reports.passing()
    text = html.unescape(page(report).partition(DATA_BEGINS)[0])
    for needed in (report.command, report.host, *report.versions.values(), *report.digests.values(), *report.log):
        assert needed in text


def test_a_figure_that_is_no_number_is_missing_and_the_page_is_there() -> None:
    report = replace(
        drill_reports.passing(), series={"orders": Series(1.0, (1,), (1,), (0,), (math.inf,), (math.nan,))}
    )
    series = read_back(page(report))["series"]["orders"]
    assert (series["p50_ms"], series["p99_ms"]) == ([None], [None])


@pytest.mark.parametrize("text", ["", "<html></html>", DATA_BEGINS + "{", DATA_BEGINS + "[]</script>"])
def test_what_is_no_report_cannot_be_read_back(text: str) -> None:
    with pytest.raises(ValueError, match="not a report of a drill"):
        read_back(text)
