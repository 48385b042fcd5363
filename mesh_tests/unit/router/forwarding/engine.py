"""What tests look up in the engine itself, beyond what `wire` needs: a link's unsettled deliveries and their ties."""

from __future__ import annotations

import ctypes
from typing import Any

import cproton_ffi

_engine = ctypes.CDLL(cproton_ffi.__file__)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(_engine, name)
    function.restype, function.argtypes = result, arguments
    return function


_first = _function("pn_unsettled_head", ctypes.c_void_p, ctypes.c_void_p)
_next = _function("pn_unsettled_next", ctypes.c_void_p, ctypes.c_void_p)
_get_context = _function("pn_delivery_get_context", ctypes.c_void_p, ctypes.c_void_p)
_set_context = _function("pn_delivery_set_context", None, ctypes.c_void_p, ctypes.c_void_p)


def unsettled(link: Any) -> list[int]:
    """Deliveries of the link that this side has not settled, oldest first."""
    found, delivery = [], _first(link.address)
    while delivery:
        found.append(delivery)
        delivery = _next(delivery)
    return found


def tie_of(delivery: int) -> int:
    return _get_context(delivery) or 0


def set_tie(delivery: int, tie: int) -> None:
    _set_context(delivery, tie)
