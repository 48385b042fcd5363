"""Opens connections and attaches many links on each at once, in a process of the load generator.

All frames are made before the time begins, so that the server alone decides how long the attaches take.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesh.bench import frames, performatives
from mesh.bench.dial import READ_BYTES, BenchServer, Dialed, container_id, dial
from mesh.bench.handshake import LinkPlan
from mesh.bench.idle_connections import address_of, check_sessions
from mesh.bench.performatives import ATTACH, CLOSE, DETACH, END
from mesh.bench.worker import WorkerReport
from mesh.client.errors import TimedOut, Unreachable
from wire.transport.os_errors import describe_os_error


def attach_crowd(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    """Open ``connections`` with a link each, then attach ``links`` links on each of the connections, all at once."""
    place = BenchServer(**plan["place"])
    # A first connection raises any error with a readable reason, and warms the server up.
    dial(place, [LinkPlan(address_of(plan["addresses"], 0), True)]).close()
    yield WorkerReport({"ready": True})
    began_at = time.monotonic()
    dialed = [
        dial(place, [LinkPlan(address_of(plan["addresses"], number * (plan["links"] + 1)), True)])
        for number in range(plan["connections"])
    ]
    opened_at = time.monotonic()
    crowd = LinkCrowd(dialed, plan)
    yield WorkerReport({"began_at": began_at, "ended_at": opened_at})
    began_at = time.monotonic()
    crowd.attach_all()
    yield WorkerReport({"began_at": began_at, "ended_at": time.monotonic()})
    for each in dialed:
        each.close()
    yield WorkerReport({"closed": True})


def attaches_of(number: int, plan: Mapping[str, Any]) -> bytes:
    """Return the frames that attach the links of connection ``number``; channel 0 has its first link already."""
    name, made = container_id(), bytearray()
    for index in range(plan["links"]):
        channel, handle = divmod(index, plan["per_session"])
        channel += 1
        if handle == 0:
            made += performatives.begin_frame(channel)
        made += performatives.attach_frame(
            channel,
            f"{name}-{index}",
            is_receiver=True,
            address=address_of(plan["addresses"], number * (plan["links"] + 1) + 1 + index),
            handle=handle,
        )
    return bytes(made)


@dataclass(slots=True)
class _Member:
    """A connection of a crowd: bytes to send, bytes read and not parsed yet, and the number of answers missing."""

    socket: socket.socket
    output: memoryview
    missing: int
    inbox: bytearray = field(default_factory=bytearray)


class LinkCrowd:
    def __init__(self, dialed: Sequence[Dialed], plan: Mapping[str, Any]) -> None:
        self._stall_s = plan["stall_s"]
        self._what = LinkPlan(address_of(plan["addresses"], 0), True).what
        self._members = []
        for number, each in enumerate(dialed):
            check_sessions(1 + -(-plan["links"] // plan["per_session"]), each.peer)
            output = memoryview(attaches_of(number, plan))
            self._members.append(_Member(each.socket, output, plan["links"], bytearray(each.leftover)))

    def attach_all(self) -> None:
        """Attach all links, and wait for all answers. Raise BenchRefused, Unreachable or TimedOut."""
        selector = selectors.DefaultSelector()
        for member in self._members:
            member.socket.setblocking(False)
            selector.register(member.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, member)
        missing = sum(member.missing for member in self._members)
        with selector:
            while missing:
                ready = selector.select(self._stall_s)
                if not ready:
                    raise TimedOut(f"{missing:,} links were not attached when nothing had come for {self._stall_s:g} s")
                for key, events in ready:
                    missing -= self._serve(selector, key.data, events)

    def _serve(self, selector: selectors.BaseSelector, member: _Member, events: int) -> int:
        """Send or read what can be at once, and return the number of links that the peer attached."""
        try:
            if events & selectors.EVENT_WRITE:
                member.output = member.output[member.socket.send(member.output) :]
                if not member.output:
                    selector.modify(member.socket, selectors.EVENT_READ, member)
            return self._hear(member) if events & selectors.EVENT_READ else 0
        except BlockingIOError:
            return 0
        except OSError as error:
            raise Unreachable(f"connection lost: {describe_os_error(error)}") from None

    def _hear(self, member: _Member) -> int:
        data = member.socket.recv(READ_BYTES)
        if not data:
            raise Unreachable("connection lost: the peer closed it without an error")
        member.inbox += data
        found, size = frames.codes(member.inbox)
        for code, _, at in found:
            if code in (DETACH, END, CLOSE):
                raise performatives.why_ended(bytes(member.inbox[at:]), self._what)
        del member.inbox[:size]
        return sum(code == ATTACH for code, _, _ in found)
