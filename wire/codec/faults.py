"""The exception for malformed AMQP bytes."""

from __future__ import annotations

DECODE_ERROR = "amqp:decode-error"
INVALID_FIELD = "amqp:invalid-field"


class CodecFault(Exception):
    """A fault in AMQP bytes. ``place``: performative and field, "attach.source"; empty if the performative is unknown.

    ``condition``: the error condition for the peer. [2.8.15]
    """

    def __init__(self, place: str, reason: str, *, is_invalid_field: bool = False) -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.place = place
        self.reason = reason
        self.condition = INVALID_FIELD if is_invalid_field else DECODE_ERROR
