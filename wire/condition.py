"""AMQP errors to and from proton's pn_condition_t."""

from __future__ import annotations

from wire import data
from wire.engine import Pointer, chars, lib, text
from wire.errors import AmqpError


def read(condition: Pointer, kind: type[AmqpError] = AmqpError) -> AmqpError | None:
    if not lib.pn_condition_is_set(condition):
        return None
    return kind(
        text(lib.pn_condition_get_name(condition)) or "amqp:internal-error",
        text(lib.pn_condition_get_description(condition)) or "",
        data.read_map(lib.pn_condition_info(condition)) or None,
    )


def write(condition: Pointer, error: AmqpError | None) -> None:
    lib.pn_condition_clear(condition)
    if error is None:
        return
    lib.pn_condition_set_name(condition, chars(error.condition))
    lib.pn_condition_set_description(condition, chars(error.description or None))
    if error.info:
        data.write_map(lib.pn_condition_info(condition), error.info)


def copy(target: Pointer, source: Pointer) -> None:
    lib.pn_condition_clear(target)
    if not lib.pn_condition_is_set(source):
        return
    lib.pn_condition_set_name(target, lib.pn_condition_get_name(source))
    lib.pn_condition_set_description(target, lib.pn_condition_get_description(source))
    lib.pn_data_copy(lib.pn_condition_info(target), lib.pn_condition_info(source))
