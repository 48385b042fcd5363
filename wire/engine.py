"""Functions of proton's engine (the C library of AMQP) for calls from Python.

Calls made once for each link or connection go through cffi to the C functions themselves (proton's wrapper objects cost
twenty times as much); calls made for each delivery are compiled: `wire.core` over `wire.proton`.
"""

from __future__ import annotations

import os
from typing import Any

import cproton  # noqa: F401  (installs the callbacks that cproton_ffi needs; must come first)
import cproton_ffi

from wire.proton import address_of_function

Pointer = Any
"""A cdata pointer of proton, hashable and comparable by address."""

ffi = cproton_ffi.ffi
lib = cproton_ffi.lib
NULL = ffi.NULL
LIBRARIES = tuple(
    name for name, is_in in (("Cyrus SASL", lib.pn_sasl_extended()), ("OpenSSL", lib.pn_ssl_present())) if is_in
)
"""Optional libraries that proton was built with, since the machine had them; only proton's own client uses these."""


def _function(signature: str, name: bytes) -> Any:
    """Return a function of proton's library that the library exports, but does not declare to cffi.

    Proton's own `ffi` parses the signature: a `cffi.FFI()` of ours would need a C parser, which takes long to import.
    """
    return ffi.cast(signature, address_of_function(name))


_set_window = _function("int(*)(pn_session_t *, uint32_t, uint32_t)", b"pn_session_set_incoming_window_and_lwm")
_free_transport = _function("void(*)(pn_transport_t *)", b"pn_transport_free")
_free_connection = _function("void(*)(pn_connection_t *)", b"pn_connection_free")
_logger_of = _function("void *(*)(pn_transport_t *)", b"pn_transport_logger")
_set_log_sink = _function(
    "void(*)(void *, void(*)(intptr_t, int, int, const char *), intptr_t)", b"pn_logger_set_log_sink"
)

_ADDRESS = ffi.typeof("uintptr_t")
_IS_TRACED = any(name == "PN_LOG" or name.startswith("PN_TRACE_") for name in os.environ)


_TYPES = {kind: ffi.typeof(f"{kind} *") for kind in ("pn_delivery_t", "pn_event_t", "pn_link_t", "pn_session_t")}


def address_of(pointer: Pointer) -> int:
    return int(ffi.cast(_ADDRESS, pointer))


def pointer_to(kind: str, address: int) -> Pointer:
    """Return a cffi pointer for ``address``, which compiled code gave; ``kind`` is its C type, such as "pn_link_t"."""
    return ffi.cast(_TYPES[kind], address)


def _say_nothing(context: int, subsystem: int, level: int, message: Any) -> None:
    """Do nothing with a warning of proton, which would otherwise go to stderr, where our own log is."""


_no_sink = ffi.callback("void(intptr_t, int, int, const char *)", _say_nothing)


def new_transport() -> Pointer:
    """Make a proton transport that logs nothing, unless PN_LOG or PN_TRACE_* in the environment ask for a trace."""
    transport = lib.pn_transport()
    if not _IS_TRACED:
        _set_log_sink(_logger_of(transport), _no_sink, 0)
    return transport


def set_session_window(session: Pointer, frames: int) -> None:
    """Limit a session's incoming window to ``frames``; the engine opens it again each time when half of it is used.

    Without this call, the engine sets no limit.
    """
    _set_window(session, frames, frames // 2)


def free_engine(connection: Pointer, transport: Pointer, collector: Pointer) -> None:
    """Free the engine's three objects for one connection.

    The order matters: the connection is taken from its collector before it is freed; else the events of its own end are
    put into freed memory (a crash, if there are unsettled deliveries).
    """
    lib.pn_transport_unbind(transport)
    _free_transport(transport)
    lib.pn_connection_collect(connection, NULL)
    _free_connection(connection)
    lib.pn_collector_free(collector)


def text(chars: Pointer) -> str | None:
    """Return a C string as str; None for NULL. Bytes that are not UTF-8 become backslash escapes and raise no error."""
    return None if chars == NULL else ffi.string(chars).decode("utf-8", "backslashreplace")


def chars(value: str | None) -> Any:
    return NULL if value is None else value.encode()
