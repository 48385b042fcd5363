"""The page of a report: what it shows, and that nothing in it runs that should not."""

import hashlib
import re
from base64 import b64encode
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

from mesh.reports import drawings, page
from mesh.reports import series as module
from mesh.reports.finding import ReportFinding
from mesh.reports.series import series
from mesh_tests.link_logs import S
from mesh_tests.unit.mesh.reports.tables import MOVED, at, busy, summary

FOUND = [ReportFinding(0.9, "r1 lost <b>r2</b>", "Run `amqpmesh drill`.", at(9))]


def test_what_clients_named_is_shown_as_text() -> None:
    html = page.page(busy(), FOUND)
    assert "<script>alert(1)</script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert 'r1 lost &lt;b&gt;r2&lt;/b&gt;. <time class="note">2026-11-24 00:00:09+00:00</time>' in html
    assert "Run <code>amqpmesh drill</code>." in html


def test_scripts_and_styles_run_by_their_hash_only() -> None:
    html = page.page(busy(), FOUND)
    script = html.rpartition("<script>")[2].partition("</script>")[0]
    style = html.partition("<style>")[2].partition("</style>")[0]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    for text in (script, style):
        assert b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy[1].replace("&#39;", "'")
    assert "style=" not in html.partition("</style>")[2].partition("<script")[0]
    assert "http://" not in html.partition("</head>")[2].partition("<script")[0]


def test_a_page_of_nothing_says_so() -> None:
    html = page.page(summary(), [])
    for text in ("Nothing to do", "Nothing stood out.", "Nothing moved on any link.", "No router told of a neighbor."):
        assert text in html


def test_an_installed_package_has_every_file_of_the_page() -> None:
    config = ConfigParser()
    config.read(Path(__file__).parents[4] / "setup.cfg")
    patterns = config["options.package_data"]["mesh.reports"].split(", ")
    assert [file.name for file in page.HERE.iterdir() if not any(file.match(pattern) for pattern in patterns)] == []


def test_windows_in_which_nothing_moved_are_zero_and_have_no_latency() -> None:
    shown = series(busy())
    start = shown["throughput"]["at"][0]
    assert shown["throughput"]["at"] == [start, start + 10, start + 20]
    assert shown["throughput"]["lines"] == [{"label": "from clients", "values": [10.0, 0.0, 10.0]}]
    assert shown["throughput"]["failed"] == [2.0, 0.0, 0.0]
    assert shown["latency"]["p99"] == [3.0, None, 3.0]


def test_a_busy_link_is_dark_in_the_window_in_which_it_was_busy() -> None:
    heat = drawings.heat_map(busy())
    assert heat is not None
    [row] = heat.rows
    [square] = row.squares
    assert row.name == "r1: orders, from app"
    assert (square.x, square.x + square.width, square.shade) == (625, 1000, 1.0)


def test_the_way_that_carries_most_is_the_widest_both_directions_together() -> None:
    drawn = drawings.topology(busy())
    assert drawn is not None
    assert [node.name for node in drawn.nodes] == ["r1", "r2", "r3"]
    assert [(way.load, way.width) for way in drawn.ways] == [(1.0, 6.5), (0.0, 1.5)]


def test_a_bar_lies_where_its_bucket_is_on_the_axis() -> None:
    drawn = drawings.distribution(busy())
    assert drawn is not None
    [bar] = drawn.bars
    assert [tick.text for tick in drawn.ticks] == ["1 ms", "10 ms"]
    assert (bar.x, round(bar.x + bar.width), bar.height) == (10.3, 37, 180)


def test_of_very_many_windows_several_are_one_point_and_none_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 3)
    rows = [
        {**MOVED, "window": at(10 * i), "released": i, "p50_us": 1000.0 * i, "p99_us": 5000.0 * i} for i in range(6)
    ]
    made = summary(mesh=[MOVED], mesh_by_window=rows)
    found = module.series(made)
    assert found["window_s"] == 20
    throughput, latency = found["throughput"], found["latency"]
    assert [time - throughput["at"][0] for time in throughput["at"]] == [0, 20, 40]
    assert throughput["lines"] == [{"label": "from clients", "values": [10.0, 10.0, 10.0]}]
    assert throughput["failed"] == [1 / 20, 5 / 20, 9 / 20]
    assert (latency["p50"], latency["p99"]) == ([0, 2, 4], [5, 15, 25])
    assert "A point is of 20 s: with windows of 10 s there would be too many" in page.page(made, []).replace(
        "\xa0", " "
    )


def outage(second: float, lasted_s: float | None, why: str = "crashed") -> dict[str, Any]:
    return {
        "node": "r1",
        "neighbor": "r2",
        "at": at(second),
        "lasted_s": lasted_s,
        "why": why,
        "cause": "c",
        "failed": 0,
    }


def test_outages_can_be_seen_behind_the_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SHADED", 2)
    made = summary(outages=[outage(1, 0.5), outage(9, 3), outage(12, None), outage(2, 9, why="itself")])
    found = module.shaded(made)
    assert found["ends_s"] == made.ended_us / S
    began_s = made.began_us / S
    assert [(each["at_s"] - began_s, each["healed_s"] and each["healed_s"] - began_s) for each in found["outages"]] == [
        (9, 12),
        (12, None),
    ]
    assert {(each["id"], each["label"]) for each in found["outages"]} == {("r1", "lost r2")}
