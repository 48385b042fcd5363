"""Converts Python values to and from proton's pn_data_t: properties, capabilities, filters.

The functions are too slow for each delivery; callers use them for each attach and open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from wire.codec.values import Array, Pairs, Symbol, UInt, encode, symbols, take
from wire.engine import Pointer, ffi, lib


def as_symbol(value: str) -> Any:
    """Return ``value`` for use in a map, where it becomes a symbol on the wire, not a string."""
    return Symbol(value)


def as_uint(value: int) -> Any:
    """Return ``value`` for use in a map, where it becomes an unsigned int on the wire, not a long."""
    return UInt(value)


def kept(write: Callable[[Pointer, Any], None], value: Any) -> Pointer:
    """Return a new pn_data_t that ``write`` fills with ``value``, to be copied often; freed with the pointer to it."""
    made = ffi.gc(lib.pn_data(0), lib.pn_data_free)
    write(made, value)
    return made


def read(data: Pointer) -> Any:
    """Return the first value in ``data``; None when empty. Never raises for a value that has passed the frame gate."""
    # Most fields that are read are empty: for these, None is returned before anything is copied.
    lib.pn_data_rewind(data)
    if not lib.pn_data_next(data):
        return None
    size = lib.pn_data_encoded_size(data)
    encoded = ffi.new("char[]", max(size, 1))
    size = lib.pn_data_encode(data, encoded, size)
    lib.pn_data_rewind(data)
    return take(bytes(ffi.buffer(encoded, size)), 0)[0]


def write(data: Pointer, value: Any) -> None:
    """Replace the content of ``data`` by ``value``; None leaves ``data`` empty."""
    lib.pn_data_clear(data)
    if value is not None:
        encoded = encode(value)
        lib.pn_data_decode(data, encoded, len(encoded))
        lib.pn_data_rewind(data)


def read_map(data: Pointer) -> dict[str, Any]:
    """Return the fields map [2.8.13] in ``data``, with its symbol keys as str; {} for anything that is not a map.

    For a key that is there twice, the last value counts.
    """
    value = read(data)
    if isinstance(value, Pairs):
        value = dict(value.items)
    if not isinstance(value, dict):
        return {}
    return {str(key): item for key, item in value.items()}


def write_map(data: Pointer, value: Mapping[str, Any] | None) -> None:
    write(data, {Symbol(key): item for key, item in value.items()} if value else None)


# This function is for a single property that is text, as on each link between routers, and takes a sixth of the time of
# `write_map`.
def write_text(data: Pointer, key: str, value: str) -> None:
    """Replace the content of ``data`` by a fields map [2.8.13] of one symbol key and one string."""
    held = key.encode(), value.encode()
    lib.pn_data_clear(data)
    lib.pn_data_put_map(data)
    lib.pn_data_enter(data)
    lib.pn_data_put_symbol(data, _bytes(held[0]))
    lib.pn_data_put_string(data, _bytes(held[1]))
    lib.pn_data_exit(data)


def read_text(data: Pointer, key: str) -> str | None:
    """Return the string under ``key`` of the fields map in ``data``; None when there is no such string."""
    lib.pn_data_rewind(data)
    try:
        if not lib.pn_data_next(data) or not lib.pn_data_enter(data):
            return None
        while lib.pn_data_next(data):
            is_it = lib.pn_data_type(data) == lib.PN_SYMBOL and _text(lib.pn_data_get_symbol(data)) == key
            if not lib.pn_data_next(data):
                return None
            if is_it and lib.pn_data_type(data) == lib.PN_STRING:
                return _text(lib.pn_data_get_string(data))
        return None
    finally:
        lib.pn_data_rewind(data)


def _bytes(value: bytes) -> Any:
    """Return a pn_bytes_t that points into ``value``, valid as long as ``value`` lives."""
    return ffi.new("pn_bytes_t *", {"size": len(value), "start": ffi.from_buffer(value)})[0]


def _text(value: Any) -> str:
    return bytes(ffi.buffer(value.start, value.size)).decode("utf-8", "backslashreplace")


def read_symbols(data: Pointer) -> tuple[str, ...]:
    """Return the symbols in ``data``, a field with multiple="true" [1.4]: none, one symbol, or an array of symbols.

    Some peers send a list instead of an array, which is read in the same way.
    """
    value = read(data)
    if value is None:
        return ()
    if isinstance(value, Array):
        return tuple(str(item) for item in value.elements)
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return (str(value),)


def write_symbols(data: Pointer, values: Iterable[str]) -> None:
    names = list(values)
    write(data, symbols(names) if names else None)
