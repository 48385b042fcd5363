"""The address of a delivery: where it is written, and that all other bytes of the message stay as they are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import proton
import pytest

from wire.codec.values import Described, Symbol, ULong, decode, encode
from wire.delivery_address import ADDRESS_ANNOTATION, addressed_start, with_delivery_address, with_to
from wire.sections import scan

ADDRESS = b"dev/a"
HEADER, DELIVERY, ANNOTATIONS, PROPERTIES, APPLICATION, DATA, FOOTER = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x78
MADE_OF = (HEADER, DELIVERY, ANNOTATIONS, PROPERTIES, APPLICATION, DATA, FOOTER)
OWN = Symbol(ADDRESS_ANNOTATION)
VALUES: tuple[Any, ...] = (None, True, 7, 1 << 40, "text", b"bytes", Symbol("s"), [1, "two"], {"k": [None]}, "x" * 400)


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


def sections_of(message: bytes) -> dict[int, bytes]:
    """The encoded sections by their descriptor, read by a codec that is not under test."""
    found: dict[int, bytes] = {}
    data = proton.Data()
    rest = message
    while rest:
        size = data.decode(rest)
        data.clear()
        described = decode(rest[:size])
        found[int(described.descriptor)] = rest[:size]
        rest = rest[size:]
    return found


def random_message(source: random.Random) -> dict[int, bytes]:
    """Sections of a valid message, in order: any of them may be missing but the body."""
    made: dict[int, bytes] = {}
    for code in MADE_OF:
        if code != DATA and source.random() < 0.5:
            continue
        made[code] = section(code, value_of(code, source))
    return made


def value_of(code: int, source: random.Random) -> Any:
    if code == HEADER:
        return [True, None, 1000][: source.randint(0, 3)]
    if code == PROPERTIES:
        to = source.choice([None, "", "elsewhere", "x" * 300])
        return ["id", b"user", to, "subject", *[None] * 6, "group" * source.randint(1, 80)][: source.randint(0, 11)]
    if code == DATA:
        return source.randbytes(source.randint(0, 300))
    keys = [Symbol(f"x-opt-{name}") for name in ("a", "to-", "t", "other" * source.randint(1, 60))]
    if source.random() < 0.4:
        keys.append(OWN)
    source.shuffle(keys)
    return {key: source.choice(VALUES) for key in keys[: source.randint(0, 5)]}


def addresses() -> Iterator[bytes]:
    yield from (b"a", ADDRESS, "d\u00e9v/\u20ac".encode(), b"x" * 255, b"x" * 256, b"x" * 1024)


@pytest.mark.parametrize("seed", range(300))
def test_the_annotation_is_added_or_replaced_and_nothing_else_changes(seed: int) -> None:
    source = random.Random(seed)
    made = random_message(source)
    address = source.choice(list(addresses()))
    message = b"".join(made.values())
    changed = with_delivery_address(message, address)
    before = decode(made[DELIVERY]).value if DELIVERY in made else {}
    before.pop(OWN, None)
    after = sections_of(changed)
    annotations = decode(after[DELIVERY]).value
    assert annotations == {**before, OWN: address.decode()}
    assert all(isinstance(key, Symbol) for key in annotations)
    assert list(after) == sorted({*made, DELIVERY})
    del after[DELIVERY]
    made.pop(DELIVERY, None)
    assert after == made


@pytest.mark.parametrize("seed", range(300))
def test_an_empty_to_is_filled_in_and_nothing_else_changes(seed: int) -> None:
    source = random.Random(1000 + seed)
    made = random_message(source)
    address = source.choice(list(addresses()))
    message = b"".join(made.values())
    changed = with_to(message, address)
    before = decode(made[PROPERTIES]).value if PROPERTIES in made else []
    if len(before) > 2 and before[2]:
        assert changed == message
        return
    after = sections_of(changed)
    expected = [*before, None, None, None][: max(3, len(before))]
    expected[2] = address.decode()
    assert decode(after[PROPERTIES]).value == expected
    assert scan(changed).to == address.decode()
    assert with_to(changed, b"again") == changed
    del after[PROPERTIES]
    made.pop(PROPERTIES, None)
    assert after == made


@pytest.mark.parametrize("key", [b"\xa3\x08", b"\xb3\x00\x00\x00\x08", b"\xa1\x08", b"\xb1\x00\x00\x00\x08"])
def test_the_producers_annotation_is_replaced_however_its_key_is_encoded(key: bytes) -> None:
    pair = key + b"x-opt-to" + b"\xa1\x05false"
    content = pair + b"\xa3\x01a\x54\x01"
    given = b"\x00\x53\x71\xc1" + bytes((len(content) + 1, 4)) + content
    changed = with_delivery_address(given + section(DATA, b""), ADDRESS)
    assert b"false" not in changed
    assert decode(sections_of(changed)[DELIVERY]).value == {Symbol("a"): 1, OWN: "dev/a"}


@pytest.mark.parametrize("width", ["long", "symbolic"])
def test_sections_are_found_by_every_form_of_their_descriptor(width: str) -> None:
    names = {HEADER: b"amqp:header:list", DELIVERY: b"amqp:delivery-annotations:map"}
    long = {code: b"\x00\x80" + code.to_bytes(8, "big") for code in names}
    symbolic = {code: b"\x00\xa3" + bytes((len(name),)) + name for code, name in names.items()}
    form = long if width == "long" else symbolic
    header = form[HEADER] + b"\x45"
    given = header + form[DELIVERY] + b"\xd1\x00\x00\x00\x04\x00\x00\x00\x00" + section(DATA, b"body")
    assert with_delivery_address(given, ADDRESS) == (
        header + section(DELIVERY, {OWN: "dev/a"}) + section(DATA, b"body")
    )


@pytest.mark.parametrize(
    "value",
    [
        b"\x40",
        b"\xc1\x02\x01\x40",
        b"\xc1\x05\x02\xa3\x09ab",
        b"\xc1\x04\x02\x40\x40\x40",
        b"\x45",
        b"\xc1\x03\x04\x40\x40",
    ],
    ids=["null", "odd", "cut", "longer", "list", "shorter"],
)
def test_annotations_that_are_no_map_are_replaced(value: bytes) -> None:
    given = b"\x00\x53\x71" + value + section(DATA, b"body")
    changed = with_delivery_address(given, ADDRESS)
    assert changed.startswith(section(DELIVERY, {OWN: "dev/a"}))


def test_annotations_in_the_wrong_place_are_replaced_too() -> None:
    before = section(ANNOTATIONS, {Symbol("a"): 1})
    changed = with_delivery_address(before + section(DELIVERY, {OWN: "false"}) + section(DATA, b"body"), ADDRESS)
    assert changed == before + section(DELIVERY, {OWN: "dev/a"}) + section(DATA, b"body")


@pytest.mark.parametrize("properties", [b"\x40", b"\xa1\x01a", b"\xc0\x02\x09\x40"])
def test_a_message_with_unreadable_properties_stays_as_it_is(properties: bytes) -> None:
    message = b"\x00\x53\x73" + properties
    assert with_to(message, ADDRESS) == message


def test_a_client_reads_the_annotation() -> None:
    message = proton.Message(body="hello", durable=True, annotations={"x": 1})
    read = proton.Message()
    read.decode(with_delivery_address(bytes(message.encode()), ADDRESS))
    assert read.instructions == {"x-opt-to": "dev/a"}
    assert (read.body, read.durable, read.address, read.annotations) == ("hello", True, None, {"x": 1})


# The first bytes of a message that nobody has read
@pytest.mark.parametrize("seed", range(300))
def test_the_first_bytes_get_the_address_once_the_delivery_annotations_end_there(seed: int) -> None:
    source = random.Random(2000 + seed)
    made = random_message(source)
    message = b"".join(made.values())
    cut = source.randint(0, len(message))
    behind = sum(len(made.get(code, b"")) for code in (HEADER, DELIVERY))
    changed = addressed_start(message[:cut], ADDRESS, False)
    # The descriptor of the next section, of three bytes, tells that no delivery annotations follow.
    assert (changed is not None) == (cut >= behind + 3)
    if changed is not None:
        assert changed + message[cut:] == with_delivery_address(message, ADDRESS)


@pytest.mark.parametrize("seed", range(100))
def test_a_whole_message_gets_an_empty_to_filled_in_too(seed: int) -> None:
    message = b"".join(random_message(random.Random(3000 + seed)).values())
    assert addressed_start(message, ADDRESS, True) == with_delivery_address(with_to(message, ADDRESS), ADDRESS)


@pytest.mark.parametrize(
    "start", [b"", b"x", b"\x00", b"\x00\x53\x71", b"\x00\x53\x71\xd1\xff\xff\xff\xff", b"\x40" * 9]
)
@pytest.mark.parametrize("fills_to", [False, True])
def test_bytes_that_are_no_message_get_no_address(start: bytes, fills_to: bool) -> None:
    assert addressed_start(start, ADDRESS, fills_to) is None
