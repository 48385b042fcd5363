"""A client that we did not write logs in: python-qpid-proton's own, in a thread."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection

from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sasl.secrets import USERS
from mesh_tests.unit.wire.sites import LOOPBACK, site
from wire.log_events import ConnectionClosed, ConnectionOpened
from wire.sasl import SaslServerSettings
from wire.transport.log_events import ConnectionRefused

pytestmark = pytest.mark.usefixtures("every_loop")


async def visit(port: int, **options: Any) -> None:
    def visit_in_thread() -> None:
        connection = BlockingConnection(f"amqp://{LOOPBACK}:{port}", timeout=5, **options)
        connection.close()

    await asyncio.to_thread(visit_in_thread)


@pytest.mark.parametrize(
    ("options", "user", "mechanism"),
    [
        ({}, None, "ANONYMOUS"),
        ({"sasl_enabled": False}, None, None),
        ({"user": "alice", "password": "wonder", "allow_insecure_mechs": True}, "alice", "PLAIN"),
    ],
)
def test_protons_client_gets_in(options: dict[str, Any], user: str | None, mechanism: str | None) -> None:
    async def scenario() -> None:
        async with site(sasl=SaslServerSettings(USERS)) as server:
            await visit(server.port, **options)
            (opened,) = server.log.of(ConnectionOpened)
            assert (opened.user, opened.mechanism) == (user, mechanism)
            await server.log.wait_for(ConnectionClosed)

    run(scenario)


@pytest.mark.parametrize("options", [{"user": "alice", "password": "guess", "allow_insecure_mechs": True}, {}])
def test_protons_client_is_told_that_it_may_not(options: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with site(sasl=SaslServerSettings(USERS, is_required=True)) as server:
            with pytest.raises(ConnectionException):
                await visit(server.port, **options)
            await server.log.wait_for(ConnectionRefused)
            assert server.node.endpoints == []

    run(scenario)
