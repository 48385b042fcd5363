"""Are secrets hidden wherever the text of a person is shown: in excerpts, messages and differences?"""

import json
from pathlib import Path

import pytest

from addressing.errors import TopologyErrors
from addressing.topology.loader import load, parse_topology
from addressing.topology.redaction import redact

SALTED = "SCRAM-SHA-256$15000:c2FsdA==$c3RvcmVk:c2VydmVy"
BROKEN = "sw0rd/fish+x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"    password: {SALTED}", "    password: ***"),
        (f'    password: "{SALTED}"', "    password: ***"),
        (f"  # password: {SALTED}", "  # password: ***"),
        (f"  - {SALTED}", "  - ***"),
        ("  alice: {password: hunter2, send: orders}", "  alice: {password: ***, send: orders}"),
        ("  alice: {password: 'a, b}', send: orders}", "  alice: {password: ***, send: orders}"),
        ("  alice: {pasword: hunter2}", "  alice: {pasword: ***}"),
        ("    password: abc #def", "    password: ***"),
        ("  url: amqp://bob:hunter2@broker:5672", "  url: amqp://bob:***@broker:5672"),
        ("  url: amqp://bob:a/b@c@broker", "  url: amqp://bob:***@broker"),
        ("{b: {url: 'amqps://bob:hunter2@broker'}}", "{b: {url: 'amqps://bob:***@broker'}}"),
        (
            "    password: >-\n      hunter2\n      hunter3\n    send: a",
            "    password: ***\n      ***\n      ***\n    send: a",
        ),
        ("    password:\n      hunter2\nbrokers:", "    password:\n      ***\nbrokers:"),
        ("    url: amqp://broker:5672", "    url: amqp://broker:5672"),
        ("  orders/#: queue  # for bob@example.org: all", "  orders/#: queue  # for bob@example.org: all"),
        ("  bypass: anycast", "  bypass: anycast"),
        ("  password.reset: queue", "  password.reset: queue"),
        ("  {auth/password: queue}", "  {auth/password: queue}"),
        ("    pass: hunter2", "    pass: ***"),
        ("    db_password: hunter2", "    db_password: ***"),
    ],
)
def test_a_secret_is_masked_and_the_rest_of_the_line_stays(text: str, shown: str) -> None:
    assert redact(text) == shown


HEAD = "mesh: m\nrouters: {r1: }\n"


@pytest.mark.parametrize(
    "text",
    [
        "users: {a: {password: %s}}",
        "users:\n  a:\n    password: %s\n    sned: x",
        "users:\n  a:\n    password:\n      %s",
        "users:\n  a:\n    password: >\n      %s",
        "users:\n  a:\n    password: '%s\n",
        "users:\n  a:\n    pasword: %s",
        "users:\n  a:\n    password: [%s]",
        "users:\n  a:\n    password: *%s",
        "users:\n  a:\n    password: x #%s",
        "users:\n  a:\n    password: %s: y",
        "users:\n  a: {password: %s, send: [}",
        "users: {a: {send: x, password: %s, receive: 5}}",
        "brokers: {b: {url: 'amqp://u:%s@h/x'}}",
        "brokers: {b: {url: 'http://u:%s@h'}}",
        "brokers: {b: {url: 'amqp//u:%s@h'}}",
        "brokers: {b: {url: 'amqp://u:%s@h:x'}}",
        "brokers:\n  b: {ulr: amqp://u:%s@h}",
        "\tpassword: %s",
    ],
)
@pytest.mark.parametrize("secret", [BROKEN, "4815162342", "00010203", "sesame"])
def test_no_error_of_a_topology_shows_a_secret(text: str, secret: str) -> None:
    with pytest.raises(TopologyErrors) as failed:
        parse_topology(HEAD + text.replace("%s", secret))
    told = str(failed.value) + json.dumps(failed.value.to_json())
    assert secret not in told
    assert "<text>:" in told


@pytest.mark.parametrize("name", ["password", "reset-password", "password.reset", "token", "secret"])
def test_an_address_that_is_named_like_a_secret_is_shown_with_its_mistake(name: str) -> None:
    with pytest.raises(TopologyErrors) as failed:
        parse_topology(f"{HEAD}addresses:\n  {name}: qeue\n")
    assert f"  {name}: qeue" in str(failed.value)
    assert "***" not in str(failed.value)


def test_the_caret_stands_under_what_is_meant_behind_a_secret() -> None:
    with pytest.raises(TopologyErrors) as failed:
        parse_topology(HEAD + f"users: {{a: {{password: {json.dumps(SALTED)}, sned: x}}}}")
    (place, line, caret, *_) = str(failed.value).split("\n\n")[-1].splitlines()
    assert place.startswith("<text>:3:")
    assert line[caret.index("^") :].startswith("sned")


def test_an_unreadable_byte_beside_a_password_is_shown_without_the_password(tmp_path: Path) -> None:
    (tmp_path / "t.yml").write_bytes(HEAD.encode() + b"users: {a: {password: s\xe9same, send: a}}\n")
    with pytest.raises(TopologyErrors) as failed:
        load(tmp_path / "t.yml")
    assert "same" not in str(failed.value)
    assert "0xe9" in str(failed.value)
