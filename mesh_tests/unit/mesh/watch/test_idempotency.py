"""Keys of changes: one change for one key, also at the same moment, after a kill, and with a damaged file."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.watch import idempotency
from mesh.watch.idempotency import KEPT_S, KeptAnswer, KeyReused, KeysExhausted, WriteKeys

ANSWER = KeptAnswer(200, {"done": {"messages": 3}})


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.jsonl"


async def made(keys: WriteKeys, key: str, answer: KeptAnswer = ANSWER, who: str = "alice") -> None:
    assert await keys.begin(who, key, "digest", {"operation": "purge"}) is None
    await keys.end(who, key, answer)


def test_a_key_is_answered_again_for_a_day_also_by_the_next_observer(path: Path, clock: Clock) -> None:
    asyncio.run(made(WriteKeys(path, clock), "k"))
    for _ in range(2):
        later = WriteKeys(path, clock)
        assert asyncio.run(later.begin("alice", "k", "digest", {})) == ANSWER
        with pytest.raises(KeyReused):
            asyncio.run(later.begin("alice", "k", "another", {}))
        clock.now += KEPT_S - 1
        later.settle_interrupted(ANSWER)
        clock.now -= KEPT_S - 1
    clock.now += KEPT_S
    assert asyncio.run(WriteKeys(path, clock).begin("alice", "k", "another", {})) is None


def test_who_comes_while_the_change_is_under_way_waits_for_its_answer(path: Path, clock: Clock) -> None:
    async def run() -> list[KeptAnswer | None]:
        keys = WriteKeys(path, clock)
        assert await keys.begin("alice", "k", "digest", {}) is None
        waiting = [asyncio.create_task(keys.begin("alice", "k", "digest", {})) for _ in range(5)]
        await asyncio.sleep(0)
        assert not any(each.done() for each in waiting)
        await keys.end("alice", "k", ANSWER)
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(run()) == [ANSWER] * 5


def test_a_key_of_a_change_that_was_not_made_can_be_given_again(path: Path, clock: Clock) -> None:
    async def run() -> None:
        keys = WriteKeys(path, clock)
        assert await keys.begin("alice", "k", "digest", {}) is None
        await keys.end("alice", "k", KeptAnswer(502, {}), is_kept=False)
        assert await keys.begin("alice", "k", "another", {}) is None

    asyncio.run(run())


def test_what_a_killed_observer_had_begun_is_told_once_and_never_made_again(path: Path, clock: Clock) -> None:
    asyncio.run(WriteKeys(path, clock).begin("alice", "k", "digest", {"operation": "purge", "target": "b1/1"}))
    later = WriteKeys(path, clock)
    assert later.interrupted() == [{"operation": "purge", "target": "b1/1"}]
    refused = KeptAnswer(409, {"error": "interrupted"})
    later.settle_interrupted(refused)
    assert later.interrupted() == []
    for keys in (later, WriteKeys(path, clock)):
        assert asyncio.run(keys.begin("alice", "k", "digest", {})) == refused


def test_an_operator_has_so_many_keys_and_another_his_own(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MAX_KEYS", 2)

    async def run() -> None:
        keys = WriteKeys(path, clock)
        for key in ("1", "2"):
            await made(keys, key)
        with pytest.raises(KeysExhausted):
            await keys.begin("alice", "3", "digest", {})
        await made(keys, "3", who="bob")
        clock.now += KEPT_S
        await made(keys, "3")

    asyncio.run(run())


@given(st.integers(0, 2000), st.binary(max_size=40))
def test_a_file_that_was_cut_or_damaged_loses_at_most_that_line(
    tmp_path_factory: pytest.TempPathFactory, size: int, tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("keys") / "keys.jsonl"
    clock = Clock()
    keys = WriteKeys(path, clock)
    for key in ("1", "2", "3"):
        asyncio.run(made(keys, key))
    whole = path.read_bytes()
    path.write_bytes(whole[:size] + tail)
    later = WriteKeys(path, clock)
    for number, key in enumerate(("1", "2", "3")):
        # The line of a key's end is the third, sixth and ninth of lines that begin with an empty one.
        if size > len(b"\n".join(whole.split(b"\n")[: 4 * number + 4])):
            assert asyncio.run(later.begin("alice", key, "digest", {})) == ANSWER
    asyncio.run(made(later, "4"))
    assert asyncio.run(WriteKeys(path, clock).begin("alice", "4", "digest", {})) == ANSWER


def test_the_file_is_written_anew_when_most_lines_are_old(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "_WASTED_LINES", 10)
    keys = WriteKeys(path, clock)
    for number in range(100):
        asyncio.run(made(keys, str(number)))
        clock.now += KEPT_S / 4
    assert len([line for line in path.read_text().splitlines() if line]) < 40
    assert asyncio.run(WriteKeys(path, clock).begin("alice", "99", "digest", {})) == ANSWER
    assert all(json.loads(line) for line in path.read_text().splitlines() if line)


def test_a_key_of_which_the_disk_takes_only_a_part_begins_nothing(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, write = WriteKeys(path, clock), os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: len(data) // 2]))
        with pytest.raises(OSError, match="No space left"):
            asyncio.run(keys.begin("alice", "k", "digest", {}))
    asyncio.run(made(keys, "k"))
    assert asyncio.run(WriteKeys(path, clock).begin("alice", "k", "digest", {})) == ANSWER
