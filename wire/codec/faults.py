"""The exception for malformed AMQP bytes, and for values that AMQP cannot encode."""

from __future__ import annotations

DECODE_ERROR = "amqp:decode-error"
INVALID_FIELD = "amqp:invalid-field"


class CodecFault(Exception):
    """A fault in AMQP bytes, or a value that cannot be encoded.

    ``place``: performative and field, such as "attach.source"; empty if the performative is not known. ``condition``:
    the error condition with which to tell the peer. [2.8.15]
    """

    def __init__(self, place: str, reason: str, *, is_invalid_field: bool = False) -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.place = place
        self.reason = reason
        self.condition = INVALID_FIELD if is_invalid_field else DECODE_ERROR
