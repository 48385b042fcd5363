"""Events of nodes' logs: all of them on pages, newest first, whatever lines there are, without reading a log whole."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.watch import node_events
from mesh.watch.backward_lines import lines_before, offset_of
from mesh.watch.node_events import NodeEvents
from mesh.watch.query import QueryError
from recording.entities import EVENT

BEGAN_S = 1_700_000_000


def line(at_s: float, event: str = "link_refused", level: str = "info", **more: Any) -> bytes:
    text = datetime.fromtimestamp(BEGAN_S + at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"ts": text, "level": level, "node": "r1", "event": event, **more}).encode() + b"\n"


def page(folder: Path, **wanted: str) -> dict[str, Any]:
    return asyncio.run(NodeEvents(folder).page(list(wanted.items())))


def all_of(folder: Path, limit: int, **wanted: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    for _ in range(1000):
        answer = page(folder, limit=str(limit), **wanted, **after)
        found += answer["items"]
        if answer["next"] is None:
            return found
        after = {"after": answer["next"]}
    raise AssertionError("the pages do not end")


LOGS = st.dictionaries(
    st.sampled_from(["r1", "r2", "_watch"]), st.lists(st.integers(0, 5), max_size=12).map(sorted), max_size=3
)


@given(LOGS, st.integers(1, 6), st.integers(0, 12))
def test_pages_have_each_event_once_and_the_newest_first(
    tmp_path_factory: pytest.TempPathFactory, logs: dict[str, list[int]], limit: int, rotated: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    number = 0
    for name, times in logs.items():
        lines = []
        for at in times:
            lines.append(line(at, number=number))
            number += 1
        (folder / f"{name}.jsonl.1").write_bytes(b"".join(lines[:rotated]))
        (folder / f"{name}.jsonl").write_bytes(b"".join(lines[rotated:]))
    found = all_of(folder, limit)
    assert sorted(each["fields"]["number"] for each in found) == list(range(number))
    assert [each["at"] for each in found] == sorted((each["at"] for each in found), reverse=True)
    for name in logs:
        own = [each["fields"]["number"] for each in found if each["node"] == name]
        assert own == sorted(own, reverse=True)


def test_an_event_has_the_fields_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "r1.jsonl").write_bytes(line(0, address="rpc.x") + b"Traceback\n")
    assert [tuple(each) for each in all_of(tmp_path, 10)] == [EVENT.names] * 2


def test_events_that_come_between_two_pages_are_on_none_of_the_older_ones(tmp_path: Path) -> None:
    log = tmp_path / "r1.jsonl"
    log.write_bytes(b"".join(line(at, number=at) for at in range(10)))
    first = page(tmp_path, limit="4")
    log.replace(tmp_path / "r1.jsonl.1")
    log.write_bytes(line(20, number=20))
    second = page(tmp_path, limit="10", after=first["next"])
    assert [each["fields"]["number"] for each in [*first["items"], *second["items"]]] == list(range(9, -1, -1))


def test_filters_by_node_level_event_and_time(tmp_path: Path) -> None:
    (tmp_path / "r1.jsonl").write_bytes(
        line(0, level="debug") + line(1, level="warning") + line(2, "node_failed", "error")
    )
    (tmp_path / "r2.jsonl").write_bytes(line(3, level="info"))

    def times(**wanted: str) -> list[float]:
        return [each["at"] - BEGAN_S for each in all_of(tmp_path, 10, **wanted)]

    assert times() == [3, 2, 1, 0]
    assert times(node="r1") == [2, 1, 0]
    assert times(level="warning") == [2, 1]
    assert times(event="node_failed") == [2]
    assert times(since=str(BEGAN_S + 2)) == [3, 2]
    assert times(until="2023-11-14T22:13:21Z") == [1, 0]
    assert times(since=str(BEGAN_S + 1), until=str(BEGAN_S + 2), level="error") == [2]


HOSTILE = [
    b"Traceback (most recent call last):\n", b"\xff\xfe\x00\n", b"[" * 5000 + b"\n", b'{"event": 7}\n', b"null\n",
    b'{"event": "x", "ts": 7, "level": []}\n', b'{"event": "x", "ts": "9999-99-99"}\n', b"x" * 200_000 + b"\n", b"\n",
    b'{"event": "x", "ts": "0001-01-01T00:00:00", "level": "info"}\n',
    json.dumps({"event": "<script>alert(1)</script>", "name": "\u202e\x00\ud800"}).encode() + b"\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(HOSTILE) | st.binary(max_size=60).map(lambda raw: raw + b"\n"), max_size=6))
def test_no_line_breaks_a_page(tmp_path_factory: pytest.TempPathFactory, hostile: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("log")
    (folder / "r1.jsonl").write_bytes(line(0, number=1) + b"".join(hostile) + line(1, number=2) + b"half a li")
    found = all_of(folder, 3)
    json.dumps(found).encode()
    assert [each["fields"]["number"] for each in found if "number" in each["fields"]] == [2, 1]
    assert all(len(str(each["fields"].get("text", ""))) <= node_events.OUTPUT_CHARS for each in found)


def test_the_last_words_of_a_crash_are_an_event_of_level_error(tmp_path: Path) -> None:
    (tmp_path / "r1.jsonl").write_bytes(line(0) + b"Fatal Python error: Aborted\n")
    (crash,) = page(tmp_path, level="error")["items"]
    assert (crash["event"], crash["fields"]) == ("output", {"text": "Fatal Python error: Aborted"})


def test_a_large_log_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_events, "SCANNED_BYTES", 100_000)
    log = tmp_path / "r1.jsonl"
    count = 30_000
    log.write_bytes(b"".join(line(at, number=at) for at in range(count)))
    read = 0

    class Counted:
        def __init__(self, file: Any) -> None:
            self._file = file

        def read(self, size: int) -> bytes:
            nonlocal read
            found: bytes = self._file.read(size)
            read += len(found)
            return found

        def readline(self, size: int = -1) -> bytes:
            nonlocal read
            found: bytes = self._file.readline(size)
            read += len(found)
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    original = NodeEvents._open
    monkeypatch.setattr(
        NodeEvents, "_open",
        lambda self, name, opened: [(Counted(file), inode) for file, inode in original(self, name, opened)],
    )  # fmt: skip
    answer = page(tmp_path, event="nothing")
    assert answer["items"] == []
    assert answer["next"] is not None
    old = page(tmp_path, until=str(BEGAN_S + 100), limit="3")
    assert [each["fields"]["number"] for each in old["items"]] == [100, 99, 98]
    assert read < log.stat().st_size / 4


@given(st.lists(st.integers(0, 30), max_size=300).map(sorted), st.integers(-1, 31), st.integers(1, 400))
def test_the_offset_is_that_of_the_first_later_line(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], wanted: int, width: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mesh.watch.backward_lines.BLOCK_BYTES", 128)
        path = tmp_path_factory.mktemp("lines") / "log"
        lines = [b"%d %s\n" % (at, b"x" * (width % (at + 3))) for at in times]
        path.write_bytes(b"".join(lines))
        with path.open("rb") as file:
            found = offset_of(file, lambda raw: int(raw.split()[0]) <= wanted)
            expected = sum(len(raw) for at, raw in zip(times, lines, strict=True) if at <= wanted)
            assert found == expected
            backward = [content for _, content in lines_before(file, found)]
        assert backward == [raw[:-1] for at, raw in zip(times, lines, strict=True) if at <= wanted][::-1]


@pytest.mark.parametrize(
    "query", ["x=1", "node=r9", "level=loud", "since=soon", "until=-1", "limit=0", "after=x", "after=W10", "since=nan"]
)
def test_a_wrong_parameter_is_named(tmp_path: Path, query: str) -> None:
    (tmp_path / "r1.jsonl").write_bytes(line(0))
    name, _, value = query.partition("=")
    with pytest.raises(QueryError) as caught:
        page(tmp_path, **{name: value})
    assert caught.value.place == name


def test_a_log_that_is_rotated_while_it_is_opened_has_each_event_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "r1.jsonl"
    log.write_bytes(line(1) + line(2))
    opened = Path.open

    def rotating(path: Path, *mode: Any) -> Any:
        file = opened(path, *mode)
        if path == log:
            log.rename(tmp_path / "r1.jsonl.1")
        return file

    monkeypatch.setattr(Path, "open", rotating)
    assert len(page(tmp_path)["items"]) == 2
