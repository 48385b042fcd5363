"""Reasons for the end of a connection or link, in our own words, without words of the peer."""

from __future__ import annotations

from addressing.records import BY_PEER, KNOWN_CONDITION
from wire.errors import AmqpError


def without_words(reason: str) -> str:
    """Return how a connection ended, and the condition: further words of the peer may contain private names.

    ``reason`` is "how", "how: condition" or "how: condition: description".
    """
    return ": ".join(reason.split(": ")[:2])


def told(error: AmqpError | None) -> str | None:
    """Return the condition of a link's error alone; a condition neither AMQP's nor ours is marked as the peer's."""
    if error is None:
        return None
    return error.condition if KNOWN_CONDITION.fullmatch(error.condition) else BY_PEER + error.condition
