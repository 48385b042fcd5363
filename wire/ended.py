"""Why did a connection or a link end? In words that are ours, without those of its peer."""

from __future__ import annotations

from addressing.link_log import BY_PEER, KNOWN_CONDITION
from wire.errors import AmqpError


def without_words(reason: str) -> str:
    """How it ended, and the condition: what a peer has to say besides may have names in it that are nobody's business.

    ``reason`` is "how", "how: condition" or "how: condition: description".
    """
    return ": ".join(reason.split(": ")[:2])


def told(error: AmqpError | None) -> str | None:
    """Of a link the condition alone, likewise; of one that is neither of AMQP nor ours, that it is the peer's."""
    if error is None:
        return None
    return error.condition if KNOWN_CONDITION.fullmatch(error.condition) else BY_PEER + error.condition
