"""Long names are short where people read a report, alike in all tables, and a table says whose each nickname is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyarrow import parquet

from mesh.reports.report_files import made
from mesh.reports.short_names import nicknamed
from mesh_tests.unit.mesh.reports.tables import LINK, MOVED, summary

LONG = "ID:a3f0c1d2-6b7e-4c55-9a41-7f0e2d9b8c11:1"
OTHER = "amqpmesh-0123456789abcdef"


def test_a_long_name_has_one_nickname_in_all_tables_the_busiest_first() -> None:
    shown = nicknamed(
        summary(
            links=[{**LINK, **MOVED, "container": name} for name in (OTHER, LONG, "app", None)],
            takers=[{**LINK, "container": LONG, "share": 0.5}],
        )
    )
    assert shown.tables["links"]["container"].to_pylist() == ["container-1", "container-2", "app", None]
    assert shown.tables["takers"]["container"].to_pylist() == ["container-2"]
    assert shown.tables["nicknames"].to_pylist() == [
        {"nickname": "container-1", "column": "container", "name": OTHER},
        {"nickname": "container-2", "column": "container", "name": LONG},
    ]


def test_nicknames_are_nobodys_name_and_each_kind_of_name_has_its_own() -> None:
    rows = [{**LINK, "container": name, "address": LONG} for name in ("container-1", LONG)]
    shown = nicknamed(summary(links=rows))
    assert [row["nickname"] for row in shown.rows("nicknames")] == ["container-2", "address-1"]
    assert shown.tables["links"]["address"].to_pylist() == ["address-1", "address-1"]


def test_where_no_name_is_long_nothing_changes() -> None:
    before = summary(links=[LINK])
    shown = nicknamed(before)
    assert shown.tables["links"] == before.tables["links"]
    assert shown.tables["nicknames"].num_rows == 0


def test_what_is_said_and_shown_has_nicknames_where_they_are_asked_for(tmp_path: Path) -> None:
    row = {**LINK, "container": LONG, "direction": "incoming", "cause": "takers", "share": 0.25, "user": None}
    asked = summary(credit=[{**row, "starved_us": 5_000_000}])
    for folder, has_nicknames in (("with", True), ("without", False)):
        (tmp_path / folder / "tables").mkdir(parents=True)
        order = replace(asked.order, out=tmp_path / folder, has_nicknames=has_nicknames)
        [finding] = made(replace(asked, order=order)).findings
        assert ("producer container-1 at r1" in finding.text) == has_nicknames
        assert (LONG in finding.text) != has_nicknames
    names = parquet.read_table(tmp_path / "with" / "tables" / "nicknames.parquet")
    assert names["name"].to_pylist() == [LONG]
    assert LONG in (tmp_path / "with" / "report.html").read_text()
