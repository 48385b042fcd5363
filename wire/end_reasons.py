"""Reasons for the end of a connection or link as link logs give them: without free text of the peer."""

from __future__ import annotations

from addressing.records import BY_PEER, KNOWN_CONDITION
from wire.errors import AmqpError


def without_words(reason: str) -> str:
    """Return ``reason``, why a connection ended, without the description: the peer's text may contain private names.

    ``reason`` is "how", "how: condition" or "how: condition: description", and the third part is cut off.
    """
    return ": ".join(reason.split(": ")[:2])


def told(error: AmqpError | None) -> str | None:
    """Return the condition of a link's error, without its description; None without an error.

    A condition that does not look like one of AMQP or amqpmesh gets the prefix "by the peer: ".
    """
    if error is None:
        return None
    return error.condition if KNOWN_CONDITION.fullmatch(error.condition) else BY_PEER + error.condition
