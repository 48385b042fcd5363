"""Prints the results of the commands `amqpmesh broker ...` as tables, sentences or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from addressing.address import Address
from mesh.operations.broker_control import BrokerAnswers, queues_in, totals_in
from mesh.terminal.counts import number_of
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


BROWSED = {
    "BROKER": "broker",
    "NUMBER": "number",
    "STATE": "state",
    "BYTES": "bytes",
    "DELIVERED": "attempts",
    "EXPIRES": "expires_at",
    "REASON": "reason",
    "MESSAGE-ID": "message_id",
    "SUBJECT": "subject",
    "PROPERTIES": "properties",
}
"""Columns of the table of `broker browse`, which has BODY after them with the bodies."""
MOST_CHARACTERS = 60
"""A cell of that table has at most so many characters of what the sender wrote."""

STAYED = {
    "without_queue": "they come from no queue of this broker; name a queue with --to",
    "for_full_queue": "their target queue is full",
}
"""Counts of messages that `broker move` and `broker redrive` left in place, with the reason for people."""
UNTOUCHED = {"missing": "not there", "locked": "with a consumer"}
"""Numbers of messages that a command on numbered messages left as they are, with the reason for people."""
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
    for total, (_, parts) in zip(totals, found.answers, strict=False):
        for name in UNTOUCHED:
            if any(name in part for part in parts):
                total[name] = [number for part in parts for number in part.get(name, ())]
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
    out.say(f"{total['broker']}: {done(_messages_in_words(count))}")
    _say_untouched(total, out)
    others = total.get("not_moved", 0)
    for name, why in STAYED.items():
        if stayed := min(total.get(name, 0), others):
            others -= stayed
            out.say(f"{total['broker']}: {stayed:,} stay: {why}")
    if others:
        out.say(f"{total['broker']}: {others:,} stay or are gone: there already, taken, or expired meanwhile")


def tell_messages(found: BrokerAnswers, out: Output, fields: Mapping[str, Any], *, with_bodies: bool) -> None:
    """Print the messages on the brokers' pages, and from where on the next page shows more.

    Raises CommandFailed if a broker failed, after printing what the other brokers answered.
    """
    found.raise_failures(are_all=True)
    messages = [
        {"broker": site.broker, **message}
        for site, pages in found.answers
        for page in pages
        for message in page["messages"]
    ]
    brokers = [
        {
            "broker": site.broker,
            "address": site.address,
            "next": pages[-1]["next"],
            "last": pages[0]["last"],
            "scanned": sum(page["scanned"] for page in pages),
        }
        for site, pages in found.answers
    ]
    if out.is_json:
        out.document({**fields, "messages": messages, "brokers": brokers})
    else:
        columns = {**BROWSED, "BODY": "body"} if with_bodies else BROWSED
        out.table(tuple(columns), [_row(_browsed(message), columns) for message in messages])
        for broker in brokers:
            if broker["next"] is not None:
                out.say(f"{broker['broker']}: more follow: go on with --after {broker['next']}")
    found.raise_failures()


def _browsed(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with texts for the cells of a table, cut to MOST_CHARACTERS."""
    body = message.get("body")
    shown = "-" if body is None else body.get("text") or body["why"] or body.get("base64")
    return {
        **message,
        "state": "locked" if message["is_locked"] else "available",
        "message_id": _cell(message["message_id"]),
        "subject": _cell(message["subject"]),
        "properties": _cell(message["why"] or message["properties"] or None),
        "body": _cell(shown),
    }


def _cell(form: Any) -> str | None:
    if form is None:
        return None
    text = form if isinstance(form, str) else json.dumps(form, ensure_ascii=False)
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 3]}..."


def tell_removed(found: BrokerAnswers, out: Output, fields: Mapping[str, Any]) -> None:
    """Print what became of numbered messages: dropped, missing, or with a consumer. Raises CommandFailed as above."""
    found.raise_failures(are_all=True)
    brokers = [
        {"broker": site.broker, "address": site.address, **part} for site, parts in found.answers for part in parts
    ]
    if out.is_json:
        out.document({**fields, "messages": sum(broker["messages"] for broker in brokers), "brokers": brokers})
    for broker in brokers:
        out.say(f"{broker['broker']}: dropped {_messages_in_words(broker['messages'])} of {fields['address']}")
        _say_untouched(broker, out)
    found.raise_failures()


def _say_untouched(broker: Mapping[str, Any], out: Output) -> None:
    for name, why in UNTOUCHED.items():
        if broker.get(name):
            out.say(f"{broker['broker']}: {why}: {', '.join(map(str, broker[name]))}")


def _messages_in_words(count: int) -> str:
    return number_of(count, "message")


def departed(queue: Mapping[str, Any]) -> str | None:
    return ", ".join(f"{reason} {count}" for reason, count in queue["departed_total"].items() if count) or None


def _messages(queues: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for queue in queues:
        for message in queue["messages"]:
            yield {**{name: queue[name] for name in ("broker", "address", "subscriber")}, **message}


def _row(item: Mapping[str, Any], columns: Mapping[str, str]) -> list[object]:
    return [item[name] for name in columns.values()]
