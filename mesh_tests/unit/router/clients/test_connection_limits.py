"""A user may have so many connections, and no other user notices."""

from __future__ import annotations

import pytest

from router.clients.connection_limits import ConnectionLimits
from wire.errors import AmqpError


def test_there_are_as_many_as_there_may_be_and_no_more() -> None:
    connection_limits = ConnectionLimits(lambda user: 2 if user == "alice" else 0)
    connection_limits.enter("alice"), connection_limits.enter("alice")
    with pytest.raises(AmqpError, match="user 'alice': at most 2 connections to this router are allowed") as refused:
        connection_limits.enter("alice")
    assert refused.value.condition == "amqp:resource-limit-exceeded"
    connection_limits.leave("alice")
    connection_limits.enter("alice")


def test_who_has_no_limit_and_who_is_somebody_else_comes_in() -> None:
    connection_limits = ConnectionLimits(lambda user: 1 if user is None else 0)
    connection_limits.enter(None)
    for _ in range(100):
        connection_limits.enter("bob")
    with pytest.raises(AmqpError, match="anonymous clients: at most"):
        connection_limits.enter(None)
