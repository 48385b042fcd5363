"""The handshake of the load generator, from a connection's first byte to attached links, without I/O of its own.

    Handshake   the client: sends SASL; after SASL, open and all begins and attaches without waiting for answers
    Welcome     the server, for a generator that is measured alone: accepts every link

The caller passes input to ``receive`` and sends ``output``. Once ``is_done``, ``leftover`` holds the input that does
not belong to the handshake.
Spec: AMQP 1.0 [2.4] connections, [2.5.1] sessions, [2.6.3] attaching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mesh.bench import performatives
from mesh.bench.performatives import ATTACH, BEGIN, CLOSE, DETACH, END, HEADER, OPEN, Performative, decode
from mesh.bench.values import DescribedValue
from mesh.client.errors import Unreachable
from wire.sasl import SaslClient, SaslClientSettings, SaslRefused
from wire.sasl import headers as protocols
from wire.transport.first_bytes import name_of


@dataclass(frozen=True, slots=True)
class LinkPlan:
    address: str
    """The address of the terminus at the peer; empty for a sender whose messages name their addresses themselves."""
    is_receiver: bool
    settle_mode: int = performatives.SEND_MIXED
    is_lasting: bool = False
    """Whether the link is a durable subscription, which is deleted when the connection is closed in order."""

    @property
    def what(self) -> str:
        return f"cannot {'receive from' if self.is_receiver else 'send to'} {self.address or 'addresses in messages'}"


@dataclass(frozen=True, slots=True)
class Attached:
    """A link of the load generator whose attach the peer has answered, with the state of the link's session."""

    plan: LinkPlan
    channel: int
    peer_channel: int
    remote_window: int
    next_incoming_id: int
    delivery_count: int


@dataclass(frozen=True, slots=True)
class PeerOpen:
    frame_bytes: int = 0xFFFFFFFF
    channel_max: int = 65535
    idle_timeout_s: float = 0.0


class NoSaslLayer(Exception):
    """The peer answered SASL with the AMQP header, and no user has to log in: a connection without SASL may work."""


@dataclass(slots=True)
class _Session:
    peer_channel: int
    next_incoming_id: int
    remote_window: int


@dataclass(slots=True)
class _Frames:
    """A parser of the peer's bytes: gives performatives, and keeps the bytes of frames of no use in a handshake."""

    buffer: bytearray = field(default_factory=bytearray)
    kept: bytearray = field(default_factory=bytearray)
    is_header_read: bool = False

    def take(self) -> Performative | None:
        if not self.is_header_read and not self._read_header():
            return None
        performative = decode(self.buffer)
        if performative is not None:
            if performative.code not in (OPEN, BEGIN, ATTACH, DETACH, END, CLOSE):
                self.kept += self.buffer[: performative.frame_bytes]
            del self.buffer[: performative.frame_bytes]
        return performative

    def _read_header(self) -> bool:
        seen = bytes(self.buffer[: len(HEADER)])
        if protocols.is_prefix_of_header(seen):
            return False
        if seen != HEADER:
            raise Unreachable(
                f"expected the header of AMQP 1.0 without a SASL layer, but the peer sent {name_of(bytes(self.buffer))}"
            )
        del self.buffer[: len(HEADER)]
        self.is_header_read = True
        return True


class Handshake:
    def __init__(
        self, container_id: str, hostname: str, links: Sequence[LinkPlan], sasl: SaslClientSettings | None
    ) -> None:
        """Begin the handshake: put the first bytes to send into the output. Without ``sasl``, these are the header of
        AMQP, open and all attaches.
        """
        self._links = list(links)
        self._sasl = SaslClient(sasl) if sasl is not None else None
        self._is_nobody = sasl is not None and sasl.user is None
        self._hello = HEADER + performatives.open_frame(container_id, hostname) + self._attaches(container_id)
        self._output = bytearray(self._sasl.output() if self._sasl is not None else self._hello)
        self._frames = _Frames()
        self._sessions: dict[int, _Session] = {}
        self._attached: dict[int, Attached] = {}
        self._is_open = False
        self.peer = PeerOpen()

    def _attaches(self, container_id: str) -> bytes:
        frames = bytearray()
        for channel, link in enumerate(self._links):
            name = f"{container_id}-{channel}"
            frames += performatives.begin_frame(channel)
            frames += performatives.attach_frame(
                channel,
                name,
                is_receiver=link.is_receiver,
                address=link.address,
                settle_mode=link.settle_mode,
                is_lasting=link.is_lasting,
            )
        return bytes(frames)

    @property
    def is_done(self) -> bool:
        return self._is_open and len(self._attached) == len(self._links)

    @property
    def attached(self) -> list[Attached]:
        """Return the attached links, in the order of the link plans that the handshake was made with."""
        return [self._attached[channel] for channel in range(len(self._links))]

    @property
    def leftover(self) -> bytes:
        return bytes(self._frames.kept + self._frames.buffer)

    def output(self) -> bytes:
        data = bytes(self._output)
        self._output.clear()
        return data

    def receive(self, data: bytes) -> None:
        """Take in the peer's bytes, and put the answers into the output.

        Raise Unreachable, BenchRefused or Malformed; raise NoSaslLayer if a new connection without SASL may work.
        """
        if self._sasl is not None and self._sasl.verdict is None:
            data = self._receive_sasl(self._sasl, data)
        self._frames.buffer += data
        while not self.is_done and (performative := self._frames.take()) is not None:
            self._on(performative)

    def _receive_sasl(self, sasl: SaslClient, data: bytes) -> bytes:
        if self._is_nobody and data.startswith(HEADER):
            raise NoSaslLayer
        sasl.receive(data)
        self._output += sasl.output()
        if isinstance(sasl.verdict, SaslRefused):
            raise Unreachable(sasl.verdict.reason)
        if sasl.verdict is not None:
            self._output += self._hello
        return sasl.leftover

    def _on(self, performative: Performative) -> None:
        match performative.code:
            case performatives.OPEN:
                self.peer = read_open(performative)
                self._is_open = True
            case performatives.BEGIN:
                self._on_begin(performative)
            case performatives.ATTACH:
                self._on_attach(performative)
            case performatives.DETACH | performatives.END | performatives.CLOSE:
                raise self._why_ended(performative)

    def _on_begin(self, begin: Performative) -> None:
        self._sessions[begin.field(0, begin.channel)] = read_begin(begin)

    def _on_attach(self, attach: Performative) -> None:
        """Note the peer's answer to an attach of this client; an answer with a null terminus only announces that a
        detach will refuse the link. [2.6.3]
        """
        channel = self._channel_of(attach)
        if channel is None:
            return
        plan, session = self._links[channel], self._sessions[channel]
        if is_answered(attach, plan):
            self._attached[channel] = attached_to(plan, channel, session, attach)

    def _why_ended(self, performative: Performative) -> Exception:
        channel = self._channel_of(performative)
        what = self._links[channel].what if channel is not None else "session"
        error = performative.field(2 if performative.code == DETACH else 0)
        return performatives.ended(performative.code, error, what)

    def _channel_of(self, performative: Performative) -> int | None:
        """Return our channel of the session on which the peer sent ``performative``; None if the peer has begun no
        session there.
        """
        found = (ours for ours, session in self._sessions.items() if session.peer_channel == performative.channel)
        return next(found, None)


