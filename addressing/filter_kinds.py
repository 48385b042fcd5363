"""Kinds of the filters in a filter set: how a filter is split into levels, and which wildcards it may have.

amqp    levels split at `.` and `/`; `*` is one level, `#` any number of levels, as in `addressing.pattern`
mqtt    levels split at `/` only; `+` is one level, `#` at the end any number of levels [MQTT 5.0, 4.7]
"""

from __future__ import annotations

import re
from enum import StrEnum

from addressing.pattern import FORBIDDEN, MAX_ADDRESS_CHARS

_PART_OF_LEVEL = {
    "amqp": re.compile(r"(?<![./])(?<!^)[*#]|[*#](?![./])(?!$)"),
    "mqtt": re.compile(r"(?<!/)(?<!^)[+#]|[+#](?!/)(?!$)"),
}
"""Per kind, the expression that finds a wildcard that is only a part of a level."""


class FilterError(ValueError):
    """The fault of a text that is not a filter of its kind, as a sentence."""


class FilterKind(StrEnum):
    AMQP = "amqp"
    MQTT = "mqtt"

    def check(self, text: str) -> str:
        """Return ``text``; raise FilterError if it is not a valid filter of this kind."""
        if not text:
            raise FilterError("expected a filter of at least one character, got an empty text")
        if len(text) > MAX_ADDRESS_CHARS:
            raise FilterError(f"expected a filter of at most {MAX_ADDRESS_CHARS} characters, got {len(text)}")
        bad = FORBIDDEN.search(text)
        if bad:
            raise FilterError(f"filter {text!r} contains {bad[0]!r}: expected no white space and no control characters")
        # The look for wildcards spares most filters the regular expression: a change may have thousands.
        if "#" in text or self.one_level in text:
            self._check_wildcards(text)
        return text

    @property
    def one_level(self) -> str:
        """The wildcard for exactly one level."""
        return "+" if self is FilterKind.MQTT else "*"

    def _check_wildcards(self, text: str) -> None:
        part = _PART_OF_LEVEL[self.value].search(text)
        if part:
            raise FilterError(f"filter {text!r}: the wildcard {part[0]!r} must stand for a whole level")
        if self is FilterKind.MQTT and "#" in text[:-1]:
            raise FilterError(f"filter {text!r}: the wildcard '#' must be the last level of an mqtt filter")
