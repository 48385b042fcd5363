"""Sessions and links of one connection, in AMQP's words over proton's engine.

Spec: AMQP 1.0 [2.6]. Credit is a number of deliveries; only the receiver grants credit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from wire import condition, data, frame_size, terminus
from wire.core import IncomingCore, LinkCore, OutgoingCore, SessionCore
from wire.engine import NULL, Pointer, address_of, chars, lib, text
from wire.errors import AmqpError, FrameTooSmall
from wire.terminus import Terminus, TerminusHead

if TYPE_CHECKING:
    from wire.endpoint import Endpoint

SEND_UNSETTLED, SEND_SETTLED, SEND_MIXED = lib.PN_SND_UNSETTLED, lib.PN_SND_SETTLED, lib.PN_SND_MIXED
RECEIVE_FIRST, RECEIVE_SECOND = lib.PN_RCV_FIRST, lib.PN_RCV_SECOND
SEND_WORDS = {SEND_UNSETTLED: "unsettled", SEND_SETTLED: "settled", SEND_MIXED: "mixed"}
RECEIVE_WORDS = {RECEIVE_FIRST: "first", RECEIVE_SECOND: "second"}


class Session(SessionCore):
    """A session of a connection. The incoming window bounds the unread bytes of all links of the session. [2.5.6]"""

    __slots__ = ("ends_with_its_links", "has_left", "is_over", "link_count", "onward", "pointer")

    endpoint: Endpoint

    def __init__(self, endpoint: Endpoint, pointer: Pointer) -> None:
        super().__init__(endpoint, address_of(pointer))
        self.pointer = pointer
        self.link_count = 0
        self.onward: dict[tuple[Any, int], list[Session]] | None = None
        """The sessions of other connections in which a router carries on links of this session, by keys of the router.
        """
        self.is_over = False
        self.has_left = False
        """We ended the session, so further input of the peer on the session is ignored. [2.5.5]"""
        self.ends_with_its_links = False

    def sender(self, name: str) -> OutgoingLink:
        """Return a new outgoing link in this session; the caller sets the link's source and target, and opens it."""
        return self.endpoint.adopt(OutgoingLink(self, lib.pn_sender(self.pointer, chars(name))))

    def receiver(self, name: str) -> IncomingLink:
        return self.endpoint.adopt(IncomingLink(self, lib.pn_receiver(self.pointer, chars(name))))

    def end(self, error: AmqpError | None = None) -> None:
        """End the session now, or once the peer has answered our begin.

        The engine would close the connection at an answer to a session that has ended.
        """
        condition.write(lib.pn_session_condition(self.pointer), error, self.endpoint)
        self.has_left = True
        if not lib.pn_session_state(self.pointer) & lib.PN_REMOTE_UNINIT:
            self._close()

    def on_answered(self) -> None:
        """Note that the peer answered our begin: if `end` was called before the answer, end the session now."""
        if self.has_left:
            self._close()

    def _close(self) -> None:
        lib.pn_session_close(self.pointer)
        self.endpoint.mark_dirty()


Method = TypeVar("Method", bound=Callable[..., None])


def _unless_gone(method: Method) -> Method:
    """Decorate a method of a link so that it does nothing once the engine's link was freed.

    Methods for deliveries go without this check, since their callers know that the link lives.
    """

    @functools.wraps(method)
    def guarded(self: Link, *arguments: Any) -> None:
        if not self.is_gone:
            method(self, *arguments)

    return cast("Method", guarded)


