"""The load generator's handshake against wire's own server side, and against its own; the values it is made of."""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.bench import values
from mesh.bench.dial import BenchServer, dial, listen, welcome
from mesh.bench.faults import BenchRefused, Malformed
from mesh.bench.handshake import Handshake, LinkPlan, NoSaslLayer
from mesh.bench.performatives import SEND_SETTLED, decode, encode, why_ended
from mesh.bench.values import DescribedValue, ValueReader
from mesh.client.errors import MeshError, Unreachable
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import as_failure
from mesh_tests.bench.wire_peer import HEADER, REFUSED, SASL_HEADER, WirePeer
from mesh_tests.unit.wire.sasl.secrets import USERS
from wire.sasl import SaslClientSettings, SaslServer, SaslServerSettings

BOTH = [LinkPlan("a", False, SEND_SETTLED), LinkPlan("b", True)]


def log_in(user: str | None, password: str | None, *, is_required: bool = True) -> Handshake:
    """As far as SASL goes."""
    handshake = Handshake("c", "h", BOTH, SaslClientSettings(user, password))
    server = SaslServer(SaslServerSettings(USERS, is_required=is_required))
    while server.verdict is None:
        server.receive(handshake.output())
        if (check := server.password_check) is not None:
            server.on_password_checked(check.run())
        handshake.receive(server.output())
    return handshake


@pytest.mark.parametrize(("user", "password"), [("alice", "wonder"), (None, None)])
def test_who_is_known_or_nobody_gets_to_the_open_frame(user: str | None, password: str | None) -> None:
    handshake = log_in(user, password, is_required=user is not None)
    assert handshake.output().startswith(HEADER)


def test_a_wrong_password_is_said_in_a_sentence() -> None:
    with pytest.raises(Unreachable, match=r"authentication failed .* as 'alice'"):
        log_in("alice", "wrong")


def test_who_must_log_in_and_has_no_name_is_told() -> None:
    with pytest.raises(Unreachable, match="no common SASL mechanism"):
        log_in(None, None)


def test_nobody_tries_again_where_there_is_no_sasl_layer() -> None:
    handshake = Handshake("c", "h", BOTH, SaslClientSettings())
    assert handshake.output() == SASL_HEADER
    with pytest.raises(NoSaslLayer):
        handshake.receive(HEADER)


def test_somebody_does_not() -> None:
    with pytest.raises(Unreachable, match="no AMQP SASL layer"):
        Handshake("c", "h", BOTH, SaslClientSettings("alice", "wonder")).receive(HEADER)


@pytest.mark.parametrize("hello", [b"HTTP/1.1 400 Bad Request\r\n", b"AMQP\x00\x00\x09\x01"])
def test_another_protocol_is_named(hello: bytes) -> None:
    with pytest.raises(Unreachable, match=r"HTTP|0-9-1"):
        Handshake("c", "h", BOTH, None).receive(hello)


def test_links_are_attached_each_in_a_session_of_its_own() -> None:
    with WirePeer(max_frame_bytes=4096, idle_timeout_s=30.0) as peer:
        dialed = dial(peer.place, BOTH)
        assert [attached.plan for attached in dialed.attached] == BOTH
        assert len({attached.peer_channel for attached in dialed.attached}) == 2
        assert dialed.attached[0].remote_window > 0
        assert (dialed.peer.frame_bytes, dialed.peer.idle_timeout_s) == (4096, 15.0)
        dialed.close()


def test_the_handshake_may_come_in_pieces() -> None:
    whole = bytearray()
    with WirePeer() as peer, socket.create_connection((peer.place.host, peer.place.port)) as connection:
        connection.sendall(Handshake("c", "h", BOTH, None).output())
        connection.settimeout(5.0)
        handshake = Handshake("c", "h", BOTH, None)
        while not handshake.is_done:
            piece = connection.recv(1)
            whole += piece
            handshake.receive(piece)
    again = Handshake("c", "h", BOTH, None)
    again.receive(bytes(whole))
    assert again.is_done
    assert again.attached == handshake.attached


