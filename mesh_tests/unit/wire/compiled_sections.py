"""The C functions of `wire.sections` as ctypes calls them, on bytes that end where memory does."""

from __future__ import annotations

import ctypes
import mmap
from types import TracebackType
from typing import Any

from wire import sections

_PAGE_BYTES = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _exported(name: str, *arguments: Any) -> Any:
    capsule = sections.__pyx_capi__[name]  # type: ignore[attr-defined]
    return ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(_pointer_of(capsule, _name_of(capsule)))


_priority_of = _exported("priority_of", ctypes.c_void_p, ctypes.c_size_t)
_scan_head = _exported("scan_head", ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class Edge:
    """Puts bytes before a page that must not be touched: who reads one byte too many ends the process."""

    def __init__(self, pages: int = 2) -> None:
        self._room_bytes = pages * _PAGE_BYTES
        self._memory = mmap.mmap(-1, self._room_bytes + _PAGE_BYTES)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        if _libc.mprotect(self._start + self._room_bytes, _PAGE_BYTES, 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    def __enter__(self) -> Edge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _libc.mprotect(self._start + self._room_bytes, _PAGE_BYTES, mmap.PROT_READ | mmap.PROT_WRITE)

    def _put(self, message: bytes) -> int:
        address = self._start + self._room_bytes - len(message)
        ctypes.memmove(address, message, len(message))
        return address

    def priority_of(self, message: bytes) -> int:
        return int(_priority_of(self._put(message), len(message)))

    def scan_head(self, message: bytes) -> int:
        """What it came to; 0 for whole, 1 for cut."""
        head = ctypes.create_string_buffer(1024)
        return int(_scan_head(self._put(message), len(message), head))
