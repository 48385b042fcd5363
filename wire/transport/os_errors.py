"""Texts about errors of the operating system, as parts of sentences in logs and error texts."""

from __future__ import annotations

import os
import socket


def describe_os_error(error: BaseException) -> str:
    """Return a text that names ``error`` without its number and class, such as `connection refused`."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, socket.gaierror):
        return _lower_first(error.strerror or str(error))
    if isinstance(error, OSError) and error.errno is not None:
        return _lower_first(os.strerror(error.errno))
    return _lower_first(str(error) or type(error).__name__)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
