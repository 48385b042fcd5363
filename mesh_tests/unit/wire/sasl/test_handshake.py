"""Both sides against each other, byte for byte."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_tests.unit.wire.sasl.secrets import USERS
from wire.sasl import (
    Authenticator,
    SaslAccepted,
    SaslClient,
    SaslClientSettings,
    SaslRefused,
    SaslServer,
    SaslServerSettings,
)
from wire.sasl.frames import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    encode_frame,
    take_frame,
)
from wire.sasl.headers import AMQP, SASL

OPEN = SaslServerSettings()
OPTIONAL = SaslServerSettings(USERS)
REQUIRED = SaslServerSettings(USERS, is_required=True)


def shake(server: SaslServer, client: SaslClient, chunk: int = 1000) -> None:
    for _ in range(20):
        to_server = client.output()
        for start in range(0, len(to_server), chunk):
            server.receive(to_server[start : start + chunk])
        if server.password_check is not None:
            server.on_password_checked(server.password_check.is_right())
        to_client = server.output()
        for start in range(0, len(to_client), chunk):
            client.receive(to_client[start : start + chunk])
        if not to_server and not to_client:
            return


def verdicts(
    server_settings: SaslServerSettings, client_settings: SaslClientSettings, certificate_user: str | None = None
) -> tuple[object, object]:
    server, client = SaslServer(server_settings, certificate_user), SaslClient(client_settings)
    shake(server, client)
    return server.verdict, client.verdict


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
@pytest.mark.parametrize("settings_", [OPTIONAL, REQUIRED])
def test_a_right_password_is_accepted(mechanism: str, settings_: SaslServerSettings) -> None:
    client = SaslClientSettings("alice", "wonder", mechanisms=(mechanism,))
    assert verdicts(settings_, client) == (SaslAccepted("alice", mechanism), SaslAccepted("alice", mechanism))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_wrong_password_and_an_unknown_user_look_the_same(mechanism: str, user: str) -> None:
    server, client = verdicts(REQUIRED, SaslClientSettings(user, "guess", mechanisms=(mechanism,)))
    assert client == SaslRefused(f"authentication failed ({mechanism} as {user!r})", is_credentials=True)
    assert isinstance(server, SaslRefused)
    assert server.is_credentials
    assert "wrong user or password" in server.reason


def test_scram_is_preferred_to_plain() -> None:
    server, _ = verdicts(REQUIRED, SaslClientSettings("alice", "wonder"))
    assert server == SaslAccepted("alice", "SCRAM-SHA-256")


def test_a_certificate_is_preferred_to_a_password() -> None:
    client = SaslClientSettings("alice", "wonder", has_certificate=True)
    server, _ = verdicts(REQUIRED, client, certificate_user="carol")
    assert server == SaslAccepted("carol", "EXTERNAL")


def test_external_is_not_offered_without_a_certificate() -> None:
    assert "EXTERNAL" not in SaslServer(REQUIRED).mechanisms


def test_anonymous_where_nothing_is_required() -> None:
    assert verdicts(OPEN, SaslClientSettings()) == (SaslAccepted(None, "ANONYMOUS"), SaslAccepted(None, "ANONYMOUS"))


def test_no_common_mechanism_names_both_sides() -> None:
    _, client = verdicts(REQUIRED, SaslClientSettings())
    assert client == SaslRefused(
        "no common SASL mechanism: the server offers SCRAM-SHA-256 PLAIN, our credentials allow ANONYMOUS; "
        "expected a user with a password"
    )


def test_a_certificate_without_tls_at_the_listener_is_told_so() -> None:
    _, client = verdicts(REQUIRED, SaslClientSettings(has_certificate=True))
    assert isinstance(client, SaslRefused)
    assert client.reason.endswith(
        "; expected a user with a password or TLS at the listener, which a login by certificate needs"
    )


def test_a_peer_without_a_sasl_layer_is_taken_where_nothing_is_required() -> None:
    server = SaslServer(OPTIONAL)
    server.receive(AMQP + b"open")
    assert server.verdict == SaslAccepted(None, None)
    assert server.leftover == AMQP + b"open"
    assert server.output() == b""


def test_a_peer_without_a_sasl_layer_gets_our_header_where_it_is_required() -> None:
    server = SaslServer(REQUIRED)
    server.receive(AMQP)
    assert isinstance(server.verdict, SaslRefused)
    assert server.output() == SASL


def test_a_mesh_certificate_may_stand_for_the_sasl_layer() -> None:
    settings_ = SaslServerSettings(is_required=True, is_tls_enough=True)
    server = SaslServer(settings_, certificate_user="r1")
    server.receive(AMQP)
    assert server.verdict == SaslAccepted("r1", None)


def test_no_certificate_and_nothing_else_to_offer_is_refused() -> None:
    server = SaslServer(SaslServerSettings(is_required=True, is_tls_enough=True))
    server.receive(SASL)
    assert server.verdict == SaslRefused("a client certificate is required, but the peer has none")


@pytest.mark.parametrize(
    ("first", "seen"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "a TLS ClientHello"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP: GET / HTTP/1.1"),
        (b"AMQP\x00\x00\x09\x01", "AMQP 0-9-1 or older"),
        (b"AMQP\x02\x01\x00\x00", "AMQP 1.0 that asks for TLS inside the connection"),
        (b"AMQP\x03\x02\x00\x00", "AMQP protocol 3 version 2.0.0"),
        (b"\x10\x10\x00\x04MQTT\x04\x02", "MQTT"),
        (b"\r\n\r\n", "4 bytes that begin 0d 0a 0d 0a"),
    ],
)
def test_another_protocol_is_named_and_answered_with_our_header(first: bytes, seen: str) -> None:
    server = SaslServer(OPEN)
    server.receive(first)
    assert server.verdict == SaslRefused(f"not AMQP 1.0: {seen}")
    assert server.output() == AMQP


def test_a_header_in_pieces_is_waited_for() -> None:
    server = SaslServer(OPEN)
    for byte in AMQP:
        assert server.verdict is None
        server.receive(bytes([byte]))
    assert server.verdict == SaslAccepted(None, None)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN", "ANONYMOUS"])
def test_byte_by_byte_is_as_good_as_at_once(mechanism: str) -> None:
    server, client = SaslServer(OPTIONAL), SaslClient(SaslClientSettings("bob", "builder", mechanisms=(mechanism,)))
    shake(server, client, chunk=1)
    assert isinstance(server.verdict, SaslAccepted)
    assert isinstance(client.verdict, SaslAccepted)


def test_what_follows_the_handshake_is_left_over() -> None:
    server = SaslServer(OPEN)
    server.receive(SASL + encode_frame(SaslInit("ANONYMOUS")) + AMQP + b"open")
    assert server.leftover == AMQP + b"open"


def test_bytes_that_follow_a_password_wait_for_its_check() -> None:
    server = SaslServer(REQUIRED)
    server.receive(SASL + encode_frame(SaslInit("PLAIN", b"\0alice\0wonder")) + AMQP)
    assert server.verdict is None
    assert server.password_check is not None
    server.on_password_checked(server.password_check.is_right())
    assert server.verdict == SaslAccepted("alice", "PLAIN")
    assert server.leftover == AMQP


def test_plain_without_initial_response_is_asked_for_it() -> None:
    server = SaslServer(REQUIRED)
    server.receive(SASL + encode_frame(SaslInit("PLAIN")) + encode_frame(SaslResponse(b"\0bob\0builder")))
    assert server.password_check is not None
    assert server.password_check.is_right()


@pytest.mark.parametrize(
    ("response", "complaint"),
    [(b"", "three"), (b"\0a\0b\0c", "three"), (b"\0\xff\0x", "three"), (b"bob\0alice\0wonder", "cannot act as")],
)
def test_a_malformed_plain_response_is_refused_with_an_outcome(response: bytes, complaint: str) -> None:
    server = SaslServer(REQUIRED)
    server.receive(SASL + encode_frame(SaslInit("PLAIN", response)))
    assert isinstance(server.verdict, SaslRefused)
    assert complaint in server.verdict.reason
    assert server.output().endswith(encode_frame(SaslOutcome(1)))


def test_an_unoffered_mechanism_fails_authentication() -> None:
    server = SaslServer(REQUIRED)
    server.receive(SASL + encode_frame(SaslInit("ANONYMOUS")))
    assert server.verdict == SaslRefused("mechanism 'ANONYMOUS' was not offered (SCRAM-SHA-256 PLAIN)")
    assert server.output().endswith(encode_frame(SaslOutcome(1)))


def test_an_unknown_user_always_sees_the_same_salt() -> None:
    def challenge() -> bytes:
        server = SaslServer(REQUIRED)
        server.receive(SASL + encode_frame(SaslInit("SCRAM-SHA-256", b"n,,n=nobody,r=abc")))
        data = bytearray(server.output()[8:])
        assert isinstance(take_frame(data), SaslMechanisms)
        frame = take_frame(data)
        assert isinstance(frame, SaslChallenge)
        return frame.challenge[frame.challenge.index(b",s=") :]

    assert challenge() == challenge()


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    client = SaslClient(SaslClientSettings("alice", "wonder"))
    client.receive(SASL + encode_frame(SaslMechanisms(("SCRAM-SHA-256",))))
    client.output()
    client.receive(encode_frame(SaslOutcome(0)))
    assert client.verdict == SaslRefused("the server ended the SCRAM exchange before the proof of the client, or twice")


def test_the_servers_proof_may_come_as_a_challenge() -> None:
    server, client = SaslServer(REQUIRED), SaslClient(SaslClientSettings("alice", "wonder"))
    for _ in range(2):
        server.receive(client.output())
        client.receive(server.output())
    server.receive(client.output())
    outcome = take_frame(bytearray(server.output()))
    assert isinstance(outcome, SaslOutcome)
    assert outcome.additional_data is not None
    client.receive(encode_frame(SaslChallenge(outcome.additional_data)))
    assert client.output() == encode_frame(SaslResponse(b""))
    client.receive(encode_frame(SaslOutcome(0)))
    assert client.verdict == SaslAccepted("alice", "SCRAM-SHA-256")


def test_a_server_without_sasl_is_named() -> None:
    client = SaslClient(SaslClientSettings())
    client.receive(b"HTTP/1.1 400 Bad Request\r\n")
    assert client.verdict == SaslRefused("the server has no AMQP SASL layer: the server sent an HTTP response")


@pytest.mark.parametrize("settings_", [OPEN, OPTIONAL, REQUIRED])
@given(data=st.lists(st.binary(max_size=60), max_size=5), is_sasl=st.booleans())
def test_any_bytes_leave_the_server_waiting_or_decided(
    settings_: SaslServerSettings, data: list[bytes], is_sasl: bool
) -> None:
    server = SaslServer(settings_)
    if is_sasl:
        server.receive(SASL)
    for piece in data:
        server.receive(piece)
        assert (server.password_check is not None) == server.describe_state().startswith("password")
        assert server.verdict is None or server.describe_state() == "nothing"


responses = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from(
            [b"", b"\0a\0b", b"n,,n=alice,r=abc", b"c=biws,r=abc,p=AAAA", b"r=abc,s=AAAAAAAAAAAAAAAAAAAA,i=4096"]
        ),
    ),
    max_size=10,
)


@given(mechanism=st.sampled_from(["PLAIN", "SCRAM-SHA-256", "ANONYMOUS", "EXTERNAL"]), sent=responses)
@settings(deadline=None)
def test_any_responses_leave_the_server_waiting_or_decided(mechanism: str, sent: list[bytes]) -> None:
    server = SaslServer(OPTIONAL, certificate_user="carol")
    server.receive(SASL + encode_frame(SaslInit(mechanism)))
    for response in sent:
        server.receive(encode_frame(SaslResponse(response)))
        if server.password_check is not None:
            server.on_password_checked(False)
    assert server.verdict is None or isinstance(server.verdict, SaslAccepted | SaslRefused)
    assert not (isinstance(server.verdict, SaslAccepted) and mechanism in ("PLAIN", "SCRAM-SHA-256"))


@given(mechanism=st.sampled_from(["PLAIN", "SCRAM-SHA-256"]), sent=responses, data=st.binary(max_size=50))
@settings(deadline=None)
def test_any_challenges_leave_the_client_waiting_or_decided(mechanism: str, sent: list[bytes], data: bytes) -> None:
    client = SaslClient(SaslClientSettings("alice", "wonder"))
    client.receive(SASL + encode_frame(SaslMechanisms((mechanism,))))
    for challenge in sent:
        client.receive(encode_frame(SaslChallenge(challenge)))
    client.receive(data)
    assert not isinstance(client.verdict, SaslAccepted)


def test_passwords_are_not_shown() -> None:
    server = SaslServer(REQUIRED)
    server.receive(SASL + encode_frame(SaslInit("PLAIN", b"\0alice\0hush")))
    assert "hush" not in repr(server.password_check) + repr(SaslClientSettings("alice", "hush"))


def test_iterations_of_an_unknown_user_are_those_of_some_user() -> None:
    real = USERS.secret_of("alice")
    slow = Authenticator({"a": dataclasses.replace(real, iterations=9000)})
    assert slow.secret_of("nobody").iterations == 9000
