"""Counts with their nouns, as sentences have them."""

from __future__ import annotations


def number_of(count: int, noun: str) -> str:
    """Return ``count`` with its ``noun``, of which the plural has an s: `1 message`, `1,200 messages`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
