"""Whatever comes in place of SASL frames is a refusal, and never an exception of ours."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mesh_tests.unit.wire.sasl.secrets import USERS
from wire.sasl import SaslClient, SaslClientSettings, SaslRefused, SaslServer, SaslServerSettings
from wire.sasl.frames import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse, encode_frame

SASL = b"AMQP\x03\x01\x00\x00"
TEXTS = [
    b"",
    b"\0",
    b"\0alice\0wonder",
    b"\xff\0\xff\0\xff",
    b"n,,n=alice,r=abcdefgh",
    b"n,,n=a=2Cb,r=\xff",
    b"n,,m=ext,n=alice,r=abc",
    b"y,a=other,n=alice,r=abc",
    b"p=tls,,n=alice,r=abc",
    b"c=biws,r=abc,p=!!",
    b"c=biws",
    b"r=abc,s=!!,i=x",
    b"r=abc,s=AAAA,i=99999999999999999999",
    b"v=!!",
]
responses = st.one_of(st.sampled_from(TEXTS), st.binary(max_size=100))
mechanisms = st.sampled_from(["ANONYMOUS", "PLAIN", "SCRAM-SHA-256", "EXTERNAL", "NONE", ""])


@st.composite
def damaged(draw, frame):
    """As it is, or with one byte changed."""
    if draw(st.booleans()):
        return bytes(frame)
    at = draw(st.integers(0, len(frame) - 1))
    return bytes([*frame[:at], draw(st.integers(0, 255)), *frame[at + 1 :]])


@st.composite
def client_frames(draw):
    name, response = draw(mechanisms), draw(st.one_of(st.none(), responses))
    frames = [SaslInit(name, response, draw(st.one_of(st.none(), st.text(max_size=5))))]
    frames += [SaslResponse(each) for each in draw(st.lists(responses, max_size=3))]
    return b"".join(draw(damaged(encode_frame(frame))) for frame in frames)


@st.composite
def server_frames(draw):
    frames = [SaslMechanisms(tuple(draw(st.lists(mechanisms, min_size=1, max_size=4))))]
    frames += [SaslChallenge(each) for each in draw(st.lists(responses, max_size=3))]
    frames += [SaslOutcome(draw(st.integers(0, 255)), draw(st.one_of(st.none(), responses)))]
    return b"".join(draw(damaged(encode_frame(frame))) for frame in frames)


@settings(max_examples=300)
@given(client_frames())
def test_no_input_of_a_client_raises(sent):
    server = SaslServer(SaslServerSettings(USERS, is_required=True), "cert")
    server.receive(SASL + sent)
    while server.password_check is not None:
        server.on_password_checked(False)
    assert isinstance(server.output(), bytes)


@settings(max_examples=300)
@given(server_frames())
def test_no_input_of_a_server_raises(sent):
    client = SaslClient(SaslClientSettings("alice", "wonder", has_certificate=False))
    client.receive(SASL + sent)
    assert isinstance(client.output(), bytes)


@given(st.binary(max_size=200))
@example(b"\x00\x00\x00\x10\x02\x01\x00\x00\x00\x53\x41\xc0\xff\xff\x40\x40")
@pytest.mark.parametrize("frame_type", [0, 1])
def test_random_frames_are_refused_or_waited_for(frame_type, body):
    server = SaslServer(SaslServerSettings(USERS, is_required=True))
    server.receive(SASL + (len(body) + 8).to_bytes(4) + bytes([2, frame_type, 0, 0]) + body)
    assert isinstance(server.verdict, SaslRefused | None)
