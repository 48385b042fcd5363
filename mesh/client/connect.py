"""Opens a client connection over TCP or TLS, and closes the connection at the end of an `async with` block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mesh.client.client import Client
from mesh.client.errors import TimedOut, Unreachable
from mesh.client.server import CONNECTOR, Server
from wire.driver import Driver
from wire.log import LogEvent

CLOSE_GRACE_S = 5.0


@asynccontextmanager
async def connected(server: Server, timeout_s: float, *, container_id: str | None = None) -> AsyncIterator[Client]:
    """Yield a client whose AMQP connection is open, and close the connection at the end of the block.

    Raises Unreachable, with the reason, if the connection fails before it is open, and TimedOut if it is not open after
    ``timeout_s``.
    """
    client = Client(container_id, server.host)
    driver = Driver(client, no_log, container_id=client.settings.container_id)
    client.flush = driver.wake
    driver.connect(server.connector())
    try:
        await _wait_open(client, server, timeout_s)
        yield client
    finally:
        driver.disconnect(CONNECTOR)
        await driver.close(CLOSE_GRACE_S)


async def _wait_open(client: Client, server: Server, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await client.wait_open()
    except TimeoutError:
        raise TimedOut(
            f"server {server.address} did not open the AMQP connection within {timeout_s:g} s", fix=server.fix
        ) from None
    except Unreachable as error:
        fix = error.fix or fix_of(server, error.message) or server.fix
        raise Unreachable(f"{server.address}: {error.message}", fix=fix) from None


def fix_of(server: Server, reason: str) -> str | None:
    """Return advice to the user if client and listener disagree about TLS or SASL; None for any other ``reason``."""
    is_tls = server.tls is not None
    if reason.endswith("waited for protocol header") and not is_tls:
        return "if that is a listener with TLS, write amqps:// in place of amqp://."
    if reason.endswith("waited for sasl-mechanisms"):
        where = "" if is_tls else " to a listener with TLS, by amqps://,"
        return f"where users log in by certificate only, give a client certificate{where} with --cert FILE."
    if reason.startswith("not TLS") and is_tls:
        return "if that is a listener without TLS, write amqp:// in place of amqps://."
    return None


def no_log(event: LogEvent) -> None:
    """Drop the driver's log event: a client command has no log and shows errors to the user instead."""
