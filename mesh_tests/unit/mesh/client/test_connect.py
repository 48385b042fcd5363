"""What is a user told who speaks to a listener in another way than it wants?"""

from __future__ import annotations

import asyncio
import ssl

import pytest

from mesh.client.connect import connected
from mesh.client.errors import Unreachable
from mesh.client.server import Server

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
TIMEOUT_S = 10.0


async def refusal(answer: bytes, *, is_tls: bool) -> Unreachable:
    """Of a listener that reads something, says ``answer``, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(8)
        writer.write(answer)
        writer.write_eof()
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        server = Server("127.0.0.1", port, ssl.create_default_context() if is_tls else None)
        with pytest.raises(Unreachable) as failed:
            async with connected(server, TIMEOUT_S):
                pass
    return failed.value


@pytest.mark.parametrize(
    ("answer", "is_tls", "fix"),
    [
        (b"", False, "if that is a listener with TLS, write amqps:// in place of amqp://."),
        (
            SASL_HEADER,
            False,
            "where users log in by certificate only, give a client certificate to a listener with TLS, by amqps://, "
            "with --cert FILE.",
        ),
        (SASL_HEADER, True, "if that is a listener without TLS, write amqp:// in place of amqps://."),
    ],
)
def test_a_listener_that_wants_another_protocol_or_login_is_met_with_a_fix(answer: bytes, is_tls: bool, fix: str):
    assert asyncio.run(refusal(answer, is_tls=is_tls)).fix == fix
