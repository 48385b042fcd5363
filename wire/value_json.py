"""AMQP values as JSON, in a form that can be read by people, be edited, and be turned back into the same value.

Spec: AMQP 1.0 [1.6] types; RFC 8259, with the numbers that ECMAScript has.

| AMQP | JSON |
|---|---|
| null, boolean, string, list | null, true or false, string, array |
| long, at most 2^53 - 1 either way | number without fraction |
| double with a fraction | number |
| map whose keys are strings that do not begin with `$` | object |
| any other map | {"$map": [[key, value], ...]} |
| other long, ubyte, ushort, uint, ulong, byte, short, int | {"$ulong": 5}, with a string above 2^53 - 1 |
| other double, float | {"$double": "NaN"}, {"$float": "0.5"} |
| timestamp | {"$timestamp": "2026-11-27T23:44:38.123Z"}, or milliseconds outside of the years 1 to 9999 |
| uuid | {"$uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"} |
| symbol, char | {"$symbol": "x"}, {"$char": "x"} |
| binary | {"$binary": Base64} |
| decimal32, decimal64, decimal128 | {"$decimal32": hexadecimal digits} |
| array | {"$array": {"constructor": 113, "elements": [...], "descriptor": ...}} |
| described value | {"$described": [descriptor, value]} |

`{"$cut": {"type": "string", "bytes": 65536, "start": "the first characters"}}` stands for a value that is too long to
be shown; it cannot be turned back.
"""

from __future__ import annotations

import base64
import binascii
import math
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from wire.codec.faults import CodecFault
from wire.codec.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Pairs,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    decode,
    encode,
)

Json = Any
SAFE = 2**53 - 1
"""The largest integer that every reader of JSON keeps exactly, as ECMAScript's numbers are doubles."""
MOST_DEPTH = 32
CUT = "$cut"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGERS: dict[str, type[int]] = {
    "$long": int,
    "$ubyte": UByte,
    "$ushort": UShort,
    "$uint": UInt,
    "$ulong": ULong,
    "$byte": Byte,
    "$short": Short,
    "$int": Int,
}
_INTEGER_TAGS = {kind: tag for tag, kind in _INTEGERS.items()}
_DECIMALS: dict[str, tuple[type[bytes], int]] = {
    "$decimal32": (Decimal32, 4),
    "$decimal64": (Decimal64, 8),
    "$decimal128": (Decimal128, 16),
}
_SURROGATES = range(0xD800, 0xE000)


class ValueJsonError(ValueError):
    """JSON that stands for no AMQP value: the text says the place, the value, and what was expected."""


# From AMQP to JSON


