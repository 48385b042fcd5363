"""A user may have so many connections, and no other user notices."""

from __future__ import annotations

import pytest

from router.clients.connection_limits import ConnectionLimits
from wire.errors import AmqpError


def test_there_are_as_many_as_there_may_be_and_no_more() -> None:
    crowding = ConnectionLimits(lambda user: 2 if user == "alice" else 0)
    crowding.enter("alice"), crowding.enter("alice")
    with pytest.raises(AmqpError, match="user 'alice': at most 2 connections to this router are allowed") as refused:
        crowding.enter("alice")
    assert refused.value.condition == "amqp:resource-limit-exceeded"
    crowding.leave("alice")
    crowding.enter("alice")


def test_who_has_no_limit_and_who_is_somebody_else_comes_in() -> None:
    crowding = ConnectionLimits(lambda user: 1 if user is None else 0)
    crowding.enter(None)
    for _ in range(100):
        crowding.enter("bob")
    with pytest.raises(AmqpError, match="anonymous clients: at most"):
        crowding.enter(None)
