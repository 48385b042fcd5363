"""The audit: every line comes back, newest first, page by page, over rotations, restarts and damage."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.watch import audit
from mesh.watch.audit import AuditLog, parse_audit_query
from mesh.watch.query import QueryError

OUTCOMES = st.sampled_from(["done", "refused", "counted", "uncertain"])


def add(log: AuditLog, count: int, outcome: str = "done", **more: Any) -> None:
    for _ in range(count):
        asyncio.run(log.append({"who": "alice", "outcome": outcome, **more}))


def pages(log: AuditLog, limit: int, **wanted: str) -> list[int]:
    """The numbers on all pages together."""
    found: list[int] = []
    after: int | None = None
    while True:
        given_ = [*wanted.items(), ("limit", str(limit)), *([("after", str(after))] if after is not None else [])]
        page = asyncio.run(log.page(parse_audit_query(given_)))
        found += [row["number"] for row in page["items"]]
        after = page["next"]
        if after is None:
            return found


@given(st.lists(OUTCOMES, max_size=30), st.integers(1, 7), st.integers(200, 2000))
def test_pages_have_each_line_once_and_the_newest_first(
    tmp_path_factory: pytest.TempPathFactory, outcomes: list[str], limit: int, file_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(audit, "FILE_BYTES", file_bytes)
        patched.setattr(audit, "FILES", 40)
        folder = tmp_path_factory.mktemp("audit")
        for outcome in outcomes:
            # Each is another observer, which goes on with the numbers.
            add(AuditLog(folder), 1, outcome)
        log = AuditLog(folder)
        assert pages(log, limit) == list(range(len(outcomes), 0, -1))
        done = [number for number, outcome in enumerate(outcomes, 1) if outcome == "done"]
        assert pages(log, limit, outcome="done") == done[::-1]


def test_refusals_push_no_change_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "FILE_BYTES", 300)
    log = AuditLog(tmp_path)
    add(log, 3)
    add(log, 200, "refused")
    assert pages(log, 100, outcome="done") == [3, 2, 1]
    assert len(pages(log, 100, outcome="refused")) < 100
    assert len(list(tmp_path.iterdir())) <= 2 * audit.FILES


def test_a_page_looks_at_so_many_lines_and_says_where_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_SCANNED", 5)
    log = AuditLog(tmp_path)
    add(log, 1, who="bob")
    add(log, 12)
    page = asyncio.run(log.page(parse_audit_query([("who", "bob")])))
    assert page == {"items": [], "next": 9}
    assert pages(log, 10, who="bob") == [1]


@pytest.mark.parametrize("tail", [b'{"number": 3, "wh', b"\n\n", b"\xff\x00", b'[1]\n{"number": "x"}\n'])
def test_damage_costs_no_other_line(tmp_path: Path, tail: bytes) -> None:
    add(AuditLog(tmp_path), 2)
    with (tmp_path / audit.CHANGES).open("ab") as file:
        file.write(tail)
    log = AuditLog(tmp_path)
    add(log, 1)
    assert pages(log, 10) == [3, 2, 1]


def test_a_long_line_is_kept_without_its_details(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    add(log, 1, arguments={"x": "y" * 100_000})
    (row,) = asyncio.run(log.page(parse_audit_query([])))["items"]
    assert (row["who"], row["is_cut"], row["arguments"]) == ("alice", True, {})


@pytest.mark.parametrize(
    "query", [("x", "1"), ("limit", "0"), ("limit", "1001"), ("limit", "²"), ("after", "0"), ("after", "9" * 30)]
)
def test_a_wrong_parameter_is_named(query: tuple[str, str]) -> None:
    with pytest.raises(QueryError) as caught:
        parse_audit_query([query])
    assert caught.value.place == query[0]
