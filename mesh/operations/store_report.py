"""Prints the results of the commands `amqpmesh store ...`, which work on the message store of a broker as files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from broker.queueing.subscribers import SubscriptionKey
from broker.store.batch import QueueKind, QueueRow, StoreError
from broker.store.cause import Cause
from broker.store.check_report import CheckReport, QueueTotals
from broker.store.dump import StoredMessage
from broker.store.judgement import StoreDamagedError
from broker.store.store_salvage import Salvage
from mesh.deploy.store_failure import damaged_store
from mesh.terminal.failure import CommandFailed
from mesh.terminal.message_format import body_map, head_map
from mesh.terminal.output import Output
from wire.message import MalformedMessage, decode

COLUMNS = ("ADDRESS", "SUBSCRIBER", "MESSAGES", "BYTES", "DELIVERED")


@contextmanager
def told() -> Iterator[None]:
    """Turn errors of a message store, raised in the block, into CommandFailed with a fix for the user."""
    try:
        yield
    except StoreDamagedError as damage:
        raise damaged_store(damage) from None
    except StoreError as error:
        raise CommandFailed(str(error)) from None
    except (sqlite3.Error, ValueError) as error:
        raise CommandFailed(f"store.db cannot be read: {error}", fix="`amqpmesh store check` says more.") from None


def tell_salvaged(salvaged: Salvage, out: Output) -> None:
    report = salvaged.report
    if out.is_json:
        out.document({**report_map(report), "lost": salvaged.lost})
        return
    if report.queues:
        out.table(COLUMNS, [_row(totals) for totals in report.queues.values()])
    out.say(_summary(report))
    for sentence in [*salvaged.lost, *report.findings]:
        out.say(f"damage: {sentence}")


def tell(report: CheckReport, out: Output) -> None:
    """Print the report of a check of a message store; then, raise CommandFailed if the store is not sound."""
    if out.is_json:
        out.document(report_map(report))
    else:
        if report.queues:
            out.table(COLUMNS, [_row(totals) for totals in report.queues.values()])
        out.say(_summary(report))
        for finding in report.findings:
            out.say(f"wrong: {finding}")
        if report.findings_left_out:
            out.say(f"wrong: {report.findings_left_out:,} more")
    if not report.is_sound:
        count = len(report.findings) + report.findings_left_out
        raise CommandFailed(f"{count:,} fault{'s' if count > 1 else ''} in the message store in {report.directory}")


def report_map(report: CheckReport) -> dict[str, Any]:
    return {
        "directory": str(report.directory),
        "is_sound": report.is_sound,
        "findings": report.findings,
        "findings_left_out": report.findings_left_out,
        "messages": report.messages,
        "size_bytes": report.size_bytes,
        "segments": report.segments,
        "unneeded_bytes": report.unneeded_bytes,
        "unchecked": report.unchecked,
        "leftovers": report.leftovers,
        "queues": [_queue_map(totals) for totals in report.queues.values()],
    }


def message_map(stored: StoredMessage) -> dict[str, Any]:
    expires_at = None if stored.expires_at_ms is None else datetime.fromtimestamp(stored.expires_at_ms / 1000, UTC)
    return {
        "address": stored.queue.address,
        "subscriber": subscriber(stored.queue),
        "number": stored.message_id,
        "size_bytes": stored.size_bytes,
        "expires_at": None if expires_at is None else expires_at.isoformat(timespec="milliseconds"),
        **({} if stored.published_to is None else {"published_to": stored.published_to}),
        **_content(stored),
        **({"damaged": True} if stored.is_damaged else {}),
        "delivery_count": stored.delivery_count,
        "cause": None if stored.cause is None else _cause_map(stored.cause),
    }


def subscriber(row: QueueRow) -> str | None:
    """Return the subscriber of a topic's durable subscription as text: container-id and link name, or the name of a
    shared subscription; None for a queue.
    """
    return None if row.kind is QueueKind.QUEUE else SubscriptionKey(row.container_id, row.link_name).text


def _cause_map(cause: Cause) -> dict[str, Any]:
    return {
        "reason": cause.reason.value,
        "origin": cause.origin,
        "delivery_count": cause.delivery_count,
        "at": datetime.fromtimestamp(cause.at_ms / 1000, UTC).isoformat(timespec="milliseconds"),
    }


def _content(stored: StoredMessage) -> dict[str, Any]:
    body, lead_bytes = stored.body, stored.lead_bytes
    if isinstance(body, Path):
        return {"file": str(body), **({"lead_bytes": lead_bytes} if lead_bytes else {})}
    try:
        message = decode(body[lead_bytes:])
    except MalformedMessage:
        return body_map(body)
    return head_map(message) | body_map(message.body)


def _row(totals: QueueTotals) -> tuple[object, ...]:
    row = totals.row
    return row.address, subscriber(row), totals.messages, totals.size_bytes, totals.delivered


def _queue_map(totals: QueueTotals) -> dict[str, Any]:
    return {
        "address": totals.row.address,
        "subscriber": subscriber(totals.row),
        "messages": totals.messages,
        "size_bytes": totals.size_bytes,
        "delivered": totals.delivered,
        "is_mark_open": totals.is_mark_open,
    }


def _summary(report: CheckReport) -> str:
    said = [f"{report.messages:,} messages of {report.size_bytes:,} bytes in {report.segments:,} segments"]
    if report.unneeded_bytes:
        said.append(f"{report.unneeded_bytes:,} bytes of deleted messages (`amqpmesh store compact` frees them)")
    if report.unchecked:
        said.append(
            f"{report.unchecked:,} bodies above 64 KiB have no checksum, since an older amqpmesh stored "
            "them: only their size was checked"
        )
    if report.leftovers:
        said.append(f"{report.leftovers:,} leftovers that the next start deletes")
    if any(totals.is_mark_open for totals in report.queues.values()):
        said.append(
            "the broker did not close the store: at the next start up to 1,000 more messages in a queue count as "
            "delivered before"
        )
    return "; ".join(said)
