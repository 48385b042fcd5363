"""The report of a drill in a real browser: it draws, it asks for nothing, and nobody's names run in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mesh_tests import drill_reports
from mesh_tests.browser.conftest import Show
from mesh_tests.waiting import wait_until

SOON_S = 20.0
EVERY_REPORT = pytest.mark.parametrize("name", drill_reports.ALL)

# Axes are grey, and so is what was sent.
COUNT_COLORED = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
        const rgb = data.slice(i, i + 3);
        count += data[i + 3] > 0 && Math.max(...rgb) - Math.min(...rgb) > 60;
    }
    return count;
}"""
# Where each window begins and ends, as parts of its chart.
WINDOWS = """charts => charts.map(chart => {
    const over = chart.querySelector(".u-over").getBoundingClientRect();
    return [...chart.querySelectorAll(".window")].filter(each => !each.hidden).map(each => {
        const box = each.getBoundingClientRect();
        return [(box.left - over.left) / over.width, (box.right - over.left) / over.width];
    });
})"""
CONTRASTS = """() => {
    const style = getComputedStyle(document.documentElement);
    const context = document.createElement("canvas").getContext("2d");
    const light = name => {
        context.fillStyle = style.getPropertyValue(name);
        context.fillRect(0, 0, 1, 1);
        const parts = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map(part => {
            const linear = part / 255;
            return linear <= 0.04045 ? linear / 12.92 : ((linear + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const found = {};
    for (const ink of ["--ink", "--muted", "--pass", "--fail", "--invalid", "--unknown", "--fault-ink"])
        for (const paper of ["--bg", "--surface"]) {
            const [one, other] = [light(ink), light(paper)].sort((a, b) => b - a);
            found[`${ink} on ${paper}`] = (one + 0.05) / (other + 0.05);
        }
    return found;
}"""


def plots(tab: Any) -> list[Any]:
    return tab.query_selector_all(".plot canvas")


def wait_for(tab: Any, condition: str) -> None:
    """Playwright's own wait evaluates strings within the page when it has to look twice: its policy forbids that."""
    wait_until(lambda: tab.evaluate(condition), SOON_S, condition)


@EVERY_REPORT
def test_it_loads_offline_without_a_request_and_without_a_complaint(name: str, show: Show) -> None:
    shown = show(drill_reports.ALL[name]())
    shown.tab.emulate_media(media="print")
    shown.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.wrongs == []


@EVERY_REPORT
def test_its_data_is_the_report(name: str, show: Show) -> None:
    report = drill_reports.ALL[name]()
    data = show(report).tab.evaluate("JSON.stringify(JSON.parse(document.getElementById('report').textContent))")
    assert json.loads(data) == json.loads(json.dumps(report.to_map()))


@pytest.mark.parametrize("name", ["passing", "failing", "large", "hostile"])
def test_every_chart_is_drawn(name: str, show: Show) -> None:
    report = drill_reports.ALL[name]()
    colored = [canvas.evaluate(COUNT_COLORED) for canvas in plots(show(report).tab)]
    assert len(colored) == 3 * len(report.addresses)
    assert min(colored) > 2000


@pytest.mark.parametrize("name", ["passing", "failing", "large", "silent"])
def test_the_windows_of_the_faults_are_on_every_chart_where_they_belong(name: str, show: Show) -> None:
    report = drill_reports.ALL[name]()
    shown = show(report)
    end_s = float(shown.tab.evaluate("document.body.dataset.end"))
    expected = [(fault.at_s / end_s, (fault.healed_s or end_s) / end_s) for fault in report.faults]
    charts = shown.tab.eval_on_selector_all(".uplot", WINDOWS)
    assert len(charts) == len(plots(shown.tab)) > 0
    for windows in charts:
        assert len(windows) == len(expected)
        for window, (start, end) in zip(windows, expected, strict=True):
            assert window == pytest.approx((start, end), abs=0.01)


def test_each_window_has_the_name_of_its_fault(show: Show) -> None:
    names = show(drill_reports.passing()).tab.eval_on_selector_all(
        ".uplot", "charts => charts.map(each => each.querySelector('.u-over').innerText)"
    )
    assert len(names) == 6
    assert all("1 kill r2" in name and "2 cut r3-r4" in name for name in names)


def test_names_that_are_code_are_shown_and_do_nothing(show: Show) -> None:
    shown = show(drill_reports.hostile())
    assert shown.tab.title() == f"FAIL: {drill_reports.HOSTILE}"
    assert shown.tab.evaluate("[document.scripts.length, document.images.length]") == [2, 0]
    assert shown.tab.inner_text("h1").count("<img src=x onerror=") == 1
    shown.tab.click("[data-zoom='0']")
    shown.tab.hover(".u-over >> nth=0")
    assert shown.wrongs == []


def test_a_script_that_got_into_it_would_not_run(show: Show) -> None:
    shown = show(drill_reports.passing())
    shown.tab.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = \"owned\"'}))"
    )
    assert shown.tab.title() == "PASS: lose-a-router"
    assert "Content Security Policy" in "".join(shown.wrongs)


