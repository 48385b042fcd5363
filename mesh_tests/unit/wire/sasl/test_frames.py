import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.sasl.frames import (
    MAX_FRAME_BYTES,
    Frame,
    FrameFault,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    encode_frame,
    take_frame,
)

names = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", min_size=1, max_size=20)
binaries = st.binary(max_size=600)
frames = st.one_of(
    st.lists(names, max_size=40).map(tuple).map(SaslMechanisms),
    st.builds(SaslInit, names, st.none() | binaries, st.none() | st.text(max_size=400)),
    binaries.map(SaslChallenge),
    binaries.map(SaslResponse),
    st.builds(SaslOutcome, st.integers(0, 255), st.none() | binaries),
)


@given(st.lists(frames, max_size=4), st.integers(1, 40))
def test_frames_survive_any_chunking(sent: list[Frame], chunk: int) -> None:
    data = b"".join(encode_frame(frame) for frame in sent)
    buffer, received = bytearray(), []
    for start in range(0, len(data), chunk):
        buffer += data[start : start + chunk]
        while (frame := take_frame(buffer)) is not None:
            received.append(frame)
    assert received == sent
    assert not buffer


@given(st.binary(max_size=300))
def test_any_bytes_are_a_frame_a_fault_or_incomplete(data: bytes) -> None:
    buffer = bytearray(data)
    try:
        while take_frame(buffer) is not None:
            pass
    except FrameFault:
        pass


@given(frames, st.data())
def test_a_damaged_frame_is_a_frame_or_a_fault(frame: Frame, data: st.DataObject) -> None:
    buffer = bytearray(encode_frame(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        buffer[data.draw(st.integers(0, len(buffer) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FrameFault):
        take_frame(buffer)


def test_other_encodings_of_the_same_frame_are_read() -> None:
    symbolic = b"\x00\xa3\x13amqp:sasl-init:list" + b"\xd0\x00\x00\x00\x0f\x00\x00\x00\x01\xb3\x00\x00\x00\x05PLAIN"
    # The size of a list counts the four bytes of its count.
    symbolic = symbolic.replace(b"\xd0\x00\x00\x00\x0f", b"\xd0\x00\x00\x00\x0e")
    header = (8 + 4 + len(symbolic)).to_bytes(4, "big") + b"\x03\x01\x00\x00" + b"\xff\xff\xff\xff"
    assert take_frame(bytearray(header + symbolic)) == SaslInit("PLAIN")
    ulong = b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x44\xc0\x03\x01\x50\x00"
    assert take_frame(bytearray((8 + len(ulong)).to_bytes(4, "big") + b"\x02\x01\x00\x00" + ulong)) == SaslOutcome(0)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ((MAX_FRAME_BYTES + 1).to_bytes(4, "big") + b"\x02\x01\x00\x00", "got 16385"),
        (b"\x00\x00\x00\x07\x02\x01\x00\x00", "bytes, got 7"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x10\x45", "SASL.*got 0"),
        (b"\x00\x00\x00\x0c\x01\x01\x00\x00\x00\x53\x41\x45", "data offset 4, expected 8 to 12"),
        (b"\x00\x00\x00\x0c\x09\x01\x00\x00\x00\x53\x41\x45", "data offset 36, expected 8 to 12"),
        (b"\x00\x00\x00\x08\x02\x01\x00\x00", "ends 1 bytes too early"),
        (b"\x00\x00\x00\x0c\x02\x01\x00\x00\x00\x53\x10\x45", "unknown performative 16"),
        (b"\x00\x00\x00\x0c\x02\x01\x00\x00\x00\x53\x41\x45", "mechanism of sasl-init is not a symbol"),
        (b"\x00\x00\x00\x10\x02\x01\x00\x00\x00\x53\x42\xc0\x03\x02\x40\x40", "at most 1 fields, got 2"),
    ],
)
def test_a_fault_says_what_is_wrong(data: bytes, complaint: str) -> None:
    with pytest.raises(FrameFault, match=complaint):
        take_frame(bytearray(data))


def test_secrets_are_not_shown() -> None:
    shown = repr(
        [SaslInit("PLAIN", b"\0u\0hush"), SaslChallenge(b"hush"), SaslResponse(b"hush"), SaslOutcome(0, b"hush")]
    )
    assert "hush" not in shown
