"""SCRAM-SHA-256 secrets; scramp, a library we did not write, checks them."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient, ScramMechanism

from addressing.topology.credentials import (
    DEFAULT_ITERATIONS,
    SecretError,
    make_secret,
    parse_secret,
    prepare_password,
    verify_password,
)

FAST = 4096
KEY = base64.b64encode(bytes(32)).decode()


def test_a_password_verifies_against_its_own_secret_only() -> None:
    secret = parse_secret(make_secret("correct horse"))
    assert verify_password(secret, "correct horse")
    assert not verify_password(secret, "correct hors")
    assert not verify_password(secret, "")


def test_the_secret_of_rfc_7677_is_made_from_its_password() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    assert make_secret("pencil", iterations=FAST, salt=salt) == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
        "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


def test_a_client_of_another_library_logs_in_with_the_secret() -> None:
    secret = parse_secret(make_secret("pässwörd", iterations=FAST))
    server = ScramMechanism("SCRAM-SHA-256").make_server(
        lambda user: (secret.salt, secret.stored_key, secret.server_key, secret.iterations)
    )
    client = ScramClient(["SCRAM-SHA-256"], "alice", "pässwörd")
    server.set_client_first(client.get_client_first())
    client.set_server_first(server.get_server_first())
    server.set_client_final(client.get_client_final())
    client.set_server_final(server.get_server_final())


@settings(max_examples=20, deadline=None)
@given(st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1))
def test_a_secret_survives_being_written_and_read(password: str) -> None:
    text = make_secret(password, iterations=FAST)
    assert str(parse_secret(text)) == text
    assert verify_password(parse_secret(text), password)


def test_two_secrets_of_one_password_differ() -> None:
    assert make_secret("x") != make_secret("x")
    assert parse_secret(make_secret("x")).iterations == DEFAULT_ITERATIONS


@pytest.mark.parametrize(
    ("typed", "prepared"),
    [("I\u00adX", b"IX"), ("user", b"user"), ("\u00aa", b"a"), ("\u2168", b"IX"), ("a\u00a0b", b"a b")],
)
def test_passwords_are_prepared_as_rfc_4013_says(typed: str, prepared: bytes) -> None:
    assert prepare_password(typed) == prepared


@pytest.mark.parametrize("password", ["", "\u00ad", "a\u0007", "\u06271", "a\u0627"])
def test_a_password_that_sasl_cannot_carry_is_refused(password: str) -> None:
    with pytest.raises(SecretError):
        make_secret(password)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hunter2", "not a plain password"),
        (f"SCRAM-SHA-1$4096:c2FsdA==${KEY}:{KEY}", "not a plain password"),
        (f"SCRAM-SHA-256$100:c2FsdA==${KEY}:{KEY}", "4096 to 10000000 iterations, got 100"),
        (f"SCRAM-SHA-256$99999999:c2FsdA==${KEY}:{KEY}", "got 99999999"),
        (f"SCRAM-SHA-256$4096:c2Fs*A==${KEY}:{KEY}", "salt is not base64"),
        (f"SCRAM-SHA-256$4096:c2FsdA==$AAAA:{KEY}", "32 bytes of StoredKey, got 3"),
        (f"SCRAM-SHA-256$4096:c2FsdA==${KEY}:AAAA", "32 bytes of ServerKey, got 3"),
    ],
)
def test_a_malformed_secret_is_refused_without_being_repeated(text: str, reason: str) -> None:
    with pytest.raises(SecretError) as caught:
        parse_secret(text)
    assert reason in str(caught.value)
    assert text not in str(caught.value)


def test_a_secret_does_not_show_its_keys_in_logs() -> None:
    assert repr(parse_secret(make_secret("x"))) == f"Secret(iterations={DEFAULT_ITERATIONS})"
