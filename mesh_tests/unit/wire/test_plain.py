"""Does the short look at transfers and dispositions accept only what the full scan accepts, and read the same in it?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_tests.unit.wire.test_gate import BEGINNING, OPENING, Stranger, attach, described, raw_frame
from wire.codec.composites import check
from wire.codec.faults import CodecFault
from wire.codec.frames import decode_frame
from wire.plain import is_disposition, transfer_in

TRANSFER = 0x14
DISPOSITION = 0x15
PAYLOAD = b"\x00\x53\x75\xa0\x01x"

nulls = st.just(b"\x40")
uints = st.one_of(
    st.just(b"\x43"),
    st.integers(0, 255).map(lambda value: b"\x52" + value.to_bytes(1)),
    st.sampled_from([0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]).map(lambda value: b"\x70" + value.to_bytes(4)),
)
flags = st.sampled_from([b"\x40", b"\x41", b"\x42", b"\x56\x00", b"\x56\x01"])
tags = st.binary(max_size=33).map(lambda tag: b"\xa0" + bytes([len(tag)]) + tag)
states = st.sampled_from(
    [
        b"\x40",
        b"\x00\x53\x24\x45",
        b"\x00\x53\x24\xc0\x01\x00",
        b"\x00\x53\x26\x45",
        b"\x00\x53\x27\x45",
        b"\x00\x53\x23\x45",
        b"\x00\x53\x24\xc0\x02\x01\x40",
        b"\x00\x53\x25\xc0\x01\x01",
    ]
)
transfer_fields = [uints, uints | nulls, tags | nulls, uints | nulls, flags, flags, nulls, nulls, flags, flags, flags]
disposition_fields = [flags, uints, uints | nulls, flags, states, flags]


@st.composite
def bodies(draw: Any, code: int) -> bytes:
    """Of the common form or near to it, some with a changed, missing or added byte."""
    fields = transfer_fields if code == TRANSFER else disposition_fields
    count = draw(st.integers(1, len(fields)))
    items = b"".join(draw(field) for field in fields[:count])
    body = bytearray(b"\x00\x53" + bytes([code, 0xC0, len(items) + 1, count]) + items)
    if code == TRANSFER:
        body += draw(st.sampled_from([b"", PAYLOAD]))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        at = draw(st.integers(0, len(body) - 1))
        kind = draw(st.sampled_from(["change", "drop", "add"]))
        if kind == "change":
            body[at] = draw(st.integers(0, 255))
        elif kind == "drop" and len(body) > 1:
            del body[at]
        else:
            body.insert(at, draw(st.integers(0, 255)))
    return bytes(body)


def scanned(body: bytes) -> int | None:
    """Where the full scan says that the performative ends."""
    try:
        return check(body)[1]
    except CodecFault:
        return None


@settings(max_examples=500)
@given(bodies(TRANSFER))
def test_a_plain_transfer_is_one_that_the_full_scan_accepts_and_reads_the_same(body):
    plain = transfer_in(body)
    if plain is None:
        return
    assert scanned(body) is not None
    transfer = decode_frame((len(body) + 8).to_bytes(4) + b"\x02\x00\x00\x00" + body).performative
    assert not transfer["message-format"]
    assert transfer["state"] is None
    is_first = transfer["delivery-id"] is not None and transfer["delivery-tag"] is not None
    assert plain == (transfer["handle"], is_first, bool(transfer["more"]) and not transfer["aborted"])


@settings(max_examples=500)
@given(bodies(DISPOSITION))
def test_a_plain_disposition_is_one_that_the_full_scan_and_the_rules_accept(body):
    is_plain = is_disposition(body)
    if not is_plain:
        return
    assert scanned(body) == len(body)
    frame = decode_frame((len(body) + 8).to_bytes(4) + b"\x02\x00\x00\x00" + body).performative
    assert frame["last"] is None or (frame["last"] - frame["first"]) & 0xFFFFFFFF <= 0x7FFFFFFF


@pytest.mark.parametrize("code", [TRANSFER, DISPOSITION])
def test_no_beginning_of_a_plain_performative_is_plain(code):
    if code == TRANSFER:
        body = described8(code, b"\x70\0\0\0\x01", b"\x70\0\0\0\x02", b"\xa0\x02ab", b"\x43", b"\x41", b"\x42")
        assert transfer_in(body) == (1, True, False)
    else:
        body = described8(code, b"\x41", b"\x70\0\0\0\x02", b"\x52\x03", b"\x41", b"\x00\x53\x24\x45")
        assert is_disposition(body)
    for size in range(len(body)):
        cut = body[:size]
        for claimed in (cut, cut[:4] + bytes([max(0, size - 5)]) + cut[5:] if size > 5 else cut):
            assert transfer_in(claimed) is None
            assert not is_disposition(claimed)


def described8(code: int, *fields: bytes) -> bytes:
    items = b"".join(fields)
    return b"\x00\x53" + bytes([code, 0xC0, len(items) + 1, len(fields)]) + items


@pytest.mark.parametrize(
    "fields",
    [
        [b"\x52\x05", b"\x43", b"\xa0\x01t"],
        [b"\x43", b"\x40", b"\xa0\x01t"],
        [b"\x43", b"\x43", b"\x40"],
        [b"\x43"],
        [b"\x43", b"\x43", b"\xa0\x01t", b"\x52\x01"],
        [b"\x43", b"\x43", b"\xa0\x01t", b"\x43", b"\x41", b"\x41"],
        [b"\x43", b"\x43", b"\xa0\x01t", b"\x43", b"\x41", b"\x41", b"\x40", b"\x40", b"\x40", b"\x41"],
        [b"\x52\x01", b"\x43", b"\xa0\x01t"],
        [b"\x43", b"\x43", b"\xa0\x21" + b"t" * 33],
    ],
)
def test_a_transfer_means_the_same_in_a_short_list_as_in_a_long_one(fields):
    """A long list is never plain."""
    links = [attach(0, "a"), attach(1, "b", role=True)]
    short = described8(TRANSFER, *fields) + PAYLOAD
    long = raw_frame(TRANSFER, fields)[8:] + PAYLOAD
    assert long.startswith(described(TRANSFER, fields))
    outcomes = []
    for body in (short, long):
        frame = (len(body) + 8).to_bytes(4) + b"\x02\x00\x00\x00" + body
        stranger = Stranger(OPENING, BEGINNING, *links)
        stranger.say(frame, frame)
        fault = stranger.endpoint.gate.fault
        outcomes.append((str(fault), stranger.answers()))
    assert outcomes[0] == outcomes[1]


def test_a_transfer_or_disposition_before_the_open_is_refused_though_it_is_plain():
    for body in (
        described8(TRANSFER, b"\x43", b"\x43", b"\xa0\x01t"),
        described8(DISPOSITION, b"\x41", b"\x43", b"\x40", b"\x41", b"\x00\x53\x24\x45"),
    ):
        assert transfer_in(body) or is_disposition(body)
        condition, _ = Stranger((len(body) + 8).to_bytes(4) + b"\x02\x00\x00\x00" + body).error()
        assert condition == "amqp:connection:framing-error"
