"""The URL grammar of send and receive."""

import re

import pytest

from mesh.client.url import AmqpUrl, parse_url


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", AmqpUrl("orders")),
        ("/queues/a", AmqpUrl("/queues/a")),
        ("news.#/x", AmqpUrl("news.#/x")),
        ("a%2Fb", AmqpUrl("a%2Fb")),
        ("urn:a:b", AmqpUrl("urn:a:b")),
        ("amqp:/_topo/0/r1/temp.x", AmqpUrl("amqp:/_topo/0/r1/temp.x")),
        ("amqp:orders", AmqpUrl("orders", "amqp")),
        ("amqps:a%2Fb", AmqpUrl("a/b", "amqps")),
        ("//h/orders", AmqpUrl("orders", None, "h")),
        ("//h:1/orders", AmqpUrl("orders", None, "h", 1)),
        ("amqp://h/orders", AmqpUrl("orders", "amqp", "h")),
        ("AMQPS://h:5671/orders", AmqpUrl("orders", "amqps", "h", 5671)),
        ("amqp://h/%2Fqueues%2Fa", AmqpUrl("/queues/a", "amqp", "h")),
        ("amqp://h//queues/a", AmqpUrl("/queues/a", "amqp", "h")),
        ("amqp:///orders", AmqpUrl("orders", "amqp")),
        ("amqp://u@h/a", AmqpUrl("a", "amqp", "h", None, "u")),
        ("amqp://u:p@h:1/a", AmqpUrl("a", "amqp", "h", 1, "u", "p")),
        ("amqp://u%40x:p%3A%2F@h/a", AmqpUrl("a", "amqp", "h", None, "u@x", "p:/")),
        ("amqp://u:@h/a", AmqpUrl("a", "amqp", "h", None, "u", "")),
        ("amqp://[::1]:5672/a", AmqpUrl("a", "amqp", "::1", 5672)),
        ("amqp://[::1]/a", AmqpUrl("a", "amqp", "::1")),
        ("amqp://h/", AmqpUrl("", "amqp", "h")),
    ],
)
def test_a_url_is_taken_apart(text: str, expected: AmqpUrl) -> None:
    assert parse_url(text) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("http://h/a", "unknown scheme 'http'"),
        ("//h", "'h' has no address behind it"),
        ("amqp://h:0/a", "'0' is not a valid port"),
        ("amqp://h:99999/a", "'99999' is not a valid port"),
        ("amqp://h:x/a", "'x' is not a valid port"),
        ("amqp://h:/a", "'' is not a valid port"),
        ("amqp://[::1/a", "no ']'"),
        ("amqp://h/%ff", "address of the URL is not UTF-8"),
    ],
)
def test_a_wrong_url_is_refused_with_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_url(text)


def test_a_password_is_never_shown() -> None:
    assert "secret" not in repr(parse_url("amqp://u:secret@h/a"))
    with pytest.raises(ValueError, match="no address") as refused:
        parse_url("amqp://u:secret@h")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["amqp://u:sec/ret@h/a", "amqp://u:0/ret@h:x/a", "amqp://u:sec/ret@h:1/a@b"])
def test_half_a_password_is_not_shown_as_a_port(text: str) -> None:
    with pytest.raises(ValueError, match=r"a '/' in a password as %2F$") as failed:
        parse_url(text)
    assert "sec" not in str(failed.value)


def test_an_address_may_have_an_at_sign() -> None:
    assert parse_url("amqp://h:1/a@b") == AmqpUrl("a@b", "amqp", "h", 1)
