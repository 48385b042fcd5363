"""Reads AMQP errors out of proton's pn_condition_t, and writes AMQP errors into one."""

from __future__ import annotations

from wire import data, frame_size
from wire.core import EndpointCore
from wire.engine import Pointer, address_of, chars, lib, text
from wire.errors import AmqpError


def read(condition: Pointer, kind: type[AmqpError] = AmqpError) -> AmqpError | None:
    if not lib.pn_condition_is_set(condition):
        return None
    return kind(
        text(lib.pn_condition_get_name(condition)) or "amqp:internal-error",
        text(lib.pn_condition_get_description(condition)) or "",
        data.read_map(lib.pn_condition_info(condition)) or None,
    )


def write(condition: Pointer, error: AmqpError | None, endpoint: EndpointCore | None = None) -> None:
    """Replace the content of proton's ``condition`` by ``error``; None leaves the condition empty.

    With ``endpoint``, for a close, end or detach, shorten the error to what fits in a frame that the peer takes.
    """
    lib.pn_condition_clear(condition)
    if error is None:
        return
    lib.pn_condition_set_name(condition, chars(error.condition))
    lib.pn_condition_set_description(condition, chars(error.description or None))
    if error.info:
        data.write_map(lib.pn_condition_info(condition), error.info)
    if endpoint is not None:
        frame_size.fit_ending(endpoint, address_of(condition))
