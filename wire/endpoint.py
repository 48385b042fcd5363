"""One AMQP connection, sans-IO: bytes in, bytes out, events; the time is an argument.

Routers, brokers and clients use the same endpoint, after TLS and SASL (``wire.sasl``). Spec: AMQP 1.0 [2.4].
Bytes, events and room for output are compiled, in `wire.core`. Behaviour of proton 0.40 that shapes the code, each with
a test: a session's window is unlimited unless set, so it is always set; a session or link above the peer's limits ends
the transport silently, so both are counted here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wire import condition, connection_end, data
from wire.connection_end import ConnectionEnd
from wire.core import DeliveryOwner, DirtyEndpoints, EndpointCore, pass_on
from wire.engine import (
    Pointer,
    address_of,
    chars,
    free_engine,
    lib,
    new_transport,
    pointer_to,
    set_session_window,
    text,
)
from wire.errors import AmqpError, ConnectionFault, LocalStateError
from wire.events import (
    Closed,
    Event,
    LinkAttached,
    LinkDetached,
    LinkEstablished,
    LinkOverLimit,
    Opened,
    SessionBegun,
    SessionEnded,
)
from wire.gate import FrameGate
from wire.link import IncomingLink, Link, OutgoingLink, Session
from wire.transport.tls import Role, TlsAgreement

AnyLink = TypeVar("AnyLink", bound=Link)
MAX_SESSIONS = 256
"""Most sessions on a connection to a client or an existing broker."""
MAX_SESSIONS_BETWEEN_NODES = 32_768
"""Most sessions on a connection between two nodes of a mesh: half of the channels that AMQP has. [2.4.1]"""


@dataclass(frozen=True, slots=True)
class Peer:
    """Identity of the other end of a connection, as TLS, SASL and the port gave it before the first AMQP frame."""

    user: str | None = None
    is_mesh: bool = False
    """Whether the peer is a node or operator of this mesh, by certificate (or because its nodes talk in plain text)."""
    mesh_name: str | None = None
    """Name of the node or operator in the certificate."""
    mesh_role: Role | None = None
    """Role of the peer by its certificate; None where the nodes of the mesh talk in plain text."""
    remote_address: str = ""
    listener: str | None = None
    """Name of the listener that accepted the connection; None for a connection that this process dialed."""
    mechanism: str | None = None
    """SASL mechanism with which the peer, or this process at the peer, logged in; None without a SASL layer."""
    tls: TlsAgreement | None = None


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """The fields of OPEN that this endpoint sends, and the limits that it sets for the peer."""

    container_id: str
    hostname: str | None = None
    max_frame_bytes: int = 16384
    idle_timeout_s: float = 16.0
    """The endpoint closes after this time without input, and advertises half of this time in OPEN. 0: never closes."""
    max_sessions: int = MAX_SESSIONS
    max_links: int = 10_000
    window_frames: int = 256
    """Incoming window of each session, in frames: times max_frame_bytes, the most unread bytes of a session."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    offered_capabilities: tuple[str, ...] = ()
    desired_capabilities: tuple[str, ...] = ()
    said: list[Pointer] = field(default_factory=list, init=False, repr=False, compare=False)
    """Values of `to_say` in the engine's form: made for the first connection, and copied for each connection."""

    def to_say(self) -> tuple[tuple[Callable[[Pointer, Any], None], Any], ...]:
        """Return (function that writes the value, value) for properties and capabilities of OPEN, in this order."""
        return (
            (data.write_map, self.properties),
            (data.write_symbols, self.offered_capabilities),
            (data.write_symbols, self.desired_capabilities),
        )


_SAID_IN_OPEN = (
    lib.pn_connection_properties,
    lib.pn_connection_offered_capabilities,
    lib.pn_connection_desired_capabilities,
)