def test_a_fault_can_be_looked_at_in_all_charts_at_once(show: Show) -> None:
    shown = show(drill_reports.failing())
    whole = shown.tab.eval_on_selector_all(".uplot", WINDOWS)
    shown.tab.click("[data-zoom='1']")
    zoomed = shown.tab.eval_on_selector_all(".uplot", WINDOWS)
    assert all(each == pytest.approx(zoomed[0][-1]) for _, *others in zoomed for each in others[-1:])
    assert zoomed[0] != whole[0]
    assert shown.tab.get_attribute("[data-zoom='1']", "aria-pressed") == "true"
    shown.tab.click("[data-zoom='all']")
    assert shown.tab.eval_on_selector_all(".uplot", WINDOWS) == whole


def test_dragging_over_one_chart_zooms_all_and_a_double_click_ends_it(show: Show) -> None:
    shown = show(drill_reports.failing())
    whole = shown.tab.eval_on_selector_all(".uplot", WINDOWS)
    chart = shown.tab.locator(".u-over").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    y = box["y"] + box["height"] / 2
    shown.tab.mouse.move(box["x"] + box["width"] * 0.25, y)
    shown.tab.mouse.down()
    shown.tab.mouse.move(box["x"] + box["width"] * 0.75, y, steps=4)
    shown.tab.mouse.up()
    zoomed = shown.tab.eval_on_selector_all(".uplot", WINDOWS)
    # The second fault, from 14 to 18 of 24 s, in what was from 6 to 18 s.
    assert all(windows[1] == pytest.approx((2 / 3, 1), abs=0.01) for windows in zoomed)
    shown.tab.mouse.dblclick(box["x"] + box["width"] / 2, y)
    assert shown.tab.eval_on_selector_all(".uplot", WINDOWS) == whole


def test_the_cursor_on_one_chart_reads_all_of_them(show: Show) -> None:
    shown = show(drill_reports.failing())
    chart = shown.tab.locator(".u-over").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    shown.tab.mouse.move(box["x"] + box["width"] * 0.1, box["y"] + box["height"] / 2)
    wait_for(
        shown.tab, "[...document.querySelectorAll('.u-legend')].every(each => /2\\.[345]\\d s/.test(each.innerText))"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_light_and_dark(scheme: str, show: Show) -> None:
    contrasts = show(drill_reports.failing(), color_scheme=scheme).tab.evaluate(CONTRASTS)
    assert {pair: round(ratio, 1) for pair, ratio in contrasts.items() if ratio < 4.5} == {}


def test_charts_follow_when_the_screen_turns_dark(show: Show) -> None:
    shown = show(drill_reports.passing(), color_scheme="light")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    light = shown.tab.evaluate(background), [each.evaluate("it => it.toDataURL()") for each in plots(shown.tab)]
    shown.tab.emulate_media(color_scheme="dark")
    assert light[0] != shown.tab.evaluate(background)
    # Charts hear of it in a task of their own.
    before = list(zip(plots(shown.tab), light[1], strict=True))
    wait_until(lambda: all(is_redrawn(plot, image) for plot, image in before), SOON_S, "charts in other colours")


def is_redrawn(plot: Any, before: str) -> bool:
    return bool(plot.evaluate("it => it.toDataURL()") != before)


@EVERY_REPORT
def test_nothing_sticks_out_to_the_side(name: str, show: Show) -> None:
    shown = show(drill_reports.ALL[name](), viewport={"width": 320, "height": 800})
    widths = [320, 390, 768, 1200]
    found = []
    for width in widths:
        shown.tab.set_viewport_size({"width": width, "height": 800})
        found.append(shown.tab.evaluate("document.documentElement.scrollWidth"))
    assert found == widths


def test_charts_grow_and_shrink_with_the_window(show: Show) -> None:
    tab = show(drill_reports.passing(), viewport={"width": 500, "height": 800}).tab
    for width in (1100, 400):
        tab.set_viewport_size({"width": width, "height": 800})
        wait_for(
            tab, "[...document.querySelectorAll('.plot')].every(it => it.firstChild.offsetWidth === it.clientWidth)"
        )


def test_on_paper_it_is_light_narrow_and_all_open_and_afterwards_as_before(show: Show) -> None:
    tab = show(drill_reports.failing(), color_scheme="dark").tab
    background = "getComputedStyle(document.documentElement).getPropertyValue('--bg')"
    widths = "[...document.querySelectorAll('.uplot')].map(it => it.offsetWidth)"
    dark, wide = tab.evaluate(background), tab.evaluate(widths)
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(background) != dark
    assert max(tab.evaluate(widths)) < 700
    assert tab.locator("details:not([open])").count() == 0
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert (tab.evaluate(background), tab.evaluate(widths)) == (dark, wide)


def test_without_scripts_every_figure_is_there_still(show: Show) -> None:
    shown = show(drill_reports.failing(), java_script_enabled=False)
    text = shown.tab.inner_text("body")
    assert "Charts need JavaScript" in text
    assert "5,893 accepted = 5,882 received" in text
    assert shown.tab.locator(".timeline .fault").count() == 2
