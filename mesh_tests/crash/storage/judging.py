"""Is what is left on a disk the store that it was to be?"""

from __future__ import annotations

from pathlib import Path

from broker.store.batch import BodyRange
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from mesh_tests.crash.storage.plan import Plan, Shown, priority_of
from mesh_tests.inventories import held_by


def look_at(files: dict[str, bytes], directory: Path, plan: Plan, promised: int) -> None:
    """The store has what it had after ``promised`` batches, or after one more: nothing in between."""
    (directory / "large").mkdir(parents=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    if promised:
        assert check(directory).findings == []
    store = SqliteStore(directory)
    inventory = held_by(store.load())
    shown = Shown(
        frozenset(inventory.entries),
        frozenset(inventory.causes.items()),
        frozenset(inventory.queues),
        frozenset(inventory.annotations.items()),
    )
    assert shown in [plan.states[number].shown() for number in (promised, min(promised + 1, len(plan.batches)))]
    assert inventory.damages == []
    large = {message_id for message_id, *_, is_large in inventory.messages if is_large}
    for message_id, size, priority, expires_at_ms, _ in inventory.messages:
        assert (priority, expires_at_ms) == (priority_of(message_id), plan.expires_at_ms[message_id])
        assert store.read([BodyRange(message_id, message_id in large, 0, size)]) == [plan.bodies[message_id]]
    store.close()
