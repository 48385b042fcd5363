"""Reasons for the end of a connection or link as link logs give them: without free text of the peer."""

from __future__ import annotations

from addressing.records import BY_PEER, KNOWN_CONDITION
from wire.errors import AmqpError


def without_words(reason: str) -> str:
    """Return ``reason``, the end of a connection, without a description: the peer's text may contain private names.

    ``reason`` is "how", "how: condition" or "how: condition: description".
    """
    return ": ".join(reason.split(": ")[:2])


def told(error: AmqpError | None) -> str | None:
    """Return the condition of a link's error, without its description; None without an error.

    A condition that neither AMQP nor amqpmesh defines gets the prefix "by the peer: ".
    """
    if error is None:
        return None
    return error.condition if KNOWN_CONDITION.fullmatch(error.condition) else BY_PEER + error.condition