class Welcome:
    """The server's side of the handshake: accepts ``count`` links of any kind, which ``attached`` lists."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._frames = _Frames()
        self._output = bytearray()
        # The key is the peer's channel of a session; the value is our channel of the same session, and the session.
        self._sessions: dict[int, tuple[int, _Session]] = {}
        self._is_gone = False
        self.peer = PeerOpen()
        self.attached: list[Attached] = []

    @property
    def is_done(self) -> bool:
        return len(self.attached) == self._count

    @property
    def is_over(self) -> bool:
        """Tell whether the handshake is done, or has failed because the peer has gone or wants SASL.

        The answer to SASL is the AMQP header. [2.2]
        """
        return self._is_gone or self.is_done

    @property
    def leftover(self) -> bytes:
        return bytes(self._frames.kept + self._frames.buffer)

    def output(self) -> bytes:
        data = bytes(self._output)
        self._output.clear()
        return data

    def receive(self, data: bytes) -> None:
        self._frames.buffer += data
        if not data or self._frames.buffer.startswith(protocols.SASL):
            self._output += HEADER
            self._is_gone = True
            return
        while not self.is_done and (performative := self._frames.take()) is not None:
            self._on(performative)

    def _on(self, performative: Performative) -> None:
        match performative.code:
            case performatives.OPEN:
                self.peer = read_open(performative)
                self._output += HEADER + performatives.open_frame("amqpmesh-bench-sink", "localhost")
            case performatives.BEGIN:
                channel = len(self._sessions)
                self._sessions[performative.channel] = channel, read_begin(performative)
                self._output += performatives.begin_frame(channel, performative.channel)
            case performatives.ATTACH:
                self._on_attach(performative)

    def _on_attach(self, attach: Performative) -> None:
        is_receiver = not attach.field(2, False)
        address = terminus_address(attach.field(6 if is_receiver else 5)) or ""
        plan = LinkPlan(address, is_receiver, attach.field(3, performatives.SEND_MIXED))
        channel, session = self._sessions[attach.channel]
        self._output += performatives.attach_frame(
            channel, attach.field(0, ""), is_receiver=is_receiver, address=address, settle_mode=plan.settle_mode
        )
        self.attached.append(attached_to(plan, channel, session, attach))


def read_open(performative: Performative) -> PeerOpen:
    return PeerOpen(performative.field(2, 0xFFFFFFFF), performative.field(3, 65535), performative.field(4, 0) / 1000.0)


def read_begin(begin: Performative) -> _Session:
    return _Session(begin.channel, begin.field(1, 0), begin.field(2, 0))


def attached_to(plan: LinkPlan, channel: int, session: _Session, attach: Performative) -> Attached:
    delivery_count = attach.field(9, 0)
    return Attached(
        plan, channel, session.peer_channel, session.remote_window, session.next_incoming_id, delivery_count
    )


def is_answered(attach: Performative, plan: LinkPlan) -> bool:
    """Tell whether the peer's attach accepts the link: an attach without the peer's terminus announces a refusal."""
    return attach.field(5 if plan.is_receiver else 6) is not None


def terminus_address(terminus: Any) -> str | None:
    if isinstance(terminus, DescribedValue) and isinstance(terminus.value, list) and terminus.value:
        return str(terminus.value[0]) if terminus.value[0] is not None else None
    return None
