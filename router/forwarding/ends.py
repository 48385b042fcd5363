"""The two ends of a stitch: an inlet wraps an incoming link, a taker an outgoing one.

A local consumer, a circuit and a broker are all takers; a client's producer, a circuit and a broker all inlets.
Deliveries are engine pointers and live in the ``unsettled`` dict of both ends until settled; nothing else keeps one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wire import delivery as deliveries
from wire.delivery import RELEASED
from wire.engine import Pointer
from wire.errors import AmqpError, LinkError
from wire.link import SEND_SETTLED, IncomingLink, Link, OutgoingLink

if TYPE_CHECKING:
    from router.forwarding.fan import Copy, Fan
    from router.forwarding.guard import Guard
    from router.forwarding.move import Move
    from router.timers import Timer


CHUNK_BYTES = 65536
"""Copied at a time, and the size above which a delivery counts as large."""


def release(delivery: Pointer) -> None:
    """Never written to a taker: the sender may try again."""
    if not deliveries.is_settled(delivery):
        deliveries.set_outcome(delivery, RELEASED)
    deliveries.settle(delivery)


class Group(Protocol):
    """What ties inlets to takers: anycast, multicast or a relay."""

    def pump(self, inlet: Inlet) -> None:
        """Move what can be moved of this inlet's deliveries."""

    def on_moved(self, taker: Taker) -> None:
        """The taker's link is free for the next delivery."""

    def on_credit(self, taker: Taker) -> None:
        """The taker's credit or drain changed."""

    def on_blocked(self, taker: Taker) -> None:
        """A started copy waits for room at this taker."""

    def on_returned(self, inlet: Inlet) -> None:
        """One of the inlet's deliveries was settled: its credit may return."""

    def on_sender_flow(self, inlet: Inlet) -> None:
        """The inlet's sender sent a flow: perhaps it drained."""

    def on_inlet_left(self, inlet: Inlet, closed: bool, error: AmqpError | None) -> None: ...

    def on_taker_left(self, taker: Taker, closed: bool, error: AmqpError | None) -> None: ...

    def on_established(self, link: Link) -> None:
        """The peer answered an attach of ours."""


class OpenGroup(Group, Protocol):
    """A group that inlets may join and leave: one of an address."""

    def add_inlet(self, inlet: Inlet) -> None: ...

    def forget_inlet(self, inlet: Inlet) -> None: ...


class Unstitched:
    """Owner of a link that has no deliveries, or none yet."""

    def on_delivery(self, link: Link, delivery: Pointer) -> None: ...

    def on_disposition(self, link: Link, delivery: Pointer) -> None: ...

    def on_flow(self, link: Link) -> None: ...

    def on_established(self, link: Link) -> None: ...

    def on_left(self, closed: bool, error: AmqpError | None) -> None: ...


