"""Python values to and from proton's pn_data_t: properties, capabilities, filters. Per attach, never per delivery."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from wire.codec.values import Array, Symbol, UInt, encode, symbols, take
from wire.engine import Pointer, ffi, lib


def as_symbol(value: str) -> Any:
    """A value of a map that is a symbol on the wire, not a string."""
    return Symbol(value)


def as_uint(value: int) -> Any:
    """A value of a map that is an unsigned int on the wire, not a long."""
    return UInt(value)


def kept(write: Callable[[Pointer, Any], None], value: Any) -> Pointer:
    """What ``write`` makes of ``value``, to be copied as often as it is said; it lives as long as the pointer."""
    made = ffi.gc(lib.pn_data(0), lib.pn_data_free)
    write(made, value)
    return made


def read(data: Pointer) -> Any:
    """The first value held, as Python's; None when empty. Total: what the gate lets in has a value of Python."""
    # Most fields are empty.
    lib.pn_data_rewind(data)
    if not lib.pn_data_next(data):
        return None
    size = lib.pn_data_encoded_size(data)
    encoded = ffi.new("char[]", max(size, 1))
    size = lib.pn_data_encode(data, encoded, size)
    lib.pn_data_rewind(data)
    return take(bytes(ffi.buffer(encoded, size)), 0)[0]


def write(data: Pointer, value: Any) -> None:
    """Replace what is held by ``value``; None clears."""
    lib.pn_data_clear(data)
    if value is not None:
        encoded = encode(value)
        lib.pn_data_decode(data, encoded, len(encoded))
        lib.pn_data_rewind(data)


def read_map(data: Pointer) -> dict[str, Any]:
    """A fields map [2.8.14] with its symbol keys as str; {} for anything that is not a map."""
    value = read(data)
    if not isinstance(value, dict):
        return {}
    return {str(key): item for key, item in value.items()}


def write_map(data: Pointer, value: Mapping[str, Any] | None) -> None:
    write(data, {Symbol(key): item for key, item in value.items()} if value else None)


# A property that is text, as every circuit has one: a sixth of the time of the above.
def write_text(data: Pointer, key: str, value: str) -> None:
    """Replace what is held by a fields map of one string."""
    held = key.encode(), value.encode()
    lib.pn_data_clear(data)
    lib.pn_data_put_map(data)
    lib.pn_data_enter(data)
    lib.pn_data_put_symbol(data, _bytes(held[0]))
    lib.pn_data_put_string(data, _bytes(held[1]))
    lib.pn_data_exit(data)


def read_text(data: Pointer, key: str) -> str | None:
    """The string under ``key`` of a fields map; None when there is none."""
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
    """Valid as long as ``value``."""
    return ffi.new("pn_bytes_t *", {"size": len(value), "start": ffi.from_buffer(value)})[0]


def _text(value: Any) -> str:
    return bytes(ffi.buffer(value.start, value.size)).decode("utf-8", "backslashreplace")


def read_symbols(data: Pointer) -> tuple[str, ...]:
    """A multiple="true" symbol field [1.4]: one symbol, an array of them, or (seen from peers) a list."""
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
