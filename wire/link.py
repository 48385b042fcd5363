"""Sessions and links of one connection, in AMQP's words over proton's engine.

Spec: AMQP 1.0 [2.6]. Credit is a number of deliveries; only the receiver grants it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from wire import condition, data, terminus
from wire.engine import NULL, Pointer, chars, ffi, lib, plain_pointer, session_remote_window_frames, text
from wire.errors import AmqpError, LocalStateError
from wire.terminus import Terminus

if TYPE_CHECKING:
    from wire.endpoint import Endpoint

OUTPUT_BOUND_BYTES = 65536
"""Unsent bytes in one transport above which a link is not writable: every delivery that sits in proton is rescanned."""

SEND_UNSETTLED, SEND_SETTLED, SEND_MIXED = lib.PN_SND_UNSETTLED, lib.PN_SND_SETTLED, lib.PN_SND_MIXED
RECEIVE_FIRST, RECEIVE_SECOND = lib.PN_RCV_FIRST, lib.PN_RCV_SECOND

_LOCAL_ACTIVE = lib.PN_LOCAL_ACTIVE
_REMOTE_ACTIVE = lib.PN_REMOTE_ACTIVE


class Session:
    """One session; its incoming window bounds what its links may leave unread here."""

    __slots__ = ("_plain", "endpoint", "ends_with_its_links", "is_over", "link_count", "owner", "pointer")

    def __init__(self, endpoint: Endpoint, pointer: Pointer) -> None:
        self.endpoint = endpoint
        self.pointer = pointer
        self.owner: Any = None
        self.link_count = 0
        self.is_over = False
        self.ends_with_its_links = False
        self._plain = plain_pointer(pointer)

    @property
    def remote_window_frames(self) -> int:
        return session_remote_window_frames(self._plain)

    def sender(self, name: str) -> OutgoingLink:
        """A new outgoing link, to be given termini and opened."""
        return self.endpoint.adopt(OutgoingLink(self, lib.pn_sender(self.pointer, chars(name))))

    def receiver(self, name: str) -> IncomingLink:
        return self.endpoint.adopt(IncomingLink(self, lib.pn_receiver(self.pointer, chars(name))))

    def end(self, error: AmqpError | None = None) -> None:
        condition.write(lib.pn_session_condition(self.pointer), error)
        lib.pn_session_close(self.pointer)
        self.endpoint.mark_dirty()


Method = TypeVar("Method", bound=Callable[..., None])


def _unless_gone(method: Method) -> Method:
    """Nothing can be said over a link whose engine part was given back: what still wants to, comes too late.

    On all but the per-delivery methods, whose callers know that their link lives.
    """

    @functools.wraps(method)
    def guarded(self: Link, *arguments: Any) -> None:
        if not self.is_gone:
            method(self, *arguments)

    return cast("Method", guarded)


class Link:
    """What both directions share. ``owner`` belongs to whoever handles the link's deliveries."""

    __slots__ = (
        "__weakref__",
        "endpoint",
        "has_left",
        "has_peer_left",
        "is_gone",
        "name",
        "owner",
        "pointer",
        "session",
    )

    def __init__(self, session: Session, pointer: Pointer) -> None:
        self.session = session
        self.endpoint = session.endpoint
        self.pointer = pointer
        self.owner: Any = None
        self.name = text(lib.pn_link_name(pointer)) or ""
        # Kept here, since proton's state shows a close but not a detach.
        self.has_left = False
        self.has_peer_left = False
        self.is_gone = False

    @property
    def is_open(self) -> bool:
        """Attached from both sides."""
        if self.is_gone or self.has_left or self.has_peer_left:
            return False
        state = lib.pn_link_state(self.pointer)
        return bool(state & _LOCAL_ACTIVE and state & _REMOTE_ACTIVE)

    # What we say
    @_unless_gone
    def set_source(self, value: Terminus) -> None:
        terminus.write(lib.pn_link_source(self.pointer), value)

    @_unless_gone
    def set_target(self, value: Terminus) -> None:
        terminus.write(lib.pn_link_target(self.pointer), value)

    @_unless_gone
    def copy_source(self, other: Link) -> None:
        """Say of the source exactly what the peer of ``other`` said, filters and all."""
        lib.pn_terminus_copy(lib.pn_link_source(self.pointer), lib.pn_link_remote_source(other.pointer))

    @_unless_gone
    def copy_target(self, other: Link) -> None:
        lib.pn_terminus_copy(lib.pn_link_target(self.pointer), lib.pn_link_remote_target(other.pointer))

    @_unless_gone
    def set_source_address(self, address: str | None) -> None:
        lib.pn_terminus_set_address(lib.pn_link_source(self.pointer), chars(address))

    @_unless_gone
    def set_target_address(self, address: str | None) -> None:
        lib.pn_terminus_set_address(lib.pn_link_target(self.pointer), chars(address))

    def set_source_capabilities(self, capabilities: Iterable[str]) -> None:
        data.write_symbols(lib.pn_terminus_capabilities(lib.pn_link_source(self.pointer)), capabilities)

    def set_target_capabilities(self, capabilities: Iterable[str]) -> None:
        data.write_symbols(lib.pn_terminus_capabilities(lib.pn_link_target(self.pointer)), capabilities)

    @_unless_gone
    def set_properties(self, value: Mapping[str, Any]) -> None:
        data.write_map(lib.pn_link_properties(self.pointer), value)

    @_unless_gone
    def set_settle_modes(self, send: int, receive: int) -> None:
        lib.pn_link_set_snd_settle_mode(self.pointer, send)
        lib.pn_link_set_rcv_settle_mode(self.pointer, receive)

    @_unless_gone
    def set_max_message_bytes(self, value: int) -> None:
        lib.pn_link_set_max_message_size(self.pointer, value)

    # What the peer says
    @property
    def remote_source(self) -> Terminus:
        return terminus.read(lib.pn_link_remote_source(self.pointer))

    @property
    def remote_target(self) -> Terminus:
        return terminus.read(lib.pn_link_remote_target(self.pointer))

    @property
    def remote_properties(self) -> dict[str, Any]:
        properties = lib.pn_link_remote_properties(self.pointer)
        return {} if properties == NULL else data.read_map(properties)

    @property
    def remote_settle_modes(self) -> tuple[int, int]:
        """(snd-settle-mode, rcv-settle-mode) as the peer proposed them."""
        return (
            lib.pn_link_remote_snd_settle_mode(self.pointer),
            lib.pn_link_remote_rcv_settle_mode(self.pointer),
        )

    @property
    def remote_max_message_bytes(self) -> int:
        """0: no limit."""
        return int(lib.pn_link_remote_max_message_size(self.pointer))

    # Life
    @_unless_gone
    def open(self) -> None:
        lib.pn_link_open(self.pointer)
        self.endpoint.mark_dirty()

    @_unless_gone
    def accept_as_proposed(self) -> None:
        """Answer the peer's attach with its own termini, modes and our consent."""
        self.copy_source(self)
        self.copy_target(self)
        self.set_settle_modes(*self.remote_settle_modes)
        self.open()

    @_unless_gone
    def refuse(self, error: AmqpError) -> None:
        """Answer an attach as the spec asks: attach back with a null terminus, then detach with the error. [2.6.3]"""
        # The engine's termini start as empty ones, and those are not null.
        self.set_source(terminus.NULL_TERMINUS)
        self.set_target(terminus.NULL_TERMINUS)
        lib.pn_link_open(self.pointer)
        self.close(error)

    def close(self, error: AmqpError | None = None) -> None:
        self._end(error, lib.pn_link_close)

    def detach(self, error: AmqpError | None = None) -> None:
        """Leave, keeping the terminus: closed=false. [2.6.4]"""
        self._end(error, lib.pn_link_detach)

    def _end(self, error: AmqpError | None, end: Any) -> None:
        if self.is_gone or self.has_left:
            return
        self.has_left = True
        condition.write(lib.pn_link_condition(self.pointer), error)
        end(self.pointer)
        self.endpoint.mark_dirty()
        if self.has_peer_left or self.session.is_over:
            self.endpoint.forget(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class IncomingLink(Link):
    """A link on which this container receives.

    Always: the sender may have started ``credit + _slack`` deliveries more, no matter which of our flows it has seen.
    """

    __slots__ = ("_slack", "read_bytes")

    def __init__(self, session: Session, pointer: Pointer) -> None:
        super().__init__(session, pointer)
        self._slack = 0
        """Credit that was taken back, and that the sender may have used before it heard of that."""
        self.read_bytes = 0
        """Taken so far of the current delivery."""

    @property
    def credit(self) -> int:
        """Deliveries the sender may still start; negative when it started more than it was promised."""
        return int(lib.pn_link_credit(self.pointer)) - int(lib.pn_link_queued(self.pointer))

    @property
    def excess(self) -> int:
        """Deliveries the sender started beyond all credit it ever had; above 0 it broke the rules. [2.6.7]"""
        return -self.credit - self._slack

    @property
    def queued(self) -> int:
        """Deliveries here that were not advanced past."""
        return int(lib.pn_link_queued(self.pointer))

    @_unless_gone
    def grant(self, deliveries: int) -> None:
        """Raise the sender's credit."""
        if deliveries < 0:
            raise LocalStateError(f"grant of {deliveries} on {self!r}; reduce with set_credit")
        self._change_credit(deliveries)
        self.endpoint.mark_dirty()

    @_unless_gone
    def set_credit(self, deliveries: int) -> None:
        """Make the sender's credit exactly this; transfers that cross a reduction still arrive."""
        change = deliveries - self.credit
        if change == 0:
            return
        self._change_credit(change)
        if change < 0:
            self.endpoint.note_reduced(self)
        self.endpoint.mark_dirty()

    def forgive_crossed(self) -> None:
        """Count out what the sender started before it heard that its credit was taken back."""
        if self._slack and self.credit < 0:
            self._change_credit(min(-self.credit, self._slack))

    def forgive(self, deliveries: int) -> None:
        """Make up for transfers that crossed a reduction of credit."""
        self._change_credit(deliveries)

    def _change_credit(self, change: int) -> None:
        self._slack = max(0, self._slack - change)
        lib.pn_link_flow(self.pointer, change)

    @_unless_gone
    def request_drain(self, deliveries: int) -> None:
        """Grant, and ask the sender to use the credit now or give it back. [2.6.7]"""
        self._slack = max(0, self._slack - deliveries)
        lib.pn_link_drain(self.pointer, deliveries)
        self.endpoint.mark_dirty()

    @_unless_gone
    def end_drain(self) -> None:
        lib.pn_link_set_drain(self.pointer, False)

    @property
    def is_drain_pending(self) -> bool:
        """We asked for a drain, and the sender still holds credit."""
        return bool(lib.pn_link_draining(self.pointer))

    @property
    def current(self) -> Pointer | None:
        """The oldest delivery not advanced past, or None."""
        delivery = lib.pn_link_current(self.pointer)
        return None if delivery == NULL else delivery

    def recv(self, max_bytes: int) -> bytes:
        """Take what has arrived of the current delivery; b"" when nothing is there now, or it ended."""
        buffer = bytearray(max_bytes)
        count = lib.pn_link_recv(self.pointer, ffi.from_buffer(buffer), max_bytes)
        self.endpoint.mark_dirty()  # reading reopens the session's window
        if count <= 0:
            return b""
        self.read_bytes += count
        return bytes(memoryview(buffer)[:count])

    def advance(self) -> None:
        self.read_bytes = 0
        lib.pn_link_advance(self.pointer)
        self.endpoint.mark_dirty()


class OutgoingLink(Link):
    """A link on which this container sends."""

    __slots__ = ()

    @property
    def credit(self) -> int:
        """Deliveries we may still start. Counts a started one only when it is finished."""
        return int(lib.pn_link_credit(self.pointer))

    @property
    def is_draining(self) -> bool:
        return bool(lib.pn_link_get_drain(self.pointer))

    @_unless_gone
    def drained(self) -> None:
        """Give back all credit: there is nothing to send. [2.6.7]"""
        lib.pn_link_drained(self.pointer)
        self.endpoint.mark_dirty()

    @property
    def is_writable(self) -> bool:
        """Proton could put a chunk on the wire now: hand it nothing that would sit inside it."""
        return self.endpoint.has_room and self.session.remote_window_frames > 0

    def start(self, tag: bytes) -> Pointer:
        """Begin a delivery; it becomes the current one."""
        return lib.pn_delivery(self.pointer, (len(tag), ffi.from_buffer(tag)))

    def send(self, chunk: bytes) -> None:
        """Append to the current delivery."""
        lib.pn_link_send(self.pointer, ffi.from_buffer(chunk), len(chunk))
        self.endpoint.note_unsent(len(chunk))

    def finish(self) -> None:
        """The current delivery is complete."""
        lib.pn_link_advance(self.pointer)
        self.endpoint.mark_dirty()

    def abort(self, delivery: Pointer) -> None:
        """End a delivery that will never be complete; the receiver throws away what it has. [2.6.14]"""
        lib.pn_delivery_abort(delivery)
        self.endpoint.mark_dirty()