class Inlet:
    """An incoming link in a group.

    Always: ``promised + len(unsettled) <= limit`` but for the float of one. Counts are deliveries.
    """

    __slots__ = (
        "deliveries_in",
        "group",
        "guard",
        "is_circuit",
        "is_draining",
        "is_streaming",
        "limit",
        "link",
        "moving",
        "promised",
        "unsettled",
    )

    def __init__(
        self, link: IncomingLink, group: Group, limit: int, *, is_circuit: bool = False, guard: Guard | None = None
    ) -> None:
        self.link = link
        self.guard = guard
        self.group = group
        self.limit = limit
        self.is_circuit = is_circuit
        self.is_draining = False
        self.is_streaming = False
        """Its last far delivery went over a streaming circuit."""
        self.promised = 0
        self.moving: Move | Fan | None = None
        self.unsettled: dict[Pointer, Move | Fan] = {}
        self.deliveries_in = 0
        link.owner = self

    def on_delivery(self, link: Link, delivery: Pointer) -> None:
        self.group.pump(self)

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        move = self.unsettled.get(delivery)
        if move is not None:
            move.on_sender_disposition(delivery)

    def on_flow(self, link: Link) -> None:
        self.group.on_sender_flow(self)

    def on_writable(self) -> None:
        if not self.link.is_gone:
            self.group.pump(self)

    def on_established(self, link: Link) -> None:
        self.group.on_established(link)

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        """The link is going, by detach or with its connection: give up its deliveries, then tell the group."""
        self.abandon()
        self.group.on_inlet_left(self, closed, error)

    @property
    def may_go_on(self) -> bool:
        """False when its sender broke a rule: then the link has been ended."""
        error = None if self.guard is None else self.guard.offence()
        if error is None:
            return True
        self.expel(error)
        return False

    def expel(self, error: LinkError) -> None:
        """End the link for what its sender did. What it still sends is not looked at."""
        self.link.close(error)
        self.on_left(True, error)
        self.link.owner = None

    def abandon(self) -> None:
        """Complete deliveries go on without their sender; the one under way is aborted downstream."""
        moves, self.unsettled, self.moving = self.unsettled, {}, None
        for move in moves.values():
            move.on_inlet_lost()

    @property
    def head(self) -> Pointer | None:
        """The oldest delivery that was not passed on."""
        return self.link.current

    def take_prefix(self) -> bytes | None:
        """What was read of ``head`` before; None when all of it is still on the link."""
        return None

    @property
    def has_prefix(self) -> bool:
        return False

    def is_head_partial(self, delivery: Pointer) -> bool:
        return bool(deliveries.is_partial(delivery))

    def pop(self) -> None:
        """The delivery under way was read to its end: the link goes on to the next."""
        self.moving = None
        self.link.advance()

    def count_in(self) -> None:
        self.promised = max(0, self.promised - 1)
        self.deliveries_in += 1

    def may_stream(self, is_large: bool) -> bool:
        """Change between shared and streaming circuits only when nothing is outstanding on the others: order."""
        if self.is_streaming != is_large:
            if any(move.is_far for move in self.unsettled.values()):
                return False
            self.is_streaming = is_large
        return True

    def release_held(self) -> int:
        """Answer every delivery at the head with RELEASED, reading each to its end; how many."""
        count = 0
        while (delivery := self.link.current) is not None and self.moving is None:
            while size := deliveries.pending(delivery):
                self.link.recv(min(size, CHUNK_BYTES))
            if deliveries.is_partial(delivery) and not deliveries.is_aborted(delivery):
                break
            self.link.advance()
            self.count_in()
            release(delivery)
            count += 1
        return count

    def top_up(self, count: int) -> None:
        """Raise the sender's credit by ``count`` deliveries."""
        self.promised += count
        self.link.grant(count)

    @property
    def needs_float(self) -> bool:
        """It holds no credit and nothing that waits."""
        return self.promised == 0 and self.link.queued == 0 and self.moving is None

    def reduce(self, count: int) -> None:
        """Take back all credit but ``count``; deliveries that cross it still come."""
        self.link.set_credit(count)
        self.promised = count

    def revoke(self) -> None:
        """Take back all credit by flow; deliveries that cross it still come."""
        if self.link.is_open:
            self.reduce(0)


class Taker:
    """An outgoing link in a group. ``cost`` is the path's; 0 for a local one."""

    __slots__ = (
        "copies_missed", "cost", "credit", "deliveries_out", "group", "had_credit", "is_closing", "is_stalled",
        "is_stream", "link", "moving", "presettles", "stall_timer", "tag", "unsettled", "upstream",
    )  # fmt: skip

    def __init__(
        self, link: OutgoingLink, group: Group, cost: int = 0, *, upstream: Inlet | None = None, is_stream: bool = False
    ) -> None:
        self.link = link
        self.group = group
        self.cost = cost
        self.credit = link.credit
        self.presettles = link.remote_settle_modes[0] == SEND_SETTLED and cost == 0
        self.is_closing = False
        self.upstream = upstream
        """The one inlet whose deliveries may go here (a multicast branch); None for any."""
        self.is_stream = is_stream
        self.is_stalled = False
        self.had_credit = self.credit > 0
        self.stall_timer: Timer | None = None
        self.copies_missed = 0
        self.moving: Move | Copy | None = None
        self.unsettled: dict[Pointer, Move | Copy] = {}
        self.deliveries_out = 0
        self.tag = 0
        link.owner = self

    def on_delivery(self, link: Link, delivery: Pointer) -> None:
        raise AssertionError("an outgoing link has no deliveries of its peer's")

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        move = self.unsettled.get(delivery)
        if move is not None:
            move.on_taker_disposition(delivery)
        elif deliveries.is_settled(delivery):
            deliveries.settle(delivery)

    def on_flow(self, link: Link) -> None:
        self.sync_credit()
        self.group.on_credit(self)

    def sync_credit(self) -> None:
        """Read the engine's count; a delivery under way is in it until finished."""
        self.credit = self.link.credit - (self.moving is not None)
        self.had_credit |= self.credit > 0

    def on_established(self, link: Link) -> None:
        self.group.on_established(link)

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        self.abandon()
        self.group.on_taker_left(self, closed, error)

    def abandon(self) -> None:
        """What was handed to this link is in doubt: its senders are told so. It takes nothing more."""
        self.is_closing, self.credit = True, 0
        moves, self.unsettled, self.moving = self.unsettled, {}, None
        for move in moves.values():
            move.on_taker_lost()

    def next_tag(self) -> bytes:
        self.tag += 1
        return self.tag.to_bytes(8, "big").lstrip(b"\0")

    @property
    def can_take(self) -> bool:
        return self.credit > 0 and self.moving is None and not self.is_closing
