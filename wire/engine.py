"""Which functions of proton's engine do we call, and how.

The one import of proton in the project. Everything goes through cffi to the C functions themselves; proton's wrapper
objects cost several times the forwarding (a wrapper property 1.2 us, a call here 57 ns).
"""

from __future__ import annotations

import os
from typing import Any

import cffi
import cproton  # noqa: F401  (installs the callbacks that cproton_ffi needs; must come first)
import cproton_ffi

Pointer = Any
"""A cdata pointer of proton's: hashable and comparable by address."""

ffi = cproton_ffi.ffi
lib = cproton_ffi.lib
NULL = ffi.NULL

# Exported by the same shared object, but not declared to its cffi. void* stands for every pn_*_t*.
_extra_ffi = cffi.FFI()
_extra_ffi.cdef(
    """
    int pn_link_remote_credit(void *link);
    int pn_session_set_incoming_window_and_lwm(void *session, uint32_t window, uint32_t lwm);
    uint32_t pn_session_remote_incoming_window(void *session);
    void pn_transport_free(void *transport);
    void pn_connection_free(void *connection);
    size_t pn_transport_pending(void *transport);
    void *pn_transport_logger(void *transport);
    void pn_logger_set_log_sink(void *logger, void (*sink)(intptr_t, int, int, const char *), intptr_t context);
    """
)
_extra = _extra_ffi.dlopen(cproton_ffi.__file__)

_IS_TRACED = any(name == "PN_LOG" or name.startswith("PN_TRACE_") for name in os.environ)


def _plain(pointer: Pointer) -> Any:
    return _extra_ffi.cast("void *", int(ffi.cast("uintptr_t", pointer)))


def link_remote_credit(link: Pointer) -> int:
    """Credit the peer holds for an incoming link; negative after a reduction that crossed transfers."""
    return int(_extra.pn_link_remote_credit(_plain(link)))


def session_remote_window_frames(plain_session: Any) -> int:
    """Transfer frames the peer's session still takes. Takes the pointer as made by ``plain_pointer``."""
    return int(_extra.pn_session_remote_incoming_window(plain_session))


plain_pointer = _plain


def _say_nothing(context: int, subsystem: int, level: int, message: Any) -> None:
    """Where proton's warnings go: masks do not keep it from writing them to stderr, where our log is."""


_no_sink = _extra_ffi.callback("void(intptr_t, int, int, const char *)", _say_nothing)


def new_transport() -> Pointer:
    """Silent, unless proton's own variables ask it to speak."""
    transport = lib.pn_transport()
    if not _IS_TRACED:
        _extra.pn_logger_set_log_sink(_extra.pn_transport_logger(_plain(transport)), _no_sink, 0)
    return transport


def set_session_window(session: Pointer, frames: int) -> None:
    """Bound what a session may send us; reopened at half. proton's default is unlimited."""
    _extra.pn_session_set_incoming_window_and_lwm(_plain(session), frames, frames // 2)


def free_engine(connection: Pointer, transport: Pointer, collector: Pointer) -> None:
    """Give back one connection's engine.

    In this order: the connection is taken off its collector before it goes, or the events of its own end are put into
    memory that is gone (a crash, once there are unsettled deliveries).
    """
    lib.pn_transport_unbind(transport)
    _extra.pn_transport_free(_plain(transport))
    lib.pn_connection_collect(connection, NULL)
    _extra.pn_connection_free(_plain(connection))
    lib.pn_collector_free(collector)


def text(chars: Pointer) -> str | None:
    """C string to str; None for NULL. Bytes that are not UTF-8 are kept visible, never raised on."""
    return None if chars == NULL else ffi.string(chars).decode("utf-8", "backslashreplace")


def chars(value: str | None) -> Any:
    return NULL if value is None else value.encode()
