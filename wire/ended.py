"""Why did a connection end? In words that are ours, without those of its peer."""

from __future__ import annotations


def without_words(reason: str) -> str:
    """How it ended, and the condition: what a peer has to say besides may have names in it that are nobody's business.

    ``reason`` is "how", "how: condition" or "how: condition: description".
    """
    return ": ".join(reason.split(": ")[:2])