def to_json(value: Any) -> Json:
    """Return the JSON form of ``value``, which has the Python types of `wire.codec.values`."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _integer_to_json(value)
    if isinstance(value, str):
        return _text_to_json(value)
    if isinstance(value, float):
        return _real_to_json(value)
    if isinstance(value, bytes):
        return _bytes_to_json(value)
    if isinstance(value, list):
        return [to_json(each) for each in value]
    if isinstance(value, uuid.UUID):
        return {"$uuid": str(value)}
    return _compound_to_json(value)


def cut(kind: str, size_bytes: int, start: str) -> Json:
    """Return the form that stands for a value of ``size_bytes`` encoded bytes that is too long to be shown."""
    return {CUT: {"type": kind, "bytes": size_bytes, "start": start}}


def _integer_to_json(value: int) -> Json:
    if isinstance(value, Timestamp):
        return {"$timestamp": _time_to_json(value)}
    number = int(value)
    is_safe = -SAFE <= number <= SAFE
    if type(value) is int and is_safe:
        return number
    return {_INTEGER_TAGS[type(value)]: number if is_safe else str(number)}


def _time_to_json(at_ms: int) -> Json:
    try:
        at = _EPOCH + timedelta(milliseconds=int(at_ms))
    except OverflowError:
        return int(at_ms) if -SAFE <= at_ms <= SAFE else str(int(at_ms))
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text_to_json(value: str) -> Json:
    if isinstance(value, Symbol):
        return {"$symbol": str(value)}
    if isinstance(value, Char):
        return {"$char": str(value)}
    return str(value)


def _real_to_json(value: float) -> Json:
    if isinstance(value, Float):
        return {"$float": _real_text(value)}
    if math.isfinite(value) and not value.is_integer():
        return float(value)
    return {"$double": _real_text(value)}


def _real_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))


def _bytes_to_json(value: bytes) -> Json:
    for tag, (kind, _) in _DECIMALS.items():
        if isinstance(value, kind):
            return {tag: value.hex()}
    return {"$binary": base64.b64encode(value).decode("ascii")}


def _compound_to_json(value: Any) -> Json:
    if isinstance(value, Described):
        return {"$described": [to_json(value.descriptor), to_json(value.value)]}
    if isinstance(value, Array):
        form = {"constructor": value.constructor, "elements": [to_json(each) for each in value.elements]}
        return {"$array": form if value.descriptor is None else {**form, "descriptor": to_json(value.descriptor)}}
    items = value.items if isinstance(value, Pairs) else tuple(value.items())
    if isinstance(value, dict) and all(type(key) is str and not key.startswith("$") for key in value):
        return {key: to_json(each) for key, each in items}
    return {"$map": [[to_json(key), to_json(each)] for key, each in items]}


def texts_of(form: Json) -> Iterator[str]:
    """Yield the texts in a JSON form that people search for: strings, names, numbers and times, but no Base64."""
    if isinstance(form, str):
        yield form
    elif isinstance(form, (int, float)) and not isinstance(form, bool):
        yield str(form)
    elif isinstance(form, list):
        for each in form:
            yield from texts_of(each)
    elif isinstance(form, dict):
        for name, each in form.items():
            if not name.startswith("$"):
                yield name
            if name != "$binary" and name not in _DECIMALS:
                yield from texts_of(each)


# From JSON to AMQP


def from_json(form: Json, place: str = "value", depth: int = 0) -> Any:
    """Return the AMQP value that ``form`` stands for, with the Python types of `wire.codec.values`.

    ``place`` names the form in errors. Raises ValueJsonError.
    """
    if depth > MOST_DEPTH:
        raise ValueJsonError(f"{place}: expected at most {MOST_DEPTH} levels of values within values")
    if form is None or isinstance(form, bool):
        return form
    if isinstance(form, str):
        return text_of(form, place)
    if isinstance(form, int):
        return _integer(form, int, place)
    if isinstance(form, float):
        return form
    if isinstance(form, list):
        return [from_json(each, f"{place}[{number}]", depth + 1) for number, each in enumerate(form)]
    if not isinstance(form, dict):
        raise ValueJsonError(f"{place}: expected JSON, got a {type(form).__name__}")
    tags = [name for name in form if name.startswith("$")]
    if not tags:
        return {text_of(name, place): from_json(each, f"{place}.{name}", depth + 1) for name, each in form.items()}
    if len(form) > 1:
        raise ValueJsonError(
            f"{place}: expected {_shown(tags[0])} as the only name in its object, got {len(form)} names"
        )
    return _tagged(tags[0], form[tags[0]], place, depth)


def text_of(form: Json, place: str) -> str:
    """Return ``form``, a string of Unicode characters. Raises ValueJsonError for anything else, and for surrogates."""
    if not isinstance(form, str):
        raise ValueJsonError(f"{place}: expected a string, got {_shown(form)}")
    if any(ord(each) in _SURROGATES for each in form):
        raise ValueJsonError(f"{place}: expected a string of Unicode characters, got half of a surrogate pair")
    return form


def bytes_of(form: Json, place: str) -> bytes:
    """Return the bytes of a string of Base64. Raises ValueJsonError for anything else."""
    try:
        return base64.b64decode(text_of(form, place).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueJsonError(f"{place}: expected Base64, got {_shown(form)}") from None


def _tagged(tag: str, form: Json, place: str, depth: int) -> Any:
    if tag in _INTEGERS:
        return _integer(form, _INTEGERS[tag], place)
    if tag in _DECIMALS:
        kind, size = _DECIMALS[tag]
        return kind(_hexadecimal(form, size, place))
    if tag == CUT:
        raise ValueJsonError(f"{place}: this value was cut as it was shown: expected the whole value")
    if tag not in _OTHERS:
        known = ", ".join((*_INTEGERS, *_DECIMALS, *_OTHERS))
        raise ValueJsonError(f"{place}: unknown type {_shown(tag)}: expected one of {known}")
    return _OTHERS[tag](form, place, depth)


def _integer(form: Json, kind: type[int], place: str) -> int:
    name = "long" if kind is int else kind.__name__.lower()
    try:
        if isinstance(form, bool) or not isinstance(form, (int, str)) or (isinstance(form, str) and len(form) > 20):
            raise ValueError
        value = kind(int(form))
        encode(value)
    except (ValueError, CodecFault):
        raise ValueJsonError(f"{place}: expected a whole number in the range of {name}, got {_shown(form)}") from None
    return value


def _real(form: Json, kind: type[float], place: str) -> float:
    try:
        if isinstance(form, bool) or not isinstance(form, (int, float, str)):
            raise ValueError
        value = kind(form)
        encode(value)
    except (ValueError, OverflowError, CodecFault):
        raise ValueJsonError(f'{place}: expected a number or a string such as "NaN", got {_shown(form)}') from None
    # A float has the precision of its 32 bits.
    return value if kind is float else kind(decode(encode(value)))


def _time(form: Json, place: str, depth: int) -> Timestamp:
    if isinstance(form, str) and "T" in form:
        try:
            at = datetime.fromisoformat(form)
        except ValueError:
            at = None
        if at is not None and at.tzinfo is not None:
            return Timestamp((at - _EPOCH) // timedelta(milliseconds=1))
        raise ValueJsonError(f"{place}: expected a time with its zone, as 2026-11-27T23:44:38.123Z, got {_shown(form)}")
    return Timestamp(_integer(form, Timestamp, place))


def _uuid(form: Json, place: str, depth: int) -> uuid.UUID:
    try:
        return uuid.UUID(text_of(form, place))
    except ValueError:
        raise ValueJsonError(f"{place}: expected a uuid, got {_shown(form)}") from None


def _symbol(form: Json, place: str, depth: int) -> Symbol:
    return symbol_of(form, place)


def symbol_of(form: Json, place: str) -> Symbol:
    """Return the symbol of a string of ASCII. Raises ValueJsonError for anything else."""
    if not text_of(form, place).isascii():
        raise ValueJsonError(f"{place}: expected a symbol, which has ASCII only, got {_shown(form)}")
    return Symbol(form)


def _char(form: Json, place: str, depth: int) -> Char:
    if len(text_of(form, place)) != 1:
        raise ValueJsonError(f"{place}: expected one character, got {_shown(form)}")
    return Char(form)


def _hexadecimal(form: Json, size: int, place: str) -> bytes:
    try:
        raw = bytes.fromhex(text_of(form, place))
    except ValueError:
        raw = b""
    if len(raw) != size:
        raise ValueJsonError(f"{place}: expected {2 * size} hexadecimal digits, got {_shown(form)}")
    return raw


def _map(form: Json, place: str, depth: int) -> dict[Any, Any] | Pairs:
    if not isinstance(form, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in form):
        raise ValueJsonError(f"{place}: expected an array of [key, value] pairs, got {_shown(form)}")
    items = []
    for number, (name, each) in enumerate(form):
        key = from_json(name, f"{place}, key {number}", depth + 1)
        if isinstance(key, (list, dict, Pairs, Array, Described)):
            raise ValueJsonError(
                f"{place}, key {number}: expected no value of other values as a key, got {_shown(name)}"
            )
        items.append((key, from_json(each, f"{place}, value {number}", depth + 1)))
    as_dict = dict(items)
    return as_dict if len(as_dict) == len(items) else Pairs(tuple(items))


def _array(form: Json, place: str, depth: int) -> Array:
    if not isinstance(form, dict) or not {"constructor", "elements"} <= set(form) <= {
        "constructor",
        "elements",
        "descriptor",
    }:
        raise ValueJsonError(f"{place}: expected an object with constructor and elements, got {_shown(form)}")
    constructor, elements = form["constructor"], form["elements"]
    if not isinstance(constructor, int) or isinstance(constructor, bool) or not isinstance(elements, list):
        raise ValueJsonError(f"{place}: expected a number as constructor and an array of elements, got {_shown(form)}")
    found = Array(
        constructor,
        tuple(from_json(each, f"{place}[{number}]", depth + 1) for number, each in enumerate(elements)),
        None if form.get("descriptor") is None else _descriptor(form["descriptor"], place, depth),
    )
    _check_array(found, place)
    return found


def _check_array(found: Array, place: str) -> None:
    """Raise ValueJsonError for an array whose elements are not all of the type of its constructor."""
    try:
        if decode(encode(found)) == found:
            return
    except Exception:  # noqa: BLE001 (the constructor is any number, and the elements are of any types)
        pass
    raise ValueJsonError(f"{place}: expected elements of the type of constructor {found.constructor}")


def _described(form: Json, place: str, depth: int) -> Described:
    if not isinstance(form, list) or len(form) != 2:
        raise ValueJsonError(f"{place}: expected [descriptor, value], got {_shown(form)}")
    return Described(_descriptor(form[0], place, depth), from_json(form[1], place, depth + 1))


def _descriptor(form: Json, place: str, depth: int) -> ULong | Symbol:
    found = from_json(form, f"{place}, descriptor", depth + 1)
    if not isinstance(found, (ULong, Symbol)):
        raise ValueJsonError(f"{place}: expected a ulong or a symbol as descriptor, got {_shown(form)}")
    return found


_OTHERS: dict[str, Callable[[Json, str, int], Any]] = {
    "$double": lambda form, place, depth: _real(form, float, place),
    "$float": lambda form, place, depth: _real(form, Float, place),
    "$timestamp": _time,
    "$uuid": _uuid,
    "$symbol": _symbol,
    "$char": _char,
    "$binary": lambda form, place, depth: bytes_of(form, place),
    "$map": _map,
    "$array": _array,
    "$described": _described,
}


def _shown(form: Json) -> str:
    text = repr(form)
    return text if len(text) <= 60 else f"{text[:60]}..."
