"""What is wrong with a broker's URL is said in our words, and never with a password in them."""

import pytest

from addressing.errors import BadValue
from addressing.topology.broker_url import parse_broker_url


@pytest.mark.parametrize("port", ["x", "65536", "-1", "0"])
def test_a_port_that_is_none_is_said_so(port: str) -> None:
    with pytest.raises(BadValue) as told:
        parse_broker_url(f"amqp://alice:secret@host:{port}")
    assert str(told.value) == "malformed broker URL: expected a port from 1 to 65535"
    assert told.value.code == "AM302"


@pytest.mark.parametrize("host", ["[::1", "[secret]"])
def test_brackets_are_for_ipv6(host: str) -> None:
    with pytest.raises(BadValue) as told:
        parse_broker_url(f"amqp://{host}:5672")
    assert str(told.value) == "malformed broker URL: expected an IPv6 address in the [brackets]"


def test_a_port_may_be_missing() -> None:
    assert (parse_broker_url("amqp://h").port, parse_broker_url("amqps://[::1]").port) == (5672, 5671)
