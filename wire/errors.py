"""AMQP errors, each with a condition; the type of an error is the scope: connection, session or link.

Spec: AMQP 1.0 [2.8.15] to [2.8.18].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class AmqpError(Exception):
    """The peer broke a rule, or asked for something that cannot be given. [2.8.14]

    ``condition`` is the symbol on the wire, ``description`` a sentence with the numbers in it.
    """

    def __init__(self, condition: str, description: str = "", info: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{condition}: {description}" if description else condition)
        self.condition = condition
        self.description = description
        self.info = info


class ConnectionFault(AmqpError):
    """An error that ends the connection. [2.8.16]"""


class SessionError(AmqpError):
    """An error that ends the session. [2.8.17]"""


class LinkError(AmqpError):
    """An error that detaches the link. [2.8.18]"""


class FrameTooSmall(LinkError):
    """An attach, or its answer, does not fit a frame of its reader, and never will on this path. [2.8.15]"""

    def __init__(self, description: str) -> None:
        super().__init__("amqp:frame-size-too-small", description)


class LocalStateError(Exception):
    """We broke a rule of our own: a bug, never caught by the forwarder."""
