"""Whose fault is it: an AMQP error carries its condition, its scope is its type.

Spec: AMQP 1.0 [2.8.15] to [2.8.18].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class AmqpError(Exception):
    """The peer broke a rule, or asked for what cannot be given. [2.8.14]

    ``condition`` is the symbol on the wire, ``description`` a sentence with the numbers in it.
    """

    def __init__(self, condition: str, description: str = "", info: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{condition}: {description}" if description else condition)
        self.condition = condition
        self.description = description
        self.info = info


class ConnectionFault(AmqpError):
    """Ends the connection. [2.8.16]"""


class SessionError(AmqpError):
    """Ends the session. [2.8.17]"""


class LinkError(AmqpError):
    """Detaches the link. [2.8.18]"""


class FrameTooSmall(LinkError):
    """An attach, or its answer, does not fit a frame that its reader takes: it never will on this way. [2.8.15]"""

    def __init__(self, description: str) -> None:
        super().__init__("amqp:frame-size-too-small", description)


class LocalStateError(Exception):
    """We broke a rule of our own: a bug, never caught by the forwarder."""
