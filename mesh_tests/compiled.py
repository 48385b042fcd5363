"""How does a test call what is compiled, and only declared to other compiled parts?"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def exported(module: ModuleType, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A ``cdef`` function that the module's .pxd declares. ``result`` and ``arguments``: ctypes."""
    capsule = module.__pyx_capi__[name]
    return ctypes.PYFUNCTYPE(result, *arguments)(_pointer_of(capsule, _name_of(capsule)))
