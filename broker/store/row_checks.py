"""Checks the rows of queues, seen marks, causes and annotations for a report on a store; damage becomes findings."""

from __future__ import annotations

from broker.store.aside import has_lost_queues
from broker.store.batch import QueueKind
from broker.store.check_report import CheckReport, QueueTotals
from broker.store.lost_annotations import readable_annotations, section_of
from broker.store.read_store import ReadStore
from broker.store.rows import cause_of, queue_of


def check_queues(store: ReadStore, report: CheckReport) -> bool:
    """Add the queues with readable rows to the ``report``; return whether rows of other queues are lost."""
    names: set[tuple[QueueKind, str, str, str]] = set()
    found = store.readable_queues()
    if found.gap is not None:
        report.find("store.db: some of its queues are on pages that cannot be read")
    for number, *rest in found.rows:
        try:
            row = queue_of((number, *rest))
        except ValueError as error:
            report.find(f"queue {number}: its row is damaged: {error}")
            continue
        report.queues[row.queue_id] = QueueTotals(row)
        name = (row.kind, row.address, row.container_id, row.link_name)
        if name in names:
            report.find(f"queue {row.queue_id}: another row has the same {row.kind.value} {row.address!r}")
        names.add(name)
    return found.gap is not None or len(report.queues) < len(found.rows) or has_lost_queues(store.database)


def check_marks(store: ReadStore, report: CheckReport) -> None:
    """Note in the ``report`` which queues have seen marks, as their broker did not stop in order."""
    for queue_id in store.marked_queues():
        if queue_id in report.queues:
            report.queues[queue_id].is_mark_open = True


def check_causes(store: ReadStore, report: CheckReport) -> set[tuple[int, int]]:
    """Check the rows of causes of moved messages; return (queue_id, message_id) of all messages with a cause."""
    causes: set[tuple[int, int]] = set()
    found = store.readable_causes()
    if found.gap is not None:
        report.find("store.db: some of its causes are on pages that cannot be read")
    for queue_id, message_id, *rest in found.rows:
        causes.add((queue_id, message_id))
        try:
            cause_of((queue_id, message_id, *rest))
        except ValueError as error:
            report.find(f"queue {queue_id}: the dead-letter cause of message {message_id} cannot be read: {error}")
    return causes


def check_annotations(store: ReadStore, report: CheckReport) -> set[tuple[int, int]]:
    """Check the rows of annotations that consumers added; return (queue_id, message_id) of all messages with any."""
    found = readable_annotations(store.database)
    if found.gap is not None:
        report.find("store.db: some annotations of consumers are on pages that cannot be read")
    for row in found.rows:
        try:
            section_of(row)
        except ValueError as error:
            report.find(f"queue {row[0]}: the annotations of message {row[1]} cannot be read: {error}")
    return {(queue_id, message_id) for queue_id, message_id, *_ in found.rows}
