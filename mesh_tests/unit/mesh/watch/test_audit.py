"""The audit: every line comes back, newest first, page by page, over rotations, restarts and damage."""

from __future__ import annotations

import asyncio
import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.watch import audit
from mesh.watch.audit import AuditLog, parse_audit_query
from mesh.watch.query import QueryError

SECOND_WRITER = """
import sys
from pathlib import Path
from mesh.watch.audit import AuditLog
log = AuditLog(Path(sys.argv[1]))
for _ in range(25):
    log.append_now({"who": sys.argv[2], "outcome": "done"})
"""
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


@given(st.lists(st.tuples(st.integers(0, 2), OUTCOMES), max_size=20), st.integers(200, 2000))
def test_several_writers_have_one_count_also_over_rotations(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[int, str]], file_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(audit, "FILE_BYTES", file_bytes)
        patched.setattr(audit, "FILES", 40)
        folder = tmp_path_factory.mktemp("audit")
        writers = [AuditLog(folder) for _ in range(3)]
        for writer, outcome in lines:
            writers[writer].append_now({"who": "alice", "outcome": outcome})
        for log in (writers[0], AuditLog(folder)):
            assert pages(log, 7) == list(range(len(lines), 0, -1))


def test_writers_of_several_processes_have_one_count(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SECOND_WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, name]) for name in ("one", "other", "third")]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert pages(AuditLog(tmp_path), 20) == list(range(75, 0, -1))


def test_a_writer_that_keeps_the_lock_makes_nobody_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "LOCKED_S", 0.05)
    with (tmp_path / audit.LOCK).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(OSError, match=r"held the lock for 0\.05 s"):
            AuditLog(tmp_path).append_now({"who": "alice", "outcome": "done"})
    AuditLog(tmp_path).append_now({"who": "alice", "outcome": "done"})
    assert pages(AuditLog(tmp_path), 5) == [1]
