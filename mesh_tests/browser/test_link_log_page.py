"""The report of link logs in a real browser: it draws whatever there is of traffic, and nobody's names run in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from mesh.reports.page import page
from mesh.reports.summary import Summary
from mesh_tests.browser.conftest import Show
from mesh_tests.browser.test_drill_page import COUNT_COLORED, plots, wait_for
from mesh_tests.unit.mesh.reports.tables import MOVED, at, busy, summary

DOT = 20
"""Colored pixels of one."""
# Where what is colored lies between both ends of the axis of time; labels of axes may have colors at their edges.
MIDDLES = """charts => charts.map(chart => {
    const canvas = chart.querySelector("canvas");
    const [all, over] = [canvas, chart.querySelector(".u-over")].map(each => each.getBoundingClientRect());
    const scale = canvas.width / all.width;
    const [left, width, height] = [(over.left - all.left) * scale, over.width * scale, over.height * scale];
    const { data } = canvas.getContext("2d").getImageData(left, (over.top - all.top) * scale, width, height);
    let sum = 0, count = 0;
    for (let i = 0; i < data.length; i += 4) {
        const rgb = data.slice(i, i + 3);
        if (data[i + 3] > 0 && Math.max(...rgb) - Math.min(...rgb) > 60) {
            sum += (i / 4) % Math.trunc(width);
            count++;
        }
    }
    return sum / count / width;
})"""


def moved(*seconds: float) -> Summary:
    """Messages in windows that begin then."""
    return summary(mesh=[MOVED], mesh_by_window=[{**MOVED, "window": at(each)} for each in seconds])


def nothing() -> Summary:
    return replace(summary(), began_us=None, ended_us=None)


def colored(show: Show, shown: Summary) -> list[int]:
    return [canvas.evaluate(COUNT_COLORED) for canvas in plots(show(page(shown, [])).tab)]


@pytest.mark.parametrize("made", [busy, nothing, lambda: moved(0)], ids=["busy", "empty", "short"])
def test_it_loads_offline_without_a_request_and_without_a_complaint(made: Callable[[], Summary], show: Show) -> None:
    shown = show(page(made(), []))
    shown.tab.emulate_media(media="print")
    shown.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.wrongs == []


def test_traffic_of_many_windows_is_lines(show: Show) -> None:
    throughput, latency = colored(show, moved(*range(0, 200, 10)))
    assert min(throughput, latency) > 500


def test_traffic_of_a_single_window_can_be_seen(show: Show) -> None:
    throughput, latency = colored(show, moved(0))
    assert throughput > DOT
    assert latency > 3 * DOT


def test_windows_with_nothing_on_either_side_can_be_seen(show: Show) -> None:
    _, latency = colored(show, moved(0, 20, 40))
    assert latency > 9 * DOT


def test_a_single_window_is_in_the_middle_of_its_chart(show: Show) -> None:
    tab = show(page(moved(0), [])).tab
    assert tab.eval_on_selector_all(".uplot", MIDDLES) == pytest.approx([0.5, 0.5], abs=0.01)


def test_an_outage_is_shaded_where_it_was_and_says_what_was_lost(show: Show) -> None:
    made = moved(*range(0, 200, 10))
    lost = {"node": "r1", "neighbor": "r2", "at": at(50), "lasted_s": 50.0, "why": "crashed", "cause": "c", "failed": 0}
    shown = show(page(replace(made, tables={**made.tables, "outages": pa.Table.from_pylist([lost])}), []))
    wide = shown.tab.eval_on_selector_all(
        ".uplot", "charts => charts.map(each => ['.window', '.u-under'].map(c => each.querySelector(c).clientWidth))"
    )
    assert [own / whole for own, whole in wide] == pytest.approx([50 / 190] * 2, abs=0.03)
    assert shown.tab.locator(".window-name").first.text_content() == "r1 lost r2"
    assert shown.wrongs == []


def test_times_are_told_as_everywhere_else_on_the_page(show: Show) -> None:
    tab = show(page(replace(moved(0, 10, 20), order=replace(summary().order, tz=ZoneInfo("Europe/Zurich"))), [])).tab
    chart = tab.locator(".u-over").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    wait_for(tab, "document.querySelector('.u-legend').innerText.includes('2026-11-24 01:00:10')")


def test_names_that_are_code_are_shown_and_do_nothing(show: Show) -> None:
    shown = show(page(busy(), []))
    assert "<script>alert(1)</script>" in shown.tab.locator("#tables").evaluate("it => it.textContent")
    assert shown.tab.evaluate("[document.scripts.length, document.images.length]") == [2, 0]
    assert shown.wrongs == []


KEEP_LABELS = """() => {
    window.labels = [];
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        labels.push(text);
        return draw.call(this, text, ...rest);
    };
    dispatchEvent(new Event("beforeprint"));
}"""


def test_labels_of_messages_a_second_are_the_values_at_which_they_stand(show: Show) -> None:
    tab = show(page(summary(mesh=[MOVED], mesh_by_window=[{**MOVED, "messages": 10, "window": at(0)}]), [])).tab
    tab.evaluate(KEEP_LABELS)
    wait_for(tab, "() => labels.includes('0.75')")
    assert not {"0.3", "0.8"} & set(tab.evaluate("() => labels"))
