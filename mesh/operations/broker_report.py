"""Prints the results of the commands `amqpmesh broker ...` as tables, sentences or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from addressing.address import Address
from mesh.operations.broker_control import BrokerAnswers, queues_in, totals_in
from mesh.terminal.output import Output

QUEUES = {
    "BROKER": "broker",
    "ADDRESS": "address",
    "KIND": "kind",
    "SUBSCRIBER": "subscriber",
    "OWNER": "owner",
    "DURABLE": "is_durable",
    "AVAILABLE": "available_count",
    "ACQUIRED": "acquired_count",
    "UNREADABLE": "unreadable_count",
    "BYTES": "size_bytes",
    "CONSUMERS": "consumer_count",
    "PRODUCERS": "producer_count",
    "ENQUEUED": "enqueued_total",
    "DEPARTED": "departed",
}
MESSAGES = {
    "BROKER": "broker",
    "ADDRESS": "address",
    "SUBSCRIBER": "subscriber",
    "NUMBER": "number",
    "STATE": "state",
    "BYTES": "size_bytes",
    "DELIVERED": "delivery_count",
    "EXPIRES": "expires_at",
    "REASON": "reason",
    "ORIGIN": "origin",
}


STAYED = {
    "without_queue": "they come from no queue of this broker; name a queue with --to",
    "for_full_queue": "their target queue is full",
}
"""Counts of messages that `broker move` and `broker redrive` left in place, with the reason for people."""
NOT_MOVED = ("not_moved", *STAYED)


def tell_queues(found: BrokerAnswers, out: Output, *, with_messages: bool) -> None:
    """Print the brokers' queues and, ``with_messages``, their messages.

    A table without messages leaves out the mesh's own queues. Raises CommandFailed if a broker failed, after printing
    what the other brokers answered.
    """
    found.raise_failures(are_all=True)
    queues = list(queues_in(found))
    if out.is_json:
        out.document({"queues": queues})
    else:
        shown = [queue for queue in queues if with_messages or not Address.parse(queue["address"]).is_internal]
        out.table(tuple(QUEUES), [_row({**queue, "departed": departed(queue)}, QUEUES) for queue in shown])
        if with_messages and (messages := list(_messages(shown))):
            out.data("")
            out.table(tuple(MESSAGES), [_row(message, MESSAGES) for message in messages])
    found.raise_failures()


def tell_totals(found: BrokerAnswers, out: Output, fields: Mapping[str, Any], done: Callable[[str], str]) -> None:
    """Print how many messages each broker deleted, purged or moved; ``done`` makes a sentence of the number.

    Raises CommandFailed if a broker failed, after printing what the other brokers answered.
    """
    found.raise_failures(are_all=True)
    totals = totals_in(found, ("messages", *NOT_MOVED) if "target" in fields else ("messages",))
    if out.is_json:
        out.document({**fields, "messages": sum(total["messages"] for total in totals), "brokers": totals})
    else:
        for total in totals[: len(found.answers)]:
            _say_total(total, out, done)
        for _, unmade in found.unmade:
            out.say(unmade.message)
    found.raise_failures()


def _say_total(total: Mapping[str, Any], out: Output, done: Callable[[str], str]) -> None:
    count = total["messages"]
    out.say(f"{total['broker']}: {done(f'{count:,} messages' if count != 1 else '1 message')}")
    others = total.get("not_moved", 0)
    for name, why in STAYED.items():
        if stayed := min(total.get(name, 0), others):
            others -= stayed
            out.say(f"{total['broker']}: {stayed:,} stay: {why}")
    if others:
        out.say(f"{total['broker']}: {others:,} stay or are gone: there already, taken, or expired meanwhile")


def departed(queue: Mapping[str, Any]) -> str | None:
    return ", ".join(f"{reason} {count}" for reason, count in queue["departed_total"].items() if count) or None


def _messages(queues: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for queue in queues:
        for message in queue["messages"]:
            yield {**{name: queue[name] for name in ("broker", "address", "subscriber")}, **message}


def _row(item: Mapping[str, Any], columns: Mapping[str, str]) -> list[object]:
    return [item[name] for name in columns.values()]
