"""Each byte range of each file of a store is damaged, each file is missing, or is an older one: no loss is silent.

After kill -9 and after a clean end a broker either starts, and tells of each message that it cannot give out any more,
or it refuses to start, changes nothing, and what can be read is salvaged into a new directory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from shutil import copytree, ignore_patterns

import pytest

import broker.store.sqlite
from broker.store.anchor import NAME as ANCHOR
from broker.store.batch import BodyRange, QueueKind, QueueRow, StoreError, UnreadableBody, WriteBatch
from broker.store.judgement import StoreDamagedError
from broker.store.page_header import PAGE_BYTES
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from broker.store.store_salvage import salvage
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.store.damaging import checkpoint
from wire.message import Message, encode

LARGE_BYTES = 70_000
STATES = ("killed", "closed")
OPENED = 4
"""How often the store is opened, each time for some commits."""
COMMITS = 12


@dataclass(frozen=True)
class History:
    """Copies of the directory: ``killed`` and ``closed`` at the end, ``older`` ones by what they are of."""

    killed: Path
    closed: Path
    older: dict[str, Path]
    bodies: dict[int, bytes]
    """Of all messages that were committed; none is settled."""

    def files(self, state: str) -> list[str]:
        folder = getattr(self, state)
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    folder = tmp_path_factory.mktemp("history")
    data, random, bodies, older = folder / "data", Random(1), dict[int, bytes](), dict[str, Path]()
    patch = pytest.MonkeyPatch()
    # Logs are begun anew often.
    patch.setattr(broker.store.sqlite, "CHECKPOINT_PAGES", 40)

    def copied(name: str) -> Path:
        return Path(copytree(data, folder / name, ignore=ignore_patterns("lock", "*-shm", "reserve")))

    for opened in range(OPENED):
        store = SqliteStore(data)
        store.load()
        for number in range(COMMITS):
            store.commit(batch(random, bodies, is_first=opened == number == 0))
            if (opened, number) in ((OPENED - 1, 1), (OPENED - 1, COMMITS - 3), (1, COMMITS // 2)):
                older[f"killed in {opened} after {number}"] = copied(f"killed-{opened}-{number}")
        if opened == OPENED - 1:
            killed = copied("killed")
        store.close()
        if opened < OPENED - 1:
            older[f"closed after {opened}"] = copied(f"closed-{opened}")
    yield History(killed, copied("closed"), older, bodies)
    patch.undo()


def batch(random: Random, bodies: dict[int, bytes], *, is_first: bool) -> WriteBatch:
    made = WriteBatch(
        queues=[QueueRow(1, QueueKind.QUEUE, "orders"), QueueRow(2, QueueKind.QUEUE, "parked")] * is_first
    )
    for _ in range(random.choice((1, 4, 20))):
        message_id = len(bodies) + 1
        is_large = random.random() < 0.05
        body = encode(Message(body=random.randbytes(LARGE_BYTES if is_large else random.randrange(2000))))
        bodies[message_id] = body
        made.messages.append((message_id, len(body), 4, None, None if is_large else body))
        made.entries.append((1 + message_id % 2, message_id, 0))
        if is_large:
            made.pieces.append((message_id, body))
            made.sealed.append(message_id)
    return made


def flip(content: bytes, start: int, size: int) -> bytes:
    place = start + size // 3
    return content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]


def zeros(content: bytes, start: int, size: int) -> bytes:
    return content[:start] + bytes(size) + content[start + size :]


def cut(content: bytes, start: int, size: int) -> bytes:
    return content[:start]


DAMAGES = {"flip": flip, "zeros": zeros, "cut": cut}
RANGES = 8


def ranges_of(length: int) -> list[tuple[int, int]]:
    """Of a file: its parts, and the head, where most depends on each byte."""
    step = max(1, length // RANGES)
    parts = [(start, min(step, length - start)) for start in range(0, length, step)]
    return parts + [(start, 8) for start in range(0, min(length - 8, 64), 8)]


def state_of(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file() and path.name not in ("lock", "store.db-shm")
    }


def judged(data: Path, history: History, what: str) -> str:
    """How it went on. Nothing that was committed is missing without a word."""
    before = state_of(data)
    is_found = not is_sound(data)
    try:
        store = SqliteStore(data)
    except StoreDamagedError as damage:
        after = state_of(data)
        if damage.is_of_sqlite:
            # By then the first page may have been replaced by its copy, and is kept beside it.
            changing = {ANCHOR, "store.db", "first-page.damaged"}
            assert set(before) <= set(after), what
            before = {name: content for name, content in before.items() if name not in changing}
            after = {name: content for name, content in after.items() if name not in changing}
        assert after == before, what
        assert is_found, f"{what}: nothing is wrong, says check"
        assert_salvages(data, history, what)
        return "refused"
    try:
        inventory = held_by(store.load())
        there = {message_id: (size, is_large) for message_id, size, _, _, is_large in inventory.messages}
        lost, wrong = lost_of(store, there, history)
        assert not wrong, f"{what}: {wrong} have other bytes"
        silent = lost and not inventory.damages and not all(number in there for number in lost)
        assert not silent, f"{what}: {sorted(lost)} are gone silently"
        assert is_found or not lost, f"{what}: {sorted(lost)} are lost, and check says nothing"
    finally:
        store.close()
    gone = {name for name in before if name.startswith("large/")} - set(state_of(data))
    assert not gone, f"{what}: {gone} were deleted"
    return "some lost" if lost else "all there"


def lost_of(store: SqliteStore, there: dict[int, tuple[int, bool]], history: History) -> tuple[set[int], set[int]]:
    wanted = [BodyRange(number, is_large, 0, size) for number, (size, is_large) in there.items()]
    found = dict(zip(there, store.read(wanted), strict=True))
    unreadable = {number for number, body in found.items() if isinstance(body, UnreadableBody)}
    wrong = {number for number, body in found.items() if number not in unreadable and body != history.bodies[number]}
    return set(history.bodies) - set(there) | unreadable, wrong


def is_sound(data: Path) -> bool:
    try:
        return check(data).is_sound
    except StoreError:
        return False


def assert_salvages(data: Path, history: History, what: str) -> None:
    copy = data.with_name(f"{data.name}-salvaged")
    before = state_of(data)
    try:
        salvaged = salvage(data, copy)
    except StoreError:
        # Without the first page of each table nothing leads to the rest.
        database = data / "store.db"
        assert not database.exists() or not any(database.read_bytes()[PAGE_BYTES : 2 * PAGE_BYTES]), what
        assert state_of(data) == before, what
        return
    assert state_of(data) == before, what
    if salvaged.report.messages < len(history.bodies):
        assert salvaged.lost, what
    store = SqliteStore(copy)
    there = {number: (size, is_large) for number, size, _, _, is_large in held_by(store.load()).messages}
    lost, wrong = lost_of(store, there, history)
    assert not wrong, what
    # A message whose segment can be read in part stays in its queue, and is not counted.
    assert len(set(there) - lost) <= salvaged.report.messages
    store.close()


class Cases:
    """Directories with one damage each."""

    def __init__(self, history: History, tmp_path: Path) -> None:
        self._history = history
        self._tmp_path = tmp_path
        self._count = 0

    def run(self, state: str, name: str, damage: Callable[[Path], None], what: str) -> str:
        self._count += 1
        data = Path(copytree(getattr(self._history, state), self._tmp_path / f"{self._count}"))
        damage(data / name)
        return judged(data, self._history, f"{state}: {name}: {what}")


@pytest.fixture
def cases(history: History, tmp_path: Path) -> Cases:
    return Cases(history, tmp_path)


def kind_of(name: str) -> str:
    return "large" if name.startswith("large/") else name


def one_of_each_kind(names: list[str]) -> list[str]:
    return list({kind_of(name): name for name in names}.values())


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_part_of_any_file_is_no_silent_loss(history: History, cases: Cases, state: str, kind: str) -> None:
    outcomes: dict[str, set[str]] = {}
    for name in one_of_each_kind(history.files(state)):
        content = (getattr(history, state) / name).read_bytes()
        for start, size in ranges_of(len(content)):
            damaged = DAMAGES[kind](content, start, size)
            outcome = cases.run(state, name, lambda path: path.write_bytes(damaged), f"{kind} at {start}, {size}")  # noqa: B023
            outcomes.setdefault(kind_of(name), set()).add(outcome)
    assert outcomes["large"] == {"some lost"}
    assert outcomes["first-page"] == {"all there"}
    # One of its two slots is enough.
    assert outcomes[ANCHOR] <= {"all there", "refused"}
    assert state == "closed" or "refused" in outcomes["store.db-wal"]


@pytest.mark.parametrize("state", STATES)
def test_a_file_that_is_missing_or_empty_is_no_silent_loss(history: History, cases: Cases, state: str) -> None:
    for name in one_of_each_kind(history.files(state)):
        for what, damage in (("missing", Path.unlink), ("empty", lambda path: path.write_bytes(b""))):
            outcome = cases.run(state, name, damage, what)
            expected = {"large": "some lost", "first-page": "all there"}.get(kind_of(name), "refused")
            assert outcome == expected, (name, what)


@pytest.mark.parametrize("state", STATES)
def test_a_file_that_is_an_older_one_is_no_silent_loss(history: History, cases: Cases, state: str) -> None:
    refused = set()
    for when, older in history.older.items():
        for name in one_of_each_kind(history.files(state)):
            if kind_of(name) == "large" or not (older / name).exists():
                continue
            old = (older / name).read_bytes()
            if old == (getattr(history, state) / name).read_bytes():
                continue
            outcome = cases.run(state, name, lambda path: path.write_bytes(old), f"of {when}")  # noqa: B023
            assert outcome != "some lost"
            refused |= {name} if outcome == "refused" else set()
    assert {"store.db", ANCHOR} <= refused
    assert state == "closed" or "store.db-wal" in refused


def test_an_older_log_beside_a_store_that_was_closed_is_not_brought_into_it(history: History, cases: Cases) -> None:
    logs = [older / "store.db-wal" for older in history.older.values() if (older / "store.db-wal").exists()]
    assert len(logs) > 2
    for log in [*logs, history.killed / "store.db-wal"]:
        outcome = cases.run("closed", "store.db-wal", lambda path: path.write_bytes(log.read_bytes()), str(log))  # noqa: B023
        assert outcome == "refused", log


def test_several_files_that_are_missing_together_are_no_silent_loss(history: History, tmp_path: Path) -> None:
    for number, names in enumerate((("store.db", "store.db-wal"), ("store.db", ANCHOR), ("store.db-wal", ANCHOR))):
        data = Path(copytree(history.killed, tmp_path / f"{number}"))
        for name in names:
            (data / name).unlink()
        assert judged(data, history, f"without {names}") == "refused"
    data = Path(copytree(history.killed, tmp_path / "only large"))
    for path in data.iterdir():
        if path.is_file():
            path.unlink()
    assert judged(data, history, "only large bodies") == "refused"


def test_a_directory_with_nothing_of_a_store_is_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "data" / "large").mkdir(parents=True)
    for name in ("lock", "clock", "reserve"):
        (tmp_path / "data" / name).touch()
    store = SqliteStore(tmp_path / "data")
    assert held_by(store.load()).messages == []
    store.close()


def test_a_log_that_was_recovered_is_cut_off_before_anything_is_written(history: History, tmp_path: Path) -> None:
    data = Path(copytree(history.killed, tmp_path / "data"))
    log = data / "store.db-wal"
    before = log.read_bytes()
    store = SqliteStore(data)
    left = log.read_bytes()
    store.close()
    # What was behind its end carries no salts of the new log.
    assert len(left) < len(before)
    assert before[16:24] not in left


@pytest.mark.parametrize("state", STATES)
def test_a_sound_store_starts_and_has_everything(history: History, cases: Cases, state: str) -> None:
    assert cases.run(state, "store.db", lambda path: None, "nothing") == "all there"


def test_a_store_whose_log_was_brought_in_by_hand_has_everything(history: History, tmp_path: Path) -> None:
    data = Path(copytree(history.killed, tmp_path / "data"))
    checkpoint(data)
    assert judged(data, history, "brought in") == "all there"
