"""AMQP errors, each with a condition; the class of an error says what it ends: connection, session or link.

Spec: AMQP 1.0 [2.8.15] to [2.8.18].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class AmqpError(Exception):
    """An error for the peer, or one that the peer sent: a broken rule, or a request that cannot be met. [2.8.14]

    ``condition`` is the symbol on the wire, ``description`` a sentence with the numbers in it.
    """

    def __init__(self, condition: str, description: str = "", info: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{condition}: {description}" if description else condition)
        self.condition = condition
        self.description = description
        self.info = info


class ConnectionFault(AmqpError):
    """An error that ends the whole connection, with all its sessions and links. [2.8.16]"""


class SessionError(AmqpError):
    """An error that ends a session, with all its links. [2.8.17]"""


class LinkError(AmqpError):
    """An error that ends one link, by a detach. [2.8.18]"""


class FrameTooSmall(LinkError):
    """The error of an attach, or of its answer, that is larger than the frames its reader takes. No retry helps."""

    def __init__(self, description: str) -> None:
        super().__init__("amqp:frame-size-too-small", description)


class LocalStateError(Exception):
    """A call that breaks a rule of this program: a bug, caught only by the handlers of all exceptions.

    The handlers are in the driver and in each connection.
    """
