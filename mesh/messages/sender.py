"""Runs `amqpmesh send`: sends messages, at a rate if wanted, counts their outcomes, and prints one line at the end:

sent 1000  accepted 998  released 2  (nobody took it: 2)
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import click

from mesh.client.connect import connected
from mesh.client.errors import MeshError, TimedOut
from mesh.client.links import Sender
from mesh.client.server import Server
from mesh.deploy.server_lookup import find_server, tell_warning
from mesh.messages.large_body import LargeBody
from mesh.terminal.connection_options import ConnectionRequest
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import as_failure
from mesh.terminal.output import Output
from wire.delivery import Outcome, OutcomeCode
from wire.message import Message, encode, encode_head

# A sender has at most this many messages without an outcome: by default (``link_capacity``), a router grants a link no
# more credit.
MAX_UNSETTLED = 1000
READ_AHEAD_LINES = 100

Body = str | bytes | LargeBody
OUTCOMES = ("accepted", "released", "rejected", "modified")


@dataclass(frozen=True, slots=True)
class SendRequest:
    bodies: AsyncIterator[Body]
    template: Message
    count: int | None = 1
    rate_per_s: float | None = None
    duration_s: float | None = None
    is_presettled: bool = False
    timeout_s: float = 10.0
    expect: str = "accepted"


@dataclass(slots=True)
class Tally:
    """Counts of the messages sent, by outcome and reason; a sent message has one outcome, or counts as ``unknown``."""

    sent: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def unknown(self) -> int:
        return self.sent - sum(self.outcomes.values())

    def count(self, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        self.outcomes[outcome.kind.name.lower()] += 1
        reason = reason_of(outcome)
        if reason:
            self.reasons[reason] += 1

    def differs_from(self, expected: str, is_presettled: bool) -> bool:
        return not is_presettled and self.outcomes[expected] != self.sent

    def line(self, is_presettled: bool) -> str:
        parts = [f"sent {self.sent}"]
        parts += [f"{name} {self.outcomes[name]}" for name in OUTCOMES if self.outcomes[name]]
        if self.unknown and not is_presettled:
            parts.append(f"unknown {self.unknown}")
        if self.reasons:
            parts.append("(" + ", ".join(f"{reason}: {count}" for reason, count in self.reasons.most_common()) + ")")
        return "  ".join(parts)

    def to_map(self) -> dict[str, Any]:
        counts = {name: self.outcomes[name] for name in OUTCOMES}
        return {"sent": self.sent, **counts, "unknown": self.unknown, "reasons": dict(self.reasons)}


def reason_of(outcome: Outcome) -> str:
    match outcome.kind:
        case OutcomeCode.REJECTED:
            error = outcome.error
            return (error.description or error.condition) if error is not None else "no reason given"
        case OutcomeCode.RELEASED:
            return "nobody took it"
        case OutcomeCode.MODIFIED:
            return "in doubt" if outcome.delivery_failed else "not wanted"
        case _:
            return ""


def run(request: ConnectionRequest, order: SendRequest, out: Output) -> int:
    server = find_server(request)
    tell_warning(server, out)
    tally = Tally()
    started_at = time.monotonic()
    try:
        asyncio.run(send_all(server, request.url.address, order, tally))
    except KeyboardInterrupt:
        report(out, request, order, tally, started_at)
        raise
    except MeshError as error:
        if tally.sent == 0:
            raise
        report(out, request, order, tally, started_at)
        out.say(f"error: {error.message}")
        return as_failure(error).exit_code
    report(out, request, order, tally, started_at)
    return ExitCode.FAILED if tally.differs_from(order.expect, order.is_presettled) else ExitCode.OK


def report(out: Output, request: ConnectionRequest, order: SendRequest, tally: Tally, started_at: float) -> None:
    if out.is_json:
        seconds = round(time.monotonic() - started_at, 3)
        as_expected = not tally.differs_from(order.expect, order.is_presettled)
        fields = {"address": request.url.address, **tally.to_map(), "seconds": seconds, "as_expected": as_expected}
        out.document(fields)
    else:
        out.data(tally.line(order.is_presettled))


async def send_all(server: Server, address: str, order: SendRequest, tally: Tally) -> None:
    async with connected(server, order.timeout_s) as client:
        sender = await client.sender(address or None, is_presettled=order.is_presettled, timeout_s=order.timeout_s)
        await MessageSender(sender, order, tally).run()
        sender.close()


class MessageSender:
    """Sends the messages of one `send` request over one link, and waits for every outcome."""

    def __init__(self, sender: Sender, order: SendRequest, tally: Tally) -> None:
        self._sender = sender
        self._order = order
        self._tally = tally
        self._room = asyncio.Semaphore(MAX_UNSETTLED)
        self._outcomes: set[asyncio.Future[Outcome | None]] = set()
        self._started_at = time.monotonic()

    async def run(self) -> None:
        last_body: Body | None = None
        data = EncodedMessage(b"")
        while not self._is_enough(self._tally.sent) and await self._pace(self._tally.sent):
            body = await anext(self._order.bodies, None)
            if body is None:
                break
            if body is not last_body:
                last_body, data = body, encode_body(self._order.template, body)
            await self._send(data)
        await self._wait_outcomes()

    def _is_enough(self, number: int) -> bool:
        order = self._order
        is_over = order.duration_s is not None and time.monotonic() - self._started_at >= order.duration_s
        return is_over or (order.count is not None and number >= order.count)

    async def _pace(self, number: int) -> bool:
        """Wait until message ``number``, from 0, is due by ``rate_per_s``; return False, without a wait, if
        ``duration_s`` is over by then.
        """
        if self._order.rate_per_s is None:
            return True
        due_s = number / self._order.rate_per_s
        if self._order.duration_s is not None and due_s >= self._order.duration_s:
            return False
        early_s = self._started_at + due_s - time.monotonic()
        if early_s > 0:
            await asyncio.sleep(early_s)
        return True

    async def _send(self, data: EncodedMessage) -> None:
        loop = asyncio.get_running_loop()
        moved = 0

        def on_moved() -> None:
            nonlocal moved
            moved += 1
            patience.reschedule(loop.time() + self._order.timeout_s)

        try:
            async with asyncio.timeout(self._order.timeout_s) as patience:
                await self._room.acquire()
                outcome = await self._sender.send(data.pieces(), on_moved)
        except TimeoutError:
            raise TimedOut(self._stall_within(data) if moved else self._stall()) from None
        self._tally.sent += 1
        self._outcomes.add(outcome)
        outcome.add_done_callback(self._on_outcome)

    def _stall_within(self, data: EncodedMessage) -> str:
        return (
            f"a message of {data.size_bytes} bytes was begun, and no byte of it moved for {self._order.timeout_s:g} s"
        )

    def _stall(self) -> str:
        waited = f"within {self._order.timeout_s:g} s"
        if self._sender.unsettled:
            return f"no outcome for {self._sender.unsettled} messages {waited}"
        where = self._sender.address or "the anonymous terminus"
        return f"no credit for {where} {waited}: the address has no receiver, or its queue is full"

    def _on_outcome(self, outcome: asyncio.Future[Outcome | None]) -> None:
        self._outcomes.discard(outcome)
        self._room.release()
        if not outcome.cancelled() and outcome.exception() is None:
            self._tally.count(outcome.result())

    async def _wait_outcomes(self) -> None:
        while self._outcomes:
            done, _ = await asyncio.wait(
                self._outcomes, timeout=self._order.timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise TimedOut(self._stall())
            for outcome in done:
                outcome.result()


@dataclass(frozen=True, slots=True)
class EncodedMessage:
    """An encoded message: ``head`` is the whole message or, for a LargeBody, the bytes before the body."""

    head: bytes
    body: LargeBody | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.head) + (self.body.size_bytes if self.body is not None else 0)

    def pieces(self) -> Iterator[bytes]:
        yield self.head
        if self.body is not None:
            yield from self.body.pieces()


def encode_body(template: Message, body: Body) -> EncodedMessage:
    if isinstance(body, (str, bytes)):
        return EncodedMessage(encode(replace(template, body=body)))
    return EncodedMessage(encode_head(template, body.size_bytes), body)


async def endless(body: Body) -> AsyncIterator[Body]:
    while True:
        yield body


async def stdin_lines() -> AsyncIterator[Body]:
    """Yield lines of stdin as they come, read in a thread: a read that blocks the event loop stops heartbeats."""
    lines: asyncio.Queue[str | None] = asyncio.Queue(READ_AHEAD_LINES)
    loop = asyncio.get_running_loop()

    def put(line: str | None) -> None:
        asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    def read() -> None:
        for line in sys.stdin:
            put(line.rstrip("\n"))
        put(None)

    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line


def make_template(options: Mapping[str, Any]) -> Message:
    return Message(
        subject=options["subject"],
        ttl_s=options["ttl_s"] or 0.0,
        priority=options["priority"],
        durable=options["durable"],
        content_type=options["content_type"],
        group_id=options["key"],
        properties=dict(parse_property(text) for text in options["properties"]),
    )


def parse_property(text: str) -> tuple[str, Any]:
    """Parse an application property: the value is text in `k=v`, and a JSON string, number, boolean or null in `k:=v`.

    Raises UsageError.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.rstrip(":"):
        raise click.UsageError(f"{text!r} is not a valid property: expected K=V, or K:=V for a number, boolean or null")
    if not key.endswith(":"):
        return key, value
    try:
        parsed = json.loads(value)
    except ValueError:
        raise click.UsageError(
            f"property {text!r}: {value!r} is not valid JSON; {key[:-1]}={value} sends the value as text"
        ) from None
    if isinstance(parsed, (dict, list)):
        raise click.UsageError(f"property {text!r}: expected a string, number, boolean or null, not a list or map")
    return key[:-1], parsed