def test_a_refused_link_names_address_and_condition() -> None:
    with WirePeer() as peer, pytest.raises(BenchRefused) as refused:
        dial(peer.place, [LinkPlan("a", True), LinkPlan(REFUSED, False)])
    assert refused.value.message == f"cannot send to {REFUSED}: no such address"
    assert as_failure(refused.value).exit_code == ExitCode.FAILED


def test_generator_meets_generator() -> None:
    with listen() as listening:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(welcome(listening)))
        thread.start()
        ours = dial(BenchServer("127.0.0.1", listening.getsockname()[1]), BOTH[:1])
        thread.join()
    (theirs,) = found
    assert theirs.attached[0].plan == LinkPlan("a", True, SEND_SETTLED)
    theirs.socket.close()
    ours.close()


def test_who_is_not_there_is_named() -> None:
    with listen() as listening:
        port = listening.getsockname()[1]
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port}: cannot connect: connection refused"):
        dial(BenchServer("127.0.0.1", port), BOTH)


def test_a_connection_that_closes_in_the_handshake_is_said_so() -> None:
    with listen() as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=lambda: listening.accept()[0].close())
        thread.start()
        with pytest.raises(Unreachable, match="connection lost"):
            dial(BenchServer("127.0.0.1", port), BOTH)
        thread.join()


# Values
@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x40", None),
        (b"\x41", True),
        (b"\x56\x00", False),
        (b"\x43", 0),
        (b"\x52\xff", 255),
        (b"\x70\x00\x01\x00\x00", 65536),
        (b"\x53\x10", 16),
        (b"\x80" + (2**63).to_bytes(8, "big"), 2**63),
        (b"\x54\xff", -1),
        (b"\x82" + struct.pack(">d", 1.5), 1.5),
        (b"\xa1\x02hi", "hi"),
        (b"\xb3\x00\x00\x00\x01s", "s"),
        (b"\xa0\x01\x00", b"\x00"),
        (b"\x45", []),
        (b"\xc0\x03\x02\x43\x41", [0, True]),
        (b"\xd1\x00\x00\x00\x08\x00\x00\x00\x02\xa3\x01k\x41", [("k", True)]),
        (b"\xe0\x06\x02\xa3\x01a\x01b", ["a", "b"]),
        (b"\x00\x53\x24\x45", DescribedValue(0x24, [])),
    ],
)
def test_values_are_read(data: bytes, value: Any) -> None:
    assert ValueReader(data).value() == value


@given(st.binary(max_size=64))
def test_other_bytes_are_malformed_and_nothing_else(data: bytes) -> None:
    reader = ValueReader(data)
    try:
        reader.value()
    except Malformed:
        return
    assert reader.at <= len(data)


@given(st.text(max_size=300), st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_written_is_read_again(text: str, number: int, truth: bool) -> None:
    frame = encode(3, 0x12, values.string(text), values.uint(number), values.boolean(truth), values.NULL)
    read = decode(frame + b"more")
    assert read is not None
    assert (read.channel, read.code, read.fields) == (3, 0x12, [text, number, truth, None])
    assert read.frame_bytes == len(frame)
    assert (read.field(3, "default"), read.field(9, "none")) == ("default", "none")


def test_a_frame_that_is_not_all_there_is_waited_for() -> None:
    frame = encode(0, 0x10, values.string("c"))
    assert all(decode(frame[:size]) is None for size in range(len(frame)))


@pytest.mark.parametrize(
    "frame", [b"\x00\x00\x00\x04\x02\x00\x00\x00", b"\x00\x00\x00\x09\x02\x00\x00\x00\x40", b"x" * 8]
)
def test_what_is_no_frame_is_malformed(frame: bytes) -> None:
    with pytest.raises(Malformed):
        decode(frame)


def test_an_error_without_description_is_told_by_its_condition() -> None:
    error = values.described(0x1D, [values.symbol("amqp:not-found")])
    failed = why_ended(encode(0, 0x16, values.uint(0), values.TRUE, error), "cannot send to a")
    assert isinstance(failed, MeshError)
    assert (failed.message, failed.code) == ("cannot send to a: amqp:not-found", "amqp:not-found")