class Link(LinkCore):
    """Common part of incoming and outgoing links. ``owner`` is the object that handles the link's deliveries.

    ``has_left`` and ``has_peer_left`` say which side has ended the link: proton's state shows a close but no detach.
    """

    __slots__ = ()

    endpoint: Endpoint
    session: Session

    def __init__(self, session: Session, pointer: Pointer) -> None:
        super().__init__(session, pointer, address_of(pointer), text(lib.pn_link_name(pointer)) or "")

    # Our attach
    @_unless_gone
    def set_source(self, value: Terminus) -> None:
        terminus.write(lib.pn_link_source(self.pointer), value)

    @_unless_gone
    def set_target(self, value: Terminus) -> None:
        terminus.write(lib.pn_link_target(self.pointer), value)

    @_unless_gone
    def copy_source(self, other: Link) -> None:
        """Set the source to exactly the source that the peer of ``other`` sent, filters and all."""
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
    def set_property(self, key: str, value: str) -> None:
        """Set the text ``value`` under ``key`` as the only property of our attach; earlier properties are dropped."""
        data.write_text(lib.pn_link_properties(self.pointer), key, value)

    @_unless_gone
    def set_settle_modes(self, send: int, receive: int) -> None:
        lib.pn_link_set_snd_settle_mode(self.pointer, send)
        lib.pn_link_set_rcv_settle_mode(self.pointer, receive)

    @_unless_gone
    def set_max_message_bytes(self, value: int) -> None:
        lib.pn_link_set_max_message_size(self.pointer, value)

    # The peer's attach
    @property
    def remote_source(self) -> Terminus:
        return terminus.read(lib.pn_link_remote_source(self.pointer))

    @property
    def remote_target(self) -> Terminus:
        return terminus.read(lib.pn_link_remote_target(self.pointer))

    @property
    def wanted(self) -> TerminusHead:
        """The head of our side's terminus in the peer's attach: target of an incoming, source of an outgoing link."""
        near = lib.pn_link_remote_target if self.is_incoming else lib.pn_link_remote_source
        return terminus.read_head(near(self.pointer))

    @property
    def wanted_capabilities(self) -> tuple[str, ...]:
        """The capabilities of our side's terminus in the peer's attach, as `wanted` has the terminus's head."""
        near = lib.pn_link_remote_target if self.is_incoming else lib.pn_link_remote_source
        return data.read_symbols(lib.pn_terminus_capabilities(near(self.pointer)))

    @property
    def said_address(self) -> str | None:
        """The address that our attach gives the peer's terminus: target of an outgoing, source of an incoming link."""
        far = lib.pn_link_target if lib.pn_link_is_sender(self.pointer) else lib.pn_link_source
        return text(lib.pn_terminus_get_address(far(self.pointer)))

    def own_property(self, key: str) -> str | None:
        """Return the text under ``key`` in the properties of our attach; None where there is no text."""
        properties = lib.pn_link_properties(self.pointer)
        return None if properties == NULL else data.read_text(properties, key)

    def remote_property(self, key: str) -> str | None:
        """Return the text under ``key`` in the properties of the peer's attach; None where there is no text."""
        properties = lib.pn_link_remote_properties(self.pointer)
        return None if properties == NULL else data.read_text(properties, key)

    @property
    def is_refused(self) -> bool:
        """Whether the peer answered our attach with a null terminus on its own side: it refuses the link. [2.6.3]

        The peer's detach with the reason follows. Callers ask only once the peer has answered.
        """
        own = lib.pn_link_remote_target if lib.pn_link_is_sender(self.pointer) else lib.pn_link_remote_source
        return bool(lib.pn_terminus_get_type(own(self.pointer)) == lib.PN_UNSPECIFIED)

    def has_peer_left_in_order(self, error: AmqpError | None) -> bool:
        """Whether the peer ended the link by its own will: by a detach, an end or a close, and without an ``error``.

        False for a link that we ended first, or whose connection was lost: the peer may have wanted to keep the link.
        """
        if self.is_gone or self.has_left or self.session.has_left:
            return False
        if self.has_peer_left or self.session.is_over:
            return error is None
        return self.endpoint.has_peer_closed_in_order

    @property
    def may_outlive(self) -> bool:
        """Whether our terminus of the link may have to stay when the link ends otherwise than by a closing detach.

        True if a terminus in the peer's attach is to outlive the link, or if the terminus there for our side is null,
        by which the peer asks for an earlier terminus of the link's name. [2.6.3]
        """
        ends = lib.pn_link_remote_source(self.pointer), lib.pn_link_remote_target(self.pointer)
        if any(map(terminus.outlives_link, ends)):
            return True
        return bool(lib.pn_terminus_get_type(ends[not lib.pn_link_is_sender(self.pointer)]) == lib.PN_UNSPECIFIED)

    @property
    def is_browser(self) -> bool:
        """Whether the peer asks for copies of messages that stay in their queue (distribution mode copy). [3.5.3]"""
        return terminus.is_browsed(lib.pn_link_remote_source(self.pointer))

    @property
    def remote_settle_modes(self) -> tuple[int, int]:
        """(snd-settle-mode, rcv-settle-mode) as the peer proposed them."""
        return (
            lib.pn_link_remote_snd_settle_mode(self.pointer),
            lib.pn_link_remote_rcv_settle_mode(self.pointer),
        )

    @property
    def settle_modes(self) -> tuple[str, str]:
        """The words of (snd-settle-mode, rcv-settle-mode) in the peer's attach, or in ours while there is none of the
        peer. [2.8.2], [2.8.3]
        """
        own = lib.pn_link_snd_settle_mode(self.pointer), lib.pn_link_rcv_settle_mode(self.pointer)
        send, receive = self.remote_settle_modes if self.is_peer_attached else own
        return SEND_WORDS[send], RECEIVE_WORDS[receive]

    @property
    def remote_max_message_bytes(self) -> int:
        """Size in bytes of the largest message that the peer takes over the link; 0: no limit."""
        return int(lib.pn_link_remote_max_message_size(self.pointer))

    # Life
    def open(self) -> None:
        """Send our attach, which may answer the peer's attach. If `check_fits` raises an error, nothing is sent."""
        if self.is_gone:
            return
        self.check_fits()
        lib.pn_link_open(self.pointer)
        self.endpoint.mark_dirty()

    def check_fits(self) -> None:
        """Raise FrameTooSmall if our attach, as it is now, is larger than the frames that the peer takes.

        Raise AmqpError if the attach cannot be encoded. With either error, a link that the peer has not attached is
        freed. The maker of a link may call this before any other object uses the link; `open` then measures no second
        time.
        """
        if self.is_gone or self.is_measured:
            return
        excess = frame_size.find_excess(self)
        if excess is None:
            self.is_measured = True
            return
        is_answer = self.is_peer_attached
        if not is_answer:
            self.endpoint.forget(self)
        size, limit = excess
        if size < 0:
            raise AmqpError(
                "amqp:decode-error", "our attach repeats a malformed field of a peer's attach, and cannot be encoded"
            )
        peer = self.endpoint.peer_name
        if is_answer:
            raise FrameTooSmall(
                f"the answer to this attach has {size} bytes, and {peer} takes frames of at most {limit} bytes"
            )
        raise FrameTooSmall(f"the attach to {peer} has {size} bytes, and {peer} takes frames of at most {limit} bytes")

    def fits(self) -> bool:
        """Say whether our attach, as it is now, is no larger than the frames that the peer takes."""
        return self.is_gone or frame_size.find_excess(self) is None

    @property
    def is_peer_attached(self) -> bool:
        return bool(lib.pn_link_state(self.pointer) & lib.PN_REMOTE_ACTIVE)

    @_unless_gone
    def accept_as_proposed(self) -> None:
        """Accept the link that the peer attached: answer with an attach of the same source, target and settle modes."""
        self._copy_all_but_source()
        lib.pn_terminus_copy(lib.pn_link_source(self.pointer), lib.pn_link_remote_source(self.pointer))
        self.open()

    @_unless_gone
    def accept_plain_source(self) -> None:
        """Answer the peer's attach as proposed, but for the source: see `wire.terminus.copy_plain_source`.

        The caller opens the link.
        """
        self._copy_all_but_source()
        terminus.copy_plain_source(lib.pn_link_source(self.pointer), lib.pn_link_remote_source(self.pointer))

    def _copy_all_but_source(self) -> None:
        pointer = self.pointer
        lib.pn_terminus_copy(lib.pn_link_target(pointer), lib.pn_link_remote_target(pointer))
        lib.pn_link_set_snd_settle_mode(pointer, lib.pn_link_remote_snd_settle_mode(pointer))
        lib.pn_link_set_rcv_settle_mode(pointer, lib.pn_link_remote_rcv_settle_mode(pointer))

    @_unless_gone
    def settle_as_asked(self) -> None:
        """Set in our attach, the answer to the peer's, the settle modes that the peer asked for. [2.8.2], [2.8.3]"""
        self.set_settle_modes(*self.remote_settle_modes)

    @_unless_gone
    def refuse(self, error: AmqpError) -> None:
        """Refuse the link that the peer attached: attach with null termini, as the spec asks; detach with ``error``.

        Callers do this in place of ``open``. [2.6.3]
        """
        self.close(error)

    def _answer_with_nothing(self) -> bool:
        """Attach with null termini, so that a detach can follow: the engine sends none for a link never attached here.

        If not even this attach fits a frame of the peer, close the connection, and return False.
        """
        # Source and target are set to null here, since the engine writes a terminus that was never set as an empty
        # terminus and not as null.
        self.set_source(terminus.NULL_TERMINUS)
        self.set_target(terminus.NULL_TERMINUS)
        if (excess := frame_size.find_excess(self)) is not None:
            name_bytes = len(self.name.encode())
            self.endpoint.close(
                FrameTooSmall(
                    f"the name of a link has {name_bytes} bytes, and its answer does not fit in "
                    f"frames of {excess[1]} bytes"
                )
            )
            return False
        lib.pn_link_open(self.pointer)
        return True

    def close(self, error: AmqpError | None = None) -> None:
        self._end(error, lib.pn_link_close)

    def detach(self, error: AmqpError | None = None) -> None:
        """End the link by a detach with closed=false: its terminus stays, and can be attached again. [2.6.4]"""
        self._end(error, lib.pn_link_detach)

    def _end(self, error: AmqpError | None, end: Any) -> None:
        if self.is_gone or self.has_left:
            return
        self.has_left = True
        if lib.pn_link_state(self.pointer) & lib.PN_LOCAL_UNINIT and not self._answer_with_nothing():
            # The answer was too large, so the connection is closed now: if the link were ended, too, the engine would
            # write the large attach after all.
            return
        if error is None and self.is_stolen:
            error = AmqpError("amqp:link:stolen", f"link {self.name!r} was attached again")
        condition.write(lib.pn_link_condition(self.pointer), error or self.fault, self.endpoint)
        end(self.pointer)
        self.endpoint.mark_dirty()
        if self.has_peer_left or self.session.is_over:
            self.endpoint.forget(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class IncomingLink(IncomingCore, Link):
    """A link on which this container receives.

    Always: the sender may start at most ``credit + slack`` further deliveries, whichever of our flows it has seen. The
    slack is credit that we took back, and that the sender may have used before it heard of that.
    """

    __slots__ = ()


class OutgoingLink(OutgoingCore, Link):
    """A link on which this container sends."""

    __slots__ = ()
