"""Does `check` say where users can take subscriptions from each other?"""

from pathlib import Path

import pytest

from addressing.topology.loader import load

TWO = "mesh: m\nrouters: {r1: {listeners: [5672]}}\n"
USERS = "users: {alice: {receive: [news]}}\n"
EXISTING = "brokers: {art: {url: 'amqp://h'%s}}\naddresses: {news: topic, orders: queue}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TWO + EXISTING % "" + USERS, ["AM305"]),
        (TWO + EXISTING % ", subscriptions: by_name" + USERS, ["AM305"]),
        (TWO + EXISTING % ", subscriptions: by_user" + USERS, []),
        (TWO + EXISTING % "", []),
        (TWO + (EXISTING % "").replace("news: topic", "news: anycast") + USERS, []),
        (TWO + "brokers: {b: {data: x}}\naddresses: {news: topic}\n" + USERS, []),
    ],
    ids=["by default", "by name", "by user", "no users", "no topics", "embedded"],
)
def test_an_existing_broker_that_does_not_keep_users_apart_is_warned_of(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(text)
    assert [warning.code for warning in load(file).warnings] == expected
