"""A random life in which links, sessions and connections vanish in the middle of things. Seeded, and built on the walk.

In the middle of: deliveries and dispositions, since much may happen before bytes move; partial messages, which are sent
piece by piece; waits for room, since windows are small, some consumers stop reading and some outputs are blocked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh_tests.sim.walk import ADDRESSES, OUTCOMES, Walk, number_in
from wire.link import RECEIVE_FIRST, RECEIVE_SECOND, SEND_MIXED

PAUSES_S = (None, None, 0.0005, 0.001, 0.002, 0.01, 0.1)
"""None: the next act comes before any byte moved."""
HIGHEST_PRIORITY = 9
WINDOWS = ({}, {"max_frame_bytes": 4096, "window_frames": 8}, {"max_frame_bytes": 512, "window_frames": 4})


@dataclass(eq=False)
class Part:
    """A message under way, piece by piece."""

    client: SimClient
    sender: SimSender
    delivery: Any
    rest: bytes

    @property
    def is_over(self) -> bool:
        """Its link or connection went."""
        return bool(self.client.closed) or not self.sender.link.is_open


def addressed(address: str) -> bytes:
    """The properties section of a message to ``address``."""
    to = address.encode()
    return b"\x00\x53\x73\xc0%c\x03\x40\x40\xa1%c%s" % (5 + len(to), len(to), to)


def header(level: int) -> bytes:
    """The header section of a message of this priority."""
    return b"\x00\x53\x70\xc0\x04\x02\x40\x50%c" % level


def _level(number: int) -> int:
    """What message ``number`` says of its priority: one more than there are. [3.2.1]"""
    return number % (HIGHEST_PRIORITY + 2)


class VanishingWalk(Walk):
    parts: list[Part]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.parts = []

    def acts(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            *super().acts(),
            (8, self.begin_part),
            (30, self.go_on),
            (3, self.give_up_part),
            (4, self.vanish_halfway),
            (3, self.end_session),
            (3, self.detach_link),
            (6, self.stop_reading),
            (4, self.read_again),
            (4, self.block_output),
            (3, self.unblock_outputs),
            (3, self.drain),
            (6, self.settle_late),
            (3, self.add_anonymous_sender),
        ]

    def pause(self) -> None:
        pause_s = self.random.choice(PAUSES_S)
        if pause_s is not None:
            self.mesh.run(pause_s)

    # Clients
    def client(self) -> SimClient:
        self._count += 1
        router = self.random.choice(sorted(self.mesh.routers))
        return self.mesh.client(router, f"c{self._count}", **self.random.choice(WINDOWS))

    def add_receiver(self) -> None:
        address, client = self.random.choice(ADDRESSES), self.client()
        modes = (SEND_MIXED, self.random.choice((RECEIVE_FIRST, RECEIVE_FIRST, RECEIVE_SECOND)))
        for _ in range(self.random.choice((1, 1, 3))):
            receiver = client.receiver(address, self.random.choice((1, 10, 100)), modes=modes)
            receiver.accepts = self.random.random() < 0.6
            self.receivers.append((address, client, receiver))

    def add_anonymous_sender(self) -> None:
        sender = (client := self.client()).sender(None)
        self.senders.append(("", client, sender))
        self.numbers[sender] = {}

    def message(self, address: str, padding: int) -> bytes:
        to = address or self.random.choice(ADDRESSES)
        message = super().message(to, padding)
        return header(_level(self._count)) + (message if address else addressed(to) + message)

    def priority_of(self, number: int) -> int:
        return min(_level(number), HIGHEST_PRIORITY)

    def can_begin(self, client: SimClient, sender: SimSender) -> bool:
        return super().can_begin(client, sender) and all(part.sender is not sender for part in self.parts)

    # Messages piece by piece
    def begin_part(self) -> None:
        ready = [
            (address, client, sender) for address, client, sender in self.senders if self.can_begin(client, sender)
        ]
        if not ready:
            return
        address, client, sender = self.random.choice(ready)
        message = self.message(address, self.random.choice((100, 5_000, 70_000, 70_000, 150_000)))
        delivery = sender.begin()
        self.numbers[sender][sender.count] = number_in(message)
        self.parts.append(Part(client, sender, delivery, message))
        self._send_piece(self.parts[-1])

    def go_on(self) -> None:
        self.parts = [part for part in self.parts if not part.is_over]
        for part in self.random.sample(self.parts, min(2, len(self.parts))):
            self._send_piece(part)

    def _send_piece(self, part: Part) -> None:
        assert part.delivery in part.sender.open, "an outcome before the message was complete"
        size = self.random.choice((10, 2_000, 40_000, 100_000))
        part.sender.link.send(part.rest[:size])
        part.rest = part.rest[size:]
        if not part.rest:
            part.sender.link.finish()
            self.parts.remove(part)

    def give_up_part(self) -> None:
        self.parts = [part for part in self.parts if not part.is_over]
        if self.parts:
            part = self.parts.pop(self.random.randrange(len(self.parts)))
            part.sender.abort(part.delivery)

    # Vanishing
    def vanish_halfway(self) -> None:
        """The producer of a message under way leaves, in one of the ways there are."""
        self.parts = [part for part in self.parts if not part.is_over]
        if not self.parts:
            return
        part = self.parts.pop(self.random.randrange(len(self.parts)))
        match self.random.randrange(4):
            case 0:
                self.mesh.cut(part.client.pipe)
            case 1:
                part.sender.link.close()
            case 2:
                part.sender.link.detach()
            case 3:
                self._end_session(part.client, part.sender.link)

    def end_session(self) -> None:
        ends = [(client, end.link) for _, client, end in (*self.receivers, *self.senders) if not client.closed]
        if ends:
            self._end_session(*self.random.choice(ends))

    def _end_session(self, client: SimClient, link: Any) -> None:
        link.session.end()
        client.closed = "it ended its session"
        if self.random.random() < 0.3:
            self.mesh.cut(client.pipe)

    def detach_link(self) -> None:
        if links := self.open_links():
            self.random.choice(links).detach()

    # Waiting for room
    def _open_receivers(self) -> list[SimReceiver]:
        return [each for _, client, each in self.receivers if each.link.is_open and not client.closed]

    def stop_reading(self) -> None:
        if receivers := self._open_receivers():
            self.random.choice(receivers).reads = False

    def read_again(self) -> None:
        for _, client, receiver in self.receivers:
            if not receiver.reads and self.random.random() < 0.7:
                self._read_again(client, receiver)

    def _read_again(self, client: SimClient, receiver: SimReceiver) -> None:
        receiver.reads = True
        if not client.closed and receiver.link.is_open:
            client.resume(receiver)

    def block_output(self) -> None:
        """A router's socket takes no more for a while."""
        ends = [end for pipe in self.mesh.pipes for end in pipe.ends if end[0] in self.mesh.routers.values()]
        if ends:
            self.random.choice(ends)[1].is_output_blocked = True

    def unblock_outputs(self) -> None:
        for pipe in self.mesh.pipes:
            for _, endpoint in pipe.ends:
                endpoint.is_output_blocked = False

    # Credit and outcomes
    def drain(self) -> None:
        if receivers := self._open_receivers():
            self.random.choice(receivers).link.request_drain(self.random.choice((0, 10)))

    def settle(self) -> None:
        for _, client, receiver in self.receivers:
            if not client.closed and receiver.link.is_open and self.random.random() < 0.7:
                self._answer(client, receiver)
                receiver.link.grant(5)

    def settle_late(self) -> None:
        """What a consumer holds may be answered after it left, until the router left too."""
        for _, client, receiver in self.receivers:
            if not client.closed and not receiver.link.is_gone and receiver.link.has_left:
                self._answer(client, receiver)

    def _answer(self, client: SimClient, receiver: SimReceiver) -> None:
        receiver.settle(self.random.choice(OUTCOMES))
        client.endpoint.mark_dirty()

    # The end
    def finish(self) -> Any:
        self.unblock_outputs()
        for _, client, receiver in self.receivers:
            self._read_again(client, receiver)
        while self.parts:
            self.go_on()
            self.mesh.run(0.01)
        return super().finish()

    def kept(self) -> list[tuple[str, str, int]]:
        """What routers still hold."""
        return [
            (name, address.address, address.unsettled)
            for name, router in self.mesh.routers.items()
            for address in router.snapshot().addresses
            if address.unsettled
        ]