@dataclass(frozen=True, slots=True)
class RemoteOpen:
    """The fields of the peer's OPEN that nodes use. [2.7.1]"""

    container_id: str
    hostname: str | None
    properties: Mapping[str, Any]
    offered_capabilities: tuple[str, ...]
    desired_capabilities: tuple[str, ...]


def _at_once(endpoint: Endpoint) -> bool:
    return True


class Endpoint(EndpointCore):
    """The local end of an AMQP connection: sessions and links included, owned by one node. Not thread-safe."""

    def __init__(
        self, settings: EndpointSettings, peer: Peer | None = None, dirty: DirtyEndpoints | None = None
    ) -> None:
        self.settings = settings
        self.peer = peer or Peer()
        self.owner: Any = None
        self.remote: RemoteOpen | None = None
        self._links: dict[int, Link] = {}
        self._sessions: dict[int, Session] = {}
        self._is_closed_told = False
        self._is_socket_lost = False
        self.has_peer_closed_in_order = False
        """The peer closed the connection before us, and without an error."""
        self.is_kept = False
        """The node frees this endpoint itself, later, since it has not told all owners of links of their loss yet."""
        self.may_answer_close: Callable[[Endpoint], bool] = _at_once
        """Called when the peer has closed the connection: if it returns False, our close waits until `answer_close`."""
        self._connection = lib.pn_connection()
        self._transport = new_transport()
        self._collector = lib.pn_collector()
        self._fault: AmqpError | None = None
        self._is_forced = False
        """The fault is none of the peer: `force_close` closed the connection."""
        gate = FrameGate(address_of(self._transport), settings.max_frame_bytes, settings.max_sessions - 1)
        self._drive(address_of(self._connection), address_of(self._transport), address_of(self._collector), dirty, gate)
        self._configure()

    def _configure(self) -> None:
        settings, transport = self.settings, self._transport
        lib.pn_connection_collect(self._connection, self._collector)
        lib.pn_transport_set_max_frame(transport, settings.max_frame_bytes)
        lib.pn_transport_set_channel_max(transport, settings.max_sessions - 1)
        lib.pn_transport_set_idle_timeout(transport, int(settings.idle_timeout_s * 1000))
        lib.pn_transport_bind(transport, self._connection)

    # Opening and closing
    def open(self, properties: Mapping[str, Any] | None = None) -> None:
        """Send OPEN at the first call; do nothing at a later call, or after a close, which itself sends OPEN before.

        ``properties`` are added to the properties of the settings.
        """
        settings, connection = self.settings, self._connection
        if self.is_freed or not lib.pn_connection_state(connection) & lib.PN_LOCAL_UNINIT:
            return
        lib.pn_connection_set_container(connection, chars(settings.container_id))
        lib.pn_connection_set_hostname(connection, chars(settings.hostname))
        said = settings.said
        if not said:
            said += (data.kept(write, value) for write, value in settings.to_say())
        for target, value in zip(_SAID_IN_OPEN, said, strict=True):
            lib.pn_data_copy(target(connection), value)
        if properties:
            data.write_map(lib.pn_connection_properties(connection), {**settings.properties, **properties})
        lib.pn_connection_open(connection)
        self.mark_dirty()

    def close(self, error: AmqpError | None = None) -> None:
        """Send a close with ``error``, if any; the endpoint is finished once the peer has closed, too.

        If no OPEN was sent yet, send OPEN before.
        """
        if self.is_freed:
            return
        if not self.is_local_open:
            # Proton would send an OPEN before the close by itself, but without container-id, hostname and properties.
            self.open()
        condition.write(lib.pn_connection_condition(self._connection), error, self)
        lib.pn_connection_close(self._connection)
        self.mark_dirty()

    def force_close(self, error: ConnectionFault) -> None:
        """Close the connection with ``error``; the endpoint is finished once the close is written. [2.8.16]

        The peer's close is not waited for, so that the node soon hears that the connection is gone.
        """
        if not self.is_freed:
            self._is_forced = True
            self._fail(error)

    @property
    def peer_name(self) -> str:
        """The container-id of the peer, for error texts; "the peer" if there is none."""
        return (self.remote.container_id if self.remote is not None else "") or "the peer"

    @property
    def is_local_open(self) -> bool:
        return not self.is_freed and bool(lib.pn_connection_state(self._connection) & lib.PN_LOCAL_ACTIVE)

    @property
    def is_open(self) -> bool:
        """Whether both sides have opened the connection, and neither has closed it."""
        if self.is_freed:
            return False
        state = lib.pn_connection_state(self._connection)
        return bool(state & lib.PN_LOCAL_ACTIVE and state & lib.PN_REMOTE_ACTIVE)

    @property
    def is_finished(self) -> bool:
        """Whether no more bytes of the AMQP connection will be sent or read, so that its socket can be closed."""
        if self.is_freed or lib.pn_transport_closed(self._transport):
            return True
        # No input behind a fault of the peer is read, not even a close, so the endpoint is finished once our own close
        # is written.
        return self._fault is not None and lib.pn_transport_pending(self._transport) < 0

    @property
    def has_failed(self) -> bool:
        """Whether the connection is broken: the peer sent bad input, broke a rule, or was silent for too long."""
        if self.is_freed:
            return False
        return self._fault is not None or bool(lib.pn_condition_is_set(lib.pn_transport_condition(self._transport)))

    def _fail(self, fault: AmqpError) -> None:
        """Close the connection with ``fault``, a rule that the peer broke, and report Closed; nothing more is read."""
        if self._fault is not None:
            return
        self._fault = fault
        self.gate.make_up_open()
        self.close(fault)
        if not self._is_closed_told:
            self._is_closed_told = True
            self.tell_later(Closed(fault))

    @property
    def ending(self) -> ConnectionEnd:
        """How and why the connection ended, for the log; callers must not read this once the endpoint is freed."""
        if self._fault is not None:
            return ConnectionEnd(False, f"closed by us: {self._fault}" if self._is_forced else str(self._fault))
        return connection_end.read(self._connection, self._transport)

    @property
    def close_error(self) -> AmqpError | None:
        """The error with which the peer closed the connection or, if it did not, we did.

        None for a close without an error, and for a socket that was lost; callers must not read this once the endpoint
        is freed.
        """
        return None if self._is_socket_lost else connection_end.close_error(self._connection)

    @property
    def is_input_undecodable(self) -> bool:
        """Whether the engine stopped reading and gives no reason, as it does for a frame that is not AMQP data."""
        if self.is_freed or self._fault is not None or not self.has_stopped_reading:
            return False
        return connection_end.is_input_undecodable(self._connection, self._transport)

    def free(self) -> None:
        """Free the engine's memory for the connection, with every session, link and delivery.

        Later calls do nothing, since bytes and ticks may still be on their way. Only `begin` raises ConnectionFault,
        and `ending` must not be read any more.
        """
        if self.is_freed:
            return
        for link in self._links.values():
            link._lose()
            link.session._lose()
        for session in self._sessions.values():
            session._lose()
        self._stop()
        self._links.clear()
        self._sessions.clear()
        free_engine(self._connection, self._transport, self._collector)

    # Bytes and time
    def receive_eof(self) -> str | None:
        """Note that the peer closed its half of the socket.

        If the peer had closed the AMQP connection before, or the endpoint is finished, return None. Otherwise this
        breaks AMQP's rules: close the connection with an error, and return the reason as a text.
        """
        if self.is_freed or self.is_finished:
            return None
        if lib.pn_connection_state(self._connection) & lib.PN_REMOTE_CLOSED:
            lib.pn_transport_close_tail(self._transport)
            self.mark_dirty()
            return None
        self._is_socket_lost = True
        is_cut = self.gate.is_in_frame
        name = "amqp:connection:framing-error" if is_cut else "amqp:connection:forced"
        where = "in the middle of a frame" if is_cut else "without closing the connection"
        reason = f"the peer closed the socket {where}"
        self._fail(ConnectionFault(name, reason))
        return reason

    def tick(self, now: float) -> float | None:
        """Send a heartbeat if one is due, or close after too long a silence of the peer. [2.4.5]

        Return the time at which to call again, None for never.
        """
        if self.is_freed:
            return None
        self.hear(now)
        silence_ends_at = self._look_at_silence(now)
        if self._fault is not None:
            return None
        deadline_ms = lib.pn_transport_tick(self._transport, int(now * 1000) or 1)
        if lib.pn_transport_pending(self._transport) > 0:
            self.mark_dirty()
        deadline = deadline_ms / 1000 if deadline_ms else None
        if silence_ends_at is None:
            return deadline
        return silence_ends_at if deadline is None else min(silence_ends_at, deadline)

    def _look_at_silence(self, now: float) -> float | None:
        """Close after too long a silence of the peer; else return the time at which the silence will be too long.

        None after a close, or without a limit.
        The engine's own limit counts from its tick after the last byte, up to twice the time. Times count in whole
        milliseconds, as in the engine: else the engine would close first, with a text of its own.
        """
        limit_s = self.settings.idle_timeout_s
        if not limit_s or self._fault is not None:
            return None
        if int(now * 1000) - int(self.heard_at * 1000) >= int(limit_s * 1000):
            self._fail(
                ConnectionFault(
                    "amqp:resource-limit-exceeded", f"idle timeout: the peer sent nothing for {limit_s:g} s"
                )
            )
            return None
        return self.heard_at + limit_s

    # Links, for wire.link
    def begin(self, window_frames: int | None = None) -> Session:
        """Begin a session of ours. Raises ConnectionFault at `session_limit`, or when the connection is gone."""
        if self.is_freed:
            raise ConnectionFault("amqp:connection:forced", "the connection is gone, so no session can begin")
        limit = self.session_limit
        if self.remote is not None and len(self._sessions) >= limit:
            raise ConnectionFault(
                "amqp:resource-limit-exceeded", f"this connection may have {limit} sessions, and all of them are in use"
            )
        session = self._own_session(lib.pn_session(self._connection), window_frames)
        lib.pn_session_open(session.pointer)
        self.mark_dirty()
        return session

    @property
    def session_limit(self) -> int:
        """Largest number of sessions that this connection may have at once: the peer's limit or ours, the smaller."""
        return int(min(lib.pn_transport_remote_channel_max(self._transport) + 1, self.settings.max_sessions))

    @property
    def session_count(self) -> int:
        return len(self._sessions)

    @property
    def spare_session_count(self) -> int:
        """Number of sessions that this connection may still begin."""
        return self.session_limit - len(self._sessions)

    @property
    def has_ending_sessions(self) -> bool:
        """Whether a session of the connection is about to end, so that another could soon be begun.

        True if a session that we ended, or a link that we ended in a session that ends with its links, waits for the
        peer's answer.
        """
        own = (link for link in self._links.values() if link.session.ends_with_its_links)
        return any(link.has_left for link in own) or any(session.has_left for session in self._sessions.values())

    @property
    def links(self) -> list[Link]:
        return list(self._links.values())

    def adopt(self, link: AnyLink) -> AnyLink:
        self._links[link.address] = link
        link.session.link_count += 1
        return link

    def forget(self, link: Link) -> None:
        """Free ``link`` with its unsettled deliveries; a compiled owner is told before.

        Both sides have ended the link, or neither has attached it. Its session is ended or freed if no link needs the
        session any more.
        """
        if link.is_gone:
            return
        pointer = link.pointer
        link._lose()
        if isinstance(link.owner, DeliveryOwner):
            link.owner.on_gone()
        link.session.link_count -= 1
        self._links.pop(link.address, None)
        unread_bytes = lib.pn_session_incoming_bytes(link.session.pointer)
        lib.pn_link_free(pointer)
        if lib.pn_session_incoming_bytes(link.session.pointer) < unread_bytes:
            self._tell_window(link.session)
        self._free_if_over(link.session)

    def _tell_window(self, session: Session) -> None:
        """Tell the peer that the session's window has room again, since a freed link took its unread bytes along.

        The window goes out with a flow of another incoming link, if there is one: the engine alone would tell the peer
        only with its next flow.
        """
        for link in self._links.values():
            if link.session is session and isinstance(link, IncomingLink):
                link.say_flow_again()
                return

    @staticmethod
    def _free_if_over(session: Session) -> None:
        if session.link_count:
            return
        if session.is_over and not session.is_gone:
            session._lose()
            lib.pn_session_free(session.pointer)
        elif session.ends_with_its_links:
            session.end()

    def _own_session(self, pointer: Pointer, window_frames: int | None = None) -> Session:
        frames = window_frames or self.settings.window_frames
        set_session_window(pointer, frames)
        session = Session(self, pointer)
        session.window_bytes = frames * self.settings.max_frame_bytes
        self._sessions[session.address] = session
        return session

    def _on_link_fault(self, link: Link) -> None:
        """Have the next `drain` report one LinkDetached for the fault on ``link``, so that the owner closes it."""
        error = link.fault
        if error is None or link.has_left or link.is_fault_told:
            return
        link.is_fault_told = True
        self.tell_later(LinkDetached(link, True, error))

    # Events
    def _on_cold_event(self, kind: int, address: int, events: list[Event]) -> None:
        _COLD[kind](self, pointer_to("pn_event_t", address), events)

    def _on_open(self, event: Pointer, events: list[Event]) -> None:
        connection = self._connection
        if self.gate.is_open_made_up:
            return
        self.remote = RemoteOpen(
            container_id=text(lib.pn_connection_remote_container(connection)) or "",
            hostname=text(lib.pn_connection_remote_hostname(connection)),
            properties=data.read_map(lib.pn_connection_remote_properties(connection)),
            offered_capabilities=data.read_symbols(lib.pn_connection_remote_offered_capabilities(connection)),
            desired_capabilities=data.read_symbols(lib.pn_connection_remote_desired_capabilities(connection)),
        )
        events.append(Opened())

    def _on_close(self, event: Pointer, events: list[Event]) -> None:
        error = condition.read(lib.pn_connection_remote_condition(self._connection))
        self.has_peer_closed_in_order = error is None and self.is_local_open
        self._tell_closed(error, events)
        if self.may_answer_close(self):
            self.answer_close()

    def answer_close(self) -> None:
        """Answer the peer's close, which `may_answer_close` put off until all earlier input was handled."""
        if not self.is_freed:
            lib.pn_connection_close(self._connection)
            self.mark_dirty()

    @property
    def owes_close(self) -> bool:
        """Whether the peer has closed the connection, and we have not answered with our close yet."""
        if self.is_freed:
            return False
        state = lib.pn_connection_state(self._connection)
        return bool(state & lib.PN_LOCAL_ACTIVE and state & lib.PN_REMOTE_CLOSED)

    def _on_transport_ended(self, event: Pointer, events: list[Event]) -> None:
        self._tell_closed(condition.read(lib.pn_transport_condition(self._transport), ConnectionFault), events)

    def _tell_closed(self, error: AmqpError | None, events: list[Event]) -> None:
        self.mark_dirty()
        if not self._is_closed_told:
            self._is_closed_told = True
            events.append(Closed(error))

    def _on_begin(self, event: Pointer, events: list[Event]) -> None:
        pointer = lib.pn_event_session(event)
        known = self._sessions.get(address_of(pointer))
        if known is not None:
            known.on_begun()
            self.on_peer_begun(known)
            known.on_answered()
            return
        session = self._own_session(pointer)
        session.on_begun()
        self.on_peer_begun(session)
        lib.pn_session_open(pointer)
        self.mark_dirty()
        events.append(SessionBegun(session))

    def _on_end(self, event: Pointer, events: list[Event]) -> None:
        session = self._sessions.pop(address_of(lib.pn_event_session(event)), None)
        if session is None:
            return
        error = condition.read(lib.pn_session_remote_condition(session.pointer))
        # Most sessions end after their links, and the links of a connection may be thousands.
        left = [link for link in self._links.values() if link.session is session] if session.link_count else []
        for link in left:
            if link.has_left:
                # The peer's end of the session stands for the answer to our detach of the link, which is freed.
                self.forget(link)
                continue
            events.append(LinkDetached(link, not link.may_outlive, error))
        lib.pn_session_close(session.pointer)
        self.mark_dirty()
        session.is_over = True
        self._free_if_over(session)
        events.append(SessionEnded(session, error))

    def _on_attach(self, event: Pointer, events: list[Event]) -> None:
        pointer = lib.pn_event_link(event)
        known = self._links.get(address_of(pointer))
        if known is not None:
            self.on_peer_attached(known)
            events.append(LinkEstablished(known))
            return
        session = self._sessions.get(address_of(lib.pn_link_session(pointer)))
        if session is None:
            raise LocalStateError("a bug: the engine reported an attach in a session whose begin it never reported")
        link = self.adopt((OutgoingLink if lib.pn_link_is_sender(pointer) else IncomingLink)(session, pointer))
        self.on_peer_attached(link)
        if len(self._links) > 2 * self.settings.max_links:
            # A refused link takes memory until the peer answers with a detach, so a peer with as many refused links as
            # it may have links loses the connection.
            self.close(
                AmqpError(
                    "amqp:resource-limit-exceeded", "the peer goes on attaching links without detaching refused links"
                )
            )
            return
        if len(self._links) > self.settings.max_links:
            limit = f"this connection may have at most {self.settings.max_links} links"
            error = AmqpError("amqp:resource-limit-exceeded", limit)
            link.refuse(error)
            events.append(LinkOverLimit(link, error))
            return
        events.append(LinkAttached(link))

    def _on_link_closed(self, event: Pointer, events: list[Event]) -> None:
        self._on_link_ended(event, events, closed=True)

    def _on_link_detached(self, event: Pointer, events: list[Event]) -> None:
        self._on_link_ended(event, events, closed=False)

    def _on_link_ended(self, event: Pointer, events: list[Event], *, closed: bool) -> None:
        link = self._links.get(address_of(lib.pn_event_link(event)))
        if link is None:
            return
        link.has_peer_left = True
        error = condition.read(lib.pn_link_remote_condition(link.pointer))
        if link.has_left:
            self.forget(link)
        else:
            events.append(LinkDetached(link, closed, error))


_COLD: dict[int, Callable[[Endpoint, Pointer, list[Event]], None]] = {
    lib.PN_CONNECTION_REMOTE_OPEN: Endpoint._on_open,
    lib.PN_CONNECTION_REMOTE_CLOSE: Endpoint._on_close,
    lib.PN_TRANSPORT_TAIL_CLOSED: Endpoint._on_transport_ended,
    lib.PN_TRANSPORT_ERROR: Endpoint._on_transport_ended,
    lib.PN_SESSION_REMOTE_OPEN: Endpoint._on_begin,
    lib.PN_SESSION_REMOTE_CLOSE: Endpoint._on_end,
    lib.PN_LINK_REMOTE_OPEN: Endpoint._on_attach,
    lib.PN_LINK_REMOTE_CLOSE: Endpoint._on_link_closed,
    lib.PN_LINK_REMOTE_DETACH: Endpoint._on_link_detached,
}
pass_on(_COLD)
