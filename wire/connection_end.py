"""Reason for the end of an AMQP connection, for the log: which side closed with which error, or a failed transport."""

from __future__ import annotations

from dataclasses import dataclass

from addressing.records import BY_PEER
from wire import condition
from wire.engine import Pointer, lib
from wire.errors import AmqpError, ConnectionFault


@dataclass(frozen=True, slots=True)
class ConnectionEnd:
    """How an AMQP connection ended: ``reason`` is a text for the log.

    ``is_clean``: a side closed the connection with an error, or the transport below did not fail.
    """

    is_clean: bool
    reason: str


def read(connection: Pointer, transport: Pointer) -> ConnectionEnd:
    fault = condition.read(lib.pn_transport_condition(transport), ConnectionFault)
    remote = condition.read(lib.pn_connection_remote_condition(connection))
    local = condition.read(lib.pn_connection_condition(connection))
    if remote is not None:
        return ConnectionEnd(True, f"closed {BY_PEER}{remote}")
    if local is not None:
        return ConnectionEnd(True, f"closed by us: {local}")
    if fault is not None:
        return ConnectionEnd(False, str(fault))
    return ConnectionEnd(True, "closed")


def close_error(connection: Pointer) -> AmqpError | None:
    """Return the error in the peer's close or, if there is none, in ours; None without an error."""
    remote = condition.read(lib.pn_connection_remote_condition(connection))
    return remote or condition.read(lib.pn_connection_condition(connection))


def is_input_undecodable(connection: Pointer, transport: Pointer) -> bool:
    """Whether an engine that has stopped reading did so at a frame whose body is not AMQP data.

    The engine then gives no reason: there is neither a close of the peer nor a condition of the transport.
    """
    is_closed_by_peer = bool(lib.pn_connection_state(connection) & lib.PN_REMOTE_CLOSED)
    has_condition = bool(lib.pn_condition_is_set(lib.pn_transport_condition(transport)))
    return not is_closed_by_peer and not has_condition
